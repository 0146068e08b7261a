import PostgresStore
import Testing

@Suite("The URL of a database")
struct ParameterTests {
  @Test(
    "A log sees hosts, ports and database, neither user nor password",
    arguments: [
      ("postgres://u:secret@db.example:5433/gate?sslmode=verify-full", "db.example:5433/gate"),
      ("postgresql://u:secret@a:5432,b:5433/gate?target_session_attrs=read-write", "a:5432,b:5433/gate"),
      ("postgres://u:secret@a,b/gate", "a,b/gate"),
      ("postgres:///gate?host=/run/postgresql&user=u&password=secret", "/run/postgresql/gate"),
    ])
  func place(_ url: String, _ place: String) throws {
    #expect(try ConnectionParameters(url: url).place == place)
  }

  @Test(
    "What libpq cannot read is refused without repeating it",
    arguments: [
      "postgres://u:secret@host:port/x?nonsense=secret", "postgres://u:sec%ret@host/x",
      "postgres://[::1/x?password=secret",
      "host=a password='secret",
    ])
  func malformed(_ url: String) {
    do throws(ConnectionParameters.Malformed) {
      _ = try ConnectionParameters(url: url)
      Issue.record("taken: \(url)")
    } catch {
      #expect(!error.reason.contains("sec") && !error.reason.isEmpty)
    }
  }
}
