internal import ByteCoding
internal import Foundation
internal import MFADomain

extension SQLRecords: RecoveryRecords {
  func insert(_ recovery: Recovery) throws {
    try sql.run(
      """
      INSERT INTO recoveries (id, user_id, binding, address, code_hash, stop_failures, started_at, ready_at, expires_at,
        outcome, ended_at, reminded_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """,
      [
        .uuid(recovery.id), .uuid(recovery.userID), .binding(recovery.binding), .text(recovery.address),
        .blob(recovery.codeHash), .integer(recovery.stopFailures), .time(recovery.startedAt),
        .time(recovery.readyAt), .time(recovery.expiresAt), .text(recovery.outcome?.rawValue),
        .time(recovery.endedAt), .time(recovery.remindedAt),
      ])
  }

  func recovery(_ id: UUID) throws -> Recovery? {
    try sql.rows("SELECT * FROM recoveries WHERE id = ?", [.uuid(id)]).first.map(Self.recovery)
  }

  func unendedRecovery(of userID: UUID) throws -> Recovery? {
    try sql.rows("SELECT * FROM recoveries WHERE user_id = ? AND outcome IS NULL", [.uuid(userID)]).first
      .map(Self.recovery)
  }

  func openRecoveries(after key: String, at now: Timestamp, atMost count: Int) throws -> [(User, Recovery)] {
    // Two queries, because both tables have columns with the same name.
    try sql.rows(
      """
      SELECT users.* FROM users JOIN recoveries ON recoveries.user_id = users.id
      WHERE recoveries.outcome IS NULL AND recoveries.expires_at > ? AND users.name_key > ?
      ORDER BY users.name_key LIMIT ?
      """,
      [.time(now), .text(key), .integer(count)]
    ).compactMap { row in
      let user = try Self.user(row)
      return try unendedRecovery(of: user.id).map { (user, $0) }
    }
  }

  func recoveriesToRemind(at now: Timestamp, atMost count: Int) throws -> [Recovery] {
    try sql.rows(
      """
      SELECT * FROM recoveries
      WHERE outcome IS NULL AND reminded_at IS NULL AND ready_at > ? AND started_at + ready_at <= ? ORDER BY id LIMIT ?
      """,
      [.time(now), .integer(now.milliseconds * 2), .integer(count)]
    ).map(Self.recovery)
  }

  func update(_ recovery: Recovery) throws {
    try sql.run(
      "UPDATE recoveries SET stop_failures = ?, outcome = ?, ended_at = ?, reminded_at = ? WHERE id = ?",
      [
        .integer(recovery.stopFailures), .text(recovery.outcome?.rawValue), .time(recovery.endedAt),
        .time(recovery.remindedAt), .uuid(recovery.id),
      ])
  }

  func removeRecoveries(expiredBefore instant: Timestamp, atMost count: Int) throws -> Int {
    try remove(count, of: "recoveries", by: "id", where: "expires_at < ?", [.time(instant)])
  }

  private static func recovery(_ row: SQLRow) throws -> Recovery {
    Recovery(
      id: try row.uuid("id"), userID: try row.uuid("user_id"), binding: try row.binding("binding"),
      address: try row.text("address"), codeHash: try row.blob("code_hash"),
      stopFailures: try row.int("stop_failures"), startedAt: try row.time("started_at"),
      readyAt: try row.time("ready_at"), expiresAt: try row.time("expires_at"),
      outcome: try row.optional("outcome") { try row.word($0) }, endedAt: try row.optional("ended_at", row.time),
      remindedAt: try row.optional("reminded_at", row.time))
  }
}
