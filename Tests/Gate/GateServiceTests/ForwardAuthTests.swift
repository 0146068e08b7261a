import AttestGate
import Cryptography
import GateFixtures
import GateService
import SQLiteStore
import SimulatedDevice
import Testing
import Transport

@Suite("Forward auth")
struct ForwardAuthTests {
  private static let names = ["X-Attest-Assertion", "X-Attest-Key-Id", "X-Attest-App", "X-Attest-Method"]
  private let service: ServiceBench
  private let device: MintedDevice
  private let count = SignCounter()

  init() async throws {
    let bench = try GateBench()
    service = try ServiceBench(bench)
    device = try await bench.registeredDevice()
  }

  private func proof() throws -> [(String, String)] {
    try device.fields(over: service.bench.nonce(), count: count.next())
  }

  @Test("A valid assertion is answered with 204 and the identity in fields")
  func allowed() async throws {
    let answer = try await service.answer(to: .plain("GET", "/attest/verify", proof()))
    #expect(answer.status == 204 && answer.body.isEmpty)
    let expected = [
      "X-Attest-Key-Id": KeyHash(of: device.keyID).text, "X-Attest-App": GateBench.appID,
      "X-Attest-Method": "app-attest", "X-Attest-Error": "", "X-Request-Id": Request.id, "Cache-Control": "no-store",
    ]
    for (name, value) in expected { #expect(answer.headers.only(named: name) == .once(value), "\(name)") }
    #expect(answer.headers.first("X-Attest-Assertion")?.split(separator: ".").count == 3)
    #expect(try service.log.lines.last?["key"] == KeyHash(of: device.keyID).short)
  }

  @Test(
    "The method of the proxy's request does not matter",
    arguments: ["GET", "HEAD", "POST", "PROPFIND"])
  func methods(_ method: String) async throws {
    #expect(try await service.answer(to: .plain(method, "/attest/verify", proof())).status == 204)
    #expect(try await service.answer(to: .plain(method, "/attest/verify")).status == 401)
  }

  @Test("A request with a path after the endpoint's own is answered with 200")
  func envoy() async throws {
    #expect(try await service.answer(to: .plain("GET", "/attest/verify/chat/7", proof())).status == 200)
    #expect(try await service.answer(to: .plain("GET", "/attest/verify/chat/7")).status == 401)
  }

  @Test("A refusal empties every identity field and gives the error code")
  func refused() async throws {
    let spoofs = Self.names.map { ($0, "spoofed") }
    let answer = try await service.answer(to: .plain("GET", "/attest/verify", spoofs))
    #expect(answer.status == 401)
    #expect(answer.headers.only("X-Attest-Error") == .once("no_credentials"))
    for name in Self.names { #expect(answer.headers.only(named: name) == .once(""), "\(name)") }
  }

  @Test("Without enforcement, unknown identity fields are empty")
  func open() async throws {
    let open = try ServiceBench(GateBench(enforcement: .off))
    let answer = try await open.answer(to: .plain("GET", "/attest/verify", [("X-Attest-Key-Id", "spoofed")]))
    #expect(answer.status == 204)
    for name in ["X-Attest-Key-Id", "X-Attest-App"] { #expect(answer.headers.only(named: name) == .once("")) }
    #expect(answer.headers.only("X-Attest-Method") == .once("none"))
  }

  @Test("Errors of the client are answered with 401 or 403, the only statuses that proxies pass on")
  func statuses() async throws {
    let malformed = try await service.answer(
      to: .plain("GET", "/attest/verify", [(AssertionClaim.Name.keyID.rawValue, "?")]))
    #expect(malformed.status == 401 && malformed.headers.first("X-Attest-Error") == "malformed_header")
    #expect(malformed.headers.values(of: "WWW-Authenticate").count == 1)
    #expect(try await service.bench.store.revoke(device.keyID, at: service.bench.clock.now))
    let revoked = try await service.answer(to: .plain("GET", "/attest/verify", proof()))
    #expect(revoked.status == 403 && revoked.headers.first("X-Attest-Error") == "key_revoked")
  }

  @Test("Each call is an admission: a second call or an upgrade with the same assertion is refused")
  func once() async throws {
    let proof = try proof()
    #expect(try await service.answer(to: .plain("GET", "/attest/verify", proof)).status == 204)
    let second = try await service.answer(to: .plain("GET", "/attest/verify", proof))
    #expect(second.status == 401 && second.headers.first("X-Attest-Error") == "nonce_used")
    #expect(try await service.answer(to: .upgrade(proof)).status == 401)
  }

  @Test(
    "An invalid proof closes the connection; a missing or malformed proof does not",
    arguments: ["/attest/verify", "/attest/verify/x", "/api"])
  func ending(_ path: String) async throws {
    func refusal(_ headers: [(String, String)]) async throws -> Response {
      let answer = try await service.answer(to: .plain("GET", path, headers))
      #expect((400...403).contains(answer.status))
      return answer
    }
    for headers in [[], [(AssertionClaim.Name.keyID.rawValue, "?")]] {
      #expect(try await !refusal(headers).closes)
    }
    let spent = try proof()
    #expect(try await service.answer(to: .plain("GET", "/attest/verify", spent)).closes == false)
    let otherDevice = try service.bench.device()
    let unknown = try otherDevice.fields(over: service.bench.nonce(), count: 1)
    for headers in [spent, unknown] { #expect(try await refusal(headers).closes) }
  }

  @Test("Monitor mode closes the connection after an invalid proof; a trusted proxy keeps its connection")
  func closingInMonitorMode() async throws {
    let range = try #require(AddressRange(bytes: [192, 0, 2, 7], length: 32))
    let bench = service.bench
    let monitoring = try ServiceBench(GateBench(enforcement: .monitor))
    let otherDevice = try service.bench.device()
    let passed = try await monitoring.answer(
      to: .plain("GET", "/attest/verify", otherDevice.fields(over: monitoring.bench.nonce(), count: 1)))
    #expect(passed.status == 204 && passed.closes)
    #expect(try await !monitoring.answer(to: .plain("GET", "/attest/verify")).closes)
    let trusting = try ServiceBench(bench, trustedProxies: [range])
    let unknown = try otherDevice.fields(over: bench.nonce(), count: 1)
    let refused = try await trusting.answer(to: .plain("GET", "/attest/verify", unknown))
    #expect(refused.status == 401 && !refused.closes)
  }

  @Test("The certificate of the connection belongs to the proxy, and a certificate in a header is ignored")
  func certificates() async throws {
    let certificate = PeerCertificate(der: [1], fingerprint: SecureRandom.bytes(32), subject: "CN=proxy")
    let proxy = Peer(address: ServiceBench.peer.address, verifiedCertificate: certificate)
    let proxyHeaders = [("Client-Cert", ":AQID:"), ("X-SSL-Client-Verify", "SUCCESS"), ("X-Client-Cert", "MIIB")]
    for headers in [[], proxyHeaders] {
      #expect(try await service.answer(to: .plain("GET", "/attest/verify", headers), from: proxy).status == 401)
    }
    // The opposite case: on a route the same connection is admitted.
    _ = try await service.relay(for: .upgrade(), from: proxy)
  }

  @Test("Forward auth never upgrades and opens no session")
  func upgrade() async throws {
    #expect(try await service.answer(to: .upgrade(proof(), path: "/attest/verify")).status == 204)
    #expect(service.sessions.records.isEmpty)
  }

  @Test(
    "An upgrade to another protocol is refused even without enforcement, and spends no nonce",
    arguments: ["h2c", "websocket, h2c", "TLS/1.3", "websocket/13", "\"websocket\"", "h2c,,"])
  func foreignUpgrade(_ value: String) async throws {
    let proof = try proof()
    for path in ["/attest/verify", "/attest/verify/x"] {
      let refused = try await service.answer(to: .plain("GET", path, proof + [("Upgrade", value)]))
      #expect(refused.status == 403 && refused.headers.first("X-Attest-Error") == "upgrade_refused")
      for name in Self.names { #expect(refused.headers.only(named: name) == .once(""), "\(name)") }
    }
    let settings = try await service.answer(to: .plain("GET", "/attest/verify", proof + [("HTTP2-Settings", "AAMA")]))
    #expect(settings.status == 403)
    let open = try ServiceBench(GateBench(enforcement: .off))
    #expect(try await open.answer(to: .plain("GET", "/attest/verify", [("Upgrade", value)])).status == 403)
    #expect(
      try await service.answer(to: .plain("GET", "/attest/verify", proof + [("Upgrade", "WebSocket")])).status == 204)
  }

  @Test(
    "Fields of the proxy about the original request are ignored",
    arguments: ["X-Original-URI", "X-Original-Method", "X-Forwarded-Method", "X-Forwarded-Uri", "X-Forwarded-Host"])
  func originals(_ name: String) async throws {
    let proxyHeaders = [(name, "/attest/challenge"), (name, "GET")]
    #expect(try await service.answer(to: .plain("GET", "/attest/verify", proof() + proxyHeaders)).status == 204)
    #expect(try await service.answer(to: .plain("GET", "/attest/verify", proxyHeaders)).status == 401)
  }
}
