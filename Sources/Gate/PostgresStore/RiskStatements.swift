internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Databases

/// The statements on the exchange of receipts and its results.
///
/// Triggers keep `receipt_exchanges` in step with receipts and revocations; see `PostgresSchema`.
enum RiskStatements {
  // MARK: Exchange

  static func dueReceipts(
    of apps: [AppID], at now: Timestamp, limit: Int, on connection: PostgresConnection
  ) throws(StoreError) -> [DueReceipt] {
    let limit = max(0, limit)
    let reach = limit + DueReceipt.mostSkipped
    var size = limit
    while true {
      let answers = try connection.ask(
        apps.map { Call(newReceipts, Parameter($0.text), Parameter(Int64(size))) }
          + apps.map { Call(dueReceipts, Parameter($0.text), Parameter(now.milliseconds), Parameter(Int64(size))) })
      var lists: [[(receipt: DueReceipt, time: Int64)]] = []
      var isShort = false
      for answer in answers {
        let rows = answer.rows
        let list = try queued(rows)
        lists.append(list)
        if rows.count == size, list.count < limit { isShort = true }
      }
      guard isShort, size < reach else {
        let new = lists.prefix(apps.count).joined().sorted { $0.time > $1.time }
        let others = lists.dropFirst(apps.count).joined().sorted { $0.time < $1.time }
        return (new + others).prefix(limit).map(\.receipt)
      }
      // Rows that cannot be read fill a list, and receipts may follow.
      size = min(size * 4, reach)
    }
  }

  // The subquery is what the partial index answers. OFFSET keeps the planner, which does not know the limit, from reading
  // whole tables for a hash join.
  static let newReceipts = Statement(
    "new_receipts",
    """
    SELECT k.*, NULL::text AS android, NULL::bigint AS risk, r.receipt, e.failures, e.registered_at AS queued_at
    FROM (
      SELECT key_id, failures, registered_at FROM receipt_exchanges
      WHERE app_id = $1 AND is_new AND NOT is_revoked ORDER BY registered_at DESC LIMIT $2
    ) AS e CROSS JOIN LATERAL (SELECT * FROM attested_keys WHERE key_id = e.key_id OFFSET 0) AS k
      CROSS JOIN LATERAL (SELECT receipt FROM receipts WHERE key_id = e.key_id OFFSET 0) AS r
    ORDER BY e.registered_at DESC
    """)

  static let dueReceipts = Statement(
    "due_receipts",
    """
    SELECT k.*, NULL::text AS android, NULL::bigint AS risk, r.receipt, e.failures, e.due_at AS queued_at
    FROM (
      SELECT key_id, failures, due_at FROM receipt_exchanges
      WHERE app_id = $1 AND due_at <= $2 AND NOT is_new AND NOT is_revoked ORDER BY due_at LIMIT $3
    ) AS e CROSS JOIN LATERAL (SELECT * FROM attested_keys WHERE key_id = e.key_id OFFSET 0) AS k
      CROSS JOIN LATERAL (SELECT receipt FROM receipts WHERE key_id = e.key_id OFFSET 0) AS r
    ORDER BY e.due_at
    """)

  /// Leaves out rows that cannot be read.
  private static func queued(_ rows: [ResultRow]) throws(StoreError) -> [(receipt: DueReceipt, time: Int64)] {
    var all: [(receipt: DueReceipt, time: Int64)] = []
    for row in rows {
      do throws(StoreError) {
        guard case .appAttest(let key) = try KeyRecord(row: row).key.attestation else { continue }
        all.append(
          try StoreError.onMalformed("receipt_exchanges") { () throws(MalformedColumn) in
            let due = DueReceipt(
              key: key, receipt: try row.read("receipt") { $0 }, failures: try row.read("failures") { Int($0 as Int64) }
            )
            return (due, try row.read("queued_at") { $0 as Int64 })
          })
      } catch {
        guard case .corrupt = error else { throw error }
      }
    }
    return all
  }

  /// Locks the key's row before the rows of other tables, as removal and revocation do. An admission of the key waits
  /// only if the settlement revokes it.
  static func settle(
    _ due: DueReceipt, as settlement: ReceiptSettlement, on connection: PostgresConnection
  ) throws(StoreError) -> Bool {
    let key = Parameter(due.key.keyID.bytes)
    let isSettled = try connection.transaction { connection throws(StoreError) -> Bool? in
      let answers = try connection.ask([
        Call(settlement.revokedAt == nil ? shareKey : lockKey, key), Call(matchReceipt, key, Parameter(due.receipt)),
      ])
      guard answers.count == 2, answers[0].rows.count == 1, answers[1].rows.count == 1 else { return nil }
      var calls = [
        Call(
          settle, key, Parameter(settlement.next?.milliseconds), Parameter(Int64(settlement.failures)),
          Parameter(settlement.risk.map { Int64($0.metric) }), Parameter(settlement.risk?.at.milliseconds))
      ]
      if let receipt = settlement.receipt { calls.append(Call(replaceReceipt, key, Parameter(receipt))) }
      if let instant = settlement.revokedAt { calls.append(Call(revokeOnce, key, Parameter(instant.milliseconds))) }
      let results = try connection.ask(calls)
      let hasChangedRisk = try StoreError.onMalformed("receipt_exchanges") { () throws(MalformedColumn) in
        try results.first?.rows.first?.read("is_changed") { $0 as Bool } ?? false
      }
      if hasChangedRisk || settlement.revokedAt != nil && results.last?.changes == 1 {
        _ = try connection.ask(ChangeStatements.note(due.key.keyID))
      }
      return true
    }
    return isSettled ?? false
  }

  private static let shareKey = Statement(
    "share_key", "SELECT 1 FROM attested_keys WHERE key_id = $1 FOR KEY SHARE")

  private static let lockKey = Statement(
    "lock_key", "SELECT 1 FROM attested_keys WHERE key_id = $1 FOR NO KEY UPDATE")

  private static let matchReceipt = Statement(
    "match_receipt", "SELECT 1 FROM receipts WHERE key_id = $1 AND receipt = $2 FOR NO KEY UPDATE")

  /// Stores the result, and says whether the metric that policies act on has changed, or the week of its time.
  private static let settle = Statement(
    "settle",
    """
    WITH former AS MATERIALIZED (
      SELECT CASE WHEN due_at IS NULL THEN NULL ELSE metric END AS metric,
        measured_at / \(KeyRisk.millisecondsOfWeek) AS week
      FROM receipt_exchanges WHERE key_id = $1 FOR UPDATE
    )
    UPDATE receipt_exchanges AS e SET
      is_new = FALSE, due_at = $2, failures = $3, metric = COALESCE($4, e.metric), measured_at = COALESCE($5, measured_at)
    FROM former WHERE key_id = $1
    RETURNING former.metric IS DISTINCT FROM CASE WHEN e.due_at IS NULL THEN NULL ELSE e.metric END
      OR former.week IS DISTINCT FROM e.measured_at / \(KeyRisk.millisecondsOfWeek) AS is_changed
    """)

  private static let replaceReceipt = Statement(
    "replace_receipt", "UPDATE receipts SET receipt = $2 WHERE key_id = $1")

  private static let revokeOnce = Statement(
    "revoke_once", "UPDATE attested_keys SET revoked_at = $2 WHERE key_id = $1 AND revoked_at IS NULL")

  // MARK: Lease

  /// The id of the exchange lock: an arbitrary number that is the same in every version, and the schema.
  private static let lockClass = "1935763572"
  private static let lockObject = "hashtext(current_schema())"
  private static let lock = "\(lockClass), \(lockObject)"

  static func beginExchange(on connection: PostgresConnection) throws(StoreError) -> Bool {
    let answer = try connection.ask(
      Call(Statement("begin_exchange", "SELECT pg_try_advisory_lock(\(lock)) AS taken")))
    return try StoreError.onMalformed("pg_locks") { () throws(MalformedColumn) in
      try answer.rows.first?.read("taken") { $0 as Bool } ?? false
    }
  }

  // The store may have opened another connection since the round began.
  static func holdsExchange(on connection: PostgresConnection) throws(StoreError) -> Bool {
    let answer = try connection.ask(Call(holder))
    return try StoreError.onMalformed("pg_locks") { () throws(MalformedColumn) in
      try answer.rows.first?.read("held") { $0 as Bool } ?? false
    }
  }

  // pg_locks has the numbers of a lock with two numbers as class and object.
  private static let holder = Statement(
    "holds_exchange",
    """
    SELECT EXISTS (
      SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND granted AND objsubid = 2
        AND (classid, objid) = (\(lockClass)::oid, \(lockObject)::oid)
    ) AS held
    """)

  // If the lock was released with its connection, the server only warns that it is not held.
  static func endExchange(on connection: PostgresConnection) throws(StoreError) {
    _ = try connection.ask(Call(Statement("end_exchange", "SELECT pg_advisory_unlock(\(lock))")))
  }

  // MARK: Copies

  /// Returns the statements that store the risk and the receipt of `entry` if the risk is newer than the stored one.
  /// They are part of a transaction in which the key and its receipt exist.
  static func mergeCalls(for entry: KeyEntry) -> [Call] {
    guard let risk = entry.record.risk, !entry.receipt.isEmpty else { return [] }
    let (key, at) = (Parameter(entry.record.key.keyID.bytes), Parameter(risk.newest.at.milliseconds))
    return [
      Call(mergeReceipt, key, Parameter(entry.receipt), at),
      Call(mergeRisk, key, Parameter(Int64(risk.newest.metric)), at, Parameter(risk.current?.at.milliseconds)),
    ]
  }

  private static let mergeReceipt = Statement(
    "merge_receipt",
    """
    UPDATE receipts SET receipt = $2 WHERE key_id = $1 AND EXISTS (
      SELECT 1 FROM receipt_exchanges AS e WHERE e.key_id = $1 AND (e.measured_at IS NULL OR e.measured_at < $3)
    )
    """)

  private static let mergeRisk = Statement(
    "merge_risk",
    """
    UPDATE receipt_exchanges SET is_new = FALSE, metric = $2, measured_at = $3, due_at = $4, failures = 0
    WHERE key_id = $1 AND (measured_at IS NULL OR measured_at < $3)
    """)

  // MARK: Figures

  static func tally(
    after cursor: KeyID?, limit: Int, on connection: PostgresConnection
  ) throws(StoreError) -> RiskTally {
    let (start, limit) = (Parameter(cursor?.bytes ?? []), max(1, limit))
    let answers = try connection.ask([
      Call(count, start, Parameter(Int64(limit))), Call(CatalogStatements.end, start, Parameter(Int64(limit - 1))),
    ])
    guard answers.count == 2 else { throw .failed(reason: "no answer") }
    return try StoreError.onMalformed("receipt_exchanges") { () throws(MalformedColumn) in
      var counts: [RiskTally.Group: Int] = [:]
      for row in answers[0].rows {
        let group = RiskTally.Group(
          app: try row.read("app_id") { $0 }, metric: try row.readIfPresent("metric") { Int($0 as Int64) })
        counts[group] = try row.read("keys") { Int($0 as Int64) }
      }
      return RiskTally(counts, next: try answers[1].rows.first?.read("key_id", KeyID.init(bytes:)))
    }
  }

  private static let count = Statement(
    "count_risks",
    """
    SELECT app_id, metric, COUNT(*) AS keys FROM (
      SELECT k.app_id, k.revoked_at, COALESCE(c.metric, CASE WHEN e.due_at IS NULL THEN NULL ELSE e.metric END) AS metric
      FROM \(KeyRecord.tables(of: "WHERE k.key_id > $1 ORDER BY k.key_id LIMIT $2"))
    ) AS seen WHERE revoked_at IS NULL GROUP BY app_id, metric
    """)
}
