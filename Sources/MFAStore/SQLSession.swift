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
  let columns: [String: SQLValue]

  struct Unreadable: Error {
    let column: String
  }

  func integer(_ column: String) throws -> Int64 {
    guard case .integer(let value) = columns[column] else { throw Unreadable(column: column) }
    return value
  }

  func text(_ column: String) throws -> String {
    guard case .text(let value) = columns[column] else { throw Unreadable(column: column) }
    return value
  }

  func blob(_ column: String) throws -> [UInt8] {
    guard case .blob(let value) = columns[column] else { throw Unreadable(column: column) }
    return value
  }

  /// `nil` for NULL.
  func optional<Value>(_ column: String, _ read: (String) throws -> Value) throws -> Value? {
    if case .null = columns[column] { nil } else { try read(column) }
  }
}
