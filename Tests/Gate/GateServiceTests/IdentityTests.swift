import AppAttest
import AttestGate
import ByteCoding
import Cryptography
import Foundation
import GateFixtures
import SQLiteStore
import SimulatedDevice
import Testing
import Transport

@testable import GateService

@Suite("Identity assertions for the upstream")
struct IdentityTests {
  private let service: ServiceBench
  private var bench: GateBench { service.bench }

  init() throws { service = try ServiceBench(GateBench()) }

  /// Returns the three parts of the assertion in the head that is sent for `request`.
  private func assertion(
    for request: Request, from peer: Peer = ServiceBench.peer, by service: ServiceBench? = nil
  ) async throws -> (header: [String: JSONValue], claims: [String: JSONValue], text: String) {
    let head = String(decoding: try await (service ?? self.service).relay(for: request, from: peer).head, as: UTF8.self)
    let line = try #require(head.split(separator: "\r\n").first { $0.hasPrefix("X-Attest-Assertion: ") })
    let text = String(line.dropFirst("X-Attest-Assertion: ".count))
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    #expect(parts.count == 3)
    let (header, claims) = (try #require(Base64URL.decode(parts[0])), try #require(Base64URL.decode(parts[1])))
    return (try JSONValue.object(header), try JSONValue.object(claims), text)
  }

  private func deviceRequest(claims: AppClaims? = nil) async throws -> (Request, MintedDevice) {
    let device = try await bench.registeredDevice(claims: claims)
    return (.upgrade(try device.fields(over: bench.nonce(), count: 7)), device)
  }

  @Test("The assertion of a device has exactly the documented claims")
  func deviceClaims() async throws {
    let (request, device) = try await deviceRequest()
    let (header, claims, _) = try await assertion(for: request)
    #expect(header == ["alg": .text("ES256"), "typ": .text("JWT"), "kid": .text(try kid())])
    let now = bench.clock.now.seconds
    var expected: [String: JSONValue] = [
      "iss": .text("gate"), "aud": .text("upstream"), "route": .text("/"), "sub": .text(KeyHash(of: device.keyID).text),
      "iat": .number(now), "exp": .number(now + 60), "method": .text("app-attest"), "app": .text(GateBench.appID),
      "env": .text("development"), "counter": .number(7), "sid": .text(Request.id), "client_ip": .text("192.0.2.7"),
    ]
    // A socket is opened by a GET, and the hash is over path and query as sent.
    expected["htm"] = .text("GET")
    expected["target"] = .text(Base64URL.encode(SHA256.hash(Array(request.target.utf8))))
    expected["category"] = claims["category"]
    expected["jti"] = claims["jti"]
    #expect(claims == expected)
  }

  @Test("The claims contain a current risk metric and its time, and no outdated one", arguments: [true, false])
  func risk(isCurrent: Bool) async throws {
    let (request, device) = try await deviceRequest()
    let now = bench.clock.now
    let appID = try #require(AppID(GateBench.appID))
    for due in try await bench.store.dueReceipts(of: [appID], at: now, limit: 10) where due.key.keyID == device.keyID {
      let settlement = ReceiptSettlement(risk: KeyRisk(metric: 4, at: now), next: isCurrent ? now : nil)
      #expect(try await bench.store.settle(due, as: settlement))
    }
    let claims = try await assertion(for: request).claims
    #expect(claims["risk"] == (isCurrent ? .number(4) : nil))
    #expect(claims["risk_at"] == (isCurrent ? .number(now.seconds) : nil))
  }

  @Test("The claims contain the validation category if the device has one")
  func category() async throws {
    let (request, _) = try await deviceRequest(claims: AppClaims(validationCategory: 2))
    #expect(try await assertion(for: request).claims["category"] == .text("testflight"))
  }

  @Test("The assertion of a debug build has no subject and no Apple environment, and is bound to its certificate")
  func certificateClaims() async throws {
    let fingerprint = SecureRandom.bytes(32)
    let certificate = PeerCertificate(der: [1], fingerprint: fingerprint, subject: "CN=MudApp Debug Client")
    let claims = try await assertion(
      for: .upgrade(), from: Peer(address: ServiceBench.peer.address, verifiedCertificate: certificate)
    ).claims
    #expect(claims["cnf"] == .object(["x5t#S256": .text(Base64URL.encode(fingerprint))]))
    #expect(claims["method"] == .text("mtls") && claims["env"] == .text("debug"))
    #expect(
      claims.keys.sorted() == [
        "aud", "client_ip", "cnf", "env", "exp", "htm", "iat", "iss", "jti", "method", "route", "sid", "subject",
        "target",
      ])
    #expect(claims["subject"] == .text("CN=MudApp Debug Client"))
    let long = PeerCertificate(
      der: [1], fingerprint: fingerprint, subject: "CN=" + String(repeating: "x", count: 1022))
    let others = try await assertion(
      for: .upgrade(), from: Peer(address: ServiceBench.peer.address, verifiedCertificate: long)
    ).claims
    #expect(others["subject"] == nil && others["cnf"] != nil)
  }

  @Test(
    "An assertion names its route's audience, or the default audience, and the configured route",
    arguments: [
      ("/", "upstream", "/"), ("/chat", "upstream", "/"), ("/game", "game", "/game"), ("/game/eu", "game", "/game"),
      ("/gamer", "upstream", "/"), ("/api/x", "upstream", "/api"),
    ])
  func route(_ path: String, _ audience: String, _ route: String) async throws {
    let device = try await bench.registeredDevice()
    let request = Request.upgrade(try device.fields(over: bench.nonce(), count: 1), path: path)
    let claims = try await assertion(for: request).claims
    #expect(claims["aud"] == .text(audience) && claims["route"] == .text(route))
  }

  @Test("The assertion of a forwarded request names the route like the assertion of a session")
  func forwarded() async throws {
    let device = try await bench.registeredDevice()
    let request = Request.plain("GET", "/api/x", try device.fields(over: bench.nonce(), count: 1))
    guard case .forward(_, let head) = await service.disposition(of: request) else {
      throw ServiceBench.Unexpected.relayed
    }
    let claims = try claims(in: head)
    #expect(claims["aud"] == .text("upstream") && claims["route"] == .text("/api"))
    #expect(claims["htm"] == .text("GET"))
    #expect(claims["target"] == .text(Base64URL.encode(SHA256.hash(Array("/api/x".utf8)))))
  }

  @Test("The assertion for another proxy has the default audience and no route, whatever the path")
  func verification() async throws {
    let device = try await bench.registeredDevice()
    for (count, path) in [(UInt32(1), "/attest/verify"), (2, "/attest/verify/game")] {
      let answer = try await service.answer(to: .plain("GET", path, device.fields(over: bench.nonce(), count: count)))
      let text = try #require(answer.headers.first("X-Attest-Assertion"))
      let claims = try claims(in: Array("X-Attest-Assertion: \(text)".utf8))
      #expect(claims["aud"] == .text("upstream") && claims["route"] == nil)
      #expect(claims["htm"] == nil && claims["target"] == nil)
    }
  }

  /// Returns the claims of the assertion in `head`.
  private func claims(in head: [UInt8]) throws -> [String: JSONValue] {
    let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n")
    let line = try #require(lines.first { $0.hasPrefix("X-Attest-Assertion: ") })
    let parts = line.dropFirst("X-Attest-Assertion: ".count).split(separator: ".", omittingEmptySubsequences: false)
    return try JSONValue.object(try #require(Base64URL.decode(parts[1])))
  }

  @Test("A certificate next to an assertion adds nothing to the identity")
  func certificateWithAssertion() async throws {
    let (request, _) = try await deviceRequest()
    let certificate = PeerCertificate(der: [1], fingerprint: SecureRandom.bytes(32), subject: "CN=x")
    let peer = Peer(address: ServiceBench.peer.address, verifiedCertificate: certificate)
    let relay = try await service.relay(for: request, from: peer)
    #expect(!String(decoding: relay.head, as: UTF8.self).contains("Client-Cert"))
  }

  @Test("Without enforcement, an anonymous client gets no assertion, and no keys are needed")
  func open() async throws {
    let open = try ServiceBench(GateBench(enforcement: .off))
    let head = String(decoding: try await open.relay(for: .upgrade()).head, as: UTF8.self)
    #expect(head.contains("X-Attest-Method: none") && !head.contains("X-Attest-Assertion"))
    #expect(!open.bench.identityKeys.isReady)
  }

  @Test("No two assertions have the same jti")
  func unique() async throws {
    let certificate = PeerCertificate(der: [1], fingerprint: SecureRandom.bytes(32), subject: "CN=x")
    let peer = Peer(address: ServiceBench.peer.address, verifiedCertificate: certificate)
    var seen: Set<JSONValue?> = []
    for _ in 0..<50 { seen.insert(try await assertion(for: .upgrade(), from: peer).claims["jti"]) }
    #expect(seen.count == 50 && !seen.contains(nil))
  }

  @Test("The published key verifies the signature over the sent text, and over no other text")
  func signature() async throws {
    let (request, _) = try await deviceRequest()
    let text = try await assertion(for: request).text
    let end = try #require(text.lastIndex(of: "."))
    let signature = try #require(Base64URL.decode(text[text.index(after: end)...]))
    let der = DER.sequence(
      DER.integer(magnitude: Array(signature[..<32])), DER.integer(magnitude: Array(signature[32...])))
    let key = try #require(try await keySet().first)
    let (x, y) = (try #require(key["x"]?.bytes), try #require(key["y"]?.bytes))
    let publicKey = try P256PublicKey(x963: [4] + x + y)
    #expect(publicKey.isValidSignature(der, for: Array(text[..<end].utf8)))
    #expect(!publicKey.isValidSignature(der, for: Array(text[..<end].utf8) + [0]))
  }

  // MARK: Keys

  private func keySet(method: String = "GET") async throws -> [[String: JSONValue]] {
    let response = try await service.answer(to: .plain(method, "/.well-known/sallyport/jwks.json"))
    #expect(response.status == 200)
    #expect(response.headers.first("Content-Type") == "application/jwk-set+json")
    #expect(response.headers.first("Cache-Control") == "public, max-age=300")
    let value = try JSONValue.object(response.body)["keys"]
    let keys: [JSONValue]? = if case .list(let keys) = value { keys } else { nil }
    return try #require(keys).map { key in
      let members: [String: JSONValue]? = if case .object(let members) = key { members } else { nil }
      return try #require(members)
    }
  }

  private func kid() throws -> String { try #require(bench.identityKeys.signing(at: bench.clock.now)).kid }

  @Test(
    "The public keys are available with GET and HEAD, named by their thumbprints, without private parts")
  func published() async throws {
    let keys = try await keySet()
    #expect(keys.count == 1)
    let key = try #require(keys.first)
    #expect(key.keys.sorted() == ["alg", "crv", "kid", "kty", "use", "x", "y"])
    #expect(key["kid"] == .text(try kid()))
    #expect(try await keySet(method: "HEAD") == keys)
    for method in ["POST", "DELETE"] {
      let response = try await service.answer(to: .plain(method, "/.well-known/sallyport/jwks.json"))
      #expect(response.status == 405 && response.headers.first("Allow") == "GET, HEAD")
    }
  }

  @Test("During a rotation both keys are published, and assertions name their signing key")
  func rotation() async throws {
    let (request, device) = try await deviceRequest()
    let old = try await assertion(for: request).header["kid"]
    #expect(try await bench.identityKeys.rotate(overlap: .seconds(30)))
    #expect(try await keySet().count == 2)
    let second = Request.upgrade(try device.fields(over: bench.nonce(), count: 8))
    #expect(try await assertion(for: second).header["kid"] == old)
    bench.clock.advance(by: .seconds(30))
    let third = Request.upgrade(try device.fields(over: bench.nonce(), count: 9))
    let new = try await assertion(for: third).header["kid"]
    #expect(new != old)
    #expect(try await keySet().map { $0["kid"] } == [new, old])
  }

  @Test("New keys of another node are loaded when the store reports the change")
  func change() async throws {
    _ = try await keySet()
    let response = ChangeResponse(
      registry: bench.store, challenges: bench.challenges, identityKeys: bench.identityKeys,
      sessions: service.sessions, logger: service.log.logger)
    let other = IdentityKeys(storage: bench.store, clock: bench.clock.wallClock)
    #expect(try await other.rotate(overlap: .zero))
    #expect(try kid() != other.signing(at: bench.clock.now)?.kid)
    try await response.respond(to: .sharedKeys)
    #expect(try kid() == other.signing(at: bench.clock.now)?.kid)
  }
}

/// A JSON value of the kinds that assertions and key sets contain.
enum JSONValue: Decodable, Sendable, Hashable {
  case number(Int64)
  case text(String)
  case object([String: JSONValue])
  case list([JSONValue])

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if let number = try? container.decode(Int64.self) {
      self = .number(number)
    } else if let text = try? container.decode(String.self) {
      self = .text(text)
    } else if let list = try? container.decode([JSONValue].self) {
      self = .list(list)
    } else {
      self = .object(try container.decode([String: JSONValue].self))
    }
  }

  static func object(_ bytes: [UInt8]) throws -> [String: JSONValue] {
    try JSONDecoder().decode([String: JSONValue].self, from: Data(bytes))
  }

  /// The bytes of a base64url text.
  var bytes: [UInt8]? { if case .text(let text) = self { Base64URL.decode(text) } else { nil } }
}
