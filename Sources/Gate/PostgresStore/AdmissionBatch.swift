internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Databases

/// Processes all waiting admissions in one transaction and one round trip.
///
/// Every batch takes locks in the same order, so that batches of several gates cannot deadlock: first the shared
/// nonce lock, then the key rows in key id order, then the nonces in byte order.
enum AdmissionBatch {
  /// Returns one result per use. Uses with the same key or the same nonce see the effects of the earlier ones.
  static func admit(
    _ uses: [KeyUse], on connection: PostgresConnection
  ) throws(StoreError) -> [Result<Admittance, StoreError>] {
    let order = uses.indices.sorted { uses[$0].nonce.bytes.lexicographicallyPrecedes(uses[$1].nonce.bytes) }
    let keys = Set(uses.map(\.keyID.bytes)).sorted { $0.lexicographicallyPrecedes($1) }
    var calls = [NonceStatements.share]
    // A single key is locked by its own statement.
    if keys.count > 1 { calls.append(Call(lockKeys, Parameter(ByteStrings(keys)))) }
    calls += order.map { call(for: uses[$0]) }
    do throws(TransactionError) {
      let results = try connection.transaction(calls).suffix(uses.count)
      var answers = [Result<Admittance, StoreError>](
        repeating: .failure(.failed(reason: "no answer")), count: uses.count)
      for (index, result) in zip(order, results) { answers[index] = admittance(in: result) }
      return answers
    } catch {
      guard case .refused(let refusal) = error, refusal.isOfOneCall, uses.count > 1 else { throw error.storeError }
      // The whole transaction was rolled back because of one call. Each call now gets its own transaction.
      return uses.map { use in Result { () throws(StoreError) in try admitAlone(use, on: connection) } }
    }
  }

  private static func admitAlone(_ use: KeyUse, on connection: PostgresConnection) throws(StoreError) -> Admittance {
    guard let answer = try admit([use], on: connection).first else { throw .failed(reason: "no answer") }
    return try answer.get()
  }

  // MARK: Statements

  private static let lockKeys = Statement(
    "lock_keys", "SELECT 1 FROM attested_keys WHERE key_id = ANY($1) ORDER BY key_id FOR NO KEY UPDATE")

  /// Spends the nonce, checks the revocation and advances the counter in one statement.
  ///
  /// `key` locks the key's row and reads its newest version, independent of the statement's snapshot; the row cannot
  /// change until the commit. `spent` waits for a concurrent insertion of the same nonce and then finds the nonce
  /// spent. If two admissions use the same nonce or counter, on any gates, the second therefore sees the effects of
  /// the first. `was_spent` reads the snapshot and may miss a nonce that `spent` has just collided with. That case
  /// shows as `fits` without `admitted`.
  ///
  /// The bits of `used_counters` are explained in `KeyStatements` of `SQLiteStore`.
  private static let admit = Statement(
    "admit",
    """
    WITH key AS MATERIALIZED (
      SELECT counter, used_counters, revoked_at FROM attested_keys WHERE key_id = $1 FOR NO KEY UPDATE
    ), fit AS MATERIALIZED (
      SELECT 1 FROM key WHERE revoked_at IS NULL AND NOT EXISTS (SELECT 1 FROM android_keys WHERE key_id = $1) AND CASE
        WHEN $2 > counter THEN TRUE
        WHEN $2 > 0 AND counter - $2 <= $3 THEN ((used_counters >> CAST(counter - $2 AS INTEGER)) & 1) = 0
        ELSE FALSE
      END
    ), spent AS (
      INSERT INTO spent_nonces (nonce, issued_at)
      SELECT $5, $6 FROM fit WHERE $6 > (SELECT issued_at FROM nonce_watermark WHERE id = 1)
      ON CONFLICT (nonce) DO NOTHING
      RETURNING nonce
    ), moved AS (
      UPDATE attested_keys AS k SET
        used_counters = $4 | CASE
          WHEN $2 <= k.counter THEN k.used_counters | (CAST(1 AS BIGINT) << CAST(k.counter - $2 AS INTEGER))
          WHEN $2 - k.counter > 63 THEN 1
          ELSE (k.used_counters << CAST($2 - k.counter AS INTEGER)) | 1
        END,
        counter = CASE WHEN $2 > k.counter THEN $2 ELSE k.counter END,
        last_seen_at = $7
      FROM spent WHERE k.key_id = $1
      RETURNING 1
    )
    SELECT
      EXISTS (SELECT 1 FROM moved) AS admitted,
      EXISTS (SELECT 1 FROM fit) AS fits,
      EXISTS (SELECT 1 FROM spent_nonces WHERE nonce = $5)
        OR $6 <= (SELECT issued_at FROM nonce_watermark WHERE id = 1) AS was_spent,
      (SELECT counter FROM key) AS counter,
      (SELECT revoked_at IS NOT NULL FROM key) AS revoked
    """)

  /// As `admit`, for a key without a counter.
  private static let admitByNonce = Statement(
    "admit_by_nonce",
    """
    WITH key AS MATERIALIZED (
      SELECT counter, revoked_at FROM attested_keys WHERE key_id = $1 FOR NO KEY UPDATE
    ), fit AS MATERIALIZED (
      SELECT 1 FROM key WHERE revoked_at IS NULL AND EXISTS (SELECT 1 FROM android_keys WHERE key_id = $1)
    ), spent AS (
      INSERT INTO spent_nonces (nonce, issued_at)
      SELECT $2, $3 FROM fit WHERE $3 > (SELECT issued_at FROM nonce_watermark WHERE id = 1)
      ON CONFLICT (nonce) DO NOTHING
      RETURNING nonce
    ), moved AS (
      UPDATE attested_keys AS k SET last_seen_at = $4 FROM spent WHERE k.key_id = $1 RETURNING 1
    )
    SELECT
      EXISTS (SELECT 1 FROM moved) AS admitted,
      EXISTS (SELECT 1 FROM fit) AS fits,
      EXISTS (SELECT 1 FROM spent_nonces WHERE nonce = $2)
        OR $3 <= (SELECT issued_at FROM nonce_watermark WHERE id = 1) AS was_spent,
      (SELECT counter FROM key) AS counter,
      (SELECT revoked_at IS NOT NULL FROM key) AS revoked
    """)

  private static func call(for use: KeyUse) -> Call {
    guard let counter = use.counter else {
      return Call(
        admitByNonce, Parameter(use.keyID.bytes), Parameter(use.nonce.bytes),
        Parameter(use.nonce.issuedAt.milliseconds), Parameter(use.at.milliseconds))
    }
    return Call(
      admit, Parameter(use.keyID.bytes), Parameter(Int64(counter.value)), Parameter(Int64(use.window.size)),
      Parameter(bits(outside: use.window)), Parameter(use.nonce.bytes), Parameter(use.nonce.issuedAt.milliseconds),
      Parameter(use.at.milliseconds))
  }

  /// The bits above bit W, where W is the window size and bit W stands for the last counter in the window.
  private static func bits(outside window: CounterWindow) -> Int64 {
    Int64(bitPattern: UInt64.max << UInt64(window.size + 1))
  }

  private static func admittance(in result: QueryResult) -> Result<Admittance, StoreError> {
    do throws(MalformedColumn) {
      guard let row = result.rows.first else { throw MalformedColumn(name: "admitted") }
      if try row.read("admitted", { $0 as Bool }) { return .success(.admitted) }
      if try row.read("was_spent", { $0 as Bool }) { return .success(.nonceSpent) }
      guard let counter = try row.readIfPresent("counter", SignCount.init(stored:)) else {
        return .success(.unknownKey)
      }
      if try row.read("revoked", { $0 as Bool }) { return .success(.revoked) }
      return .success(try row.read("fits") { $0 as Bool } ? .nonceSpent : .counterReplayed(stored: counter))
    } catch {
      return .failure(.corrupt(reason: "attested_keys.\(error.name) is malformed"))
    }
  }
}
