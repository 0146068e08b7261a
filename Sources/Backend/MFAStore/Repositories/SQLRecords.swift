internal import Locking
internal import MFADomain

/// All records within one transaction. Each repository is an extension in its own file.
struct SQLRecords {
  let sql: any SQLSession
  var historyKeys: HistoryKeys?
  /// The end of the history as this transaction knows it; `nil` to read it each time.
  var historyEnd: HistoryEnd?
  /// What is written in the turn of this transaction; `nil` if it excludes all other writers.
  var historyTurn: HistoryTurn?
}

/// The end of the history, as one transaction has read or written it.
final class HistoryEnd {
  typealias Entry = (sequence: Int64, hash: [UInt8], keyNumber: UInt32?)

  /// The last entry, or that there is none; `nil` if it is not known.
  var known: Entry??
}

/// The entries of the history that a transaction writes at its end.
final class HistoryTurn {
  private(set) var waiting: [(any AuditRecords) throws -> Void] = []

  func add(_ body: @escaping (any AuditRecords) throws -> Void) { waiting.append(body) }

  /// Forgets what was added after there were `count`: the changes of its job are rolled back.
  func cut(to count: Int) { waiting.removeLast(waiting.count - count) }
}

/// The transaction must exclude all other writers, so the body runs again.
struct NeedsExclusion: Error {}

extension SQLRecords: TransactionRecords {
  func excludeWriters() throws { if historyTurn != nil { throw NeedsExclusion() } }
}

/// The keys that authenticate the history in all transactions of a store; set when its vault opens.
typealias HistoryKeyPlace = LockedValue<HistoryKeys?>

extension SQLRecords {
  /// Deletes at most `count` rows of `table` that match `condition`, and returns the number of deleted rows.
  ///
  /// - Parameter key: the columns of the primary key.
  func remove(
    _ count: Int, of table: String, by key: String, where condition: String, _ arguments: [SQLValue]
  ) throws -> Int {
    try sql.run(
      "DELETE FROM \(table) WHERE (\(key)) IN (SELECT \(key) FROM \(table) WHERE \(condition) LIMIT ?)",
      arguments + [.integer(count)])
  }
}
