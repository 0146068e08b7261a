internal import Locking
internal import MFADomain

/// All records, read and written through one transaction. Its repositories are extensions, a file each.
struct SQLRecords {
  let sql: any SQLSession
  var historyKeys: HistoryKeys?
}

/// What all transactions of a store authenticate the history with, once its vault is open.
typealias HistoryKeyPlace = LockedValue<HistoryKeys?>

extension SQLRecords {
  /// Deletes rows of `table` that are as `condition` says, `count` at most, and gives how many.
  ///
  /// - Parameter key: the columns of its primary key.
  func remove(
    _ count: Int, of table: String, by key: String, where condition: String, _ arguments: [SQLValue]
  ) throws -> Int {
    try sql.run(
      "DELETE FROM \(table) WHERE (\(key)) IN (SELECT \(key) FROM \(table) WHERE \(condition) LIMIT ?)",
      arguments + [.integer(count)])
  }
}
