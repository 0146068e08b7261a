internal import ByteCoding
internal import Foundation
internal import MFADomain

/// The tables of a backup, each with its primary key.
///
/// Referenced tables come first. Rows that are of use for minutes only, sessions and push addresses are left out: an
/// older state of them would accept again what was spent or revoked since the backup, and notify telephones that have
/// changed hands. Apps register their addresses again.
enum ArchivedTables {
  static let all: [(name: String, key: [String])] = [
    ("data_keys", ["number"]), ("users", ["id"]), ("devices", ["id"]), ("totp_factors", ["user_id"]),
    ("backup_codes", ["user_id", "hash"]), ("security_keys", ["id"]), ("oath_tokens", ["id"]),
    ("federated_identities", ["user_id", "issuer"]), ("trusted_devices", ["id"]), ("brakes", ["subject"]),
    ("networks", ["user_id", "binding", "network"]), ("recoveries", ["id"]), ("obligations", ["word"]),
    ("notices", ["user_id", "sequence"]), ("refusal_tallies", ["actor", "account", "event", "reason"]),
    ("audit", ["sequence"]),
  ]

  /// The tables that a restore empties.
  static let dropped = [
    "sessions", "challenges", "codes", "pushes", "key_challenges", "federation_challenges",
    "idempotent_calls", "push_addresses", "app_offers",
  ]

  /// The tables that a restore leaves: an identity that was used stays used, and exports of the history continue at
  /// the end of the restored history (`moveExports`).
  static let kept = ["gate_identities", "audit_exports"]

  /// Ends the recoveries that were open at the time of the backup. One that was stopped since must not be open again:
  /// its token would replace all devices of the account.
  static func endRecoveries(in sql: any SQLSession, at now: Timestamp) throws {
    try sql.run(
      "UPDATE recoveries SET outcome = ?, ended_at = ? WHERE outcome IS NULL",
      [.text(Recovery.Outcome.cancelled.rawValue), .time(now)])
  }

  /// Moves the exports of the history to its restored end: its further entries have numbers that were exported before.
  /// An export that had not yet reached this end stays where it was.
  static func moveExports(in sql: any SQLSession) throws {
    let last = try sql.rows("SELECT sequence, hash FROM audit ORDER BY sequence DESC LIMIT 1", []).first
    let end = try last.map { AuditPosition(sequence: try $0.integer("sequence"), hash: try $0.blob("hash")) } ?? .start
    try sql.run(
      """
      UPDATE audit_exports SET sequence = ?, hash = ? WHERE sequence > 0 AND NOT EXISTS
        (SELECT 1 FROM audit WHERE audit.sequence = audit_exports.sequence AND audit.hash = audit_exports.hash)
      """,
      [.integer(end.sequence), .blob(end.hash)])
    // For files, whose positions are outside of the database.
    let noProcess = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
    try SQLRecords(sql: sql).save(
      AuditExport(
        name: AuditExport.restored, position: end, holder: noProcess, heldUntil: Timestamp(milliseconds: 0)))
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
