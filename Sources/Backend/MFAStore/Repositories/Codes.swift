internal import ByteCoding
internal import Foundation
internal import MFADomain

extension SQLRecords: CodeRecords {
  func insert(_ code: OneTimeCode) throws {
    try sql.run(
      """
      INSERT INTO codes (id, subject, channel, hash, target, created_at, expires_at, claimed, failures, spent)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """,
      [
        .uuid(code.id), .text(code.subject), .text(code.channel.rawValue), .blob(code.hash), .blob(code.target),
        .time(code.createdAt), .time(code.expiresAt), .truth(code.isClaimed), .integer(code.failures),
        .truth(code.isSpent),
      ])
  }

  func newestCode(for subject: String, _ channel: OneTimeCode.Channel) throws -> OneTimeCode? {
    try sql.rows(
      "SELECT * FROM codes WHERE subject = ? AND channel = ? ORDER BY created_at DESC LIMIT 1",
      [.text(subject), .text(channel.rawValue)]
    ).first.map { row in
      OneTimeCode(
        id: try row.uuid("id"), subject: subject, channel: channel, hash: try row.blob("hash"),
        target: try row.blob("target"), createdAt: try row.time("created_at"), expiresAt: try row.time("expires_at"),
        isClaimed: try row.truth("claimed"), failures: try row.int("failures"), isSpent: try row.truth("spent"))
    }
  }

  func update(_ code: OneTimeCode) throws {
    try sql.run(
      "UPDATE codes SET claimed = ?, failures = ?, spent = ? WHERE id = ?",
      [.truth(code.isClaimed), .integer(code.failures), .truth(code.isSpent), .uuid(code.id)])
  }

  func timeOfCode(
    at rank: Int, for subject: String, to target: [UInt8], _ channel: OneTimeCode.Channel, since instant: Timestamp
  ) throws -> Timestamp? {
    try sql.rows(
      """
      SELECT MAX(created_at) AS at FROM (
        SELECT created_at FROM (
          SELECT created_at FROM codes WHERE subject = ? AND channel = ? AND created_at > ?
          ORDER BY created_at DESC LIMIT 1 OFFSET ?) AS by_subject
        UNION ALL
        SELECT created_at FROM (
          SELECT created_at FROM codes WHERE target = ? AND channel = ? AND created_at > ?
          ORDER BY created_at DESC LIMIT 1 OFFSET ?) AS by_target) AS found
      """,
      [
        .text(subject), .text(channel.rawValue), .time(instant), .integer(rank - 1),
        .blob(target), .text(channel.rawValue), .time(instant), .integer(rank - 1),
      ]
    ).first.flatMap { try $0.optional("at", $0.time) }
  }

  func removeCodes(createdBefore instant: Timestamp, atMost count: Int) throws -> Int {
    try remove(count, of: "codes", by: "id", where: "created_at < ?", [.time(instant)])
  }

  func removeCodes(createdAfter instant: Timestamp, atMost count: Int) throws -> Int {
    try remove(count, of: "codes", by: "id", where: "created_at > ?", [.time(instant)])
  }
}

extension SQLRecords: AttemptLimiterRecords {
  func limiter(on subject: String) throws -> AttemptLimiter? {
    try sql.rows("SELECT * FROM brakes WHERE subject = ?", [.text(subject)]).first.map(Self.limiter)
  }

  func limiters(onAccount account: String, atMost count: Int) throws -> [(subject: String, limiter: AttemptLimiter)] {
    try sql.rows(
      "SELECT * FROM brakes WHERE account = ? ORDER BY subject LIMIT ?", [.text(account), .integer(count)]
    ).map { (try $0.text("subject"), try Self.limiter($0)) }
  }

  private static func limiter(_ row: SQLRow) throws -> AttemptLimiter {
    AttemptLimiter(
      failuresInARow: try row.int("failures_in_a_row"), windowStart: try row.time("window_start"),
      failuresInWindow: try row.int("failures_in_window"), lockedUntil: try row.optional("locked_until", row.time),
      lastUse: try row.time("last_use"))
  }

  func save(_ limiter: AttemptLimiter, on subject: String, account: String) throws {
    try sql.run(
      """
      INSERT INTO brakes (subject, account, failures_in_a_row, window_start, failures_in_window, locked_until, last_use)
      VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (subject) DO UPDATE SET failures_in_a_row = excluded.failures_in_a_row,
        window_start = excluded.window_start, failures_in_window = excluded.failures_in_window,
        locked_until = excluded.locked_until, last_use = excluded.last_use
      """,
      [
        .text(subject), .text(account), .integer(limiter.failuresInARow), .time(limiter.windowStart),
        .integer(limiter.failuresInWindow),
        .time(limiter.lockedUntil), .time(limiter.lastUse),
      ])
  }

  func removeAttemptLimiters(onAccount account: String) throws {
    try sql.run("DELETE FROM brakes WHERE account = ?", [.text(account)])
  }

  func removeAttemptLimiters(idleSince instant: Timestamp, atMost count: Int) throws -> Int {
    try remove(
      count, of: "brakes", by: "subject", where: "last_use < ? AND failures_in_a_row < ?",
      [.time(instant), .integer(AttemptLimiter.mostInARow)])
  }
}
