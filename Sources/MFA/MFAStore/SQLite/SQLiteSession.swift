internal import Foundation
internal import GRDB

/// A transaction of SQLite.
struct SQLiteSession: SQLSession {
  let db: Database

  func run(_ sql: String, _ arguments: [SQLValue]) throws -> Int {
    try db.cachedStatement(sql: sql).execute(arguments: StatementArguments(arguments.map(\.databaseValue)))
    return db.changesCount
  }

  func rows(_ sql: String, _ arguments: [SQLValue]) throws -> [SQLRow] {
    let statement = try db.cachedStatement(sql: sql)
    let columns = statement.columnNames
    let cursor = try Row.fetchCursor(statement, arguments: StatementArguments(arguments.map(\.databaseValue)))
    return try Array(cursor.map { SQLRow(columns: columns, values: $0.databaseValues.map(SQLValue.init)) })
  }
}

extension SQLValue {
  fileprivate init(_ value: DatabaseValue) {
    switch value.storage {
    case .null: self = .null
    case .int64(let integer): self = .integer(integer)
    // No column contains a double. A value that was inserted by hand is read as NULL and refused where a value is
    // required.
    case .double: self = .null
    case .string(let text): self = .text(text)
    case .blob(let data): self = .blob(Array(data))
    }
  }

  fileprivate var databaseValue: DatabaseValue {
    switch self {
    case .null: .null
    case .integer(let integer): integer.databaseValue
    case .text(let text): text.databaseValue
    case .blob(let bytes): Data(bytes).databaseValue
    }
  }
}
