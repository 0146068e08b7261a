/// One transaction, in the SQL dialect that SQLite and PostgreSQL share.
///
/// Placeholders are `?`, in order. Times are milliseconds since the epoch, truth values are 0 and 1.
protocol SQLSession {
  /// Runs a statement and returns the number of changed rows.
  @discardableResult
  func run(_ sql: String, _ arguments: [SQLValue]) throws -> Int
  func rows(_ sql: String, _ arguments: [SQLValue]) throws -> [SQLRow]
  /// Runs a statement whose result is not needed. It may run together with a later one; its error then appears there, at
  /// the latest at the commit.
  func enqueue(_ sql: String, _ arguments: [SQLValue]) throws
  /// Limits the wait for a row from here on to some milliseconds. A statement that would wait longer fails with an
  /// error that `isContention`.
  func limitWaitForRows() throws
  /// Waits until no other transaction writes the history, and keeps its turn until the commit.
  func waitForHistory() throws
}

// A database with one writer: nothing to wait for, and nothing to gain by sending statements together.
extension SQLSession {
  func enqueue(_ sql: String, _ arguments: [SQLValue]) throws { try run(sql, arguments) }
  func limitWaitForRows() throws {}
  func waitForHistory() throws {}
}

enum SQLValue: Sendable, Hashable {
  case null
  case integer(Int64)
  case text(String)
  case blob([UInt8])
}

/// One row of a result, with access by column name.
struct SQLRow {
  /// The column names, shared by all rows of a result. A row has about a dozen columns, so a linear search is faster
  /// than hashing.
  let columns: [String]
  /// The values, in the order of `columns`.
  let values: [SQLValue]

  private subscript(column: String) -> SQLValue? { columns.firstIndex(of: column).map { values[$0] } }

  struct Unreadable: Error {
    let column: String
  }

  func integer(_ column: String) throws -> Int64 {
    guard case .integer(let value) = self[column] else { throw Unreadable(column: column) }
    return value
  }

  func text(_ column: String) throws -> String {
    guard case .text(let value) = self[column] else { throw Unreadable(column: column) }
    return value
  }

  func blob(_ column: String) throws -> [UInt8] {
    guard case .blob(let value) = self[column] else { throw Unreadable(column: column) }
    return value
  }

  /// The value of the column; `nil` for NULL.
  func optional<Value>(_ column: String, _ read: (String) throws -> Value) throws -> Value? {
    if case .null = self[column] { nil } else { try read(column) }
  }
}
