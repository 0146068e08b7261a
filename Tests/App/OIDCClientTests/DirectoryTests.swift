import Foundation
import Wire
import TestSupport
import Testing

@testable import OIDCClient

@Suite("Discovery")
struct DiscoveryTests {
  private static let issuer = "https://login.example.com"

  private func code(_ json: String) -> String {
    do throws(OIDCError) {
      _ = try ProviderMetadata(json: Array(json.utf8), issuer: Self.issuer)
      return "accepted"
    } catch {
      return error.code
    }
  }

  @Test(
    "C-011 A document of another issuer is refused",
    arguments: [
      "https://login.example.com/", "https://LOGIN.example.com", "http://login.example.com",
      "https://login.example.com.",
      "https://login.example.com:443", "", "https://login.example.com\\u0000",
    ])
  func otherIssuer(issuer: String) {
    #expect(code(Discovery.document()) == "accepted")
    #expect(code(Discovery.document(issuer: issuer)) == "discovery_of_another_issuer")
  }

  private static let endpoints: [(String, Bool)] = [
    ("https://a.example/x?tenant=1", true), ("http://127.0.0.1:8080/x", true), ("http://[::1]/x", true),
    ("http://a.example/x", false), ("http://127.0.0.1.a.example/x", false), ("http://127.000.0.1/x", false),
    ("http://0.0.0.0/x", false), ("https://login.example.com@evil.example/x", false),
    ("https://a:b@a.example/x", false),
    ("https://a.example/x#y", false), ("/x", false), ("//a.example/x", false), ("https:///x", false),
    ("javascript:alert(1)", false), ("file:///etc/passwd", false), ("https://a.example:99999/x", false), ("", false),
  ]

  @Test("C-024 An endpoint of a document obeys the rules for a configured one, or is not used", arguments: endpoints)
  func endpoint(text: String, isAllowed: Bool) throws {
    for (name, value) in [
      ("token_endpoint", \.tokenEndpoint), ("jwks_uri", \.jwksURI), ("userinfo_endpoint", \.userinfoEndpoint),
      ("end_session_endpoint", \.endSessionEndpoint),
      ("device_authorization_endpoint", \.deviceAuthorizationEndpoint), ("revocation_endpoint", \.revocationEndpoint),
      ("authorization_endpoint", \.authorizationEndpoint),
    ] as [(String, KeyPath<ProviderMetadata, URL?>)] {
      let json = #"{"issuer":"\#(Self.issuer)","\#(name)":"\#(text)"}"#
      let metadata = try ProviderMetadata(json: Array(json.utf8), issuer: Self.issuer)
      #expect(metadata[keyPath: value]?.absoluteString == (isAllowed ? text : nil), "\(name)")
      // An empty one is absent. Any other names itself and its value when it is needed.
      #expect((metadata.fault(of: name) == nil) == (isAllowed || text.isEmpty), "\(name)")
      if let fault = metadata.fault(of: name) {
        #expect(fault.code == "answer_malformed" && "\(fault)".contains("\(name) is \"\(text)\", not an https URL"))
      }
    }
  }

  @Test("Hostile JSON is malformed and ends no process")
  func hostile() {
    let nested = String(repeating: "[", count: 100_000)
    let objects = String(repeating: #"{"a":"#, count: 50_000)
    for json in [
      "", "null", "5", "[]", "{", nested, objects, "\u{FEFF}", #"{"issuer":5}"#,
      #"{"issuer":["https://login.example.com"]}"#,
      "{\u{0}}",
      #"{"issuer":"https://login.example.com","x":"# + nested,
    ] {
      #expect(code(json) != "accepted", "\(json.prefix(40))")
    }
    let invalid: [UInt8] = Array(#"{"issuer":""#.utf8) + [0xFF, 0xFE] + Array(#""}"#.utf8)
    #expect(throws: OIDCError.self) { try ProviderMetadata(json: invalid, issuer: Self.issuer) }
  }

  @Test("Documents over 256 KiB are refused, and up to that they are read")
  func size() async throws {
    for (count, expected) in [
      (ProviderMetadata.largest, "accepted"), (ProviderMetadata.largest + 1, "document_too_large"),
    ] {
      let document = Discovery.document()
      let json = document + String(repeating: " ", count: count - document.utf8.count)
      #expect(code(json) == expected)
      let bench = Bench([.success(.json(json))])
      #expect(await outcome(bench) == expected)
    }
  }

  private func outcome(_ bench: Bench) async -> String {
    let directory = ProviderDirectory(issuer: Self.issuer, transport: bench.transport, now: { bench.clock.now })
    do throws(OIDCError) {
      _ = try await directory.metadata()
      return "accepted"
    } catch {
      return error.code
    }
  }

  @Test(
    "A redirect of the document is not followed, and a status is an error",
    arguments: [301, 302, 304, 307, 308, 404, 500])
  func status(number: Int) async {
    let bench = Bench([.success(.json("", status: number, [HTTPField("Location", "https://evil.example")]))])
    #expect(await outcome(bench) == (number < 400 ? "redirect_refused" : "server_error"))
    #expect(bench.transport.sent.count == 1)
  }

  @Test(
    "The document is at its place below the issuer",
    arguments: ["https://a.example", "https://a.example/", "https://a.example/x"])
  func place(issuer: String) {
    let path = issuer.hasSuffix("x") ? "/x" : ""
    #expect(
      ProviderMetadata.url(of: issuer)?.absoluteString == "https://a.example\(path)/.well-known/openid-configuration")
  }
}

@Suite("The directory of a provider", .timeLimit(.minutes(1)))
struct DirectoryTests {
  /// A directory at a provider whose keys a test changes.
  private struct Provider: Sendable {
    let bench: Bench
    let keys: Watched<String>
    let isDown: Watched<Bool>
    let door: Door
    let directory: ProviderDirectory

    init(_ keys: String, keysURL: URL? = nil) {
      let (keys, isDown, door) = (Watched(keys), Watched(false), Door())
      bench = Bench(
        ScriptedTransport { request, _ throws(TransportError) in
          await door.pass()
          if isDown.value { throw .unreachable("no route") }
          return .json(request.url.path == Discovery.path ? Discovery.document() : keys.value)
        })
      (self.keys, self.isDown, self.door) = (keys, isDown, door)
      directory = ProviderDirectory(
        issuer: "https://login.example.com", keysURL: keysURL, transport: bench.transport,
        now: { [bench] in bench.clock.now })
    }

    var fetches: Int { bench.transport.count(of: "/keys") }

    /// Whether the keys for a token of `minter` contain its key.
    func knows(_ minter: Minter) async -> Bool {
      guard let token = try? IDToken(minter.token(at: bench.clock.now)) else { return false }
      return (try? await directory.keys(for: token).contains(minter.keyID)) ?? false
    }
  }

  @Test("Many callers share one fetch of the document and of the keys")
  func single() async throws {
    let minter = Minter()
    let provider = Provider(minter.jwks)
    let tasks = (0..<50).map { _ in Task { await provider.knows(minter) } }
    _ = try await provider.bench.transport.requests.wait(for: "a request") { $0.isEmpty ? nil : true }
    provider.door.open()
    for task in tasks { #expect(await task.value) }
    #expect(provider.bench.transport.count(of: Discovery.path) == 1 && provider.fetches == 1)
  }

  @Test("An unknown key is fetched once, at most once in five minutes")
  func unknown() async throws {
    let (old, new) = (Minter("k1"), Minter("k2"))
    let provider = Provider(old.jwks)
    provider.door.open()
    #expect(await provider.knows(old))
    // The first fetch was no answer to an unknown key.
    #expect(await !provider.knows(new))
    #expect(provider.fetches == 2)
    provider.keys.update { $0 = new.jwks }
    provider.bench.clock.advance(by: 299)
    #expect(await !provider.knows(new))
    #expect(provider.fetches == 2)
    provider.bench.clock.advance(by: 1)
    #expect(await provider.knows(new))
    for number in 0..<100 { #expect(await !provider.knows(Minter("forged \(number)"))) }
    #expect(provider.fetches == 3)
  }

  @Test("Tokens under a new key that come at the same time share the fetch, and none is refused")
  func rotation() async throws {
    let (old, new) = (Minter("k1"), Minter("k2"))
    let door = Door()
    let keys = Watched(old.jwks)
    let bench = Bench(
      ScriptedTransport { request, number throws(TransportError) in
        if number > 2 { await door.pass() }
        return .json(request.url.path == Discovery.path ? Discovery.document() : keys.value)
      })
    let directory = ProviderDirectory(
      issuer: "https://login.example.com", transport: bench.transport, now: { bench.clock.now })
    let oldToken = try IDToken(old.token(at: bench.clock.now))
    let newToken = try IDToken(new.token(at: bench.clock.now))
    _ = try await directory.keys(for: oldToken)
    keys.update { $0 = new.jwks }
    bench.clock.advance(by: 300)
    let first = Task { try await directory.keys(for: newToken).contains("k2") }
    _ = try await bench.transport.requests.wait(for: "the fetch") { $0.count == 3 ? true : nil }
    let others = (0..<20).map { _ in Task { try await directory.keys(for: newToken).contains("k2") } }
    for _ in 0..<100 { await Task.yield() }
    door.open()
    #expect(try await first.value)
    for other in others { #expect(try await other.value) }
    #expect(bench.transport.count(of: "/keys") == 2)
  }

  @Test("A provider that cannot be reached keeps its keys, and is asked again after five minutes")
  func unreachable() async throws {
    let (old, new) = (Minter("k1"), Minter("k2"))
    let provider = Provider(old.jwks)
    provider.door.open()
    #expect(await provider.knows(old))
    provider.isDown.update { $0 = true }
    provider.bench.clock.advance(by: 300)
    #expect(await !provider.knows(new))
    #expect(await provider.knows(old))
    #expect(provider.fetches == 2)
    provider.isDown.update { $0 = false }
    provider.keys.update { $0 = new.jwks }
    #expect(await !provider.knows(new))
    provider.bench.clock.advance(by: 300)
    #expect(await provider.knows(new))
  }

  @Test(
    "A key that the provider has withdrawn is used for an hour, and longer only while the provider cannot be reached")
  func withdrawn() async throws {
    let (old, new) = (Minter("k1"), Minter("k2"))
    let provider = Provider(old.jwks)
    provider.door.open()
    #expect(await provider.knows(old))
    provider.keys.update { $0 = new.jwks }
    provider.bench.clock.advance(by: 3599)
    #expect(await provider.knows(old))
    provider.isDown.update { $0 = true }
    provider.bench.clock.advance(by: 1)
    #expect(await provider.knows(old))
    provider.isDown.update { $0 = false }
    #expect(await provider.knows(old))
    provider.bench.clock.advance(by: 300)
    #expect(await !provider.knows(old))
    #expect(await provider.knows(new))
    #expect(provider.bench.transport.count(of: Discovery.path) == 3 && provider.fetches == 2)
  }

  @Test("A clock that was set back delays no fetch of unknown keys")
  func clock() async throws {
    let (old, new) = (Minter("k1"), Minter("k2"))
    let provider = Provider(old.jwks)
    provider.door.open()
    #expect(await provider.knows(old))
    provider.keys.update { $0 = new.jwks }
    provider.bench.clock.advance(by: -86_400)
    #expect(await provider.knows(new))
  }

  @Test("A provider whose keys have no identifiers can change them, and forged tokens cause no load")
  func withoutIdentifiers() async throws {
    let (old, new) = (Minter(namesKey: false), Minter(namesKey: false))
    let (current, keys) = (Watched(old), Watched(old.jwks))
    let clock = ManualClock()
    let transport = Discovery.transport(keys: { keys.value }) { _, number throws(TransportError) in
      .tokens(number, idToken: try? current.value.token(at: clock.now))
    }
    let dependencies = SignInDependencies(transport: transport, now: { clock.now })
    let client = ProviderClient(provider: .discovered(allowsPasswordGrant: true), dependencies: dependencies)
    func signsIn() async -> Bool {
      (try? await client.signIn(with: Credentials(username: "ada", password: "x"))) != nil
    }
    #expect(await signsIn())
    current.update { $0 = new }
    #expect(await !signsIn())
    clock.advance(by: 300)
    #expect(await !signsIn())
    #expect(transport.count(of: "/keys") == 3)
    keys.update { $0 = new.jwks }
    #expect(await !signsIn())
    clock.advance(by: 300)
    #expect(await signsIn())
    #expect(transport.count(of: "/keys") == 4)
  }

  @Test("Without keys, an error is no memory: the next call asks again")
  func failure() async throws {
    let minter = Minter()
    let provider = Provider(minter.jwks)
    provider.door.open()
    provider.isDown.update { $0 = true }
    #expect(await !provider.knows(minter))
    provider.isDown.update { $0 = false }
    #expect(await provider.knows(minter))
  }

  @Test("Keys with a configured address need no discovery")
  func configured() async throws {
    let minter = Minter()
    let provider = Provider(minter.jwks, keysURL: url("https://login.example.com/keys"))
    provider.door.open()
    #expect(await provider.knows(minter))
    #expect(provider.bench.transport.count(of: Discovery.path) == 0)
  }
}
