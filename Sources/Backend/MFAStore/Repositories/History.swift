internal import ByteCoding
internal import Foundation
internal import MFADomain

extension SQLRecords: NoticeRecords {
  func append(_ kind: Notice.Kind, to userID: UUID, concerning: String?, at now: Timestamp) throws -> Int64 {
    let sequence = try lastNotice(of: userID) + 1
    try sql.run(
      "INSERT INTO notices (user_id, sequence, kind, at, concerning) VALUES (?, ?, ?, ?, ?)",
      [.uuid(userID), .integer(sequence), .text(kind.rawValue), .time(now), .text(concerning)])
    return sequence
  }

  func lastNotice(of userID: UUID) throws -> Int64 {
    try sql.rows("SELECT MAX(sequence) AS last FROM notices WHERE user_id = ?", [.uuid(userID)])
      .first.flatMap { try $0.optional("last", $0.integer) } ?? 0
  }

  func notices(of userID: UUID, after sequence: Int64, atMost count: Int) throws -> [Notice] {
    try sql.rows(
      "SELECT * FROM notices WHERE user_id = ? AND sequence > ? ORDER BY sequence LIMIT ?",
      [.uuid(userID), .integer(sequence), .integer(count)]
    ).map { row in
      Notice(
        userID: userID, sequence: try row.integer("sequence"), kind: try row.word("kind"), at: try row.time("at"),
        concerning: try row.optional("concerning", row.text))
    }
  }

  // The newest notice of each user stays, because the next sequence number is derived from it.
  func removeNotices(before instant: Timestamp, atMost count: Int) throws -> Int {
    try remove(
      count, of: "notices", by: "user_id, sequence",
      where: """
        at < ? AND sequence <
          (SELECT MAX(newest.sequence) FROM notices AS newest WHERE newest.user_id = notices.user_id)
        """,
      [.time(instant)])
  }
}

extension SQLRecords: AuditRecords {
  func inHistoryTurn(_ body: @escaping (any AuditRecords) throws -> Void) throws {
    if let historyTurn { historyTurn.add(body) } else { try body(self) }
  }

  func lastAuditEntry() throws -> (sequence: Int64, hash: [UInt8], keyNumber: UInt32?)? {
    if let known = historyEnd?.known { return known }
    let last = try sql.rows(
      "SELECT sequence, hash, key_number FROM audit ORDER BY sequence DESC LIMIT 1", []
    ).first.map { (try $0.integer("sequence"), try $0.blob("hash"), try Self.keyNumber($0)) }
    historyEnd?.known = .some(last)
    return last
  }

  func append(_ entry: AuditEntry, hash: [UInt8]) throws {
    try sql.enqueue(
      """
      INSERT INTO audit (sequence, at, request_id, actor, account, event, detail, previous, hash, key_number)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """,
      [
        .integer(entry.sequence), .time(entry.at), .text(entry.requestID), .text(entry.actor), .text(entry.account),
        .text(entry.event), .text(entry.detail), .blob(entry.previous), .blob(hash),
        entry.keyNumber.map { .integer(Int64($0)) } ?? .null,
      ])
    historyEnd?.known = .some((entry.sequence, hash, entry.keyNumber))
  }

  func auditEntries(after sequence: Int64, atMost count: Int) throws -> [(entry: AuditEntry, hash: [UInt8])] {
    try sql.rows(
      "SELECT * FROM audit WHERE sequence > ? ORDER BY sequence LIMIT ?", [.integer(sequence), .integer(count)]
    ).map { (try Self.auditEntry($0), try $0.blob("hash")) }
  }

  func auditEntries(before sequence: Int64, account: String?, atMost count: Int) throws -> [AuditEntry] {
    let condition = account == nil ? "" : " AND account = ?"
    return try sql.rows(
      "SELECT * FROM audit WHERE sequence < ?\(condition) ORDER BY sequence DESC LIMIT ?",
      [.integer(sequence)] + (account.map { [.text($0)] } ?? []) + [.integer(count)]
    ).map(Self.auditEntry)
  }

  func isAccount(_ key: String) throws -> Bool {
    try !sql.rows("SELECT 1 AS found FROM users WHERE name_key = ?", [.text(key)]).isEmpty
  }

  func refusalTally(_ kind: RefusalTally.Kind) throws -> RefusalTally? {
    try sql.rows(
      "SELECT * FROM refusal_tallies WHERE actor = ? AND account = ? AND event = ? AND reason = ?", Self.key(kind)
    ).first.map(Self.tally)
  }

  func refusalTallies(begunBy instant: Timestamp, atMost count: Int) throws -> [RefusalTally] {
    try sql.rows(
      "SELECT * FROM refusal_tallies WHERE since <= ? ORDER BY since, actor, account, event, reason LIMIT ?",
      [.time(instant), .integer(count)]
    ).map(Self.tally)
  }

  func refusalTallies(begunAfter instant: Timestamp, atMost count: Int) throws -> [RefusalTally] {
    try sql.rows(
      "SELECT * FROM refusal_tallies WHERE since > ? ORDER BY since, actor, account, event, reason LIMIT ?",
      [.time(instant), .integer(count)]
    ).map(Self.tally)
  }

  func save(_ tally: RefusalTally) throws {
    try sql.run(
      """
      INSERT INTO refusal_tallies (actor, account, event, reason, since, count, last_request_id)
      VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (actor, account, event, reason) DO UPDATE SET since = excluded.since, count = excluded.count,
        last_request_id = excluded.last_request_id
      """,
      Self.key(tally.kind) + [.time(tally.since), .integer(tally.count), .text(tally.lastRequestID)])
  }

  func countRefusals(_ events: [AuditEvent], at account: String, since instant: Timestamp) throws -> Int {
    let places = events.map { _ in "?" }.joined(separator: ", ")
    return try sql.rows(
      "SELECT count FROM refusal_tallies WHERE account = ? AND since > ? AND event IN (\(places))",
      [.text(account), .time(instant)] + events.map { .text($0.rawValue) }
    ).reduce(0) { try $0 + $1.int("count") }
  }

  func removeRefusalTally(_ kind: RefusalTally.Kind) throws {
    try sql.run(
      "DELETE FROM refusal_tallies WHERE actor = ? AND account = ? AND event = ? AND reason = ?", Self.key(kind))
  }

  /// Usernames are never empty, so an empty text stands for "no account".
  private static func key(_ kind: RefusalTally.Kind) -> [SQLValue] {
    [.text(kind.actor), .text(kind.account ?? ""), .text(kind.event), .text(kind.reason)]
  }

  private static func tally(_ row: SQLRow) throws -> RefusalTally {
    let account = try row.text("account")
    return RefusalTally(
      kind: RefusalTally.Kind(
        actor: try row.text("actor"), account: account.isEmpty ? nil : account, event: try row.text("event"),
        reason: try row.text("reason")),
      since: try row.time("since"), count: try row.int("count"), lastRequestID: try row.text("last_request_id"))
  }

  private static func auditEntry(_ row: SQLRow) throws -> AuditEntry {
    AuditEntry(
      sequence: try row.integer("sequence"), at: try row.time("at"), requestID: try row.text("request_id"),
      actor: try row.text("actor"), account: try row.optional("account", row.text), event: try row.text("event"),
      detail: try row.text("detail"), previous: try row.blob("previous"), keyNumber: try keyNumber(row))
  }

  private static func keyNumber(_ row: SQLRow) throws -> UInt32? {
    try row.optional("key_number", row.integer).map { number in
      guard let number = UInt32(exactly: number) else { throw SQLRow.Unreadable(column: "key_number") }
      return number
    }
  }
}

extension SQLRecords: KeyRecords {
  func dataKeys() throws -> [DataKey] {
    try sql.rows("SELECT * FROM data_keys ORDER BY number", []).map { row in
      guard let number = UInt32(exactly: try row.integer("number")) else { throw SQLRow.Unreadable(column: "number") }
      return DataKey(
        number: number, purpose: try row.word("purpose"), wrappedBy: try row.text("wrapped_by"),
        wrapped: try row.blob("wrapped"))
    }
  }

  func save(_ key: DataKey) throws {
    try sql.run(
      """
      INSERT INTO data_keys (number, purpose, wrapped_by, wrapped) VALUES (?, ?, ?, ?)
      ON CONFLICT (number) DO UPDATE SET wrapped_by = excluded.wrapped_by, wrapped = excluded.wrapped
      """,
      [.integer(Int64(key.number)), .text(key.purpose.rawValue), .text(key.wrappedBy), .blob(key.wrapped)])
  }
}
