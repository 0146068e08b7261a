import AttestGate
import GateFixtures
import GateService
import Observability
import SimulatedDevice
import Testing
import Transport

@Suite("The trace of a client")
struct TraceStateTests {
  private static let trace = "0af7651916cd43dd8448eb211c80319c"
  private static let parent = "00-\(trace)-b7ad6b7169203331-01"

  /// Returns the head that the upstream gets.
  private func head(_ headers: [(String, String)], isTracing: Bool = true) async throws -> [Substring] {
    let sampler = try #require(Sampler(ratio: 0))
    let tracer = Tracer(sampler: sampler, queue: SpanQueue(), database: "sqlite")
    let service = try ServiceBench(GateBench(), tracer: isTracing ? tracer : nil)
    let device = try await service.bench.registeredDevice()
    let proof = try device.fields(over: service.bench.nonce(), count: 1)
    let head = try await service.relay(for: .upgrade(headers + proof)).head
    return String(decoding: head, as: UTF8.self).split(separator: "\r\n")
  }

  private func states(_ head: [Substring]) -> [Substring] { head.filter { $0.lowercased().hasPrefix("tracestate") } }

  @Test("A gate that continues a client's trace sends its state on, written once")
  func kept() async throws {
    let head = try await head([
      ("traceparent", Self.parent), ("tracestate", "dd=s:2;o:rum"), ("TraceState", " ,other@x=1,"),
    ])
    #expect(states(head) == ["tracestate: dd=s:2;o:rum,other@x=1"])
    #expect(head.contains { $0.hasPrefix("traceparent: 00-\(Self.trace)-") })
  }

  @Test(
    "The state of a trace that the gate does not continue is dropped",
    arguments: [
      (true, []), (true, ["00-\(String(repeating: "0", count: 32))-b7ad6b7169203331-01"]), (true, [parent, parent]),
      (false, [parent]),
    ])
  func dropped(isTracing: Bool, parents: [String]) async throws {
    let head = try await head(
      parents.map { ("traceparent", $0) } + [("tracestate", "dd=s:2;o:rum")], isTracing: isTracing)
    #expect(states(head).isEmpty)
    #expect(head.count { $0.hasPrefix("traceparent: ") } == 1)
  }

  @Test(
    "A state that is malformed is dropped, and the trace is continued", arguments: ["dd", "dd=\u{e9}", "=", "A b=1"])
  func malformed(_ state: String) async throws {
    let head = try await head([("traceparent", Self.parent), ("tracestate", state)])
    #expect(states(head).isEmpty && head.contains { $0.hasPrefix("traceparent: 00-\(Self.trace)-") })
  }
}
