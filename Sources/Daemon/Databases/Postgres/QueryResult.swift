package import CPostgres

/// The server's answer to one statement (a `PGresult`), with values in binary form.
package final class QueryResult {
  private let handle: OpaquePointer

  /// Takes over `handle`.
  init(owning handle: OpaquePointer) { self.handle = handle }

  deinit { PQclear(handle) }

  /// Calls `body` with the `PGresult`, which is valid until `body` returns and must not leave it.
  private func withPointer<Result>(_ body: (OpaquePointer) -> Result) -> Result {
    withExtendedLifetime(self) { body(handle) }
  }

  private var status: ExecStatusType { withPointer(PQresultStatus) }

  /// Whether this is the end of a pipeline and not the answer to a statement.
  var isSync: Bool { status == PGRES_PIPELINE_SYNC }

  /// Whether the statement did its work.
  package var isSuccess: Bool {
    status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK || status == PGRES_SINGLE_TUPLE
  }

  /// The error of this statement; `nil` if there is none. A statement that the server skipped because of an earlier
  /// error has no error of its own.
  package var error: ServerError? {
    guard status == PGRES_FATAL_ERROR || status == PGRES_BAD_RESPONSE else { return nil }
    let code = field(PG_DIAG_SQLSTATE)
    return ServerError(code: code ?? "", message: field(PG_DIAG_MESSAGE_PRIMARY) ?? "no message")
  }

  /// The server's word for the executed command. After COMMIT it is `ROLLBACK` if the transaction had failed.
  package var commandTag: String { withPointer { PQcmdStatus($0).map { String(cString: $0) } } ?? "" }

  /// The number of rows that the statement changed.
  package var changes: Int { withPointer { PQcmdTuples($0).flatMap { Int(String(cString: $0)) } } ?? 0 }

  package var rows: [ResultRow] { (0..<withPointer(PQntuples)).map { ResultRow(result: self, number: $0) } }

  /// Name and type of each column, in the order of the values.
  package var columns: [(name: String, type: Oid)] {
    (0..<withPointer(PQnfields)).map { column in
      (withPointer { PQfname($0, column).map { String(cString: $0) } } ?? "", type(of: column))
    }
  }

  private func field(_ code: Int32) -> String? {
    withPointer { PQresultErrorField($0, code).map { String(cString: $0) } }
  }

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

/// A column whose value does not have the form that the schema states.
package struct MalformedColumn: Error {
  package let name: String

  package init(name: String) { self.name = name }
}

/// One row of an answer.
package struct ResultRow {
  fileprivate let result: QueryResult
  fileprivate let number: Int32

  /// The bytes of the value in the column with that index; `nil` for NULL.
  package func bytes(at column: Int) -> [UInt8]? { result.bytes(row: number, column: Int32(column)) }

  /// Returns the result of `make` for the value in `column`.
  ///
  /// - Throws: `MalformedColumn` for NULL, for a value of another type, and if `make` returns `nil`.
  package func read<Stored: BinaryValue, Value>(
    _ column: String, _ make: (Stored) -> Value?
  ) throws(MalformedColumn) -> Value {
    guard let value = try readIfPresent(column, make) else { throw MalformedColumn(name: column) }
    return value
  }

  /// Like `read`, but returns `nil` for NULL. A damaged value throws: it never passes for an absent one.
  package func readIfPresent<Stored: BinaryValue, Value>(
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
