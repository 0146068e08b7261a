import Databases
import PostgresServers
import PostgresStore
import StoreConformance
import Testing

@Suite("The PostgreSQL store keeps the invariants of every store")
struct ConformanceTests {
  @Test("Invariant", arguments: StoreInvariant.all)
  func invariant(_ invariant: StoreInvariant) async throws {
    let store = PostgresStore(try ConnectionParameters(url: await PostgresServer.shared().newURL()))
    try await invariant.check(store)
    await store.close()
  }
}
