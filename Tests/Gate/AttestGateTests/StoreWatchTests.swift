import AppAttest
import AttestGate
import Locking
import Testing

@Suite("Watching a store", .timeLimit(.minutes(1)))
struct StoreWatchTests {
  /// A feed that returns two changes at a time, as a store returns a thousand, and sends no notices.
  private struct PagedFeed: ChangeFeed {
    let count: Int64

    func changes(after position: ChangePosition?) async throws(StoreError) -> Changes {
      guard let start = position?.value else { return Changes([.everything], upTo: ChangePosition(0)) }
      let end = min(start + 2, count)
      return Changes(
        (start..<end).map { KeyID(bytes: Array(repeating: UInt8($0), count: 32)).map(StoreChange.key) ?? .everything },
        upTo: ChangePosition(end))
    }

    func notices() -> AsyncStream<Void> { AsyncStream { _ in } }
  }

  @Test("All new changes are delivered together, even if the store returns them in small pages")
  func pages() async throws {
    let handled = LockedValue<[StoreChange]>([])
    let watch = Task {
      await StoreWatch(PagedFeed(count: 9), every: .seconds(3600)).run { change in
        handled.withLock { $0.append(change) }
      }
    }
    while handled.withLock({ $0.count }) < 10 { try await Task.sleep(for: .milliseconds(1)) }
    watch.cancel()
    await watch.value
    let expected = try (0..<9).map { StoreChange.key(try #require(KeyID(bytes: Array(repeating: $0, count: 32)))) }
    #expect(handled.withLock { $0 } == [.everything] + expected)
  }
}
