@testable import Databases
import PostgresStore
import Testing

@Suite("The URL of a database")
struct ParameterTests {
  @Test(
    "A log contains hosts, ports and database, but no user and no password",
    arguments: [
      ("postgres://u:secret@db.example:5433/gate?sslmode=verify-full", "db.example:5433/gate"),
      ("postgresql://u:secret@a:5432,b:5433/gate?target_session_attrs=read-write", "a:5432,b:5433/gate"),
      ("postgres://u:secret@a,b/gate", "a,b/gate"),
      ("postgres:///gate?host=/run/postgresql&user=u&password=secret", "/run/postgresql/gate"),
    ])
  func place(_ url: String, _ place: String) throws {
    #expect(try ConnectionParameters(url: url).place == place)
  }

  /// The parameters with which libpq is called.
  private func values(_ query: String, _ environment: [String: String]) throws -> [String: String] {
    try ConnectionParameters(
      url: "postgres://u@h/d" + query, password: nil, applicationName: "test", environment: { environment[$0] }
    ).values()
  }

  @Test("The URL overrides libpq's variables, and these override the standard values")
  func precedence() throws {
    let set = ["PGCONNECT_TIMEOUT": "20", "PGTARGETSESSIONATTRS": "any", "PGAPPNAME": "other"]
    let standard = try values("", [:])
    #expect(standard["connect_timeout"] == "3" && standard["target_session_attrs"] == "read-write")
    // libpq reads its variable for a parameter that it does not get.
    let byVariable = try values("", set)
    #expect(byVariable["connect_timeout"] == nil && byVariable["target_session_attrs"] == nil)
    #expect(byVariable["keepalives_idle"] == "10" && byVariable["tcp_user_timeout"] == "10000")
    // The backend counts its connections by this name.
    #expect(byVariable["application_name"] == "test")
    let byURL = try values("?connect_timeout=7&target_session_attrs=primary&application_name=mine", set)
    #expect(byURL["connect_timeout"] == "7" && byURL["target_session_attrs"] == "primary")
    #expect(byURL["application_name"] == "mine")
    // An empty variable, as container files have it, sets nothing.
    let empty = try values("", ["PGCONNECT_TIMEOUT": "", "PGTARGETSESSIONATTRS": ""])
    #expect(empty == standard)
  }

  @Test(
    "A URL that libpq cannot parse is refused without repeating it",
    arguments: [
      "postgres://u:secret@host:port/x?nonsense=secret", "postgres://u:sec%ret@host/x",
      "postgres://[::1/x?password=secret",
      "host=a password='secret",
    ])
  func malformed(_ url: String) {
    do throws(ConnectionParameters.Malformed) {
      _ = try ConnectionParameters(url: url)
      Issue.record("accepted: \(url)")
    } catch {
      #expect(!error.reason.contains("sec") && !error.reason.isEmpty)
    }
  }

  @Test(
    "An ambiguous URL does not reach libpq",
    arguments: [
      "postgres://u:sec@ret@host/x", "postgres://u:sec/ret@host/x", "postgres://u:sec?ret@host/x",
      "postgresql://u:sec/ret@@host/x", "postgres://u@sec@host/x", "postgres://host/x?application_name=sec@ret",
      "host=a password=secret", "password=secret", " postgres://u:secret@host/x",
      "postgres://u:pass@\u{301}sec@host/x", "postgres://u:pass/\u{301}sec@host/x",
      "postgres://u:pass?\u{FE0F}sec@host/x",
    ])
  func ambiguous(_ url: String) {
    do throws(ConnectionParameters.Malformed) {
      _ = try ConnectionParameters(url: url)
      Issue.record("accepted: \(url)")
    } catch {
      #expect(error.reason.contains("not percent-encoded"))
      #expect(!error.reason.contains("sec"))
    }
  }

  @Test(
    "A port and a database name cannot contain a secret, since both are printed",
    arguments: [
      "postgres://u:secret/x", "postgres://h:0/x", "postgres://h:65536/x", "postgres://h/x?port=secret",
      "postgres://h/host=a%20password=secret", "postgres://h/x?dbname=postgres://u:secret",
      "postgres://h/host=%CC%81a%20password=%CC%81secret", "postgres://h/x?dbname=postgres://%CC%81u:secret",
    ])
  func place(without url: String) {
    do throws(ConnectionParameters.Malformed) {
      _ = try ConnectionParameters(url: url)
      Issue.record("accepted: \(url)")
    } catch {
      #expect(!error.reason.contains("sec") && !error.reason.isEmpty)
    }
  }

  @Test(
    "A percent-encoded password is accepted with any content",
    arguments: ["postgres://u:s%40e%2Fc%3Fr@h/x", "postgres://u:s:e#c@h/x", "postgres://u%40d:p@h/x"])
  func encoded(_ url: String) throws {
    #expect(try ConnectionParameters(url: url).place == "h/x")
  }
}
