internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Databases

/// The statements on the table of attested keys, except admissions.
enum KeyStatements {
  /// Spends the nonce and inserts the key, or does neither.
  ///
  /// It takes two round trips, since the result of the insertions decides whether to commit. It may wait for a
  /// transaction that spends the same nonce, and for a registration of the same key, but never for an admission that
  /// has locked a key's row. Transactions therefore cannot deadlock.
  static func register(_ registration: Registration, on connection: PostgresConnection) throws(StoreError) -> Insertion
  {
    let outcome = try connection.transaction { connection throws(StoreError) -> Insertion? in
      let answers = try connection.ask([
        NonceStatements.share, NonceStatements.spend(registration.request.nonce), insertion(of: registration),
      ])
      guard answers.count == 3, answers[1].changes == 1, answers[2].changes == 1 else { return nil }
      if !registration.receipt.isEmpty {
        _ = try connection.ask(
          Call(insertReceipt, Parameter(registration.key.keyID.bytes), Parameter(registration.receipt)))
      }
      if let evidence = registration.key.androidEvidence {
        var calls = [Call(insertEvidence, Parameter(registration.key.keyID.bytes), Parameter(evidence))]
        if registration.key.isOfRemoteAttestationKey {
          calls.append(AttestationKeyStatements.lock(registration.key.keyID))
          calls += AttestationKeyStatements.noteOthers(than: [registration.key.keyID])
        }
        _ = try connection.ask(calls)
      }
      return .inserted
    }
    if let outcome { return outcome }
    return try refusal(of: registration, on: connection)
  }

  /// Returns the reason why a registration was rolled back. The conflicting rows are committed, so they can be read.
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
    // If a key was removed meanwhile, neither condition may be true any more. The nonce then counts as spent.
    return !isSpent && record != nil ? .keyExists : .nonceSpent
  }

  private static let isSpent = Statement(
    "is_spent",
    """
    SELECT EXISTS (SELECT 1 FROM spent_nonces WHERE nonce = $1)
      OR $2 <= (SELECT issued_at FROM nonce_watermark WHERE id = 1) AS spent
    """)

  // No counter has been used, and counters outside the window count as used: all bits are set.
  private static let insert = Statement(
    "insert_key",
    """
    INSERT INTO attested_keys (
      key_id, key_hash, public_key, app_id, environment, category, bundle_version, counter, used_counters,
      registration_nonce, attestation_digest, registered_at
    ) VALUES ($1, $2, $3, $4, $5, $6, $7, 0, -1, $8, $9, $10)
    ON CONFLICT (key_id) DO NOTHING
    """)

  private static let insertEvidence = Statement(
    "insert_evidence", "INSERT INTO android_keys (key_id, evidence) VALUES ($1, $2)")

  private static let insertReceipt = Statement(
    "insert_receipt", "INSERT INTO receipts (key_id, receipt) VALUES ($1, $2)")

  private static func insertion(of registration: Registration) -> Call {
    let key = registration.key
    return Call(
      insert, Parameter(key.keyID.bytes), Parameter(KeyHash(of: key.keyID).text), Parameter(key.publicKey),
      Parameter(key.app.text), Parameter(key.environment.rawValue),
      Parameter(key.validationCategory.map { Int64($0.rawValue) }), Parameter(key.bundleVersion),
      Parameter(registration.request.nonce.bytes), Parameter(registration.request.attestationDigest.bytes),
      Parameter(registration.registeredAt.milliseconds))
  }

  // MARK: Looking up

  /// If the key does not exist, the row of the next key is read and discarded, so that both cases take the same time.
  /// Only a key id after the last stored one has no next row.
  private static let record = Statement(
    "record",
    """
    SELECT \(KeyRecord.columns) FROM \(KeyRecord.tables(of: "WHERE k.key_id >= $1 ORDER BY k.key_id LIMIT 1"))
    """)

  private static func lookup(_ keyID: KeyID) -> Call { Call(record, Parameter(keyID.bytes)) }

  /// Returns the records of `keys` in one round trip.
  static func records(
    of keys: [KeyID], on connection: PostgresConnection
  ) throws(StoreError) -> [Result<KeyRecord?, StoreError>] {
    try zip(keys, connection.ask(keys.map(lookup))).map { keyID, answer in
      Result { () throws(StoreError) in try found(keyID, in: answer) }
    }
  }

  /// Reads the record of `keyID` from the result of its `lookup`.
  private static func found(_ keyID: KeyID, in answer: QueryResult) throws(StoreError) -> KeyRecord? {
    guard let row = answer.rows.first else { return nil }
    let record = Result { () throws(StoreError) in try KeyRecord(row: row) }
    guard (try? row.read("key_id", KeyID.init(bytes:))) == keyID else { return nil }
    return try record.get()
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

  /// Runs `call`, which changes the row of at most one key, and notifies every gate if it did.
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
