import AttestGate
import Databases
import PostgresServers
import Testing

@testable import PostgresStore

@Suite("Statistics of a PostgreSQL store")
struct StatisticsTests {
  private static func store(at url: String) throws -> PostgresStore {
    PostgresStore(try ConnectionParameters(url: url), limits: PostgresStore.Limits())
  }

  @Test("The statistics report whether the tables exist, and no table is created")
  func tables() async throws {
    let server = try await PostgresServer.shared()
    let store = try await Self.store(at: server.newURL())
    for _ in 1...2 { #expect(try await store.statistics() == .absent) }
    try await store.open()
    #expect(try await store.statistics() == .current)
    _ = try await store.run { connection throws(StoreError) in
      try connection.ask(Call("INSERT INTO sallyport_migrations (version) VALUES (99)")).changes
    }
    await #expect(throws: StoreError.unreachable(reason: "the store was written by a newer version")) {
      try await store.statistics()
    }
    await store.close()
  }

  @Test("A missing server is reported")
  func absentServer() async throws {
    let store = try Self.store(at: "postgres://nobody@127.0.0.1:1/none")
    await #expect(throws: StoreError.self) { try await store.statistics() }
  }
}
