import Foundation
import Wire
import Testing

@testable import OIDCClient

@Suite("The design document's text")
struct SeedProtocolTests {
  private func bench() -> Bench { Bench([]) }

  @Test("C-001 The authentication manager implements the document's protocol")
  func authenticationManager() {
    let manager: any SeedText.AuthenticationManagerProtocol = AuthenticationManager(
      clients: [bench().client()], store: MemoryStore(), account: "work")
    let ours: any AuthenticationManagerProtocol = AuthenticationManager(
      clients: [bench().client()], store: MemoryStore(), account: "work")
    #expect(!manager.isAuthenticated() && !ours.isAuthenticated())
    guard case .unauthenticated = manager.authenticationState else {
      Issue.record("\(manager.authenticationState)")
      return
    }
  }

  @Test("C-002 The provider service implements the document's protocol, and refuses bad settings before any request")
  func service() async throws {
    let bench = bench()
    let service: any SeedText.IdentityProviderServiceProtocol = IdentityProviderService { _ in bench.dependencies }
    try service.validateConfiguration(.plain())
    let bad = IdentityProvider.plain(clientID: "", allowsPasswordGrant: true)
    let credentials = Credentials(username: "ada", password: "lovelace")
    #expect(throws: AuthenticationError.self) { try service.validateConfiguration(bad) }
    await #expect(throws: AuthenticationError.self) { try await service.refreshToken("refresh-0", provider: bad) }
    await #expect(throws: AuthenticationError.self) {
      try await service.authenticate(credentials: credentials, provider: bad)
    }
    #expect(bench.transport.sent.isEmpty)
  }

  @Test("C-002 The provider service exchanges a password and a refresh token, each once")
  func exchanges() async throws {
    let bench = Bench([.success(.tokens(1)), .success(.tokens(2)), .failure(.lost("reset"))])
    let service = IdentityProviderService { _ in bench.dependencies }
    let provider = IdentityProvider.plain(allowsPasswordGrant: true)
    let credentials = Credentials(username: "ada", password: "lovelace")
    #expect(
      try await service.authenticate(credentials: credentials, provider: provider).tokens.accessToken == "access-1")
    #expect(try await service.refreshToken("refresh-1", provider: provider).tokens.refreshToken == "refresh-2")
    await #expect(throws: AuthenticationError.self) { try await service.refreshToken("refresh-2", provider: provider) }
    #expect(bench.transport.forms.map { $0["grant_type"] } == ["password", "refresh_token", "refresh_token"])
  }

  @Test("C-003 The keychain manager implements the document's protocol")
  func keychain() throws {
    let manager: any SeedText.KeychainManagerProtocol = KeychainManager(
      provider: .plain(), store: TokenKeychain(items: FakeKeychain()))
    #expect(try manager.retrieveTokens(for: "ada") == nil)
  }

  @Test("C-004 The network manager implements the document's protocol, and reads a document")
  func network() async throws {
    let bench = Bench([.success(.json(#"["a","b"]"#)), .success(.tokens(1))])
    let manager: any SeedText.NetworkManagerProtocol = NetworkManager(dependencies: bench.dependencies)
    let document: [String] = try await manager.performRequest(
      NetworkRequest(url: url("https://login.example.com/me"), accessToken: "access-0"))
    #expect(document == ["a", "b"])
    #expect(bench.transport.sent[0].value(of: "Authorization") == "Bearer access-0")
    let answer = try await manager.performTokenRequest(TokenRequest(provider: .plain(), grant: .refreshToken("r")))
    #expect(answer.tokens.accessToken == "access-1" && answer.namesLifetime)
  }

  @Test("C-005 The configuration manager implements the document's protocol")
  func configuration() throws {
    let manager: any SeedText.ConfigurationManagerProtocol = ConfigurationManager { [.plain()] }
    #expect(try manager.loadConfiguration().map(\.id) == ["work"])
    #expect(try manager.selectProvider("work").id == "work")
  }

  // MARK: Models

  private static let secrets = ["s3cret-access", "s3cret-refresh", "s3cret-id", "s3cret-password", "s3cret-client"]

  private static let tokens = AuthTokens(
    accessToken: secrets[0], refreshToken: secrets[1], tokenType: "Bearer", expiresIn: 300, scope: "files",
    idToken: secrets[2])

  /// A value of each type that contains a secret.
  private static func values() throws -> [Any] {
    let credentials = Credentials(username: "ada", password: secrets[3])
    let provider = IdentityProvider.plain(secret: secrets[4])
    let key = ClientAuthentication.privateKeyJWT(pem: secrets[4], keyID: nil)
    let request = NetworkRequest(url: url("https://a.example/?access_token=\(secrets[0])"), accessToken: secrets[0])
    let grants: [TokenRequest.Grant] = [
      .password(credentials, scopes: []), .refreshToken(secrets[1]), .deviceCode(secrets[1]),
      .authorizationCode(secrets[1], redirectURI: "http://127.0.0.1", verifier: secrets[2]),
    ]
    var account = StoredAccount.sample(at: .distantPast, dpopKey: DPoPKey())
    account = StoredAccount(
      providerID: "work", issuer: nil, clientID: "app", tokens: tokens, user: nil, issuedAt: .distantPast,
      dpopKey: account.dpopKey)
    let device = try DeviceAuthorization(
      json: Array(
        """
        {"device_code":"\(secrets[1])","user_code":"ABCD","verification_uri":"https://a.example","expires_in":600}
        """.utf8), at: .distantPast)
    let idToken = try IDToken(try Minter().token(at: .distantPast, nonce: secrets[2]))
    return [
      tokens, credentials, provider, key, request, account, device, idToken, PKCE(verifier: secrets[2]),
      AuthenticationResult(providerID: "work", user: nil, tokens: tokens),
      try TokenResponse(json: HTTPResponse.tokens(1, idToken: secrets[2]).body),
      IDTokenExpectation(
        issuer: "https://a.example", clientID: "app", nonce: secrets[2], accessToken: secrets[0], time: .distantPast),
      AuthorizationRequest(
        url: url("https://a.example"), redirectURI: "", state: secrets[0], nonce: secrets[1],
        pkce: PKCE(verifier: secrets[2]), issuer: nil, namesIssuer: false, provider: provider),
    ] + grants + grants.map { TokenRequest(provider: provider, grant: $0) }
  }

  @Test("C-057 Neither text nor dump nor mirror of a value shows a secret")
  func leaks() throws {
    for value in try Self.values() {
      var dumped = ""
      dump([value], to: &dumped)
      let texts = ["\(value)", String(reflecting: value), "\([value])", "\(Optional.some(value) as Any)", dumped]
      for text in texts {
        #expect(!text.contains("s3cret"), "\(type(of: value))")
        // The token as a whole, the bytes of a key, and what the fixtures above are made of.
        for part in ["eyJ", "access-1", "refresh-1", "access-0"] { #expect(!text.contains(part), "\(type(of: value))") }
      }
    }
  }

  @Test("T-28, C-006, C-030 to C-036 The document's types have its members")
  func members() {
    let credentials = Credentials(username: "ada", password: "x")
    #expect((credentials.username, credentials.password) == ("ada", "x"))
    #expect(!(credentials as Any is any Encodable) && !(Self.tokens as Any is any Encodable))
    let texts: [String?] = [
      Self.tokens.accessToken, Self.tokens.refreshToken, Self.tokens.tokenType, Self.tokens.scope, Self.tokens.idToken,
    ]
    #expect(texts == ["s3cret-access", "s3cret-refresh", "Bearer", "files", "s3cret-id"])
    let lifetime: TimeInterval = Self.tokens.expiresIn
    #expect(lifetime == 300)
  }

  @Test("T-27 C-032 A provider of plain OAuth 2.0 has the document's members, and those of OpenID Connect are optional")
  func provider() {
    let provider = IdentityProvider(
      id: "work", name: "Work", tokenEndpoint: url("https://a.example/t"),
      authorizationEndpoint: url("https://a.example/a"), clientID: "app", clientSecret: "s", scopes: ["a"],
      type: .oauth2)
    #expect(provider.tokenEndpoint.path == "/t" && provider.authorizationEndpoint?.path == "/a")
    #expect(provider.issuer == nil && provider.endpoints == FurtherEndpoints() && !provider.needsDiscovery)
    #expect(provider.authentication == .basic && !provider.allowsPasswordGrant)
  }

  @Test(
    "C-033 A provider speaks OAuth 2.0, or OpenID Connect, which needs an issuer and a scope and asks for an identity",
    arguments: [(ProviderType.oauth2, [], false), (.openIDConnect, ["issuer", "scopes"], true)])
  func providerType(type: ProviderType, faults: [String], asksForIdentity: Bool) async throws {
    let provider = IdentityProvider(
      id: "work", name: "Work", tokenEndpoint: url("https://a.example/t"),
      authorizationEndpoint: url("https://a.example/a"), clientID: "app", scopes: ["files"], type: type)
    #expect(provider.faults.map(\.field) == faults)
    let client = ProviderClient(provider: provider, dependencies: .init(transport: ScriptedTransport([])))
    let request = try await client.begin(redirectURI: "http://127.0.0.1:1/")
    let query = URLComponents(url: request.url, resolvingAgainstBaseURL: true)?.queryItems ?? []
    #expect(query.contains { $0.name == "nonce" } == asksForIdentity && (request.nonce != nil) == asksForIdentity)
  }

  @Test("C-034 The state has four cases, and can be sent to other tasks")
  func state() async {
    let user = User(id: "1", username: "ada", email: nil, displayName: nil)
    let states: [AuthenticationState] = [
      .unauthenticated, .authenticating, .authenticated(user: user), .error(.tokenExpired),
    ]
    let names = await Task.detached {
      states.map { state in
        switch state {
        case .unauthenticated: "unauthenticated"
        case .authenticating: "authenticating"
        case .authenticated(let user): user.username
        case .error(let error): "\(error)"
        }
      }
    }.value
    #expect(names == ["unauthenticated", "authenticating", "ada", "tokenExpired"])
  }

  @Test("C-035 The user is that of the ID token, and the subject where it has no name")
  func user() throws {
    func user(_ json: String) throws -> User? {
      User(try JSONDecoder().decode(IDToken.Claims.self, from: Data(json.utf8)))
    }
    #expect(
      try user(#"{"sub":"1","preferred_username":"ada","email":"a@b.c","name":"Ada"}"#)
        == User(id: "1", username: "ada", email: "a@b.c", displayName: "Ada"))
    #expect(try user(#"{"sub":"1","email":5}"#) == User(id: "1", username: "1", email: nil, displayName: nil))
    #expect(try user("{}") == nil)
  }
}
