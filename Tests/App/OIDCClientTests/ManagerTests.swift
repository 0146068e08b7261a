import Foundation
import Wire
import Locking
import TestSupport
import Testing

@testable import OIDCClient

@Suite("The manager of sign-ins", .timeLimit(.minutes(1)))
struct ManagerTests {
  private static let lost = Result<HTTPResponse, TransportError>.failure(.lost("reset"))
  private static let unreachable = Result<HTTPResponse, TransportError>.failure(.unreachable("no route"))

  private func manager(
    _ bench: Bench, store: any TokenStore = MemoryStore(), more: [ProviderClient] = [],
    biometry: (any BiometricCheck)? = nil
  ) -> AuthenticationManager {
    AuthenticationManager(
      clients: [bench.client(.plain(allowsPasswordGrant: true))] + more, store: store, account: "work",
      biometry: biometry, now: { bench.clock.now })
  }

  private func word(_ manager: AuthenticationManager) -> String {
    switch manager.authenticationState {
    case .unauthenticated: "unauthenticated"
    case .authenticating: "authenticating"
    case .authenticated(let user): "authenticated \(user.username)"
    case .error(let error): "error \(error.word)"
    }
  }

  private func outcome(_ body: () async throws -> Void) async -> String {
    do {
      try await body()
      return "done"
    } catch let error as AuthenticationError {
      return error.word
    } catch let error as SignInFieldError {
      return "\(error)"
    } catch {
      return "unexpected \(error)"
    }
  }

  // MARK: State

  @Test(
    "C-013, C-050 A sign-in leads from unauthenticated by authenticating to authenticated, and a logout back")
  func states() async throws {
    let door = Door()
    let bench = Bench(
      ScriptedTransport { request, _ throws(TransportError) in
        await door.pass()
        return request.url.path == "/token" ? .tokens(1) : .json("")
      })
    let store = MemoryStore()
    let manager = manager(bench, store: store)
    #expect(word(manager) == "unauthenticated" && !manager.isAuthenticated())
    let task = Task { try await manager.authenticate(username: "ada", password: "lovelace") }
    _ = try await bench.transport.requests.wait(for: "the request") { $0.isEmpty ? nil : true }
    #expect(word(manager) == "authenticating")
    door.open()
    let result = try await task.value
    #expect(result.providerID == "work" && result.tokens.accessToken == "access-1" && result.user == nil)
    #expect(word(manager) == "authenticated work" && manager.isAuthenticated())
    #expect(store.stored?.tokens == result.tokens)
    // A new object finds the tokens of the one before.
    #expect(word(self.manager(bench, store: store)) == "authenticated work")
    await manager.logout()
    #expect(word(manager) == "unauthenticated" && store.stored == nil)
    #expect(bench.transport.count(of: "/revoke") == 1)
  }

  @Test("C-050 A refused password is an error, and the next sign-in can succeed")
  func refused() async throws {
    let bench = Bench([.success(.refusal("invalid_grant")), .success(.tokens(2))])
    let manager = manager(bench)
    #expect(await outcome { _ = try await manager.authenticate(username: "ada", password: "x") } == "credentials")
    #expect(word(manager) == "error credentials")
    #expect(await outcome { _ = try await manager.authenticate(username: "ada", password: "y") } == "done")
    #expect(word(manager) == "authenticated work")
  }

  @Test("C-050 An access token that expires ends the authenticated state")
  func expiry() async throws {
    let bench = Bench([])
    let store = MemoryStore(.sample(at: bench.clock.now, remaining: 10))
    let manager = manager(bench, store: store)
    #expect(manager.isAuthenticated())
    bench.clock.advance(by: 10)
    #expect(!manager.isAuthenticated())
  }

  @Test("C-045, C-050 A refresh renews, or ends in one error and one request")
  func refresh() async throws {
    let cases: [(Result<HTTPResponse, TransportError>, String, state: String, requests: Int)] = [
      (.success(.tokens(1)), "done", "authenticated work", 1),
      (.success(.refusal("invalid_grant")), "credentials", "error credentials", 1),
      (.success(.refusal("invalid_client", status: 401)), "configuration", "error configuration", 1),
      (Self.lost, "network", "error network", 1),
      (.success(.json("", status: 500)), "server 500", "error server 500", 1),
    ]
    for (answer, expected, state, requests) in cases {
      let bench = Bench([answer])
      let store = MemoryStore(.sample(at: bench.clock.now, remaining: 0))
      let manager = manager(bench, store: store)
      #expect(await outcome { _ = try await manager.refreshTokenIfNeeded() } == expected)
      #expect(word(manager) == state && bench.transport.sent.count == requests)
      // What the provider has certainly refused is deleted; what may still be good is not.
      #expect((store.stored == nil) == (expected == "credentials"))
    }
  }

  @Test("T-29 C-045 A refresh that finds nothing to renew with is tokenExpired, and does not call itself")
  func noRecursion() async throws {
    let bench = Bench([])
    let store = MemoryStore(.sample(at: bench.clock.now, remaining: 0, refresh: nil))
    let manager = manager(bench, store: store)
    for _ in 0..<3 { #expect(await outcome { _ = try await manager.refreshTokenIfNeeded() } == "expired") }
    #expect(bench.transport.sent.isEmpty)
  }

  @Test("C-012 A fresh token needs no refresh, and without a sign-in there is none")
  func notNeeded() async throws {
    let bench = Bench([])
    let store = MemoryStore(.sample(at: bench.clock.now, remaining: 300))
    let manager = manager(bench, store: store)
    #expect(try await manager.refreshTokenIfNeeded())
    try store.delete("work")
    #expect(try await !manager.refreshTokenIfNeeded())
    #expect(word(manager) == "unauthenticated" && bench.transport.sent.isEmpty)
  }

  private struct Stranger: BiometricCheck {
    func check(reason: String) throws(TokenStoreError) { throw .notRecognised }
  }

  @Test("C-019 Without the recognised owner there is no refresh")
  func biometry() async throws {
    let bench = Bench([])
    let store = MemoryStore(.sample(at: bench.clock.now, remaining: 0))
    let manager = manager(bench, store: store, biometry: Stranger())
    #expect(await outcome { _ = try await manager.refreshTokenIfNeeded() } == "biometry")
    #expect(bench.transport.sent.isEmpty && store.stored != nil)
  }

  @Test("C-050 A logout deletes the tokens whatever the provider and the store do")
  func logout() async throws {
    for answer in [Self.unreachable, Self.lost, .success(.json("", status: 500))] {
      let bench = Bench([answer])
      let store = MemoryStore(.sample(at: bench.clock.now))
      let manager = manager(bench, store: store)
      await manager.logout()
      #expect(word(manager) == "unauthenticated" && store.stored == nil)
    }
    let bench = Bench([])
    let store = MemoryStore(.sample(at: bench.clock.now))
    store.hold()
    await manager(bench, store: store).logout()
    #expect(store.stored == nil)
  }

  @Test("A logout in a cancelled task waits for the refresh in progress, and revokes what it brings")
  func cancelledLogout() async throws {
    let (door, pauses) = (Door(), Door())
    let bench = Bench(
      ScriptedTransport { request, _ throws(TransportError) in
        if request.url.path == "/token" { await door.pass() }
        return .tokens(1)
      })
    let store = MemoryStore(.sample(at: bench.clock.now, remaining: 0))
    let manager = manager(bench, store: store)
    let refresh = Task { await outcome { _ = try await manager.refreshTokenIfNeeded() } }
    _ = try await bench.transport.requests.wait(for: "the request") { $0.isEmpty ? nil : true }
    bench.clock.stop(at: pauses)
    let logout = Task {
      while !Task.isCancelled { await Task.yield() }
      await manager.logout()
    }
    logout.cancel()
    _ = try await bench.clock.pauses.wait(for: "the logout to wait") { $0.isEmpty ? nil : true }
    door.open()
    #expect(await refresh.value == "done")
    pauses.open()
    await logout.value
    #expect(word(manager) == "unauthenticated" && store.stored == nil)
    #expect(bench.transport.forms(to: "/revoke").map { $0["token"] } == ["refresh-1"])
  }

  @Test("A refresh that outlasts a logout stores nothing, and the user stays signed out", arguments: [true, false])
  func outlastedLogout(isReachable: Bool) async throws {
    let door = Door()
    let bench = Bench(
      ScriptedTransport { request, _ throws(TransportError) in
        guard request.url.path == "/token" else { return .json("") }
        await door.pass()
        if !isReachable { throw .unreachable("no route") }
        return .tokens(1)
      })
    let store = MemoryStore(.sample(at: bench.clock.now, remaining: 0))
    let manager = manager(bench, store: store)
    let refresh = Task { await outcome { _ = try await manager.refreshTokenIfNeeded() } }
    _ = try await bench.transport.requests.wait(for: "the request") { $0.isEmpty ? nil : true }
    await manager.logout()
    #expect(word(manager) == "unauthenticated" && store.stored == nil)
    door.open()
    #expect(await refresh.value == "done")
    #expect(word(manager) == "unauthenticated" && store.stored == nil)
    let revoked = bench.transport.forms(to: "/revoke").map { $0["token"] }
    #expect(revoked == [isReachable ? "refresh-1" : "refresh-0"])
  }

  // MARK: Failover

  @Test(
    "C-025, C-054 The next provider is asked after an error of the network alone",
    arguments: [
      ("unreachable", "access-9", 1), ("lost", "access-9", 1), ("untrusted", "network", 0), ("malformed", "network", 0),
      ("invalid_grant", "credentials", 0), ("mfa_required", "configuration", 0), ("500", "server 500", 0),
      ("redirect", "configuration", 0), ("good", "access-1", 0),
    ])
  func failover(first: String, expected: String, requests: Int) async throws {
    let answer: Result<HTTPResponse, TransportError> =
      switch first {
      case "unreachable": Self.unreachable
      case "lost": Self.lost
      case "untrusted": .failure(.untrusted("self-signed"))
      case "malformed": .failure(.malformed("not HTTP"))
      case "500": .success(.json("", status: 500))
      case "redirect": .success(.json("", status: 302))
      case "good": .success(.tokens(1))
      default: .success(.refusal(first))
      }
    let (bench, second) = (Bench([answer]), Bench([.success(.tokens(9)), .success(.tokens(10))]))
    let store = MemoryStore()
    let backup = IdentityProvider.plain(id: "backup", allowsPasswordGrant: true, host: "backup.example.com")
    let manager = manager(bench, store: store, more: [second.client(backup)])
    var token = ""
    let outcome = await outcome {
      token = try await manager.authenticate(username: "ada", password: "x").tokens.accessToken
    }
    #expect((outcome == "done" ? token : outcome) == expected)
    #expect(second.transport.sent.count == requests)
    guard requests == 1 else { return }
    // A refresh goes to the provider that issued the tokens.
    bench.clock.advance(by: 300)
    second.clock.advance(by: 300)
    #expect(store.stored?.providerID == "backup")
    #expect(try await manager.refreshTokenIfNeeded())
    #expect(second.transport.sent.count == 2 && bench.transport.sent.count == 1)
  }

  // MARK: Before the network

  @Test(
    "C-046 Empty and malformed fields are refused before anything is sent",
    arguments: [
      ("", "x", "emptyUsername"), (" \n\t\u{3000}", "x", "emptyUsername"), ("ada", "", "emptyPassword"),
      ("a\nb", "x", "malformedUsername"), ("a\u{0}", "x", "malformedUsername"), ("ada\u{7F}", "x", "malformedUsername"),
    ])
  func fields(username: String, password: String, expected: String) async {
    let bench = Bench([])
    let manager = manager(bench)
    #expect(await outcome { _ = try await manager.authenticate(username: username, password: password) } == expected)
    let service = IdentityProviderService { _ in bench.dependencies }
    let credentials = Credentials(username: username, password: password)
    #expect(
      await outcome {
        _ = try await service.authenticate(credentials: credentials, provider: .plain(allowsPasswordGrant: true))
      } == expected)
    #expect(bench.transport.sent.isEmpty && word(manager) == "unauthenticated")
  }

  @Test(
    "Names and passwords of any script arrive as they were typed", arguments: ["ä+b&c=d%", "例え 🧑‍🚀", "é", "e\u{301}"])
  func scripts(text: String) async throws {
    let bench = Bench([.success(.tokens(1))])
    _ = try await manager(bench).authenticate(username: text, password: text + "\n")
    #expect(Array((bench.transport.forms[0]["username"] ?? "").unicodeScalars) == Array(text.unicodeScalars))
    #expect(bench.transport.forms[0]["password"] == text + "\n")
  }

  // MARK: Network manager

  @Test("C-023 Each status and each error of a document has its error")
  func documents() async {
    let cases: [(Result<HTTPResponse, TransportError>, String)] = [
      (.success(.json("5")), "done"), (.success(.json("five")), "configuration"),
      (.success(.json("")), "configuration"),
      (.success(.json("", status: 401)), "expired"), (.success(.json("", status: 403)), "server 403"),
      (.success(.json("", status: 302)), "configuration"), (.success(.json("", status: 503)), "server 503"),
      (.success(.json(String(repeating: " ", count: 1 << 19) + "5")), "configuration"), (Self.lost, "network"),
    ]
    for (answer, expected) in cases {
      let manager = NetworkManager(dependencies: Bench([answer]).dependencies)
      #expect(
        await outcome {
          let _: Int = try await manager.performRequest(NetworkRequest(url: url("https://a.example")))
        } == expected)
    }
  }

  @Test("C-020 A request has the fields that keep its answer out of caches")
  func headers() async throws {
    let bench = Bench([.success(.json("5")), .success(.tokens(1))])
    let manager = NetworkManager(dependencies: bench.dependencies)
    let _: Int = try await manager.performRequest(NetworkRequest(url: url("https://a.example")))
    _ = try await manager.performTokenRequest(TokenRequest(provider: .plain(), grant: .refreshToken("r")))
    for request in bench.transport.sent {
      #expect(request.value(of: "Accept") == "application/json" && request.value(of: "Cache-Control") == "no-store")
      #expect(request.value(of: "User-Agent")?.isEmpty == false && request.value(of: "Authorization") == nil)
    }
    #expect(bench.transport.sent[1].value(of: "Content-Type") == "application/x-www-form-urlencoded")
  }

  @Test("A grant goes to the discovered token endpoint, never to the issuer")
  func discovered() async throws {
    let transport = Discovery.transport(keys: { "" }) { _, _ throws(TransportError) in .tokens(1) }
    let manager = NetworkManager(dependencies: Bench(transport).dependencies)
    _ = try await manager.performTokenRequest(TokenRequest(provider: .discovered(), grant: .refreshToken("r")))
    #expect(transport.sent.filter { !$0.body.isEmpty }.map(\.url.path) == ["/token"])
  }

  @Test("C-010 A password goes nowhere unless the provider's entry allows it")
  func password() async {
    let bench = Bench([.success(.tokens(1)), .success(.tokens(2)), .success(.tokens(3))])
    let credentials = Credentials(username: "ada", password: "x")
    for (isAllowed, expected) in [(false, "configuration"), (true, "done")] {
      let provider = IdentityProvider.plain(allowsPasswordGrant: isAllowed)
      let grant = TokenRequest.Grant.password(credentials, scopes: [])
      #expect(
        await outcome {
          _ = try await NetworkManager(dependencies: bench.dependencies).performTokenRequest(
            TokenRequest(provider: provider, grant: grant))
        } == expected)
      #expect(
        await outcome {
          _ = try await IdentityProviderService { _ in bench.dependencies }.authenticate(
            credentials: credentials, provider: provider)
        } == expected)
      if !isAllowed { #expect(bench.transport.sent.isEmpty) }
    }
  }

  @Test("Where tokens must be bound, an exchange without a key is refused before the grant is spent")
  func required() async {
    let bench = Bench([.success(.tokens(1))])
    let service = IdentityProviderService { _ in bench.dependencies }
    #expect(
      await outcome { _ = try await service.refreshToken("r", provider: .plain(dpop: .required)) } == "configuration")
    // A stored bearer token of before is not spent for an answer that would be refused.
    let client = bench.client(.plain(dpop: .required))
    let session = AccountSession(
      account: "work", client: client, store: MemoryStore(.sample(at: bench.clock.now, remaining: 0)))
    await #expect(throws: SessionError.provider(.tokenType("Bearer"))) { try await session.tokens() }
    #expect(bench.transport.sent.isEmpty)
  }

  // MARK: Configuration

  @Test("C-015 Of several providers one is selected by its identifier, and an unknown one is an error")
  func select() async throws {
    let manager = ConfigurationManager { [.plain(id: "a"), .plain(id: "b"), .discovered()] }
    #expect(try manager.loadConfiguration().map(\.id) == ["a", "b", "work"])
    #expect(try manager.selectProvider("b").id == "b")
    for name in ["", "B", "c", "b "] {
      #expect(await outcome { _ = try manager.selectProvider(name) } == "configuration", "\(name)")
    }
    let twice = ConfigurationManager { [.plain(id: "a"), .plain(id: "a")] }
    #expect(await outcome { _ = try twice.loadConfiguration() } == "configuration")
  }

  @Test("C-024 Changed settings are seen, and each fault is a configuration error")
  func updates() async throws {
    let providers = LockedValue([IdentityProvider.plain(id: "a")])
    let manager = ConfigurationManager { providers.withLock { $0 } }
    #expect(await outcome { _ = try manager.selectProvider("b") } == "configuration")
    providers.withLock { $0.append(.plain(id: "b")) }
    #expect(try manager.selectProvider("b").id == "b")
    let secret = "s3cret\n"
    for bad in [
      IdentityProvider.plain(clientID: ""), .plain(host: "ada@a.example"), .plain(secret: secret),
      IdentityProvider(
        id: "x", name: "X", tokenEndpoint: url("http://a.example"), clientID: "a", scopes: [], type: .oauth2),
      IdentityProvider(
        id: "x", name: "X", tokenEndpoint: url("https://a.example#b"), clientID: "a", scopes: [], type: .oauth2),
    ] {
      do {
        try manager.validateProvider(bad)
        Issue.record("accepted")
      } catch AuthenticationError.configurationError(let reason) {
        #expect(!reason.contains("s3cret"))
      }
      providers.withLock { $0 = [bad] }
      #expect(await outcome { _ = try manager.loadConfiguration() } == "configuration")
    }
  }
}
