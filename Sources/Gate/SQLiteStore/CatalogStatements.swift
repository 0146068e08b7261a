internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Foundation
internal import GRDB

/// The operator statements on the table of attested keys.
struct CatalogStatements {
  let db: Database

  // MARK: Lists

  func keys(
    _ selection: KeySelection, in order: KeyOrder, after cursor: KeyID?, limit: Int
  ) throws -> KeyPage {
    let (column, start) = Self.start(of: order, after: cursor)
    let range = "\(column) \(order == .hashDescending ? "<" : ">")"
    let sorted = "\(column) \(order == .hashDescending ? "DESC" : "ASC")"
    let rows = try Row.fetchAll(
      db,
      sql: """
        SELECT * FROM (
          SELECT k.*, \(AttestationKeyStatements.columns)
          FROM attested_keys AS k WHERE k.\(range) :start ORDER BY k.\(sorted) LIMIT :reach
        ) AS seen
        WHERE (:app IS NULL OR app_id = :app) AND (:android IS NULL OR (android IS NOT NULL) = :android) AND (:environment IS NULL OR environment = :environment)
          AND (:revoked IS NULL OR (revoked_at IS NOT NULL) = :revoked)
          AND (:unused IS NULL OR COALESCE(last_seen_at, registered_at) < :unused AND registered_at < :unused)
          AND (:least IS NULL OR \(RiskStatements.metric) BETWEEN :least AND :most)
          AND (:unknown IS NULL OR \(RiskStatements.metric) IS NULL)
        ORDER BY \(sorted) LIMIT :limit
        """,
      arguments: [
        "start": start, "reach": KeyPage.reach, "app": selection.app,
        "android": selection.platform.map { $0 == .android },
        "environment": selection.environment?.rawValue, "revoked": selection.isRevoked,
        "unused": selection.unusedSince?.milliseconds, "limit": limit, "least": selection.risk?.metrics?.lowerBound,
        "most": selection.risk?.metrics?.upperBound, "unknown": selection.risk == .unknown ? true : nil,
      ])
    if rows.count >= limit { return try Self.page(rows, next: try rows.last.map(Self.keyID)) }
    let end = try Row.fetchOne(
      db, sql: "SELECT key_id FROM attested_keys WHERE \(range) ? ORDER BY \(sorted) LIMIT 1 OFFSET ?",
      arguments: [start, KeyPage.reach - 1])
    return try Self.page(rows, next: try end.map(Self.keyID))
  }

  private static func page(_ rows: [Row], next: KeyID?) throws -> KeyPage {
    var (records, unreadable): ([KeyRecord], [UnreadableKey]) = ([], [])
    for row in rows {
      do { records.append(try KeyRecord(row: row)) } catch StoreError.corrupt(let reason) {
        unreadable.append(UnreadableKey(try keyID(in: row), reason: reason))
      }
    }
    return KeyPage(records, unreadable: unreadable, next: next)
  }

  /// Returns the column of `order`, and the value after which a page begins.
  private static func start(of order: KeyOrder, after cursor: KeyID?) -> (String, any DatabaseValueConvertible) {
    switch order {
    case .id: ("key_id", Data(cursor?.bytes ?? []))
    case .hash: ("key_hash", cursor.map { KeyHash(of: $0).text } ?? "")
    // The tilde sorts after every base64url character.
    case .hashDescending: ("key_hash", cursor.map { KeyHash(of: $0).text } ?? "~")
    }
  }

  private static func keyID(in row: Row) throws -> KeyID {
    do throws(MalformedColumn) {
      return try row.read("key_id") { KeyID(bytes: Array($0 as Data)) }
    } catch {
      throw StoreError.corrupt(reason: "attested_keys.\(error.name) is malformed")
    }
  }

  /// Returns keys whose hash begins with `prefix`, by the hash index.
  func keys(hashPrefix prefix: String, limit: Int) throws -> KeyPage {
    // The tilde sorts after every base64url character.
    let rows = try Row.fetchAll(
      db,
      sql: """
        SELECT k.*, \(AttestationKeyStatements.columns)
        FROM attested_keys AS k WHERE k.key_hash >= ? AND k.key_hash < ? ORDER BY k.key_hash LIMIT ?
        """,
      arguments: [prefix, prefix + "~", limit])
    return try Self.page(rows, next: nil)
  }

  // MARK: Removal

  func remove(_ keys: [KeyID], unusedSince instant: Timestamp?) throws -> Int {
    var count = 0
    for keyID in keys {
      let condition = """
        key_id = :key
        AND (:unused IS NULL OR COALESCE(last_seen_at, registered_at) < :unused AND registered_at < :unused)
        """
      let arguments: StatementArguments = ["key": Data(keyID.bytes), "unused": instant?.milliseconds]
      guard
        try Bool.fetchOne(
          db.cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM attested_keys WHERE \(condition))"),
          arguments: arguments) == true
      else { continue }
      try AttestationKeyStatements(db: db).noteOthers(than: keyID)
      try db.execute(sql: "DELETE FROM attested_keys WHERE \(condition)", arguments: arguments)
      count += 1
      try ChangeStatements(db: db).note(keyID)
    }
    return count
  }

  // MARK: Copies

  func entries(after cursor: KeyID?, limit: Int) throws -> [KeyEntry] {
    let rows = try Row.fetchAll(
      db,
      sql: """
        SELECT k.*, COALESCE(r.receipt, x'') AS receipt
        FROM attested_keys AS k LEFT JOIN receipts AS r ON r.key_id = k.key_id
        WHERE k.key_id > ? ORDER BY k.key_id LIMIT ?
        """,
      arguments: [Data(cursor?.bytes ?? []), limit])
    return try rows.map(Self.entry)
  }

  func count() throws -> Int { try Int.fetchOne(db, sql: "SELECT COUNT(*) FROM attested_keys") ?? 0 }

  private static func entry(in row: Row) throws -> KeyEntry {
    let record = try KeyRecord(row: row)
    do throws(MalformedColumn) {
      return KeyEntry(
        record: record, usedCounters: try row.read("used_counters") { UInt64(bitPattern: $0 as Int64) },
        receipt: try row.read("receipt") { Array($0 as Data) })
    } catch {
      throw StoreError.corrupt(reason: "attested_keys.\(error.name) is malformed")
    }
  }

  func merge(_ entries: [KeyEntry]) throws -> Int {
    var count = 0
    for entry in entries {
      if try insert(entry) {
        count += 1
        if entry.record.key.isOfRemoteAttestationKey {
          try AttestationKeyStatements(db: db).noteOthers(than: entry.record.key.keyID)
        }
      }
      try advance(entry)
      if !entry.receipt.isEmpty {
        try db.execute(
          sql: "INSERT INTO receipts (key_id, receipt) VALUES (?, ?) ON CONFLICT (key_id) DO NOTHING",
          arguments: [Data(entry.record.key.keyID.bytes), Data(entry.receipt)])
      }
      let hasNewRisk = try RiskStatements(db: db).merge(entry)
      // An entry may bring a revocation.
      if hasNewRisk || entry.record.revokedAt != nil { try ChangeStatements(db: db).note(entry.record.key.keyID) }
    }
    return count
  }

  // No bit is set, since no counter of this new row has been used; `advance` adds the used ones.
  private func insert(_ entry: KeyEntry) throws -> Bool {
    let (record, key) = (entry.record, entry.record.key)
    try db.cachedStatement(
      sql: """
        INSERT INTO attested_keys (
          key_id, public_key, app_id, environment, category, bundle_version, counter, used_counters,
          registration_nonce, attestation_digest, registered_at, key_hash, android
        ) VALUES (:key, :public, :app, :environment, :category, :version, 0, 0, :nonce, :digest, :now, :hash, :android)
        ON CONFLICT (key_id) DO NOTHING
        """
    ).execute(arguments: [
      "key": Data(key.keyID.bytes), "public": Data(key.publicKey), "app": key.app.text,
      "environment": key.environment.rawValue, "category": key.validationCategory.map { Int64($0.rawValue) },
      "version": key.bundleVersion, "nonce": Data(record.request.nonce.bytes),
      "digest": Data(record.request.attestationDigest.bytes), "now": record.registeredAt.milliseconds,
      "hash": KeyHash(of: key.keyID).text, "android": key.androidEvidence,
    ])
    return db.changesCount == 1
  }

  // If two histories have different counters, the used counters below the greater one are unknown. All of them then
  // count as used, unless the stored row has no history.
  private func advance(_ entry: KeyEntry) throws {
    let record = entry.record
    try db.cachedStatement(
      sql: """
        UPDATE attested_keys SET
          used_counters = CASE
            WHEN counter = 0 AND used_counters = 0 THEN :used
            WHEN :counter = counter THEN used_counters | :used
            WHEN :counter > counter THEN -1
            ELSE used_counters
          END,
          counter = CASE WHEN :counter > counter THEN :counter ELSE counter END,
          last_seen_at = CASE WHEN last_seen_at > :seen THEN last_seen_at ELSE COALESCE(:seen, last_seen_at) END,
          revoked_at = CASE WHEN revoked_at < :revoked THEN revoked_at ELSE COALESCE(:revoked, revoked_at) END
        WHERE key_id = :key
        """
    ).execute(arguments: [
      "key": Data(record.key.keyID.bytes), "counter": Int64(record.counter.value),
      "used": Int64(bitPattern: entry.usedCounters), "seen": record.lastUsedAt?.milliseconds,
      "revoked": record.revokedAt?.milliseconds,
    ])
  }
}
