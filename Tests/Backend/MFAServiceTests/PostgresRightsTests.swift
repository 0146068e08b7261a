import ByteCoding
import Foundation
import MFADomain
import MFAStore
import PostgresServers
import Testing

@Suite("Rights of the backend's role in PostgreSQL", .timeLimit(.minutes(2)))
struct PostgresRightsTests {
  @Test("a role that may change rows, but may not create tables, runs the backend once the tables are there")
  func rowsOnly() async throws {
    let server = try await PostgresServer.shared()
    let name = "rows_only_" + UUID().uuidString.prefix(8).lowercased()
    try await server.sql("CREATE ROLE \(name) LOGIN")
    try await server.sql("CREATE SCHEMA \(name)")
    try await server.sql("GRANT USAGE ON SCHEMA \(name) TO \(name)")
    let owner = server.url(schema: name)
    let url = owner.replacing("user=postgres", with: "user=\(name)")
    // It cannot create them.
    #expect(throws: MFAStoreError.noTables) { try PostgresMFAStore(url: url, makesTables: false) }
    #expect(throws: MFAStoreError.self) { try PostgresMFAStore(url: url) }
    _ = try PostgresMFAStore(url: owner)
    try await server.sql("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA \(name) TO \(name)")
    for makesTables in [true, false] {
      let store = try PostgresMFAStore(url: url, makesTables: makesTables)
      #expect(
        try await store.write { try $0.spend(identity: "\(makesTables)", until: Timestamp(seconds: 1_800_000_000)) })
    }
  }
}
