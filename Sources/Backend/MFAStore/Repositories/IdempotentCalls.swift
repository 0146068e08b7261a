internal import ByteCoding
internal import MFADomain

extension SQLRecords: IdempotencyRecords {
  func idempotentCall(_ id: String) throws -> IdempotentCall? {
    try sql.rows("SELECT * FROM idempotent_calls WHERE id = ?", [.text(id)]).first.map { row in
      IdempotentCall(
        id: id, caller: try row.text("caller"), fingerprint: try row.blob("fingerprint"),
        startedAt: try row.time("started_at"),
        answer: try row.optional("answer", row.blob).map(Sealed.init))
    }
  }

  func save(_ call: IdempotentCall) throws {
    try sql.run(
      """
      INSERT INTO idempotent_calls (id, caller, fingerprint, started_at, answer) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (id) DO UPDATE SET
        fingerprint = excluded.fingerprint, started_at = excluded.started_at, answer = excluded.answer
      """,
      [.text(call.id), .text(call.caller), .blob(call.fingerprint), .time(call.startedAt), .blob(call.answer?.bytes)])
  }

  func update(_ call: IdempotentCall) throws {
    try sql.run(
      "UPDATE idempotent_calls SET answer = ? WHERE id = ? AND started_at = ?",
      [.blob(call.answer?.bytes), .text(call.id), .time(call.startedAt)])
  }

  func remove(_ call: IdempotentCall) throws {
    try sql.run(
      "DELETE FROM idempotent_calls WHERE id = ? AND started_at = ?", [.text(call.id), .time(call.startedAt)])
  }

  func removeIdempotentCalls(startedBefore instant: Timestamp, atMost count: Int) throws -> Int {
    try remove(count, of: "idempotent_calls", by: "id", where: "started_at < ?", [.time(instant)])
  }

  func removeIdempotentCalls(of caller: String, exceptNewest count: Int) throws {
    // Each new call removes at most one, except when a new version keeps fewer.
    try sql.run(
      """
      DELETE FROM idempotent_calls WHERE id IN (
        SELECT id FROM idempotent_calls WHERE caller = ? ORDER BY started_at DESC, id LIMIT 100 OFFSET ?)
      """, [.text(caller), .integer(count)])
  }
}
