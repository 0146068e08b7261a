internal import GRDB
internal import GRDBSQLite

/// A transaction of SQLite.
///
/// GRDB prepares and keeps the statements. Values go to and from SQLite directly: the library's own values, rows and
/// arguments cost more than the statements.
struct SQLiteSession: SQLSession {
  let db: Database

  func run(_ sql: String, _ arguments: [SQLValue]) throws -> Int {
    try execute(sql, arguments) { _, _ in }
    return db.changesCount
  }

  func rows(_ sql: String, _ arguments: [SQLValue]) throws -> [SQLRow] {
    var rows: [SQLRow] = []
    try execute(sql, arguments) { statement, columns in
      rows.append(
        SQLRow(
          columns: columns, values: (0..<Int32(columns.count)).map { SQLValue(statement, column: $0) }))
    }
    return rows
  }

  /// Runs a statement, and calls `row` for each row of its result.
  private func execute(
    _ sql: String, _ arguments: [SQLValue], _ row: (OpaquePointer, _ columns: [String]) -> Void
  ) throws {
    let prepared = try db.cachedStatement(sql: sql)
    let (statement, columns) = (prepared.sqliteStatement, prepared.columnNames)
    // GRDB expects its statements unused.
    defer {
      sqlite3_reset(statement)
      sqlite3_clear_bindings(statement)
    }
    guard Int(sqlite3_bind_parameter_count(statement)) == arguments.count else {
      throw DatabaseError(resultCode: .SQLITE_MISUSE, message: "a statement has other parameters than arguments")
    }
    for (index, value) in arguments.enumerated() {
      guard value.bind(to: statement, at: Int32(index + 1)) == SQLITE_OK else { throw fault }
    }
    while true {
      switch sqlite3_step(statement) {
      case SQLITE_ROW: row(statement, columns)
      case SQLITE_DONE: return
      default: throw fault
      }
    }
  }

  /// The error of the last call.
  private var fault: DatabaseError {
    let connection = db.sqliteConnection
    return DatabaseError(
      resultCode: ResultCode(rawValue: sqlite3_extended_errcode(connection)),
      message: sqlite3_errmsg(connection).map { String(cString: $0) })
  }
}

extension SQLValue {
  /// The value of a column in the current row.
  fileprivate init(_ statement: OpaquePointer, column: Int32) {
    switch sqlite3_column_type(statement, column) {
    case SQLITE_INTEGER: self = .integer(sqlite3_column_int64(statement, column))
    case SQLITE_TEXT:
      let text = UnsafeRawBufferPointer(
        start: sqlite3_column_text(statement, column), count: Int(sqlite3_column_bytes(statement, column)))
      self = .text(String(decoding: text, as: UTF8.self))
    case SQLITE_BLOB:
      let bytes = UnsafeRawBufferPointer(
        start: sqlite3_column_blob(statement, column), count: Int(sqlite3_column_bytes(statement, column)))
      self = .blob(Array(bytes))
    // No column contains a double. A value that was inserted by hand is read as NULL and refused where a value is
    // required.
    default: self = .null
    }
  }

  /// Binds the value to a parameter and returns SQLite's result code. SQLite copies the value.
  fileprivate func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
    let copies = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
    switch self {
    case .null: return sqlite3_bind_null(statement, index)
    case .integer(let integer): return sqlite3_bind_int64(statement, index, integer)
    case .text(var text):
      return text.withUTF8 { utf8 in
        // A null pointer would mean NULL.
        guard let start = utf8.baseAddress else { return sqlite3_bind_text(statement, index, "", 0, copies) }
        return start.withMemoryRebound(to: CChar.self, capacity: utf8.count) {
          sqlite3_bind_text(statement, index, $0, Int32(utf8.count), copies)
        }
      }
    case .blob(let bytes):
      return bytes.isEmpty
        ? sqlite3_bind_zeroblob(statement, index, 0)
        : sqlite3_bind_blob(statement, index, bytes, Int32(bytes.count), copies)
    }
  }
}
