internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Foundation
internal import GRDB

/// The statements on the keys of Android devices that one attestation key signed; see `AttestationKeyRisk`.
///
/// The index `keys_by_attestation_key` finds them. An admission changes none of its columns, so that SQLite does not
/// write it.
struct AttestationKeyStatements {
  let db: Database

  // MARK: Expressions

  /// Whether a row of the table with the prefix `row` ("k.") has a metric.
  static func isCounted(_ row: String = "") -> String { "instr(\(row)android, ' provisioning=remote ') > 0" }

  /// The serial number of the certificate above the leaf: the second item of the field `serials`, which is the last one
  /// in `AttestedAndroidKey.evidenceText`.
  static func serial(_ row: String = "") -> String {
    let items = "substr(\(row)android, instr(\(row)android, ' serials=') + 9)"
    let others = "substr(\(items), instr(\(items), ',') + 1)"
    return "substr(\(others), 1, instr(\(others) || ',', ',') - 1)"
  }

  /// The rows `s` that belong together with the row `k`.
  private static let siblings = """
    attested_keys AS s WHERE \(isCounted("s.")) AND \(serial("s.")) = \(serial("k.")) AND \(isCounted("k."))
    """

  /// The columns `counted` and `counted_at` of a row `k`, in addition to those of the table. They are NULL for a key
  /// without a metric by `AttestationKeyRisk`.
  static let columns = """
    CASE WHEN \(isCounted("k.")) THEN (
      SELECT COUNT(*) FROM (SELECT 1 FROM \(siblings) LIMIT \(AttestationKeyRisk.greatest))
    ) END AS counted,
    CASE WHEN \(isCounted("k.")) THEN (
      SELECT s.registered_at FROM \(siblings) ORDER BY s.registered_at DESC LIMIT 1
    ) END AS counted_at
    """

  // SQLite keeps the order of the tables of a CROSS JOIN, so that the key leads.
  static let some = "SELECT s.key_id FROM attested_keys AS k CROSS JOIN \(siblings) AND k.key_id = ? LIMIT ?"
  static let active = """
    SELECT s.key_id FROM attested_keys AS k CROSS JOIN \(siblings) AND k.key_id = ? AND s.revoked_at IS NULL LIMIT ?
    """

  static let index = """
    CREATE INDEX keys_by_attestation_key ON attested_keys ((\(serial())), registered_at) WHERE \(isCounted())
    """

  // MARK: Changes

  /// Records a change of each other key of the attestation key of `keyID`, since its metric changes with the
  /// registration or removal of `keyID`, in the transaction that does it. The key is registered.
  ///
  /// Beyond `AttestationKeyRisk.greatest` keys, no metric changes.
  func noteOthers(than keyID: KeyID) throws {
    let keys = try siblings(of: keyID, limit: AttestationKeyRisk.greatest + 1)
    guard keys.count <= AttestationKeyRisk.greatest else { return }
    for other in keys where other != keyID { try ChangeStatements(db: db).note(other) }
  }

  private func siblings(of keyID: KeyID, limit: Int) throws -> [KeyID] {
    try keys(Self.some, [Data(keyID.bytes), limit])
  }

  func revoke(attestedLike keyID: KeyID, above threshold: Int, at now: Timestamp) throws -> AttestationKeyRevocation {
    let metric = try siblings(of: keyID, limit: AttestationKeyRisk.greatest).count
    guard metric > threshold else { return .nothing(metric: metric) }
    let active = try keys(Self.active, [Data(keyID.bytes), AttestationKeyRisk.mostRevoked])
    for key in active { _ = try KeyStatements(db: db).revoke(key, at: now) }
    return AttestationKeyRevocation(metric: metric, keys: active)
  }

  /// Leaves out a row whose id is damaged. No client can use such a key.
  private func keys(_ sql: String, _ arguments: StatementArguments) throws -> [KeyID] {
    try Row.fetchAll(db.cachedStatement(sql: sql), arguments: arguments).compactMap { row in
      try? row.read("key_id") { KeyID(bytes: Array($0 as Data)) }
    }
  }
}
