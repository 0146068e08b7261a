internal import ByteCoding
internal import MFADomain

/// The tables of a backup, each with its primary key.
///
/// Referenced tables come first. Rows that are of use for minutes only, and sessions, are left out: an older state of
/// them would accept again what was spent or revoked since the backup.
enum ArchivedTables {
  static let all: [(name: String, key: [String])] = [
    ("data_keys", ["number"]), ("users", ["id"]), ("devices", ["id"]), ("totp_factors", ["user_id"]),
    ("backup_codes", ["user_id", "hash"]), ("security_keys", ["id"]), ("oath_tokens", ["id"]),
    ("federated_identities", ["user_id", "issuer"]), ("trusted_devices", ["id"]), ("brakes", ["subject"]),
    ("networks", ["user_id", "binding", "network"]), ("recoveries", ["id"]), ("obligations", ["word"]),
    ("notices", ["user_id", "sequence"]), ("refusal_tallies", ["actor", "account", "event", "reason"]),
    ("audit", ["sequence"]),
  ]

  /// The tables that a restore empties. An export of the history goes on with the next entry.
  static let dropped = [
    "sessions", "challenges", "codes", "pushes", "key_challenges", "federation_challenges",
    "idempotent_calls", "audit_exports",
  ]

  /// The tables that a restore leaves as they are: an identity that was used stays used.
  static let kept = ["gate_identities"]

  /// Ends the recoveries that were open at the time of the backup. One that was stopped since must not be open again:
  /// its token would replace all devices of the account.
  static func endRecoveries(in sql: any SQLSession, at now: Timestamp) throws {
    try sql.run(
      "UPDATE recoveries SET outcome = ?, ended_at = ? WHERE outcome IS NULL",
      [.text(Recovery.Outcome.cancelled.rawValue), .time(now)])
  }

  /// Passes all rows of a table to `take`, in pages, in the order of the key.
  static func read(
    _ name: String, key: [String], in sql: any SQLSession, _ take: ([SQLRow]) throws -> Void
  ) throws {
    let list = key.joined(separator: ", ")
    let marks = key.map { _ in "?" }.joined(separator: ", ")
    var last: [SQLValue]?
    while true {
      let condition = last == nil ? "" : "WHERE (\(list)) > (\(marks)) "
      let rows = try sql.rows("SELECT * FROM \(name) \(condition)ORDER BY \(list) LIMIT \(page)", last ?? [])
      guard let end = rows.last else { return }
      try take(rows)
      last = key.map { end.value($0) }
    }
  }

  private static let page = 500

  /// Inserts rows of `read` into the table `name`.
  static func insert(_ rows: [SQLRow], into name: String, _ sql: any SQLSession) throws {
    for row in rows {
      let columns = row.columns.map { "\"\($0)\"" }.joined(separator: ", ")
      let marks = row.columns.map { _ in "?" }.joined(separator: ", ")
      try sql.run("INSERT INTO \(name) (\(columns)) VALUES (\(marks))", row.values)
    }
  }
}

extension SQLRow {
  /// The value of a column; NULL for a column that is missing.
  func value(_ column: String) -> SQLValue { columns.firstIndex(of: column).map { values[$0] } ?? .null }
}
