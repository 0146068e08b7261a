import AppAttest
import AttestGate
import ByteCoding
import GateService
import Locking
import Logging
import Observability
import StoreConformance
import Testing

@testable import GateRuntime

@Suite("The writer of decisions about keys", .timeLimit(.minutes(2)))
struct DecisionWriterTests {
  /// A store that fails as the test says.
  private final class FaultyStore: DecisionStorage {
    struct State {
      var error: StoreError?
      var stored: [KeyDecision] = []
      var calls = 0
    }

    let state = LockedValue(State())

    func store(_ decisions: [KeyDecision], atMost limit: Int) async throws(StoreError) {
      let error = state.withLock { state in
        state.calls += 1
        if state.error == nil { state.stored += decisions }
        return state.error
      }
      if let error { throw error }
    }

    func decisions(of keyID: KeyID, before position: Int64?, limit: Int) async throws(StoreError) -> DecisionPage {
      DecisionPage([], next: nil)
    }

    func forgetDecisions(_ retention: DecisionRetention, at now: Timestamp) async throws(StoreError) {}
  }

  private static func fault(of writer: DecisionWriter, _ waiting: inout [KeyDecision]) async -> StoreError? {
    do throws(StoreError) {
      try await writer.write(&waiting)
      return nil
    } catch { return error }
  }

  private func decision(_ number: Int) -> KeyDecision {
    KeyDecision(
      keyHash: "key", kind: .admitted, at: Fixture.now, address: "192.0.2.7", requestID: "r\(number)")
  }

  @Test("What a failing store has not taken waits and is stored once; what a doubtful commit had is not stored again")
  func faults() async throws {
    let (store, metrics) = (FaultyStore(), GateMetrics())
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let writer = DecisionWriter(
      store: store, queue: metrics.decisions, mostOfKey: 10, logger: logger, pause: .milliseconds(1))
    var waiting = (0..<200).map(decision)
    store.state.withLock { $0.error = .locked }
    let locked = await Self.fault(of: writer, &waiting)
    #expect(locked == .locked && waiting.count == 200)
    store.state.withLock { $0.error = .inDoubt(reason: "lost") }
    let doubt = await Self.fault(of: writer, &waiting)
    #expect(doubt == .inDoubt(reason: "lost") && waiting.count == 136)
    store.state.withLock { $0.error = nil }
    let none = await Self.fault(of: writer, &waiting)
    #expect(none == nil && waiting.isEmpty)
    #expect(store.state.withLock(\.stored).map(\.requestID) == (64..<200).map { "r\($0)" })
    #expect(
      String(decoding: await metrics.registry.exposition(), as: UTF8.self)
        .contains("sallyport_decisions_dropped_total 64"))
  }

  @Test("While the store is down, as many decisions wait as in a queue, and the oldest leave")
  func bounded() async throws {
    let (store, metrics) = (FaultyStore(), GateMetrics())
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let writer = DecisionWriter(store: store, queue: metrics.decisions, mostOfKey: 10, logger: logger)
    var waiting = (0..<(DecisionQueue.capacity + 9)).map(decision)
    store.state.withLock { $0.error = .full }
    let full = await Self.fault(of: writer, &waiting)
    #expect(full == .full)
    #expect(waiting.count == DecisionQueue.capacity && waiting.first?.requestID == "r9")
  }
}
