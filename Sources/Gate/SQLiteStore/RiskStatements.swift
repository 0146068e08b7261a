internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Foundation
internal import GRDB

/// The statements on the exchange of receipts and its results.
///
/// Triggers keep `receipt_exchanges` in step with receipts and revocations; see `SQLiteSchema`.
struct RiskStatements {
  let db: Database

  /// The metric that policies act on, of a row with `AttestationKeyStatements.columns`; NULL for none.
  static let metric = "COALESCE(counted, CASE WHEN risk_outdated THEN NULL ELSE risk END)"

  // MARK: Exchange

  func dueReceipts(of apps: [AppID], at now: Timestamp, limit: Int) throws -> [DueReceipt] {
    let reach = limit + DueReceipt.mostSkipped
    let new = try apps.flatMap { app in try queued(Self.newReceipts, [app.text, reach], limit: limit) }
    // Each list is in order, and so is what a stable sort makes of several ones.
    let first = new.sorted { $0.time > $1.time }.prefix(limit)
    guard first.count < limit else { return first.map(\.receipt) }
    let others = try apps.flatMap { app in
      try queued(Self.dueReceipts, [app.text, now.milliseconds, reach], limit: limit)
    }
    return first.map(\.receipt) + others.sorted { $0.time < $1.time }.prefix(limit - first.count).map(\.receipt)
  }

  // SQLite keeps the order of the tables of a CROSS JOIN, so that the partial index leads.
  static let newReceipts = """
    SELECT k.*, r.receipt, e.failures, e.registered_at AS queued_at
    FROM receipt_exchanges AS e CROSS JOIN attested_keys AS k ON k.key_id = e.key_id
      CROSS JOIN receipts AS r ON r.key_id = e.key_id
    WHERE e.app_id = ? AND e.is_new AND NOT e.is_revoked ORDER BY e.registered_at DESC LIMIT ?
    """

  static let dueReceipts = """
    SELECT k.*, r.receipt, e.failures, e.due_at AS queued_at
    FROM receipt_exchanges AS e CROSS JOIN attested_keys AS k ON k.key_id = e.key_id
      CROSS JOIN receipts AS r ON r.key_id = e.key_id
    WHERE e.app_id = ? AND e.due_at <= ? AND NOT e.is_new AND NOT e.is_revoked ORDER BY e.due_at LIMIT ?
    """

  /// Reads the rows of a query up to the receipt with the number `limit`.
  private func queued(
    _ sql: String, _ arguments: StatementArguments, limit: Int
  ) throws -> [(receipt: DueReceipt, time: Int64)] {
    let rows = try Row.fetchCursor(db.cachedStatement(sql: sql), arguments: arguments)
    var found: [(receipt: DueReceipt, time: Int64)] = []
    while found.count < limit, let row = try rows.next() {
      do { found.append(try Self.receipt(in: row)) } catch StoreError.corrupt(_) {
        // The next receipt may be of another key.
      }
    }
    return found
  }

  private static func receipt(in row: Row) throws -> (receipt: DueReceipt, time: Int64) {
    guard case .appAttest(let key) = try KeyRecord(row: row).key.attestation else {
      throw StoreError.corrupt(reason: "receipts.key_id names a key of Android")
    }
    do throws(MalformedColumn) {
      let due = DueReceipt(
        key: key, receipt: try row.read("receipt") { Array($0 as Data) }, failures: try row.read("failures") { $0 })
      return (due, try row.read("queued_at") { $0 })
    } catch {
      throw StoreError.corrupt(reason: "receipt_exchanges.\(error.name) is malformed")
    }
  }

  func settle(_ due: DueReceipt, as settlement: ReceiptSettlement) throws -> Bool {
    let keyID = Data(due.key.keyID.bytes)
    let isSame = try Bool.fetchOne(
      db, sql: "SELECT receipt = ? FROM receipts WHERE key_id = ?", arguments: [Data(due.receipt), keyID])
    guard isSame == true, let record = try KeyStatements(db: db).record(of: due.key.keyID) else { return false }
    if let receipt = settlement.receipt {
      try db.execute(sql: "UPDATE receipts SET receipt = ? WHERE key_id = ?", arguments: [Data(receipt), keyID])
    }
    try db.execute(
      sql: "UPDATE receipt_exchanges SET is_new = FALSE, due_at = ?, failures = ? WHERE key_id = ?",
      arguments: [settlement.next?.milliseconds, settlement.failures, keyID])
    let risk = (settlement.risk ?? record.risk?.newest).map { StoredRisk($0, isOutdated: settlement.next == nil) }
    if risk != record.risk { try store(risk, of: keyID) }
    var isRevoked = false
    if let instant = settlement.revokedAt, record.revokedAt == nil {
      try db.execute(
        sql: "UPDATE attested_keys SET revoked_at = ? WHERE key_id = ?", arguments: [instant.milliseconds, keyID])
      isRevoked = true
    }
    if isRevoked || risk?.current?.metric != record.risk?.current?.metric
      || risk?.newest.week != record.risk?.newest.week
    {
      try ChangeStatements(db: db).note(due.key.keyID)
    }
    return true
  }

  private func store(_ risk: StoredRisk?, of keyID: Data) throws {
    try db.execute(
      sql: "UPDATE attested_keys SET risk = ?, risk_at = ?, risk_outdated = ? WHERE key_id = ?",
      arguments: [risk?.newest.metric, risk?.newest.at.milliseconds, risk?.isOutdated, keyID])
  }

  // MARK: Copies

  /// Stores the risk and the receipt of `entry` if the risk is newer than the stored one.
  ///
  /// - Returns: Whether it was.
  func merge(_ entry: KeyEntry) throws -> Bool {
    guard let risk = entry.record.risk else { return false }
    let keyID = Data(entry.record.key.keyID.bytes)
    try db.cachedStatement(
      sql: """
        UPDATE attested_keys SET risk = :metric, risk_at = :at, risk_outdated = :outdated
        WHERE key_id = :key AND (risk_at IS NULL OR risk_at < :at)
        """
    ).execute(arguments: [
      "metric": risk.newest.metric, "at": risk.newest.at.milliseconds, "outdated": risk.isOutdated, "key": keyID,
    ])
    guard db.changesCount == 1 else { return false }
    if !entry.receipt.isEmpty {
      try db.cachedStatement(sql: "UPDATE receipts SET receipt = ? WHERE key_id = ?")
        .execute(arguments: [Data(entry.receipt), keyID])
    }
    try db.cachedStatement(
      sql: "UPDATE receipt_exchanges SET is_new = FALSE, due_at = ?, failures = 0 WHERE key_id = ?"
    ).execute(arguments: [risk.current?.at.milliseconds, keyID])
    return true
  }

  // MARK: Figures

  func tally(after cursor: KeyID?, limit: Int) throws -> RiskTally {
    // All parts together read the whole table, and would fill the cache with pages that no admission needs.
    try db.setCache(.ofScan)
    defer { try? db.setCache(.ofKeys) }
    let start = Data(cursor?.bytes ?? [])
    let rows = try Row.fetchAll(
      db,
      sql: """
        SELECT app_id, \(Self.metric) AS metric, COUNT(*) AS keys
        FROM (
          SELECT app_id, risk, risk_outdated, revoked_at, \(AttestationKeyStatements.columns)
          FROM attested_keys AS k WHERE key_id > ? ORDER BY key_id LIMIT ?
        ) WHERE revoked_at IS NULL GROUP BY 1, 2
        """, arguments: [start, limit])
    let last = try Row.fetchOne(
      db, sql: "SELECT key_id FROM attested_keys WHERE key_id > ? ORDER BY key_id LIMIT 1 OFFSET ?",
      arguments: [start, max(0, limit - 1)])
    var counts: [RiskTally.Group: Int] = [:]
    for row in rows {
      do throws(MalformedColumn) {
        let group = RiskTally.Group(
          app: try row.read("app_id") { $0 }, metric: try row.readIfPresent("metric") { $0 })
        counts[group] = try row.read("keys") { $0 }
      } catch {
        // Damaged keys are not counted, and the others are.
      }
    }
    do throws(MalformedColumn) {
      return RiskTally(counts, next: try last?.read("key_id") { KeyID(bytes: Array($0 as Data)) })
    } catch {
      throw StoreError.corrupt(reason: "attested_keys.\(error.name) is malformed")
    }
  }
}
