import AttestGate
import ByteCoding
import GateFixtures
import GateService
import Observability
import SimulatedDevice
import Testing
import Transport

@Suite("Monitor mode")
struct MonitorTests {
  private let service: ServiceBench

  init() throws { service = try ServiceBench(GateBench(enforcement: .monitor)) }

  private func admissions() async -> [String] {
    String(decoding: await service.metrics.registry.exposition(), as: UTF8.self).split(separator: "\n").map(String.init)
      .filter { $0.hasPrefix("sallyport_admissions_total{") && !$0.hasSuffix(" 0") }
  }

  @Test("A refused client is admitted anonymously, with one log line and its own metric")
  func wouldRefuse() async throws {
    let spoofs = [("X-Attest-Key-Id", "spoofed"), ("X-Attest-Method", "app-attest")]
    let (_, head) = try await service.relay(for: .upgrade(spoofs))
    let text = String(decoding: head, as: UTF8.self)
    #expect(text.contains("\r\nX-Attest-Method: none\r\n"))
    #expect(!text.contains("spoofed") && !text.contains("X-Attest-Assertion: e"))

    let lines = try service.log.lines
    #expect(lines.count == 1)
    let line = try #require(lines.first)
    #expect(line["message"] == "refusal not enforced" && line["level"] == "notice")
    #expect(line["code"] == "no_credentials" && line["step"] == "no_credentials" && line["request_id"] == Request.id)
    #expect(
      await admissions() == [
        #"sallyport_admissions_total{result="would_refuse",method="none",code="no_credentials"} 1"#
      ])
  }

  @Test("A client with a valid proof is announced as with enforcement, and counted once")
  func admitted() async throws {
    let device = try await service.bench.registeredDevice()
    let proof = try device.fields(over: try service.bench.nonce(), count: 1)
    let (_, head) = try await service.relay(for: .upgrade(proof))
    #expect(String(decoding: head, as: UTF8.self).contains("\r\nX-Attest-Method: app-attest\r\n"))
    #expect(await admissions() == [#"sallyport_admissions_total{result="admitted",method="app-attest",code=""} 1"#])

    let (_, replayed) = try await service.relay(for: .upgrade(proof))
    #expect(String(decoding: replayed, as: UTF8.self).contains("\r\nX-Attest-Method: none\r\n"))
    #expect(try service.log.lines.contains { $0["message"] == "refusal not enforced" && $0["step"] == "nonce_spent" })
  }

  @Test("Forward auth answers 204 without an identity")
  func forwardAuth() async throws {
    let answer = try await service.answer(to: .plain("GET", "/attest/verify"))
    #expect(answer.status == 204)
    #expect(answer.headers.only("X-Attest-Method") == .once("none"))
    for name in ["X-Attest-Key-Id", "X-Attest-App"] { #expect(answer.headers.only(named: name) == .once("")) }
  }

  @Test("Refusals that do not concern proofs remain active")
  func otherRefusals() async throws {
    let foreign = try await service.answer(to: .upgrade([("Origin", "https://elsewhere.example")]))
    #expect(foreign.status == 403 && foreign.headers.first("X-Attest-Error") == "origin_refused")
    let registration = try await service.answer(to: .plain("POST", "/attest/register", body: "{}"))
    #expect(registration.status == 400)
  }
}
