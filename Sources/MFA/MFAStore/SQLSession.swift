/// One transaction of a database that speaks the dialect which SQLite and PostgreSQL share.
///
/// Placeholders are `?`, in order. Times are milliseconds since the epoch, truth values 0 and 1.
protocol SQLSession {
  /// Runs a statement and gives how many rows it changed.
  @discardableResult
  func run(_ sql: String, _ arguments: [SQLValue]) throws -> Int
  func rows(_ sql: String, _ arguments: [SQLValue]) throws -> [SQLRow]
}

enum SQLValue: Sendable, Hashable {
  case null
  case integer(Int64)
  case text(String)
  case blob([UInt8])
}

/// One row of an answer, read by the names of its columns.
struct SQLRow {
  /// One array for all rows of an answer. A row has a dozen columns at most, among which a name is found sooner than it
  /// is hashed.
  let columns: [String]
  /// As many as columns.
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

  /// `nil` for NULL.
  func optional<Value>(_ column: String, _ read: (String) throws -> Value) throws -> Value? {
    if case .null = self[column] { nil } else { try read(column) }
  }
}
