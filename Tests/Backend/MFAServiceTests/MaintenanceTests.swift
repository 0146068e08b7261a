import ByteCoding
import Foundation
import Locking
import MFADomain
import MFAFixtures
import MFAStore
import Testing

@Suite("Record maintenance")
struct MaintenanceTests {
  @Test(
    "expired rows are removed in portions, and other rows remain, on both databases",
    arguments: TestDatabase.allCases)
  func portions(_ database: TestDatabase) async throws {
    try await TestBackend.with(store: database.open()) { backend in
      let (store, now) = (backend.context.store, backend.clock.now)
      try await store.write { records in
        for number in 1...7 {
          _ = try records.spend(identity: "\(number)", until: now.advanced(by: .seconds(number < 6 ? -3600 : 3600)))
        }
      }
      for removed in [2, 2, 1, 0] {
        #expect(
          try await store.write { try $0.removeIdentities(expiredBefore: now, atMost: 2) } == removed)
      }
      // The rows that have not expired remain.
      #expect(try await store.write { try !$0.spend(identity: "7", until: now) })
    }
  }

  @Test("a failure to remove the rows of one kind does not prevent the removal of other rows")
  func oneFails() async throws {
    let store = FailingStore(try SQLiteMFAStore.ephemeral())
    try await TestBackend.with(store: store) { backend in
      let past = backend.clock.now.advanced(by: .seconds(-3600))
      try await store.write { _ = try $0.spend(identity: "a", until: past) }
      store.failures.withLock { $0 = 3 }
      await #expect(throws: MFAStoreError.self) { try await RecordMaintenance(backend.context).clean() }
      // The row was removed, so the identity can be inserted again.
      #expect(try await store.write { try $0.spend(identity: "a", until: past) })
    }
  }

  /// A store whose next writes fail.
  private final class FailingStore: Store {
    let failures = LockedValue(0)
    private let store: any Store

    init(_ store: any Store) { self.store = store }

    func read<Value: Sendable>(_ body: @escaping @Sendable (any Records) throws -> Value) async throws -> Value {
      try await store.read(body)
    }

    func write<Value: Sendable>(
      excluding others: WriteExclusion, _ body: @escaping @Sendable (any Records) throws -> Value
    ) async throws -> Value {
      let fails = failures.withLock { count in
        defer { count = max(0, count - 1) }
        return count > 0
      }
      if fails { throw MFAStoreError(reason: "test") }
      return try await store.write(body)
    }

    func authenticateHistory(with keys: HistoryKeys) { store.authenticateHistory(with: keys) }
  }
}
