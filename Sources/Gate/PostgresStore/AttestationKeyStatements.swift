internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Databases

/// The statements on the keys of Android devices that one attestation key signed; see `AttestationKeyRisk`.
enum AttestationKeyStatements {
  // MARK: Expressions

  /// The serial number of the certificate above the leaf, for a row of `android_keys` with the prefix `row` ("a."): the
  /// second item of the field `serials` in `AttestedAndroidKey.evidenceText`. NULL for a key without a metric.
  static func serial(_ row: String = "") -> String {
    "substring(\(row)evidence FROM ' provisioning=remote .*serials=[0-9a-f]*,([0-9a-f]+)')"
  }

  /// Counts the keys below the attestation key of the evidence `a`: one row with the metric and its time, or with NULL.
  static let counts = """
    SELECT NULLIF(COUNT(*), 0) AS metric, MAX(o.registered_at) AS measured_at
    FROM (
      SELECT s.key_id FROM android_keys AS s WHERE \(serial("s.")) = \(serial("a."))
      LIMIT \(AttestationKeyRisk.greatest)
    ) AS s JOIN attested_keys AS o ON o.key_id = s.key_id
    """

  /// An index on the expression, and no column: gates that still run the previous version fill it too. Registrations of
  /// Android devices wait while it is built, and admissions do not.
  static let index = [
    "CREATE INDEX android_keys_by_attestation_key ON android_keys ((\(serial()))) WHERE \(serial()) IS NOT NULL",
    "ANALYZE android_keys",
  ]

  // MARK: Changes

  /// Returns the statements that record a change of each other key that the attestation keys of `keys` signed, since
  /// its metric changes with the registration or removal of `keys`, in the transaction that does it. The keys are in
  /// the tables.
  ///
  /// Beyond `AttestationKeyRisk.greatest` keys, no metric changes.
  static func noteOthers(than keys: [KeyID]) -> [Call] {
    [Call(noteOthers, Parameter(ByteStrings(keys.map(\.bytes)))), ChangeStatements.notify, ChangeStatements.pruning]
  }

  /// As `noteOthers`, after a merge that may have added only some of `keys`: those of `keys` that are not alone are
  /// reported, too.
  static func noteAll(_ keys: [KeyID]) -> [Call] {
    [Call(noteAll, Parameter(ByteStrings(keys.map(\.bytes)))), ChangeStatements.notify, ChangeStatements.pruning]
  }

  private static let noteOthers = Statement("note_others", note("s.key_id <> ALL($1)"))
  private static let noteAll = Statement("note_all", note("s.keys > 1"))

  private static func note(_ condition: String) -> String {
    """
    WITH others AS MATERIALIZED (
      SELECT DISTINCT s.key_id
      FROM android_keys AS a CROSS JOIN LATERAL (
        SELECT o.key_id, COUNT(*) OVER () AS keys
        FROM (
          SELECT key_id FROM android_keys AS o WHERE \(serial("o.")) = \(serial("a."))
          LIMIT \(AttestationKeyRisk.greatest + 1)
        ) AS o
      ) AS s
      WHERE a.key_id = ANY($1) AND \(condition) AND s.keys <= \(AttestationKeyRisk.greatest)
    ), next AS (
      UPDATE change_position SET position = position + (SELECT COUNT(*) FROM others)
      WHERE id = 1 AND EXISTS (SELECT 1 FROM others) RETURNING position
    )
    INSERT INTO changes (position, key_id)
    SELECT next.position + 1 - ROW_NUMBER() OVER (), others.key_id FROM next CROSS JOIN others
    """
  }

  /// Waits for other registrations below the attestation key of `key`, until the end of the transaction. Of two
  /// concurrent ones, the later then sees the key of the earlier one.
  static func lock(_ key: KeyID) -> Call { Call(lock, Parameter(key.bytes)) }

  /// The id of the lock: an arbitrary number that is the same in every version.
  private static let lock = Statement(
    "lock_attestation_key",
    """
    SELECT pg_advisory_xact_lock(1935763573, hashtext(\(serial("a.")))) FROM android_keys AS a
    WHERE a.key_id = $1 AND \(serial("a.")) IS NOT NULL
    """)

  // MARK: Revoking

  static func revoke(
    attestedLike keyID: KeyID, above threshold: Int, at now: Timestamp, on connection: PostgresConnection
  ) throws(StoreError) -> AttestationKeyRevocation {
    var metric = 0
    let revoked = try connection.transaction { connection throws(StoreError) -> [KeyID]? in
      let counted = try connection.ask(Call(count, Parameter(keyID.bytes)))
      metric = try StoreError.onMalformed("android_keys") { () throws(MalformedColumn) in
        try counted.rows.first?.read("keys") { Int($0 as Int64) } ?? 0
      }
      guard metric > threshold else { return nil }
      let found = try keys(in: connection.ask(Call(selectActive, Parameter(keyID.bytes))))
      let active = try keys(in: connection.ask(Call(lockActive, Parameter(ByteStrings(found.map(\.bytes))))))
      guard !active.isEmpty else { return nil }
      _ = try connection.ask(
        [Call(revoke, Parameter(ByteStrings(active.map(\.bytes))), Parameter(now.milliseconds))]
          + active.flatMap(ChangeStatements.note))
      return active
    }
    return AttestationKeyRevocation(metric: metric, keys: revoked ?? [])
  }

  private static func keys(in answer: QueryResult) throws(StoreError) -> [KeyID] {
    try StoreError.onMalformed("attested_keys") { () throws(MalformedColumn) in
      var keys: [KeyID] = []
      for row in answer.rows { keys.append(try row.read("key_id", KeyID.init(bytes:))) }
      return keys
    }
  }

  /// Selects the keys `s` that the attestation key of `$1` signed.
  private static let siblings = """
    android_keys AS a JOIN android_keys AS s ON \(serial("s.")) = \(serial("a.")) AND a.key_id = $1
    """

  private static let count = Statement(
    "count_attested_like",
    "SELECT COUNT(*) AS keys FROM (SELECT 1 FROM \(siblings) LIMIT \(AttestationKeyRisk.greatest)) AS found")

  private static let selectActive = Statement(
    "select_attested_like",
    """
    SELECT s.key_id FROM \(siblings) JOIN attested_keys AS k ON k.key_id = s.key_id
    WHERE k.revoked_at IS NULL LIMIT \(AttestationKeyRisk.mostRevoked)
    """)

  /// Locks the keys in the common lock order. A key that was revoked meanwhile is left out.
  private static let lockActive = Statement(
    "lock_active",
    """
    SELECT key_id FROM attested_keys WHERE key_id = ANY($1) AND revoked_at IS NULL
    ORDER BY key_id FOR NO KEY UPDATE
    """)

  private static let revoke = Statement(
    "revoke_keys", "UPDATE attested_keys SET revoked_at = $2 WHERE key_id = ANY($1) AND revoked_at IS NULL")
}
