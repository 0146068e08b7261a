internal import Databases
internal import GRDB
internal import MFADomain

/// The single writer of a SQLite database.
struct SQLiteWriter: SQLWriter {
  let writer: any DatabaseWriter
  /// `nil` in memory.
  let files: OpenFiles?
  let trace: StatementTrace?

  /// SQLite has one writer at a time.
  var runsBesideOthers: Bool { false }

  func transaction(excluding others: WriteExclusion, _ body: (any SQLSession) throws -> Void) throws {
    try files?.requireInPlace()
    try writer.writeWithoutTransaction { db in
      try db.inTransaction(.immediate) {
        try body(SQLiteSession(db: db).traced(by: trace))
        return .commit
      }
    }
  }
}

extension DatabaseError: UnderlyingStoreError {
  var plainReason: String { "\(message ?? "SQLite failed") (SQLite error \(resultCode.rawValue))" }
}

extension OpenFiles.Displaced: UnderlyingStoreError {
  var plainReason: String {
    "\(path) was deleted or replaced while in use: put it back, or stop mfa-backend and restore a backup"
  }
}

extension SQLRow.Unreadable: UnderlyingStoreError {
  var plainReason: String { "the column \(column) has an unexpected value" }
}
