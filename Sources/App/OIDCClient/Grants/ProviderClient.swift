internal import ByteCoding
public import Foundation
internal import Wire

/// A client of one provider: every grant, verified tokens, revocation.
///
/// It keeps no tokens. `AccountSession` does, and refreshes them.
public struct ProviderClient: Sendable {
  /// The provider as it is configured.
  public let provider: IdentityProvider
  /// The dependencies.
  public let dependencies: SignInDependencies
  let directory: ProviderDirectory?

  /// Creates a client. Nothing is sent yet.
  public init(provider: IdentityProvider, dependencies: SignInDependencies) {
    self.provider = provider
    self.dependencies = dependencies
    directory = provider.issuer.map {
      ProviderDirectory(
        issuer: $0, documentURL: provider.variations.discoveryURL, keysURL: provider.endpoints.jwksURI,
        transport: dependencies.transport, now: dependencies.now)
    }
  }

  /// The provider with the endpoints of its discovery document.
  public func resolved() async throws(OIDCError) -> IdentityProvider {
    guard provider.needsDiscovery, let directory else { return provider }
    return try provider.completed(by: await directory.metadata())
  }

  // MARK: Authorization code

  /// Begins a sign-in in the browser, which comes back to `redirectURI`.
  ///
  /// - Parameter nonce: What the ID token must carry, where a service that is to accept it has asked for that;
  ///   otherwise a random text. If the provider demands it, or the entry, the request is sent to the provider first,
  ///   and the browser carries only a reference to it (RFC 9126).
  ///
  /// - Throws: `.notOffered` if the provider has no authorization endpoint, refuses S256, or takes no pushed requests;
  ///   `.refused` if it refuses the pushed request.
  public func begin(redirectURI: String, nonce given: String? = nil) async throws(OIDCError) -> AuthorizationRequest {
    let provider = try await resolved()
    let metadata = try await metadata()
    guard let endpoint = provider.authorizationEndpoint else {
      throw metadata?.fault(of: "authorization_endpoint") ?? .notOffered("sign-in with a browser")
    }
    try metadata?.requireS256()
    let pkce = PKCE(randomBytes: dependencies.random(32))
    let state = dependencies.randomText()
    let nonce = provider.type == .openIDConnect ? given ?? dependencies.randomText() : nil
    var fields = [
      ("response_type", "code"), ("client_id", provider.clientID), ("redirect_uri", redirectURI), ("state", state),
      ("code_challenge", pkce.challenge), ("code_challenge_method", PKCE.method),
    ]
    if !provider.scopes.isEmpty { fields.append(("scope", provider.scopes.joined(separator: " "))) }
    if let nonce { fields.append(("nonce", nonce)) }
    fields += provider.variations.orderedParameters
    var pushed: PushedRequest?
    if provider.variations.pushing == .required || metadata?.requiresPushedRequests == true {
      let answer = try await push(fields, to: provider)
      // No parameter but these two is read (RFC 9126, section 4).
      fields = [("client_id", provider.clientID), ("request_uri", answer.uri)]
      pushed = answer
    }
    var components = URLComponents(url: endpoint, resolvingAgainstBaseURL: true)
    let query = [components?.percentEncodedQuery, FormEncoding.encode(fields)].compactMap(\.self)
    components?.percentEncodedQuery = query.filter { !$0.isEmpty }.joined(separator: "&")
    guard let url = components?.url else { throw .malformed("the authorization endpoint") }
    var request = AuthorizationRequest(
      url: url, redirectURI: redirectURI, state: state, nonce: nonce, pkce: pkce, issuer: provider.issuer,
      namesIssuer: metadata?.namesIssuerInRedirects ?? false, provider: provider)
    request.lifetime = pushed?.lifetime
    return request
  }

  /// Sends the fields of a request to the provider, with the client's authentication (RFC 9126, section 2.1).
  private func push(
    _ fields: [(String, String)], to provider: IdentityProvider
  ) async throws(OIDCError) -> PushedRequest {
    guard let endpoint = provider.endpoints.pushedAuthorization else {
      throw try await metadata()?.fault(of: "pushed_authorization_request_endpoint")
        ?? .notOffered("pushed authorization requests")
    }
    // The authentication of most clients names the client, and no field may be there twice.
    let own = provider.authentication == .basic ? fields : fields.filter { $0.0 != "client_id" }
    // What ties the answer to this sign-in.
    let secrets = fields.filter { ["state", "nonce"].contains($0.0) }.map(\.1)
    let answer = try await tokenEndpoint(of: provider).post(
      own, to: endpoint, called: PushedRequest.endpoint, withholding: secrets)
    guard [200, 201].contains(answer.response.status) else { throw answer.error(of: PushedRequest.endpoint) }
    return try PushedRequest(json: answer.response.body)
  }

  /// Ends it with the URL that the browser was sent to.
  public func finish(_ redirect: URL, of request: AuthorizationRequest) async throws(OIDCError) -> StoredAccount {
    let code = try request.code(in: redirect)
    let grant = TokenRequest.Grant.authorizationCode(
      code, redirectURI: request.redirectURI, verifier: request.pkce.verifier)
    return try await redeem(grant, at: request.provider, nonce: request.nonce)
  }

  // MARK: Device grant and password

  /// Begins a device grant.
  public func beginDeviceGrant() async throws(OIDCError) -> DeviceAuthorization {
    let provider = try await resolved()
    guard let endpoint = provider.endpoints.deviceAuthorization else {
      throw try await metadata()?.fault(of: "device_authorization_endpoint") ?? .notOffered("the device grant")
    }
    let scopes = provider.scopes.isEmpty ? [] : [("scope", provider.scopes.joined(separator: " "))]
    let answer = try await tokenEndpoint(of: provider).post(
      scopes + provider.variations.orderedParameters, to: endpoint, called: "the device authorization endpoint",
      withholding: [])
    guard answer.response.status == 200 else { throw answer.error(of: "the device authorization endpoint") }
    return try DeviceAuthorization(json: answer.response.body, at: dependencies.now())
  }

  /// Asks until the person has confirmed the code, refused, or let it expire. A cancelled task stops as if it had expired.
  ///
  /// - Parameter limit: The longest wait; `nil` for the lifetime of the code.
  /// - Throws: `.deviceCodeExpired`, also at the end of `limit`.
  public func finish(
    _ authorization: DeviceAuthorization, within limit: Duration? = nil
  ) async throws(OIDCError) -> StoredAccount {
    let provider = try await resolved()
    var interval = authorization.interval
    let end = min(
      authorization.expiresAt,
      limit.map { dependencies.now().addingTimeInterval(Double($0.components.seconds)) } ?? .distantFuture)
    while true {
      // No provider can make a program wait longer than the code is valid.
      let remaining = end.timeIntervalSince(dependencies.now())
      await dependencies.sleep(.seconds(min(Double(interval), max(remaining, 0))))
      guard dependencies.now() < end, !Task.isCancelled else { throw .deviceCodeExpired }
      do throws(OIDCError) {
        return try await redeem(.deviceCode(authorization.deviceCode), at: provider, nonce: nil)
      } catch {
        switch DeviceAuthorization.step(after: error, interval: interval) {
        case .wait(let seconds): interval = seconds
        case .stop(let error): throw error
        }
      }
    }
  }

  /// Signs in with user name and password.
  ///
  /// - Throws: `.notOffered` unless the provider's entry allows it. RFC 9700 forbids this grant: the password passes
  ///   through this program, and the provider cannot ask for a second factor.
  public func signIn(with credentials: Credentials) async throws(OIDCError) -> StoredAccount {
    guard provider.allowsPasswordGrant else { throw .notOffered("the password grant: its entry does not allow it") }
    let provider = try await resolved()
    return try await redeem(.password(credentials, scopes: provider.scopes), at: provider, nonce: nil)
  }

  /// Fetches discovery document and keys, so that nothing remains to be fetched when a code arrives.
  public func warmUp() async {
    guard provider.type == .openIDConnect, let directory else { return }
    await directory.fetchKeysIfNeeded()
  }

  /// The number of the provider's keys for signatures.
  func keyCount() async throws(OIDCError) -> Int {
    guard let directory else { throw .notOffered("keys") }
    return try await directory.currentKeys().count
  }

  /// Every rule of an ID token, and whether it holds.
  ///
  /// - Parameters:
  ///   - keys: The provider's keys; `nil` to fetch them. The token itself is sent nowhere.
  ///   - nonce: The nonce of the sign-in; `nil` not to compare it.
  ///   - accessToken: The access token that came with it; `nil` not to compare it.
  public func findings(
    _ token: IDToken, keys: ProviderKeys? = nil, nonce: String? = nil, accessToken: String? = nil
  ) async throws(OIDCError) -> [IDTokenVerifier.Finding] {
    guard let directory, let issuer = provider.issuer else { throw .notOffered("ID tokens") }
    // A stored token may be of any age.
    let expected = IDTokenExpectation(
      issuer: issuer, clientID: provider.clientID, trustedAudiences: Set(provider.variations.trustedAudiences),
      nonce: nonce, accessToken: accessToken, time: dependencies.now(), leeway: provider.variations.clockSkew,
      longestAge: .infinity)
    var found = keys
    if found == nil { found = try await directory.keys(for: token) }
    guard let found else { throw .notOffered("keys") }
    return await IDTokenVerifier(keys: found).findings(token, as: expected)
  }

  /// Exchanges a grant whose tokens are kept elsewhere. An ID token is verified.
  ///
  /// - Throws: `.tokenType` before anything is sent if the entry demands bound tokens, and there is no key that the caller
  ///   has, too.
  func exchange(_ grant: TokenRequest.Grant) async throws(OIDCError) -> TokenResponse {
    if case .password = grant, !provider.allowsPasswordGrant {
      throw .notOffered("the password grant: its entry does not allow it")
    }
    let provider = try await resolved()
    // The proof of an attested client binds the tokens to the key of the attestation, which is the caller's.
    let key = try await attestedKey(at: provider)
    // The answer would be refused after the grant was spent.
    guard provider.dpop != .required || key != nil else { throw .tokenType("Bearer") }
    let sentAt = dependencies.now()
    let answer = try await tokenEndpoint(of: provider).redeem(grant, boundTo: key)
    var old: StoredAccount?
    if case .refreshToken(let token) = grant {
      // What is known of the account is the refresh token alone.
      old = StoredAccount(
        providerID: provider.id, issuer: provider.issuer, clientID: provider.clientID,
        tokens: AuthTokens(
          accessToken: "", refreshToken: token, tokenType: "", expiresIn: 0, scope: nil, idToken: nil),
        user: nil, issuedAt: sentAt)
    }
    let account = try await verified(
      answer, from: provider, nonce: nil, replacing: old, key: key, sentAt: sentAt, needsIDToken: false)
    return account.tokens.idToken == nil ? answer.withoutIDToken() : answer
  }

  // MARK: Answers

  func tokenEndpoint(of provider: IdentityProvider) -> TokenEndpoint {
    TokenEndpoint(provider: provider, dependencies: dependencies)
  }

  /// What the provider says of itself; `nil` for a provider without an issuer.
  func metadata() async throws(OIDCError) -> ProviderMetadata? {
    guard provider.needsDiscovery, let directory else { return nil }
    return try await directory.metadata()
  }

  func redeem(
    _ grant: TokenRequest.Grant, at provider: IdentityProvider, nonce: String?
  ) async throws(OIDCError) -> StoredAccount {
    let key = try await dpopKey(at: provider)
    let sentAt = dependencies.now()
    var answer = try await tokenEndpoint(of: provider).redeem(grant, boundTo: key)
    var isOfMachine = false
    if case .clientCredentials = grant {
      answer = answer.accessTokenAlone()
      isOfMachine = true
    }
    var account = try await verified(
      answer, from: provider, nonce: nonce, replacing: nil, key: key, sentAt: sentAt,
      needsIDToken: provider.type == .openIDConnect && provider.scopes.contains("openid") && !isOfMachine)
    account.isOfMachine = isOfMachine
    return account
  }

  /// The key of the attestation, where its DPoP proof authenticates the client: tokens are bound to it then.
  func attestedKey(at provider: IdentityProvider) async throws(OIDCError) -> DPoPKey? {
    guard case .attestation(.dpop) = provider.authentication else { return nil }
    return try await dependencies.attester?.attestedClient(isRenewed: false).key
  }

  /// A key to bind tokens to; `nil` if they are not to be bound.
  private func dpopKey(at provider: IdentityProvider) async throws(OIDCError) -> DPoPKey? {
    if case .attestation(.dpop) = provider.authentication { return try await attestedKey(at: provider) }
    return switch provider.dpop {
    case .off: nil
    case .required: DPoPKey()
    case .automatic: try await metadata()?.offersDPoP == true ? DPoPKey() : nil
    }
  }

  /// Verifies an answer. Its lifetime counts from the time when the request was sent, so that it never ends too late.
  ///
  /// - Parameter old: The account whose tokens a refresh replaces; `nil` at a sign-in. A refresh may answer with the ID
  ///   token of the sign-in, which is then left out of the result.
  func verified(
    _ answer: TokenResponse, from provider: IdentityProvider, nonce: String?, replacing old: StoredAccount?,
    key: DPoPKey?, sentAt: Date, needsIDToken: Bool
  ) async throws(OIDCError) -> StoredAccount {
    var answer = answer
    let type = answer.tokens.tokenType
    switch type.lowercased() {
    // A key that an earlier sign-in left behind may bind the refresh token alone.
    case "bearer" where provider.dpop != .required: break
    case "dpop" where key != nil: break
    default: throw .tokenType(type)
    }
    var user: User?
    if let issuer = provider.issuer {
      if let fault = answer.idTokenFault { throw fault }
      if let text = answer.tokens.idToken {
        let expected = IDTokenExpectation(
          issuer: issuer, clientID: provider.clientID, trustedAudiences: Set(provider.variations.trustedAudiences),
          nonce: nonce, accessToken: answer.tokens.accessToken, subject: old?.user?.id, time: dependencies.now(),
          leeway: provider.variations.clockSkew)
        user = try await self.user(of: text, as: expected, replacing: old)
        if user == nil { answer = answer.withoutIDToken() }
      }
    }
    if needsIDToken, user == nil { throw .malformed("the answer has no ID token, although openid was asked for") }
    return StoredAccount(
      providerID: provider.id, issuer: provider.issuer, clientID: provider.clientID, tokens: answer.tokens, user: user,
      issuedAt: sentAt, namesLifetime: answer.namesLifetime, dpopKey: key)
  }

  /// The user of an ID token that passes every rule; `nil` for an ID token of the sign-in that a refresh brings again.
  private func user(
    of text: String, as expected: IDTokenExpectation, replacing old: StoredAccount?
  ) async throws(OIDCError) -> User? {
    // It was verified at the sign-in.
    if text.isIdentical(to: old?.tokens.idToken) { return nil }
    do throws(OIDCError) {
      let claims = try await verify(text, as: expected)
      // A nonce is that of the sign-in (Core, section 12.2).
      if let old, let nonce = claims.nonce, let first = old.tokens.idToken.flatMap({ try? IDToken($0) }),
        !nonce.isIdentical(to: first.claims.nonce)
      {
        throw .idToken(.nonce)
      }
      return User(claims)
    } catch {
      guard old != nil, case .idToken(let rejection) = error,
        rejection == .issuedAt || rejection == .expired
          || rejection == .accessTokenHash
      else { throw error }
      // An older one of the same user says nothing new, and the access token that it came with is another one.
      var older = expected
      older.accessToken = nil
      older.longestAge = .infinity
      older.ignoresExpiry = true
      let claims = try await verify(text, as: older)
      guard let issued = claims.issuedAt, expected.isTooOld(issued) || expected.hasExpired(claims) else { throw error }
      return nil
    }
  }

  /// The claims of an ID token of this provider, verified.
  private func verify(_ text: String, as expected: IDTokenExpectation) async throws(OIDCError) -> IDToken.Claims {
    guard let directory else { throw .notOffered("ID tokens") }
    let token: IDToken
    do throws(IDTokenRejection) { token = try IDToken(text) } catch { throw OIDCError.idToken(error) }
    let keys = try await directory.keys(for: token)
    do throws(IDTokenRejection) { try await IDTokenVerifier(keys: keys).verify(token, as: expected) } catch {
      // Without a key identifier, only the signature shows that the provider has changed its keys.
      guard error == .signature, token.keyID == nil, let changed = await directory.changedKeys() else {
        throw OIDCError.idToken(error)
      }
      do throws(IDTokenRejection) { try await IDTokenVerifier(keys: changed).verify(token, as: expected) } catch {
        throw OIDCError.idToken(error)
      }
    }
    return token.claims
  }
}
