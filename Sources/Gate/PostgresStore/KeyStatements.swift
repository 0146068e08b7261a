internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Postgres

/// What is said to the table of attested keys, admissions apart.
enum KeyStatements {
  /// Spends the nonce and inserts the key, or does neither.
  ///
  /// Two round trips, since the second insertion decides about the first. It waits for a transaction that spends the
  /// same nonce, and for one that registers the same key; neither waits for this one, so there is no deadlock.
  static func register(_ registration: Registration, on connection: PostgresConnection) throws(StoreError) -> Insertion
  {
    let outcome = try connection.transaction { connection throws(StoreError) -> Insertion? in
      let answers = try connection.ask([
        NonceStatements.share, NonceStatements.spend(registration.request.nonce), insertion(of: registration),
      ])
      guard answers.count == 3, answers[1].changes == 1, answers[2].changes == 1 else { return nil }
      _ = try connection.ask(
        Call(insertReceipt, Parameter(registration.key.keyID.bytes), Parameter(registration.receipt)))
      return .inserted
    }
    if let outcome { return outcome }
    return try refusal(of: registration, on: connection)
  }

  /// Why a registration was taken back. Everything that stood in its way is committed, so it can be looked up.
  private static func refusal(
    of registration: Registration, on connection: PostgresConnection
  ) throws(StoreError) -> Insertion {
    let answers = try connection.ask([
      lookup(registration.key.keyID),
      Call(
        isSpent, Parameter(registration.request.nonce.bytes),
        Parameter(registration.request.nonce.issuedAt.milliseconds)),
    ])
    let record = try answers.first.flatMap { answer throws(StoreError) in
      try found(registration.key.keyID, in: answer)
    }
    if let record, record.request == registration.request { return record.revokedAt == nil ? .sameRequest : .revoked }
    let isSpent: Bool
    do throws(MalformedColumn) {
      isSpent = try answers.last?.rows.first?.read("spent") { $0 as Bool } ?? true
    } catch {
      throw .corrupt(reason: "spent_nonces.\(error.name) is malformed")
    }
    // Both may be outdated if a key was removed meanwhile; another transaction held the nonce.
    return !isSpent && record != nil ? .keyExists : .nonceSpent
  }

  private static let isSpent = Statement(
    "is_spent",
    """
    SELECT EXISTS (SELECT 1 FROM spent_nonces WHERE nonce = $1)
      OR $2 <= (SELECT issued_at FROM nonce_watermark WHERE id = 1) AS spent
    """)

  // No counter has been used, and those outside a window count as used: all bits are set.
  private static let insert = Statement(
    "insert_key",
    """
    INSERT INTO attested_keys (
      key_id, key_hash, public_key, app_id, environment, category, bundle_version, counter, used_counters,
      registration_nonce, attestation_digest, registered_at
    ) VALUES ($1, $2, $3, $4, $5, $6, $7, 0, -1, $8, $9, $10)
    ON CONFLICT (key_id) DO NOTHING
    """)

  private static let insertReceipt = Statement(
    "insert_receipt", "INSERT INTO receipts (key_id, receipt) VALUES ($1, $2)")

  private static func insertion(of registration: Registration) -> Call {
    let key = registration.key
    return Call(
      insert, Parameter(key.keyID.bytes), Parameter(KeyHash(of: key.keyID).text), Parameter(key.publicKey),
      Parameter(key.appID.text), Parameter(key.environment.rawValue),
      Parameter(key.validationCategory.map { Int64($0.rawValue) }), Parameter(key.bundleVersion),
      Parameter(registration.request.nonce.bytes), Parameter(registration.request.attestationDigest.bytes),
      Parameter(registration.registeredAt.milliseconds))
  }

  // MARK: Looking up

  /// Where there is no such key, the next one's row is read and dropped, so that both cost the same (the last key of
  /// all has no next one).
  private static let record = Statement(
    "record", "SELECT * FROM attested_keys WHERE key_id >= $1 ORDER BY key_id LIMIT 1")

  private static func lookup(_ keyID: KeyID) -> Call { Call(record, Parameter(keyID.bytes)) }

  /// The records of `keys`, in one round trip.
  static func records(
    of keys: [KeyID], on connection: PostgresConnection
  ) throws(StoreError) -> [Result<KeyRecord?, StoreError>] {
    try zip(keys, connection.ask(keys.map(lookup))).map { keyID, answer in
      Result { () throws(StoreError) in try found(keyID, in: answer) }
    }
  }

  /// The record of `keyID` in the answer to its `lookup`.
  private static func found(_ keyID: KeyID, in answer: QueryResult) throws(StoreError) -> KeyRecord? {
    guard let row = answer.rows.first else { return nil }
    let record = Result { () throws(StoreError) in try KeyRecord(row: row) }
    guard (try? row.read("key_id", KeyID.init(bytes:))) == keyID else { return nil }
    return try record.get()
  }

  /// Keys whose hash begins with `prefix`, by the index of the hashes.
  static func keys(hashPrefix prefix: String, limit: Int, on connection: PostgresConnection) throws(StoreError)
    -> [KeyRecord]
  {
    // Behind every character of base64url comes the tilde.
    let answer = try connection.ask(
      Call(
        Statement(
          "by_hash", "SELECT * FROM attested_keys WHERE key_hash >= $1 AND key_hash < $2 ORDER BY key_hash LIMIT $3"),
        Parameter(prefix), Parameter(prefix + "~"), Parameter(Int64(limit))))
    return try KeyRecord.all(in: answer)
  }

  static func receipt(of keyID: KeyID, on connection: PostgresConnection) throws(StoreError) -> [UInt8]? {
    let answer = try connection.ask(
      Call(Statement("receipt", "SELECT receipt FROM receipts WHERE key_id = $1"), Parameter(keyID.bytes)))
    do throws(MalformedColumn) {
      return try answer.rows.first?.read("receipt") { $0 }
    } catch {
      throw .corrupt(reason: "receipts.\(error.name) is malformed")
    }
  }

  // MARK: Revoking

  static func revoke(_ keyID: KeyID, at now: Timestamp, on connection: PostgresConnection) throws(StoreError) -> Bool {
    try change(
      keyID,
      by: Call(
        Statement("revoke", "UPDATE attested_keys SET revoked_at = COALESCE(revoked_at, $2) WHERE key_id = $1"),
        Parameter(keyID.bytes), Parameter(now.milliseconds)),
      on: connection)
  }

  static func restore(_ keyID: KeyID, on connection: PostgresConnection) throws(StoreError) -> Bool {
    try change(
      keyID,
      by: Call(
        Statement("restore", "UPDATE attested_keys SET revoked_at = NULL WHERE key_id = $1"), Parameter(keyID.bytes)),
      on: connection)
  }

  /// Does `call`, which changes the row of one key or none, and tells every gate.
  private static func change(
    _ keyID: KeyID, by call: Call, on connection: PostgresConnection
  ) throws(StoreError) -> Bool {
    let isChanged = try connection.transaction { connection throws(StoreError) -> Bool? in
      guard try connection.ask(call).changes == 1 else { return nil }
      _ = try connection.ask(ChangeStatements.note(keyID))
      return true
    }
    return isChanged ?? false
  }
}
