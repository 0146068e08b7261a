internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Foundation
internal import GRDB

/// The statements on the table of attested keys.
///
/// Each method runs in the caller's transaction. If it reports that it did not do its work, it has changed nothing.
struct KeyStatements {
  let db: Database

  func register(_ registration: Registration) throws -> Insertion {
    let nonces = NonceStatements(db: db)
    guard try nonces.spend(registration.request.nonce) else {
      return try repetition(of: registration)
    }
    guard try insert(registration) else {
      try nonces.giveBack(registration.request.nonce)
      return .keyExists
    }
    if registration.key.isOfRemoteAttestationKey {
      try AttestationKeyStatements(db: db).noteOthers(than: registration.key.keyID)
    }
    guard !registration.receipt.isEmpty else { return .inserted }
    try db.cachedStatement(sql: "INSERT INTO receipts (key_id, receipt) VALUES (?, ?)")
      .execute(arguments: [Data(registration.key.keyID.bytes), Data(registration.receipt)])
    return .inserted
  }

  /// Classifies a registration whose nonce was already spent.
  private func repetition(of registration: Registration) throws -> Insertion {
    guard let record = try record(of: registration.key.keyID), record.request == registration.request
    else { return .nonceSpent }
    return record.revokedAt == nil ? .sameRequest : .revoked
  }

  // No counter has been used, and counters outside the window count as used: all bits are set.
  private func insert(_ registration: Registration) throws -> Bool {
    let key = registration.key
    try db.cachedStatement(
      sql: """
        INSERT INTO attested_keys (
          key_id, public_key, app_id, environment, category, bundle_version, counter, used_counters,
          registration_nonce, attestation_digest, registered_at, key_hash, android
        ) VALUES (:key, :public, :app, :environment, :category, :version, 0, -1, :nonce, :digest, :now, :hash, :android)
        ON CONFLICT (key_id) DO NOTHING
        """
    ).execute(arguments: [
      "key": Data(key.keyID.bytes), "public": Data(key.publicKey), "app": key.app.text,
      "environment": key.environment.rawValue, "category": key.validationCategory.map { Int64($0.rawValue) },
      "version": key.bundleVersion, "nonce": Data(registration.request.nonce.bytes),
      "digest": Data(registration.request.attestationDigest.bytes), "now": registration.registeredAt.milliseconds,
      "hash": KeyHash(of: key.keyID).text, "android": key.androidEvidence,
    ])
    return db.changesCount == 1
  }

  func admit(_ use: KeyUse) throws -> Admittance {
    let nonces = NonceStatements(db: db)
    guard try nonces.spend(use.nonce) else { return .nonceSpent }
    if try advance(use) { return .admitted }
    try nonces.giveBack(use.nonce)
    guard let record = try record(of: use.keyID) else { return .unknownKey }
    return record.revokedAt == nil ? .counterReplayed(stored: record.counter) : .revoked
  }

  private func advance(_ use: KeyUse) throws -> Bool {
    guard let counter = use.counter else { return try touch(use) }
    return try advance(use, to: counter)
  }

  /// Notes the use of a key without a counter.
  private func touch(_ use: KeyUse) throws -> Bool {
    try db.cachedStatement(
      sql: """
        UPDATE attested_keys SET last_seen_at = ?1
        WHERE key_id = ?2 AND revoked_at IS NULL AND android IS NOT NULL
        """
    ).execute(arguments: [use.at.milliseconds, Data(use.keyID.bytes)])
    return db.changesCount == 1
  }

  /// Advances the counter and its window, if `use` is allowed to.
  ///
  /// Bit n of `used_counters` stands for the counter n below the greatest one and is set once that counter is used.
  /// Bits outside the window are set too, so that a window that is enlarged later does not allow old counters.
  ///
  /// Parameters: 1 the counter, 2 the size of the window, 3 the bits outside it, 4 the time, 5 the key. Names would cost
  /// GRDB a dictionary for each call.
  private func advance(_ use: KeyUse, to counter: SignCount) throws -> Bool {
    try db.cachedStatement(
      sql: """
        UPDATE attested_keys SET
          used_counters = ?3 | CASE
            WHEN ?1 <= counter THEN used_counters | (CAST(1 AS BIGINT) << CAST(counter - ?1 AS INTEGER))
            WHEN ?1 - counter > 63 THEN 1
            ELSE (used_counters << CAST(?1 - counter AS INTEGER)) | 1
          END,
          counter = CASE WHEN ?1 > counter THEN ?1 ELSE counter END,
          last_seen_at = ?4
        WHERE key_id = ?5 AND revoked_at IS NULL AND android IS NULL AND CASE
          WHEN ?1 > counter THEN 1
          WHEN ?1 > 0 AND counter - ?1 <= ?2
            THEN 1 - ((used_counters >> CAST(counter - ?1 AS INTEGER)) & 1)
          ELSE 0
        END = 1
        """
    ).execute(arguments: [
      Int64(counter.value), use.window.size, Self.bits(outside: use.window), use.at.milliseconds,
      Data(use.keyID.bytes),
    ])
    return db.changesCount == 1
  }

  /// The bits above bit W, where W is the window size and bit W stands for the last counter in the window.
  private static func bits(outside window: CounterWindow) -> Int64 {
    Int64(bitPattern: UInt64.max << UInt64(window.size + 1))
  }

  func revoke(_ keyID: KeyID, at now: Timestamp) throws -> Bool {
    try db.execute(
      sql: "UPDATE attested_keys SET revoked_at = COALESCE(revoked_at, ?) WHERE key_id = ?",
      arguments: [now.milliseconds, Data(keyID.bytes)])
    return try noteChange(of: keyID)
  }

  func restore(_ keyID: KeyID) throws -> Bool {
    try db.execute(sql: "UPDATE attested_keys SET revoked_at = NULL WHERE key_id = ?", arguments: [Data(keyID.bytes)])
    return try noteChange(of: keyID)
  }

  /// Records a change of `keyID` if the last statement made one, and returns whether it did.
  private func noteChange(of keyID: KeyID) throws -> Bool {
    guard db.changesCount == 1 else { return false }
    try ChangeStatements(db: db).note(keyID)
    return true
  }

  func receipt(of keyID: KeyID) throws -> [UInt8]? {
    try Data.fetchOne(db, sql: "SELECT receipt FROM receipts WHERE key_id = ?", arguments: [Data(keyID.bytes)])
      .map { Array($0) }
  }

  /// Returns the record of `keyID`. If there is none, the row of the next key is read and discarded, so that both
  /// cases take the same time. Only a key id after the last stored one has no next row.
  func record(of keyID: KeyID) throws -> KeyRecord? {
    let statement = try db.cachedStatement(sql: Self.lookup)
    guard let row = try Row.fetchOne(statement, arguments: [Data(keyID.bytes)]) else { return nil }
    let record = Result { try KeyRecord(row: row) }
    let found = try? row.read("key_id") { KeyID(bytes: Array($0 as Data)) }
    return found == keyID ? try record.get() : nil
  }

  static let lookup = """
    SELECT k.*, \(AttestationKeyStatements.columns)
    FROM attested_keys AS k WHERE k.key_id >= ? ORDER BY k.key_id LIMIT 1
    """
}
