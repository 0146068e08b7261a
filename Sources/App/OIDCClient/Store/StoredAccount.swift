public import Foundation

/// The tokens of one account as a store keeps them, with what is known about them.
public struct StoredAccount: Sendable, Hashable {
  /// The provider that issued the tokens.
  public let providerID: String
  /// Its issuer; `nil` with plain OAuth 2.0.
  public let issuer: String?
  /// The client that they were issued to.
  public let clientID: String
  /// The tokens.
  public private(set) var tokens: AuthTokens
  /// The person; `nil` with plain OAuth 2.0.
  public private(set) var user: User?
  /// When the request for the tokens was sent.
  public let issuedAt: Date
  /// Whether the provider said how long the access token is valid.
  public private(set) var namesLifetime: Bool
  /// The key that the refresh token is bound to, and with it perhaps the access token; `nil` if no proofs were sent. A
  /// provider may bind the refresh token alone (RFC 9449, section 5).
  public let dpopKey: DPoPKey?
  /// What is known about the refresh token.
  public var refreshState = RefreshState.settled
  /// The ID token of the last refresh that brought one; `nil` if none did. `tokens` has that of the sign-in.
  public private(set) var renewedIDToken: String?
  /// Whether the tokens are those of the client itself, which it asked for without a person.
  public internal(set) var isOfMachine = false

  /// Creates an account of tokens whose request was sent at `issuedAt`.
  public init(
    providerID: String, issuer: String?, clientID: String, tokens: AuthTokens, user: User?, issuedAt: Date,
    namesLifetime: Bool = true, dpopKey: DPoPKey? = nil
  ) {
    self.providerID = providerID
    self.issuer = issuer
    self.clientID = clientID
    self.tokens = tokens
    self.user = user
    self.issuedAt = issuedAt
    self.namesLifetime = namesLifetime
    self.dpopKey = dpopKey
  }

  /// Whether the access token is bound to the key, so that it is of no use alone.
  public var isBound: Bool { dpopKey != nil && tokens.tokenType.lowercased() == "dpop" }

  /// Whether the access token is used until a service refuses it: the provider named no lifetime, and nothing renews the
  /// token (RFC 6749, section 5.1).
  public var isOpenEnded: Bool {
    guard !namesLifetime, tokens.refreshToken == nil else { return false }
    if case .refused = refreshState { return false }
    return true
  }

  /// When the access token expires, by the clock of this machine: the distant future if it `isOpenEnded`.
  public var expiresAt: Date { isOpenEnded ? .distantFuture : issuedAt.addingTimeInterval(tokens.expiresIn) }

  /// Takes over what a refresh did not bring.
  mutating func keep(from old: StoredAccount) {
    renewedIDToken = tokens.idToken ?? old.renewedIDToken
    tokens = AuthTokens(
      accessToken: tokens.accessToken, refreshToken: tokens.refreshToken ?? old.tokens.refreshToken,
      tokenType: tokens.tokenType, expiresIn: tokens.expiresIn, scope: tokens.scope ?? old.tokens.scope,
      // That of the sign-in: a service that gave a nonce asks for it.
      idToken: old.tokens.idToken ?? tokens.idToken)
    user = user ?? old.user
  }

  /// The newest ID token; `nil` if there is none.
  public var newestIDToken: IDToken? { (renewedIDToken ?? tokens.idToken).flatMap { try? IDToken($0) } }

  /// The account with another refresh token, or with none, as far as is known about it.
  func with(refreshToken: String?) -> StoredAccount {
    var account = self
    account.refreshState = .settled
    account.tokens = AuthTokens(
      accessToken: tokens.accessToken, refreshToken: refreshToken, tokenType: tokens.tokenType,
      expiresIn: tokens.expiresIn, scope: tokens.scope, idToken: tokens.idToken)
    return account
  }
}

/// What is known about the refresh token of an account.
public enum RefreshState: Sendable, Hashable, Codable {
  /// The provider accepts it, as far as is known.
  case settled
  /// It was sent, and the answer is not stored yet. If no process is waiting for the answer, it was lost: the provider may
  /// have replaced the token.
  case sent(at: Date)
  /// The provider asks to wait.
  case paused(until: Date)
  /// The provider refused it with this code. `afterLostAnswer`: an earlier answer, with its successor, was lost.
  case refused(String, afterLostAnswer: Bool)
}

extension StoredAccount: CustomStringConvertible, CustomReflectable {
  /// The provider and the user.
  public var description: String { "\(user?.username ?? "an account") at \(providerID)" }
  /// No members: tokens stay out of logs.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension StoredAccount: Codable {
  private enum CodingKeys: String, CodingKey {
    case version, provider, issuer, client, access, refresh, type, lifetime, assumed, scope, id, user, issued, dpop
    case state, machine, renewed
  }

  private static let version = 1

  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    guard try container.decode(Int.self, forKey: .version) == Self.version else {
      throw DecodingError.dataCorruptedError(forKey: .version, in: container, debugDescription: "a later version")
    }
    self.init(
      providerID: try container.decode(String.self, forKey: .provider),
      issuer: try container.decodeIfPresent(String.self, forKey: .issuer),
      clientID: try container.decode(String.self, forKey: .client),
      tokens: AuthTokens(
        accessToken: try container.decode(String.self, forKey: .access),
        refreshToken: try container.decodeIfPresent(String.self, forKey: .refresh),
        tokenType: try container.decode(String.self, forKey: .type),
        expiresIn: try container.decode(TimeInterval.self, forKey: .lifetime),
        scope: try container.decodeIfPresent(String.self, forKey: .scope),
        idToken: try container.decodeIfPresent(String.self, forKey: .id)),
      user: try container.decodeIfPresent(User.self, forKey: .user),
      issuedAt: try container.decode(Date.self, forKey: .issued),
      namesLifetime: try container.decodeIfPresent(Bool.self, forKey: .assumed) != true,
      dpopKey: try container.decodeIfPresent(Data.self, forKey: .dpop).flatMap { DPoPKey(bytes: Array($0)) })
    refreshState = try container.decode(RefreshState.self, forKey: .state)
    renewedIDToken = try container.decodeIfPresent(String.self, forKey: .renewed)
    isOfMachine = try container.decodeIfPresent(Bool.self, forKey: .machine) ?? false
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(Self.version, forKey: .version)
    try container.encode(providerID, forKey: .provider)
    try container.encodeIfPresent(issuer, forKey: .issuer)
    try container.encode(clientID, forKey: .client)
    try container.encode(tokens.accessToken, forKey: .access)
    try container.encodeIfPresent(tokens.refreshToken, forKey: .refresh)
    try container.encode(tokens.tokenType, forKey: .type)
    try container.encode(tokens.expiresIn, forKey: .lifetime)
    if !namesLifetime { try container.encode(true, forKey: .assumed) }
    try container.encodeIfPresent(tokens.scope, forKey: .scope)
    try container.encodeIfPresent(tokens.idToken, forKey: .id)
    try container.encodeIfPresent(user, forKey: .user)
    try container.encode(issuedAt, forKey: .issued)
    try container.encodeIfPresent(dpopKey.map { Data($0.bytes) }, forKey: .dpop)
    try container.encode(refreshState, forKey: .state)
    try container.encodeIfPresent(renewedIDToken, forKey: .renewed)
    if isOfMachine { try container.encode(true, forKey: .machine) }
  }
}
