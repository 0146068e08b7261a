@testable import MFAStore
import Databases
import PostgresServers
import Testing

@Suite("PostgreSQL timeouts", .timeLimit(.minutes(2)))
struct PostgresPatienceTests {
  @Test("a connection whose server does not answer in time is broken, and sends no further statement")
  func silence() async throws {
    let url = try await PostgresServer.shared().newURL()
    let connection = try StoreConnection(url: url, patience: .seconds(1))
    // Without this timeout, the server does not answer for an hour, like a server that hangs.
    try connection.execute("SET statement_timeout = 0")
    #expect(throws: PostgresError.self) { try connection.execute("SELECT pg_sleep(3600)") }
    #expect(connection.isBroken)
    #expect(throws: PostgresError.self) { try connection.execute("SELECT 1") }
  }

  @Test("the server cancels a statement that takes too long, and the connection remains usable")
  func longStatement() async throws {
    let url = try await PostgresServer.shared().newURL()
    let connection = try StoreConnection(url: url, patience: .seconds(20))
    try connection.execute("SET statement_timeout = 100")
    do {
      try connection.execute("SELECT pg_sleep(60)")
      Issue.record("it slept")
    } catch PostgresError.refused(let error) {
      #expect(error.code == "57014")
    }
    #expect(!connection.isBroken)
    let rows = try connection.run(
      "SELECT current_setting('lock_timeout') AS lock", []
    ).sqlRows()
    #expect(try rows.first?.text("lock") == "19s")
  }

  @Test(
    "a URL is accepted only if no part of its password can be read as another part of the URL",
    arguments: [
      ("postgres://u:p@h/d", true), ("postgres://h1,h2/d?sslmode=require", true),
      ("postgres:///d?host=/run/p%40q", true),
      ("postgres://u:se/cret@h/d", false), ("postgres://u:se@cret@h/d", false),
      ("postgres://u:se?cret@h/d", false), ("postgres://u:p@h/d?application_name=cret@x", false),
      ("postgres://u:p@h/d?nosuch=secret", false),
      ("postgres://u:p@h/d?secret", false), ("postgres://u:%zzsecret@h/d", false),
    ])
  func url(_ url: String, _ isGood: Bool) {
    do {
      _ = try ConnectionParameters(url: url)
      #expect(isGood)
    } catch {
      #expect(!isGood && !error.reason.contains("cret"), "\(error.reason)")
    }
  }
}
