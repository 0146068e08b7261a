import ByteCoding
import MFADomain
@testable import MFAStore
import PostgresServers
import TestSupport
import Testing

@Suite("Restores into PostgreSQL", .timeLimit(.minutes(2)))
struct PostgresRestoreTests {
  @Test("a restore has the time limit of a migration, and does not delete row by row")
  func large() async throws {
    try await Places.withTemporaryFolder { folder in
      let empty = StoreArchive(path: folder + "/empty.db")
      _ = try empty.migrate()
      let backup = try StoreBackup.write(
        empty, named: "empty", to: folder + "/backup.db", at: Timestamp(milliseconds: 0))
      // A database of its own: connections of other tests count as backends.
      let server = try await PostgresServer.shared()
      try await server.sql("CREATE DATABASE restored")
      let url = server.url(schema: "public").replacing("/postgres?", with: "/restored?")
      let archive = StoreArchive(postgres: url)
      _ = try archive.migrate()
      try PostgresDatabase(url: url, trace: nil).transaction { sql in
        try sql.run(
          "INSERT INTO users (id, name_key, username, created_at, admin) VALUES ('u', 'ada', 'ada', 0, 0)", [])
        try sql.run(
          """
          CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
          $$ BEGIN RAISE EXCEPTION 'deleted row by row'; END $$
          """, [])
        try sql.run("CREATE TRIGGER refuse BEFORE DELETE ON users FOR EACH ROW EXECUTE FUNCTION refuse()", [])
      }
      try backup.restore(into: archive, with: .ephemeral(.system), at: Timestamp(milliseconds: 1))
      var limit: String?
      try archive.replacing(ArchivedTables.dropped + ArchivedTables.all.map(\.name)) { sql in
        limit = try sql.rows("SELECT current_setting('statement_timeout') AS text", []).first?.text("text")
        #expect(try sql.rows("SELECT id FROM users", []).isEmpty)
      }
      #expect(limit == "3599s")
    }
  }
}
