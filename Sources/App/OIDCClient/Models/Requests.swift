public import Foundation
public import Wire

/// A request for a document in JSON.
public struct NetworkRequest: Sendable, Hashable {
  /// The request as it is sent.
  public var exchange: HTTPRequest

  /// A GET with an access token.
  public init(url: URL, accessToken: String? = nil) {
    let fields = accessToken.map { [HTTPField("Authorization", "Bearer \($0)")] } ?? []
    exchange = HTTPRequest(url: url, headers: DocumentExchange.fields + fields)
  }

  /// Any request.
  public init(_ exchange: HTTPRequest) { self.exchange = exchange }
}

/// A grant that is to be exchanged for tokens (RFC 6749, section 4).
public struct TokenRequest: Sendable, Hashable {
  /// The provider.
  public let provider: IdentityProvider
  /// What is exchanged.
  public let grant: Grant

  /// A grant, with what it carries.
  public enum Grant: Sendable, Hashable {
    /// A code from the redirect, with the URI that it came to and the verifier of PKCE.
    case authorizationCode(String, redirectURI: String, verifier: String)
    /// A refresh token.
    case refreshToken(String)
    /// User name and password, with the scopes to ask for.
    case password(Credentials, scopes: [String])
    /// The device code of a device grant.
    case deviceCode(String)
    /// The client's own credentials, with the scopes to ask for (RFC 6749, section 4.4).
    case clientCredentials(scopes: [String])
    /// Another token (RFC 8693).
    case tokenExchange(TokenExchange)
  }

  /// Creates a request.
  public init(provider: IdentityProvider, grant: Grant) {
    self.provider = provider
    self.grant = grant
  }
}

/// A successful answer of a token endpoint (RFC 6749, section 5.1). The ID token in it is not verified yet.
public struct TokenResponse: Sendable, Hashable {
  /// The tokens as they came.
  public let tokens: AuthTokens
  /// Whether the provider said how long the access token is valid. Otherwise `expiresIn` is an assumption of an hour.
  public let namesLifetime: Bool
  /// What kind of token it is, as the answer to an exchange says (RFC 8693, section 2.2.1); `nil` if it does not.
  public let issuedType: String?
  /// Why the ID token cannot be used; `nil` if it can, or is absent.
  let idTokenFault: OIDCError?

  /// The lifetime that is assumed where the provider names none, in seconds.
  static let assumedLifetime: TimeInterval = 3600
  /// The longest lifetime, in seconds: a year. It bounds the arithmetic of dates.
  private static let longestLifetime: TimeInterval = 366 * 86_400

  private static let name = "the token endpoint's answer"

  /// Reads the answer. Members that are not used refuse nothing.
  ///
  /// - Throws: `.tooLarge`, `.malformed`.
  public init(json: [UInt8]) throws(OIDCError) {
    guard json.count <= ProviderMetadata.largest else { throw .tooLarge(Self.name) }
    let document: Document
    do { document = try ProviderJSON.decode(Document.self, unambiguously: json) } catch is ProviderJSON.Ambiguous {
      throw .malformed("\(Self.name) has a member twice")
    } catch {
      throw .malformed("\(Self.name) is not a JSON object")
    }
    let accessToken = try document.accessToken.required(in: Self.name)
    // Some providers leave it out, and mean the only type that they have.
    let type = try document.tokenType.usable(in: Self.name) ?? "Bearer"
    guard type.utf8.count <= 64 else { throw .malformed("\(Self.name): token_type is longer than 64 bytes") }
    let refreshToken = try document.refreshToken.usable(in: Self.name)
    // A token goes into header fields and shell commands.
    for (name, token) in [
      ("access_token", accessToken), ("refresh_token", refreshToken ?? "x"),
      ("id_token", document.idToken.value ?? "x"),
    ] where !token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) {
      throw .malformed("\(Self.name): \(name) has characters that are not allowed (RFC 6749, appendix A)")
    }
    // Some providers write 0 for a token that does not expire.
    let lifetime = try document.expiresIn.usable(in: Self.name).flatMap { $0 == 0 ? nil : $0 }
    tokens = AuthTokens(
      accessToken: accessToken, refreshToken: refreshToken, tokenType: type,
      expiresIn: lifetime.map { min($0, Self.longestLifetime) } ?? Self.assumedLifetime,
      scope: document.scope.value?.joined(separator: " "), idToken: document.idToken.value)
    namesLifetime = lifetime != nil
    issuedType = document.issuedType.value.flatMap { $0.utf8.count <= 256 ? $0 : nil }
    idTokenFault = document.idToken.fault.map { .malformed("\(Self.name): \($0)") }
  }

  /// The answer without its ID token.
  func withoutIDToken() -> TokenResponse {
    TokenResponse(
      tokens: AuthTokens(
        accessToken: tokens.accessToken, refreshToken: tokens.refreshToken, tokenType: tokens.tokenType,
        expiresIn: tokens.expiresIn, scope: tokens.scope, idToken: nil),
      namesLifetime: namesLifetime, idTokenFault: nil)
  }

  /// The access token alone: that of a machine account, which has no person and renews nothing (RFC 6749,
  /// section 4.4.3).
  func accessTokenAlone() -> TokenResponse {
    TokenResponse(
      tokens: AuthTokens(
        accessToken: tokens.accessToken, refreshToken: nil, tokenType: tokens.tokenType, expiresIn: tokens.expiresIn,
        scope: tokens.scope, idToken: nil),
      namesLifetime: namesLifetime, idTokenFault: nil)
  }

  private init(tokens: AuthTokens, namesLifetime: Bool, idTokenFault: OIDCError?) {
    issuedType = nil
    self.tokens = tokens
    self.namesLifetime = namesLifetime
    self.idTokenFault = idTokenFault
  }

  private struct Document: Decodable {
    let accessToken: Member<String>
    let tokenType: Member<String>
    let expiresIn: Member<Double>
    let refreshToken: Member<String>
    let scope: Member<[String]>
    let idToken: Member<String>
    let issuedType: Member<String>

    init(from decoder: any Decoder) throws {
      let members = try ProviderMembers(from: decoder)
      accessToken = members.text("access_token", isSecret: true)
      tokenType = members.text("token_type")
      expiresIn = members.number("expires_in").map {
        $0 >= 0 ? $0 : nil
      } otherwise: {
        "\(ShownValue.text($0)), not a lifetime in seconds"
      }
      // Some providers send an empty text in place of no token. It must not replace the token that is stored.
      refreshToken = members.text("refresh_token", isSecret: true)
      scope = members.texts("scope")
      idToken = members.text("id_token", isSecret: true)
      issuedType = members.text("issued_token_type")
    }
  }
}

// The grants and tokens stay out of logs.
extension NetworkRequest: CustomStringConvertible, CustomReflectable {
  /// The method and the host.
  public var description: String { "\(exchange.method.rawValue) to \(exchange.url.host() ?? "-")" }
  /// No members.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension TokenRequest: CustomReflectable {
  /// The provider.
  public var customMirror: Mirror { Mirror(self, children: ["provider": provider.id]) }
}

extension TokenRequest.Grant: CustomStringConvertible, CustomReflectable {
  /// The value of `grant_type`.
  public var description: String {
    switch self {
    case .authorizationCode: "authorization_code"
    case .refreshToken: "refresh_token"
    case .password: "password"
    case .deviceCode: "urn:ietf:params:oauth:grant-type:device_code"
    case .clientCredentials: "client_credentials"
    case .tokenExchange: "urn:ietf:params:oauth:grant-type:token-exchange"
    }
  }
  /// No members.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension TokenResponse: CustomReflectable {
  /// No members.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}
