import GateFixtures
import SQLiteStore
import StoreConformance
import Testing

@Suite("The SQLite store keeps the invariants of every store")
struct ConformanceTests {
  @Test("Invariant", arguments: StoreInvariant.all)
  func law(_ law: StoreInvariant) async throws {
    let folder = try TemporaryFolder()
    let store = SQLiteStore(path: folder.file("state.db"))
    try await law.check(store)
    await store.close()
  }
}
