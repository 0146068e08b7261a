internal import AttestGate
internal import CPostgres

/// What the server answered to one statement (a `PGresult`); values are in binary form.
final class QueryResult {
  private let handle: OpaquePointer

  /// Takes over `handle`.
  init(owning handle: OpaquePointer) { self.handle = handle }

  deinit { PQclear(handle) }

  /// Calls `body` with the `PGresult`, which is valid until `body` returns and must not leave it.
  private func withPointer<Result>(_ body: (OpaquePointer) -> Result) -> Result {
    withExtendedLifetime(self) { body(handle) }
  }

  private var status: ExecStatusType { withPointer(PQresultStatus) }

  var isSync: Bool { status == PGRES_PIPELINE_SYNC }

  /// Whether the statement did its work.
  var isSuccess: Bool { status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK || status == PGRES_SINGLE_TUPLE }

  /// The server's own refusal; `nil` if there is none, also for statements that it left out because of an earlier one.
  var refusal: ServerRefusal? {
    guard status == PGRES_FATAL_ERROR || status == PGRES_BAD_RESPONSE else { return nil }
    // Neither the detail nor the statement, which may quote nonces and key ids.
    let code = field(PG_DIAG_SQLSTATE)
    return ServerRefusal(code: code ?? "", message: field(PG_DIAG_MESSAGE_PRIMARY) ?? "no message")
  }

  /// The word for what was done: `COMMIT`, `ROLLBACK`.
  var commandTag: String { withPointer { PQcmdStatus($0).map { String(cString: $0) } } ?? "" }

  /// How many rows a statement changed.
  var changes: Int { withPointer { PQcmdTuples($0).flatMap { Int(String(cString: $0)) } } ?? 0 }

  var rows: [ResultRow] { (0..<withPointer(PQntuples)).map { ResultRow(result: self, number: $0) } }

  private func field(_ code: Int32) -> String? {
    withPointer { PQresultErrorField($0, code).map { String(cString: $0) } }
  }

  /// The bytes of a value; `nil` for NULL.
  fileprivate func bytes(row: Int32, column: Int32) -> [UInt8]? {
    withPointer { result in
      guard column >= 0, column < PQnfields(result), PQgetisnull(result, row, column) == 0 else { return nil }
      let count = Int(PQgetlength(result, row, column))
      guard let start = PQgetvalue(result, row, column) else { return nil }
      return start.withMemoryRebound(to: UInt8.self, capacity: count) {
        Array(UnsafeBufferPointer(start: $0, count: count))
      }
    }
  }

  fileprivate func type(of column: Int32) -> Oid { withPointer { PQftype($0, column) } }
  fileprivate func column(named name: String) -> Int32 { withPointer { PQfnumber($0, name) } }
}

/// An error that the server reported.
struct ServerRefusal: Sendable, Hashable {
  /// SQLSTATE, five characters (PostgreSQL's documentation, appendix A); empty if libpq itself found the fault.
  let code: String
  let message: String
}

/// A column whose value is not what the schema says.
struct MalformedColumn: Error {
  let name: String
}

extension StoreError {
  /// What `body` reads of rows of `table`; a malformed column is `.corrupt`.
  static func onMalformed<Value>(
    _ table: String, _ body: () throws(MalformedColumn) -> Value
  ) throws(StoreError) -> Value {
    do throws(MalformedColumn) {
      return try body()
    } catch {
      throw .corrupt(reason: "\(table).\(error.name) is malformed")
    }
  }
}

/// One row of an answer.
struct ResultRow {
  fileprivate let result: QueryResult
  fileprivate let number: Int32

  /// What `make` makes of the value of `column`; NULL, another type and what `make` refuses are malformed.
  func read<Stored: BinaryValue, Value>(
    _ column: String, _ make: (Stored) -> Value?
  ) throws(MalformedColumn) -> Value {
    guard let value = try readIfPresent(column, make) else { throw MalformedColumn(name: column) }
    return value
  }

  /// As `read`, but NULL is `nil`. A damaged value never passes for an absent one.
  func readIfPresent<Stored: BinaryValue, Value>(
    _ column: String, _ make: (Stored) -> Value?
  ) throws(MalformedColumn) -> Value? {
    let position = result.column(named: column)
    guard position >= 0 else { throw MalformedColumn(name: column) }
    guard let bytes = result.bytes(row: number, column: position) else { return nil }
    guard Stored.types.contains(result.type(of: position)), let stored = Stored(binary: bytes), let value = make(stored)
    else { throw MalformedColumn(name: column) }
    return value
  }
}
