internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Databases

/// The statements on the table of decisions about keys.
///
/// Every transaction that changes the table first takes the lock `lock`, so that two gates never wait for each other's
/// rows, and so that no decision is stored about a key that is being removed. They lock no row of `attested_keys`, which
/// admissions update: the table has no foreign key, and a trigger removes the decisions of removed keys.
enum DecisionStatements {
  static let tables = [
    """
    CREATE TABLE key_decisions (
      number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      key_id BYTEA NOT NULL,
      kind BIGINT NOT NULL,
      decided_at BIGINT NOT NULL,
      since BIGINT NOT NULL,
      times BIGINT NOT NULL,
      status BIGINT,
      code TEXT,
      step TEXT,
      detail TEXT,
      address TEXT NOT NULL,
      request_id TEXT NOT NULL
    ) WITH (autovacuum_vacuum_scale_factor = 0.02)
    """,
    "CREATE INDEX decisions_of_key ON key_decisions (key_id, kind, number)",
    """
    CREATE FUNCTION sallyport_keys_removed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      PERFORM pg_advisory_xact_lock(\(lock));
      DELETE FROM key_decisions WHERE key_id IN (SELECT key_id FROM removed);
      RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER keys_removed AFTER DELETE ON attested_keys REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION sallyport_keys_removed()
    """,
  ]

  /// The id of the lock: an arbitrary number that is the same in every version, and the schema.
  private static let lock = "1935763574, hashtext(current_schema())"

  /// Takes the lock. A statement by itself: the following ones have later snapshots and see what the previous lock holder
  /// did. A crash of the server may lose the last decisions, so that their commit waits for no disk and no standby.
  private static let take = Call(
    Statement(
      "lock_decisions", "SELECT set_config('synchronous_commit', 'off', true), pg_advisory_xact_lock(\(lock))"))

  // MARK: Writing

  static func store(
    _ decisions: [KeyDecision], atMost limit: Int, on connection: PostgresConnection
  ) throws(StoreError) {
    guard !decisions.isEmpty else { return }
    let places = Set(decisions.map { Place(hash: $0.keyHash, kind: $0.kind) })
    let trims = places.map { place in
      Call(trim, Parameter(place.hash), Parameter(place.kind.rawValue), Parameter(Int64(limit)))
    }
    try change(decisions.map(insertion) + trims, on: connection)
  }

  private struct Place: Hashable {
    let hash: String
    let kind: KeyDecision.Kind
  }

  @discardableResult
  private static func change(_ calls: [Call], on connection: PostgresConnection) throws(StoreError) -> Int {
    do throws(TransactionError) {
      return try connection.transaction([take] + calls).last?.changes ?? 0
    } catch { throw error.storeError }
  }

  private static func insertion(_ decision: KeyDecision) -> Call {
    Call(
      decision.kind == .unverified ? repeated : insert, Parameter(decision.keyHash), Parameter(decision.kind.rawValue),
      Parameter(decision.at.milliseconds), Parameter(decision.since.milliseconds), Parameter(decision.count),
      Parameter(decision.status.map { Int64($0) }), Parameter(decision.code), Parameter(decision.step),
      Parameter(decision.detail), Parameter(decision.address), Parameter(decision.requestID))
  }

  private static let columns =
    "key_id, kind, decided_at, since, times, status, code, step, detail, address, request_id"

  private static let insert = Statement(
    "insert_decision",
    """
    INSERT INTO key_decisions (\(columns))
    SELECT key_id, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11 FROM attested_keys WHERE key_hash = $1
    """)

  /// Replaces the refusals that the new one repeats.
  private static let repeated = Statement(
    "repeat_decision",
    """
    WITH key AS MATERIALIZED (
      SELECT key_id FROM attested_keys WHERE key_hash = $1
    ), earlier AS (
      DELETE FROM key_decisions WHERE key_id = (SELECT key_id FROM key) AND kind = $2
        AND code IS NOT DISTINCT FROM $7 AND step IS NOT DISTINCT FROM $8
      RETURNING since, times
    )
    INSERT INTO key_decisions (\(columns))
    SELECT key_id, $2, $3, LEAST($4, (SELECT MIN(since) FROM earlier)),
      $5 + CAST(COALESCE((SELECT SUM(times) FROM earlier), 0) AS BIGINT), $6, $7, $8, $9, $10, $11
    FROM key
    """)

  private static let trim = Statement(
    "trim_decisions",
    """
    DELETE FROM key_decisions WHERE key_id = (SELECT key_id FROM attested_keys WHERE key_hash = $1) AND kind = $2
      AND number <= (
        SELECT number FROM key_decisions
        WHERE key_id = (SELECT key_id FROM attested_keys WHERE key_hash = $1) AND kind = $2
        ORDER BY number DESC LIMIT 1 OFFSET $3
      )
    """)

  // MARK: Reading

  /// Reads each kind by the index, and then the newest of all.
  private static let page = Statement(
    "decisions",
    "SELECT * FROM ("
      + KeyDecision.Kind.allCases.map { kind in
        """
        SELECT * FROM (
          SELECT number, \(columns) FROM key_decisions WHERE key_id = $1 AND kind = \(kind.rawValue) AND number < $2
          ORDER BY number DESC LIMIT $3
        ) AS kind_\(kind.rawValue)
        """
      }.joined(separator: " UNION ALL ") + ") AS kinds ORDER BY number DESC LIMIT $3")

  static func page(
    of keyID: KeyID, before position: Int64?, limit: Int, on connection: PostgresConnection
  ) throws(StoreError) -> DecisionPage {
    let rows = try connection.ask(
      Call(page, Parameter(keyID.bytes), Parameter(position ?? .max), Parameter(Int64(limit + 1)))
    ).rows
    let hash = KeyHash(of: keyID).text
    return try StoreError.onMalformed("key_decisions") { () throws(MalformedColumn) in
      var decisions: [KeyDecision] = []
      var last: Int64?
      for row in rows.prefix(limit) {
        decisions.append(try KeyDecision(row: row, keyHash: hash))
        last = try row.read("number") { $0 as Int64 }
      }
      return DecisionPage(decisions, next: rows.count > limit ? last : nil)
    }
  }

  // MARK: Removal

  /// The number of rows that are removed at once.
  static let portion = 500

  /// The rows in their order, without those of a clock that was ahead: the rows after them may be older.
  private static let ordered = "key_decisions WHERE decided_at <= $2 ORDER BY number"

  /// Whether the oldest row is before `instant`.
  static func hasOld(
    before instant: Timestamp, at now: Timestamp, on connection: PostgresConnection
  ) throws(StoreError) -> Bool {
    let answer = try connection.ask(
      Call(
        Statement("old_decisions", "SELECT decided_at < $1 AS is_old FROM \(ordered) LIMIT 1"),
        Parameter(instant.milliseconds), Parameter(now.milliseconds)))
    return try StoreError.onMalformed("key_decisions") { () throws(MalformedColumn) in
      try answer.rows.first?.read("is_old") { $0 as Bool } ?? false
    }
  }

  /// Deletes the rows before `instant` among the oldest ones; returns `false` if none of them is left.
  static func deleteOld(
    before instant: Timestamp, at now: Timestamp, on connection: PostgresConnection
  ) throws(StoreError) -> Bool {
    let call = Call(deleteOld, Parameter(instant.milliseconds), Parameter(now.milliseconds))
    return try change([call], on: connection) == portion
  }

  private static let deleteOld = Statement(
    "delete_old_decisions",
    """
    DELETE FROM key_decisions
    WHERE number IN (SELECT number FROM \(ordered) LIMIT \(portion)) AND decided_at < $1
    """)

  /// Returns the number of rows above `most`. Counts them only if there may be some.
  static func excess(over most: Int, on connection: PostgresConnection) throws(StoreError) -> Int {
    let span = try number(
      "SELECT COALESCE(MAX(number) - MIN(number) + 1, 0)::bigint AS count FROM key_decisions", on: connection)
    guard span > Int64(most) else { return 0 }
    let count = try number("SELECT COUNT(*) AS count FROM key_decisions", on: connection)
    return max(0, Int(count) - most)
  }

  private static func number(_ query: String, on connection: PostgresConnection) throws(StoreError) -> Int64 {
    let answer = try connection.ask(Call(query))
    return try StoreError.onMalformed("key_decisions") { () throws(MalformedColumn) in
      try answer.rows.first?.read("count") { $0 as Int64 } ?? 0
    }
  }

  static func deleteOldest(_ count: Int, on connection: PostgresConnection) throws(StoreError) {
    try change([Call(deleteOldest, Parameter(Int64(count)))], on: connection)
  }

  private static let deleteOldest = Statement(
    "delete_oldest_decisions",
    "DELETE FROM key_decisions WHERE number IN (SELECT number FROM key_decisions ORDER BY number LIMIT $1)")
}

extension KeyDecision {
  fileprivate init(row: ResultRow, keyHash: String) throws(MalformedColumn) {
    self.init(
      keyHash: keyHash, kind: try row.read("kind", Kind.init(rawValue:)),
      at: try row.read("decided_at", Timestamp.init(milliseconds:)),
      status: try row.readIfPresent("status") { Int(exactly: $0 as Int64) },
      code: try row.readIfPresent("code") { $0 }, step: try row.readIfPresent("step") { $0 },
      detail: try row.readIfPresent("detail") { $0 }, address: try row.read("address") { $0 },
      requestID: try row.read("request_id") { $0 }, count: try row.read("times") { $0 },
      since: try row.read("since", Timestamp.init(milliseconds:)))
  }
}
