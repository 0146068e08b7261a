internal import Locking
internal import MFADomain

/// All records within one transaction. Each repository is an extension in its own file.
struct SQLRecords {
  let sql: any SQLSession
  var historyKeys: HistoryKeys?
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
