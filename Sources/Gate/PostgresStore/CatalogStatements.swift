internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Databases

/// The operator statements on the table of attested keys.
enum CatalogStatements {
  // MARK: Lists

  static func keys(
    _ selection: KeySelection, in order: KeyOrder, after cursor: KeyID?, limit: Int,
    on connection: PostgresConnection
  ) throws(StoreError) -> KeyPage {
    let (page, end, start) = statements(for: order, after: cursor)
    let answers = try connection.ask([
      Call(
        page, start, Parameter(Int64(KeyPage.reach)), Parameter(selection.app),
        Parameter(selection.environment?.rawValue), Parameter(selection.isRevoked),
        Parameter(selection.unusedSince?.milliseconds), Parameter(Int64(limit)),
        Parameter(selection.platform.map { $0 == .android }),
        Parameter(selection.risk?.metrics.map { Int64($0.lowerBound) }),
        Parameter(selection.risk?.metrics.map { Int64($0.upperBound) }),
        Parameter(selection.risk == .unknown ? true : nil)),
      Call(end, start, Parameter(Int64(KeyPage.reach - 1))),
    ])
    guard answers.count == 2 else { throw .failed(reason: "no answer") }
    let rows = answers[0].rows
    let last = rows.count >= limit ? rows.last : answers[1].rows.first
    let next = try last.map { row throws(StoreError) in try keyID(in: row) }
    return try makePage(rows, next: next)
  }

  /// Returns keys whose hash begins with `prefix`, by the hash index.
  static func keys(
    hashPrefix prefix: String, limit: Int, on connection: PostgresConnection
  ) throws(StoreError) -> KeyPage {
    // The tilde sorts after every base64url character.
    let answer = try connection.ask(
      Call(
        Statement(
          "by_hash",
          """
          SELECT \(KeyRecord.columns)
          FROM \(KeyRecord.tables(of: "WHERE k.key_hash >= $1 AND k.key_hash < $2 ORDER BY k.key_hash LIMIT $3"))
          ORDER BY k.key_hash
          """),
        Parameter(prefix), Parameter(prefix + "~"), Parameter(Int64(limit))))
    return try makePage(answer.rows, next: nil)
  }

  private static func makePage(_ rows: [ResultRow], next: KeyID?) throws(StoreError) -> KeyPage {
    var (records, unreadable): ([KeyRecord], [UnreadableKey]) = ([], [])
    for row in rows {
      do throws(StoreError) { records.append(try KeyRecord(row: row)) } catch {
        guard case .corrupt(let reason) = error else { throw error }
        unreadable.append(UnreadableKey(try keyID(in: row), reason: reason))
      }
    }
    return KeyPage(records, unreadable: unreadable, next: next)
  }

  private static func keyID(in row: ResultRow) throws(StoreError) -> KeyID {
    try StoreError.onMalformed("attested_keys") { () throws(MalformedColumn) in
      try row.read("key_id", KeyID.init(bytes:))
    }
  }

  /// Returns the statements of a page, and the value after which it begins.
  private static func statements(
    for order: KeyOrder, after cursor: KeyID?
  ) -> (page: Statement, end: Statement, start: Parameter) {
    switch order {
    case .id: (pageByID, end, Parameter(cursor?.bytes ?? []))
    case .hash: (pageByHash, endByHash, Parameter(cursor.map { KeyHash(of: $0).text } ?? ""))
    // The tilde sorts after every base64url character.
    case .hashDescending:
      (pageByHashDescending, endByHashDescending, Parameter(cursor.map { KeyHash(of: $0).text } ?? "~"))
    }
  }

  private static let pageByID = makePage("page", "key_id >", "key_id")
  private static let pageByHash = makePage("page_by_hash", "key_hash >", "key_hash")
  private static let pageByHashDescending = makePage("page_by_hash_descending", "key_hash <", "key_hash DESC")

  private static func makePage(_ name: String, _ range: String, _ order: String) -> Statement {
    Statement(
      name,
      """
      SELECT * FROM (
        SELECT \(KeyRecord.columns)
        FROM \(KeyRecord.tables(of: "WHERE k.\(range) $1 ORDER BY k.\(order) LIMIT $2"))
      ) AS seen
      WHERE \(conditions)
      ORDER BY \(order) LIMIT $7
      """)
  }

  private static let conditions = """
    ($3 IS NULL OR app_id = $3) AND ($8 IS NULL OR (android IS NOT NULL) = $8) AND ($4 IS NULL OR environment = $4)
      AND ($5 IS NULL OR (revoked_at IS NOT NULL) = $5)
      AND ($6 IS NULL OR COALESCE(last_seen_at, registered_at) < $6 AND registered_at < $6)
      AND ($9 IS NULL OR risk BETWEEN $9 AND $10 AND NOT risk_outdated)
      AND ($11 IS NULL OR risk IS NULL OR risk_outdated)
    """

  /// Selects the last key of a page's scan range, if the range is full.
  static let end = makeEnd("page_end", "key_id >", "key_id")
  private static let endByHash = makeEnd("page_end_by_hash", "key_hash >", "key_hash")
  private static let endByHashDescending = makeEnd("page_end_by_hash_descending", "key_hash <", "key_hash DESC")

  private static func makeEnd(_ name: String, _ range: String, _ order: String) -> Statement {
    Statement(name, "SELECT key_id FROM attested_keys WHERE \(range) $1 ORDER BY \(order) LIMIT 1 OFFSET $2")
  }

  // MARK: Removal

  /// Locks the keys in the common lock order, removes them and records each change.
  static func remove(
    _ keys: [KeyID], unusedSince instant: Timestamp?, on connection: PostgresConnection
  ) throws(StoreError) -> Int {
    let sorted = keys.map(\.bytes).sorted { $0.lexicographicallyPrecedes($1) }
    let count = try connection.transaction { connection throws(StoreError) -> Int? in
      let answer = try connection.ask(
        Call(lockUnused, Parameter(ByteStrings(sorted)), Parameter(instant?.milliseconds)))
      let removed = try StoreError.onMalformed("attested_keys") { () throws(MalformedColumn) in
        var removed: [KeyID] = []
        for row in answer.rows { removed.append(try row.read("key_id", KeyID.init(bytes:))) }
        return removed
      }
      guard !removed.isEmpty else { return nil }
      _ = try connection.ask(
        AttestationKeyStatements.noteOthers(than: removed)
          + [Call(delete, Parameter(ByteStrings(removed.map(\.bytes))))] + removed.flatMap(ChangeStatements.note))
      return removed.count
    }
    return count ?? 0
  }

  private static let lockUnused = Statement(
    "lock_unused",
    """
    SELECT key_id FROM attested_keys
    WHERE key_id = ANY($1) AND ($2 IS NULL OR COALESCE(last_seen_at, registered_at) < $2 AND registered_at < $2)
    ORDER BY key_id FOR UPDATE
    """)

  private static let delete = Statement("delete_keys", "DELETE FROM attested_keys WHERE key_id = ANY($1)")

  // MARK: Copies

  static func entries(after cursor: KeyID?, limit: Int, on connection: PostgresConnection) throws(StoreError)
    -> [KeyEntry]
  {
    let answer = try connection.ask(Call(entries, Parameter(cursor?.bytes ?? []), Parameter(Int64(limit))))
    var all: [KeyEntry] = []
    for row in answer.rows {
      let (used, receipt) = try StoreError.onMalformed("attested_keys") { () throws(MalformedColumn) in
        (try row.read("used_counters") { UInt64(bitPattern: $0 as Int64) }, try row.read("receipt") { $0 as [UInt8] })
      }
      all.append(KeyEntry(record: try KeyRecord(row: row), usedCounters: used, receipt: receipt))
    }
    return all
  }

  private static let entries = Statement(
    "entries",
    """
    SELECT \(KeyRecord.storedColumns), COALESCE(r.receipt, ''::bytea) AS receipt
    FROM \(KeyRecord.storedTables(of: "WHERE k.key_id > $1 ORDER BY k.key_id LIMIT $2"))
      LEFT JOIN LATERAL (SELECT receipt FROM receipts WHERE key_id = k.key_id OFFSET 0) AS r ON TRUE
    ORDER BY k.key_id
    """)

  static func count(on connection: PostgresConnection) throws(StoreError) -> Int {
    let answer = try connection.ask(Call("SELECT COUNT(*) AS keys FROM attested_keys"))
    let count = try StoreError.onMalformed("attested_keys") { () throws(MalformedColumn) in
      try answer.rows.first?.read("keys") { $0 as Int64 }
    }
    return Int(count ?? 0)
  }

  static func merge(_ entries: [KeyEntry], on connection: PostgresConnection) throws(StoreError) -> Int {
    let sorted = entries.sorted {
      $0.record.key.keyID.bytes.lexicographicallyPrecedes($1.record.key.keyID.bytes)
    }
    // A merged entry may carry a revocation or another metric.
    let changed = sorted.filter { $0.record.revokedAt != nil || $0.record.risk != nil }
    let counted = sorted.map(\.record.key).filter(\.isOfRemoteAttestationKey).map(\.keyID)
    let notes =
      changed.flatMap { ChangeStatements.note($0.record.key.keyID) }
      + (counted.isEmpty ? [] : AttestationKeyStatements.noteAll(counted))
    do throws(TransactionError) {
      let calls = sorted.map(mergeCalls)
      let results = try connection.transaction(calls.flatMap(\.self) + notes)
      // The first statement of an entry changes a row if the key is new.
      var (count, position) = (0, 0)
      for call in calls {
        if results.indices.contains(position), results[position].changes == 1 { count += 1 }
        position += call.count
      }
      return count
    } catch {
      throw error.storeError
    }
  }

  /// Returns the statements that merge `entry`. They are part of a transaction.
  static func mergeCalls(for entry: KeyEntry) -> [Call] {
    let (record, key) = (entry.record, entry.record.key)
    return [
      Call(
        insert, Parameter(key.keyID.bytes), Parameter(KeyHash(of: key.keyID).text), Parameter(key.publicKey),
        Parameter(key.app.text), Parameter(key.environment.rawValue),
        Parameter(key.validationCategory.map { Int64($0.rawValue) }), Parameter(key.bundleVersion),
        Parameter(record.request.nonce.bytes), Parameter(record.request.attestationDigest.bytes),
        Parameter(record.registeredAt.milliseconds)),
      Call(
        advance, Parameter(key.keyID.bytes), Parameter(Int64(record.counter.value)),
        Parameter(Int64(bitPattern: entry.usedCounters)), Parameter(record.lastUsedAt?.milliseconds),
        Parameter(record.revokedAt?.milliseconds)),
      Call(
        Statement(
          "keep_receipt",
          """
          INSERT INTO receipts (key_id, receipt) SELECT $1, $2 WHERE length($2) > 0 ON CONFLICT (key_id) DO NOTHING
          """),
        Parameter(key.keyID.bytes), Parameter(entry.receipt)),
      Call(
        Statement(
          "keep_evidence",
          """
          INSERT INTO android_keys (key_id, evidence) SELECT $1, $2 WHERE $2 IS NOT NULL ON CONFLICT (key_id) DO NOTHING
          """),
        Parameter(key.keyID.bytes), Parameter(key.androidEvidence)),
    ] + RiskStatements.mergeCalls(for: entry)
  }

  // No bit is set, since no counter of this new row has been used; `advance` adds the used ones.
  private static let insert = Statement(
    "merge_key",
    """
    INSERT INTO attested_keys (
      key_id, key_hash, public_key, app_id, environment, category, bundle_version, counter, used_counters,
      registration_nonce, attestation_digest, registered_at
    ) VALUES ($1, $2, $3, $4, $5, $6, $7, 0, 0, $8, $9, $10)
    ON CONFLICT (key_id) DO NOTHING
    """)

  // If two histories have different counters, the used counters below the greater one are unknown. All of them then
  // count as used, unless the stored row has no history.
  private static let advance = Statement(
    "merge_counter",
    """
    UPDATE attested_keys SET
      used_counters = CASE
        WHEN counter = 0 AND used_counters = 0 THEN $3
        WHEN $2 = counter THEN used_counters | $3
        WHEN $2 > counter THEN -1
        ELSE used_counters
      END,
      counter = CASE WHEN $2 > counter THEN $2 ELSE counter END,
      last_seen_at = CASE WHEN last_seen_at > $4 THEN last_seen_at ELSE COALESCE($4, last_seen_at) END,
      revoked_at = CASE WHEN revoked_at < $5 THEN revoked_at ELSE COALESCE($5, revoked_at) END
    WHERE key_id = $1
    """)
}
