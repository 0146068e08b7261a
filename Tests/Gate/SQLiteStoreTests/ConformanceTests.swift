import GateFixtures
import SQLiteStore
import StoreConformance
import Testing

@Suite("The SQLite store keeps the invariants of every store")
struct ConformanceTests {
  @Test("Invariant", arguments: StoreInvariant.all)
  func invariant(_ invariant: StoreInvariant) async throws {
    let folder = try TemporaryFolder()
    let store = SQLiteStore(path: folder.file("state.db"))
    try await invariant.check(store)
    await store.close()
  }
}
