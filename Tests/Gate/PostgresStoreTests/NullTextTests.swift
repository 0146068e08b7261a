import Databases
import PostgresServers
import Testing

/// libpq reads a text up to its first U+0000, so the rest would be lost without a word.
@Suite("U+0000 on its way to libpq", .serialized, .timeLimit(.minutes(2)))
struct NullTextTests {
  private static let text = "victim\u{0}evil"

  @Test("a connection refuses a text with U+0000 before it sends anything, and stays usable")
  func parameters() async throws {
    let url = try await PostgresServer.shared().newURL()
    let connection = try PostgresConnection(ConnectionParameters(url: url), patience: .seconds(10))
    func rows(_ call: Call) throws -> [String?] {
      try connection.exchange([call]).results.flatMap { result in
        try result.rows.map { try $0.readIfPresent("value") { (text: String) in text } }
      }
    }
    let prepared = Statement("SELECT $1::text AS value")
    for call in [
      Call(prepared, .untyped(Self.text)), Call(prepared, Parameter(Self.text)),
      Call("SELECT $1::text AS value", .untyped(Self.text)), Call("SELECT $1::text AS value", Parameter(Self.text)),
      Call("SELECT 'a' AS value\u{0}, 'b'"), Call(Statement("SELECT 'a' AS value\u{0}, 'b'")),
    ] {
      #expect(throws: PostgresError.self) { try rows(call) }
      #expect(try rows(Call(prepared, .untyped("next"))) == ["next"])
    }
    // Nothing of a batch is sent.
    _ = try connection.exchange([Call("CREATE TEMPORARY TABLE kept (value text)")])
    let insert = Statement("INSERT INTO kept VALUES ($1)")
    #expect(throws: PostgresError.self) {
      try connection.exchange([Call(insert, .untyped("first")), Call(insert, .untyped(Self.text))])
    }
    #expect(try rows(Call("SELECT value FROM kept")) == [])
    // Bytes may have any value.
    let bytes: [UInt8] = [1, 0, 2]
    let answer = try connection.exchange([Call(Statement("SELECT $1::bytea AS value"), Parameter(bytes))])
    #expect(answer.results.first?.rows.first?.bytes(at: 0) == bytes)
  }

  @Test("a URL and a password with U+0000 are refused without repeating them")
  func connections() throws {
    do throws(ConnectionParameters.Malformed) {
      _ = try ConnectionParameters(url: "postgres://u@h/x\u{0}?sslmode=disable")
      Issue.record("accepted")
    } catch {
      #expect(error.reason.contains("U+0000"), "\(error.reason)")
    }
    let parameters = try ConnectionParameters(url: "postgres://u@h/x") { "secret\u{0}more" }
    do throws(PostgresError) {
      _ = try PostgresConnection(parameters, patience: .seconds(1))
      Issue.record("accepted")
    } catch {
      #expect("\(error)".contains("U+0000") && !"\(error)".contains("secret"), "\(error)")
    }
  }
}
