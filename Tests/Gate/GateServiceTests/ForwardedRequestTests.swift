import AppAttest
import AttestGate
import GateFixtures
import GateService
import Locking
import SQLiteStore
import SimulatedDevice
import Testing
import Transport

@Suite("Forwarded requests")
struct ForwardedRequestTests {
  private let service: ServiceBench
  private let device: MintedDevice
  private let count = SignCounter()

  init() async throws {
    let bench = try GateBench()
    service = try ServiceBench(bench)
    device = try await bench.registeredDevice()
  }

  private func forward(
    _ method: String = "GET", _ headers: [(String, String)] = []
  ) async throws -> (order: any ForwardPlan, head: String) {
    let proof = try device.fields(over: service.bench.nonce(), count: count.next())
    guard case .forward(let order, let head) = await service.disposition(of: .plain(method, "/api/x", headers + proof))
    else { throw ServiceBench.Unexpected.relayed }
    return (order, String(decoding: head, as: UTF8.self))
  }

  @Test("The head ends with its last field and has no field that frames a body")
  func head() async throws {
    let head = try await forward(
      "POST", [("Content-Length", "7"), ("Transfer-Encoding", "chunked"), ("Expect", "100-continue"), ("X-Kept", "1")]
    ).head
    #expect(head.hasPrefix("POST /api/x HTTP/1.1\r\nHost: gate.example:6200\r\nX-Kept: 1\r\nX-Attest-Assertion: "))
    #expect(head.hasSuffix("\r\nX-Forwarded-Host: gate.example:6200\r\n") && !head.contains("\r\n\r\n"))
    for name in ["Content-Length", "Transfer-Encoding", "Expect", "Connection", "Upgrade"] {
      #expect(!head.contains("\r\n\(name):"), "\(name)")
    }
  }

  @Test(
    "A client that would switch to another protocol gets HTTP/1.1, and the upstream is not asked",
    arguments: ["h2c", "TLS/1.3", "h2c, TLS/1.3", "websocket/13"])
  func otherProtocol(_ upgrade: String) async throws {
    let head = try await forward(
      "GET",
      [
        ("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", upgrade), ("HTTP2-Settings", "AAMAAABk"),
        ("X-Kept", "1"),
      ]
    ).head
    #expect(head.contains("\r\nX-Kept: 1\r\n"))
    for name in ["upgrade", "http2-settings", "connection"] {
      #expect(!head.lowercased().contains("\r\n\(name):"), "\(name)")
    }
  }

  @Test(
    "Only routes with `forward: all` stream bodies",
    arguments: [
      ("/api", true), ("/api/x", true), ("/", false), ("/game", false), ("/attest/register", false), ("/apix", false),
    ])
  func streams(_ path: String, isStreamed: Bool) {
    #expect(service.responder.streamsBody(of: .plain("POST", path)) == isStreamed)
  }

  @Test(
    "Requests without an assertion, from a page of another host, or with TRACE or CONNECT are refused",
    arguments: [
      ("GET", [], 401), ("GET", [("Origin", "https://evil.example")], 403), ("TRACE", [], 405), ("CONNECT", [], 405),
      ("trace", [], 405), ("Connect", [], 405),
    ] as [(String, [(String, String)], Int)])
  func refused(_ method: String, _ headers: [(String, String)], status: Int) async throws {
    #expect(try await service.answer(to: .plain(method, "/api", headers)).status == status)
    let proof = try device.fields(over: service.bench.nonce(), count: count.next())
    // The assertion changes only the result of the first case.
    guard case .respond(let answer) = await service.disposition(of: .plain(method, "/api", headers + proof)) else {
      #expect(status == 401)
      return
    }
    #expect(answer.status == status && status != 401)
  }

  @Test("An upgrade on the same route opens a session")
  func upgrade() async throws {
    let proof = try device.fields(over: service.bench.nonce(), count: count.next())
    _ = try await service.relay(for: .upgrade(proof, path: "/api"))
  }

  @Test("A request whose key is revoked before it is sent is refused")
  func revoked() async throws {
    let order = try await forward().order
    #expect(order.refusal() == nil)
    service.sessions.close(key: device.keyID, .revoked, reason: "the key was revoked")
    #expect(service.sessions.close(id: Request.id, .goingAway, reason: "closed by an operator"))
    let refusal = try #require(order.refusal())
    #expect(refusal.status == 403 && refusal.headers.first("X-Attest-Error") == "key_revoked")
  }

  @Test("A request is listed while it is forwarded, and a revocation closes it")
  func session() async throws {
    let order = try await forward().order
    let cuts = LockedValue(0)
    order.opened(SessionControl { _, _ in cuts.withLock { $0 += 1 } })
    #expect(service.sessions.records.map(\.keyID) == [device.keyID])
    service.sessions.close(key: device.keyID, .revoked, reason: "the key was revoked")
    #expect(cuts.withLock { $0 } == 1)
    order.finished(
      ForwardSummary(
        status: 200, isComplete: false, bytesFromClient: 1, bytesFromUpstream: 2, duration: .milliseconds(3)))
    #expect(service.sessions.records.isEmpty)
    let line = try #require(try service.log.lines.last)
    #expect(line["message"] == "request forwarded" && line["status"] == "200")
    #expect(try service.log.text.contains(#""complete":false"#))
    #expect(line["request_id"] == Request.id && line["route"] == "/api")
  }
}
