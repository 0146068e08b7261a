import AttestGate
import Postgres
import PostgresServers
import Testing

@testable import PostgresStore

@Suite("A look at a PostgreSQL store")
struct SurveyTests {
  private static func store(at url: String) throws -> PostgresStore {
    PostgresStore(try ConnectionParameters(url: url), limits: PostgresStore.Limits())
  }

  @Test("tells whether its tables are there, and makes none")
  func tables() async throws {
    let server = try await PostgresServer.shared()
    let store = try await Self.store(at: server.newURL())
    for _ in 1...2 { #expect(try await store.survey() == .absent) }
    try await store.open()
    #expect(try await store.survey() == .current)
    _ = try await store.run { connection throws(StoreError) in
      try connection.ask(Call("INSERT INTO sallyport_migrations (version) VALUES (99)")).changes
    }
    await #expect(throws: StoreError.unreachable(reason: "the store was written by a newer version")) {
      try await store.survey()
    }
    await store.close()
  }

  @Test("tells of a server that is not there")
  func absentServer() async throws {
    let store = try Self.store(at: "postgres://nobody@127.0.0.1:1/none")
    await #expect(throws: StoreError.self) { try await store.survey() }
  }
}
