internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Postgres

/// Admits as many waiting admissions as there are in one transaction and one round trip.
///
/// All gates take locks in one order, so that batches of several gates never deadlock: first the shared lock of the
/// nonces, then the rows of the keys in the order of their ids, then the nonces in the order of their bytes.
enum AdmissionBatch {
  /// Answers each of `uses`. Those of one key or with one nonce see what the ones before them did.
  static func admit(
    _ uses: [KeyUse], on connection: PostgresConnection
  ) throws(StoreError) -> [Result<Admittance, StoreError>] {
    let order = uses.indices.sorted { uses[$0].nonce.bytes.lexicographicallyPrecedes(uses[$1].nonce.bytes) }
    let keys = Set(uses.map(\.keyID.bytes)).sorted { $0.lexicographicallyPrecedes($1) }
    var calls = [NonceStatements.share]
    // One statement for one key locks it anyway.
    if keys.count > 1 { calls.append(Call(lockKeys, Parameter(ByteStrings(keys)))) }
    calls += order.map { call(for: uses[$0]) }
    do throws(TransactionFault) {
      let results = try connection.transaction(calls).suffix(uses.count)
      var answers = [Result<Admittance, StoreError>](
        repeating: .failure(.failed(reason: "no answer")), count: uses.count)
      for (index, result) in zip(order, results) { answers[index] = admittance(in: result) }
      return answers
    } catch {
      guard case .refused(let refusal) = error, refusal.isOfOneCall, uses.count > 1 else { throw error.storeError }
      // Everything was rolled back. One call spoilt it for all: each gets a transaction of its own.
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

  /// Spends the nonce, reads the revocation and advances the counter, in one statement.
  ///
  /// `key` locks the key's row and reads its newest version, whatever the statement's snapshot shows; the values stay
  /// valid until the commit. `spent` waits for a concurrent insertion of the same nonce and then finds it spent. So
  /// of two admissions with one nonce or one counter, on any gate, the second sees what the first did. `was_spent`
  /// reads the snapshot: in a race it may miss what `spent` has met; `fits` without `admitted` shows that.
  ///
  /// `SQLiteStore`'s `KeyStatements` explains the bits of `used_counters`.
  private static let admit = Statement(
    "admit",
    """
    WITH key AS MATERIALIZED (
      SELECT counter, used_counters, revoked_at FROM attested_keys WHERE key_id = $1 FOR NO KEY UPDATE
    ), fit AS MATERIALIZED (
      SELECT 1 FROM key WHERE revoked_at IS NULL AND CASE
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

  private static func call(for use: KeyUse) -> Call {
    Call(
      admit, Parameter(use.keyID.bytes), Parameter(Int64(use.counter.value)), Parameter(Int64(use.window.size)),
      Parameter(bits(outside: use.window)), Parameter(use.nonce.bytes), Parameter(use.nonce.issuedAt.milliseconds),
      Parameter(use.at.milliseconds))
  }

  /// The bits above bit W, which stands for the last counter within the window.
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
