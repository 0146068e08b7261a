import AppAttest
import AttestGate
import ByteCoding
import Foundation
import GateFixtures
import SQLiteStore
import SimulatedDevice
import Testing
import Transport

@testable import GateService

@Suite("Routes")
struct RouteTests {
  private let service: ServiceBench
  init() throws { service = try ServiceBench(GateBench()) }

  @Test("A registration that is refused after the verification of its chain closes the connection, and no other does")
  func refusedRegistration() async throws {
    let bench = service.bench
    func ends(_ claim: RegistrationClaim, code: String, by service: ServiceBench) async throws -> Bool {
      let answer = try await service.answer(to: .registration(claim))
      #expect(answer.headers.first("X-Attest-Error") == code)
      return answer.closes
    }
    let genuine = try bench.device().registration(over: bench.nonce(), at: bench.clock.now)
    // The nonce of another attestation: only the verification of the chain shows it.
    let moved = RegistrationClaim(
      keyID: genuine.keyID, attestation: genuine.attestation, nonce: try bench.nonce().text)
    #expect(try await ends(moved, code: "nonce_mismatch", by: service))
    let malformed = RegistrationClaim(keyID: genuine.keyID, attestation: "AAAA", nonce: genuine.nonce)
    #expect(try await !ends(malformed, code: "malformed_attestation", by: service))
    let unknown = RegistrationClaim(keyID: genuine.keyID, attestation: genuine.attestation, nonce: "AAAA")
    #expect(try await !ends(unknown, code: "nonce_invalid", by: service))
    // Others use the connection of a trusted proxy, too.
    let range = try #require(AddressRange(bytes: [192, 0, 2, 7], length: 32))
    #expect(try await !ends(moved, code: "nonce_mismatch", by: ServiceBench(bench, trustedProxies: [range])))
    // Nothing was spent: the app registers on a new connection.
    let response = try await service.answer(to: .registration(genuine))
    #expect(response.status == 200 && !response.closes)
    let again = try await service.answer(to: .registration(genuine))
    #expect(again.status == 200 && !again.closes)
  }

  @Test("E-005 A challenge is answered immediately, with strings only, and must not be cached")
  func challenge() throws {
    guard
      case .respond(let response) = service.immediateDisposition(of: .plain("GET", "/attest/challenge"))
    else { throw ServiceBench.Unexpected.relayed }
    let reply = try JSONDecoder().decode([String: String].self, from: Data(response.body))
    let nonce = try #require(reply["nonce"].flatMap { Nonce(text: $0) })
    #expect(response.status == 200)
    #expect(Set(reply.keys) == ["nonce", "expires"])
    #expect(reply["expires"] == String(service.bench.clock.now.milliseconds + 60_000))
    #expect(try service.bench.challenges.check(nonce, at: service.bench.clock.now) == ())
    #expect(response.headers.first("Cache-Control") == "no-store")
    #expect(response.headers.first("Content-Type") == "application/json")
    #expect(response.headers.first("X-Request-Id") == Request.id)
    #expect(response.headers.first("X-Attest-Error") == nil)
  }

  @Test("E-008 A repeated registration answers 200; its JSON may have escaped slashes and additional members")
  func registration() async throws {
    let device = try service.bench.device()
    let claim = try device.registration(over: service.bench.nonce(), at: service.bench.clock.now)
    let request = try Request.registration(claim)
    #expect(String(decoding: request.body, as: UTF8.self).contains(#"\/"#))
    for _ in 0..<2 {
      let response = try await service.answer(to: request)
      #expect(response.status == 200)
      #expect(response.headers.first("X-Request-Id") == Request.id)
      #expect(response.headers.first("X-Attest-Error") == nil)
    }
    let more = String(decoding: request.body.dropLast(), as: UTF8.self) + #", "device": {"name": 1}}"#
    #expect(try await service.answer(to: .plain("POST", "/attest/register", body: more)).status == 200)
    #expect(try service.log.lines.map { $0["message"] } == ["key registered", "key registered", "key registered"])
    #expect(try !service.log.text.contains(device.keyID.base64))
  }

  @Test("A route with a shorter head than the listener's refuses longer ones, before any credential is read")
  func headOfRoute() async throws {
    let host = "Host: gate.example:6200\r\n".utf8.count
    for (length, isAllowed) in [(1024, true), (1025, false)] {
      let value = String(repeating: "x", count: length - "/small".utf8.count - host - "A: \r\n".utf8.count)
      let answer = try await service.answer(to: .plain("GET", "/small", [("A", value)]))
      #expect(answer.status == (isAllowed ? 401 : 431))
      let longTarget = "/small?" + String(repeating: "y", count: length - "/small?".utf8.count - host)
      let request = Request(
        id: Request.id, method: "GET", target: longTarget, path: "/small",
        headers: HeaderFields([("Host", "gate.example:6200")]))
      #expect(
        try await service.answer(to: request).headers.first("X-Attest-Error")
          == (isAllowed ? "no_credentials" : "head_too_large"))
    }
  }

  @Test("A registration with ambiguous JSON is refused")
  func ambiguousRegistration() async throws {
    let device = try service.bench.device()
    let claim = try device.registration(over: service.bench.nonce(), at: service.bench.clock.now)
    let request = try Request.registration(claim)
    let start = String(decoding: request.body.dropLast(), as: UTF8.self)
    let texts = [
      start + #", "nonce": "x"}"#, start + #", "n\u006fnce": "x"}"#, start + #", "more": {"a": 1, "a": 2}}"#,
      start + ",}", start + "} {}",
    ]
    let whole = start + "}"
    let utf16 = whole.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
    let bodies =
      texts.map { Array($0.utf8) } + [[0xEF, 0xBB, 0xBF] + whole.utf8, utf16, [0xFF, 0xFE] + utf16]
      + [whole.utf8.flatMap { [0, 0, 0, $0] }, whole.utf8.flatMap { [$0, 0, 0, 0] }]
    for body in bodies {
      #expect(throws: RegistrationBody.ParseError.notJSON) { try RegistrationBody(json: body) }
    }
    for text in texts {
      let response = try await service.answer(to: .plain("POST", "/attest/register", body: text))
      #expect(response.status == 400 && response.headers.first("X-Attest-Error") == "malformed_json", "\(text)")
    }
    #expect(try await service.answer(to: request).status == 200)
  }

  @Test(
    "The longest route that covers whole path segments is selected",
    arguments: [
      ("/", false), ("/game", true), ("/game/", true), ("/game/eu/1", true), ("/games", false), ("/Game", false),
      ("/other/game", false), ("/attestation", false), ("/.well-known/sallyports", false),
    ])
  func longestRoute(_ path: String, isGame: Bool) async throws {
    let device = try await service.bench.registeredDevice()
    let headers = try device.fields(over: service.bench.nonce(), count: 1)
    let order = try await service.order(for: .upgrade(headers, path: path))
    #expect(order.upstream == (isGame ? .unix(path: "/run/game.sock") : .webSocket(host: "127.0.0.1", port: 8080)))
  }

  @Test(
    "The gate's own paths have priority over routes",
    arguments: ["/attest", "/attest/", "/attest/verifyx", "/attest/challenge/x", "/.well-known/sallyport/jwks"])
  func reserved(_ path: String) async throws {
    let device = try await service.bench.registeredDevice()
    let headers = try device.fields(over: service.bench.nonce(), count: 1)
    #expect(try await service.answer(to: .upgrade(headers, path: path)).status == 404)
  }

  @Test("Without routes the answer is 404")
  func noRoute() async throws {
    let bench = service.bench
    let responder = GateResponder(
      gate: bench.gate, registrar: bench.registrar, challenges: bench.challenges,
      identities: service.identities, routes: try #require(RouteTable([])), logger: service.log.logger)
    guard case .respond(let response) = service.immediateDisposition(of: .upgrade(), by: responder) else {
      throw ServiceBench.Unexpected.relayed
    }
    #expect(response.status == 404)
  }

  @Test(
    "A route's path begins with a slash and has no empty or dot segment",
    arguments: [
      ("", nil), ("game", nil), ("//", nil), ("/a//b", nil), ("/../a", nil), ("/./a", nil), ("/", "/"),
      ("/a/", "/a"), ("/a/b", "/a/b"),
    ] as [(String, String?)])
  func routePaths(_ path: String, normal: String?) {
    #expect(Route(path: path, upstream: .unix(path: "/x"))?.path == normal)
  }

  @Test("Two routes with the same path are not accepted")
  func duplicates() throws {
    let route = try #require(Route(path: "/a", upstream: .unix(path: "/x")))
    let duplicate = try #require(Route(path: "/a/", upstream: .unix(path: "/y")))
    #expect(RouteTable([route, duplicate]) == nil)
  }

  @Test(
    "An origin is foreign unless its host is the requested host; a request without an origin is not foreign",
    arguments: [
      ([], true), (["https://gate.example:6200"], true), (["https://gate.example"], true),
      (["HTTPS://GATE.EXAMPLE"], true), (["http://gate.example:80"], true), (["https://evil.example"], false),
      (["null"], false), ([""], false), (["gate.example"], false), (["https://gate.example.evil.example"], false),
      (["https://evil.example/gate.example"], false), (["https://gate.example@evil.example"], false),
      (["https://gate.example", "https://gate.example"], false), (["https://gate.example:x"], false),
      (["https://"], false), (["https://[::1]"], false),
    ])
  func origins(_ origins: [String], isWelcome: Bool) async throws {
    let device = try await service.bench.registeredDevice()
    let headers = try device.fields(over: service.bench.nonce(), count: 1) + origins.map { ("Origin", $0) }
    switch await service.disposition(of: .upgrade(headers)) {
    case .relay: #expect(isWelcome)
    case .respond(let response): #expect(!isWelcome && response.headers.first("X-Attest-Error") == "origin_refused")
    case .forward: Issue.record("the gate does not forward upgrades")
    case .converse: Issue.record("the gate does not converse")
    }
  }

  @Test(
    "A route accepts the origins of its list, each as it is written there",
    arguments: [
      (["capacitor://localhost"], true), (["https://localhost"], true), (["null"], true),
      (["https://gate.example"], true), ([], true), (["ionic://localhost"], false), (["CAPACITOR://localhost"], false),
      (["capacitor://localhost2"], false), (["capacitor://localhost/"], false), (["https://localhost:8443"], false),
      (["http://localhost"], false), (["file://"], false), ([""], false), (["Null"], false),
      (["capacitor://localhost", "capacitor://localhost"], false), (["https://evil.example"], false),
    ])
  func listedOrigins(_ origins: [String], isWelcome: Bool) async throws {
    try await expect(origins, at: "/web", toBe: isWelcome)
  }

  @Test(
    "With `any-with-assertion`, a route accepts every origin except `null` from a device",
    arguments: [
      (["capacitor://localhost"], true), (["file://"], true), (["https://evil.example"], true), ([], true),
      (["null"], false), ([""], false), (["https://a", "https://a"], false), (["evil.example"], false),
    ])
  func anyOrigin(_ origins: [String], isWelcome: Bool) async throws {
    try await expect(origins, at: "/any", toBe: isWelcome)
  }

  private func expect(_ origins: [String], at path: String, toBe isWelcome: Bool) async throws {
    let device = try await service.bench.registeredDevice()
    let headers = try device.fields(over: service.bench.nonce(), count: 1) + origins.map { ("Origin", $0) }
    switch await service.disposition(of: .upgrade(headers, path: path)) {
    case .relay: #expect(isWelcome)
    case .respond(let response):
      #expect(!isWelcome && response.status == 403 && response.headers.first("X-Attest-Error") == "origin_refused")
    case .forward, .converse: Issue.record("the gate relays upgrades")
    }
  }

  @Test("Without an assertion, `any-with-assertion` accepts no origin of another host, whatever admits the client")
  func anyOriginWithoutAssertion() async throws {
    let certificate = PeerCertificate(der: [1], fingerprint: [2], subject: "CN=MudApp Debug Client")
    let peer = Peer(address: ServiceBench.peer.address, verifiedCertificate: certificate)
    let open = try ServiceBench(GateBench(enforcement: .off))
    let foreign = [("Origin", "https://evil.example")]
    for (bench, peer) in [(service, peer), (open, ServiceBench.peer)] {
      let refused = try await bench.answer(to: .upgrade(foreign, path: "/any"), from: peer)
      #expect(refused.status == 403 && refused.headers.first("X-Attest-Error") == "origin_refused")
      _ = try await bench.relay(for: .upgrade([("Origin", "https://gate.example")], path: "/any"), from: peer)
      _ = try await bench.relay(for: .upgrade([("Origin", "null")], path: "/web"), from: peer)
    }
    #expect(try await service.answer(to: .upgrade(foreign, path: "/any")).status == 401)
  }

  @Test("An origin with an IPv6 host is compared without its port")
  func ipv6Origin() async throws {
    let device = try await service.bench.registeredDevice()
    for (origin, isWelcome) in [("https://[2001:db8::1]", true), ("https://[2001:db8::2]:6200", false)] {
      let headers = try device.fields(over: service.bench.nonce(), count: isWelcome ? 1 : 2)
      let request = Request(
        id: Request.id, method: "GET", target: "/", path: "/",
        headers: HeaderFields([("Host", "[2001:db8::1]:6200"), ("Origin", origin)] + headers),
        upgrade: UpgradeIntent(key: "k"))
      if case .relay = await service.disposition(of: request) {
        #expect(isWelcome)
      } else {
        #expect(!isWelcome)
      }
    }
  }

  @Test("A gate answers challenges as soon as its store becomes available")
  func lateStore() async throws {
    let bench = service.bench
    let folder = bench.folder.file("later")
    let challenges = Challenges(storage: SQLiteStore(path: folder + "/state.db"))
    let responder = GateResponder(
      gate: bench.gate, registrar: bench.registrar, challenges: challenges, identities: service.identities,
      routes: try #require(RouteTable([])), logger: service.log.logger)
    let request = Request.plain("GET", "/attest/challenge")
    for isThere in [false, true] {
      if isThere { try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false) }
      guard case .respond(let response) = await responder.respond(to: request, from: ServiceBench.peer) else {
        throw ServiceBench.Unexpected.relayed
      }
      #expect(response.status == (isThere ? 200 : 503))
    }
    #expect(service.immediateDisposition(of: request, by: responder) != nil)
  }
}
