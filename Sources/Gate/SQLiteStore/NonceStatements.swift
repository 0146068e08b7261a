internal import AttestGate
internal import ByteCoding
internal import Foundation
internal import GRDB

/// What is said to the table of spent nonces.
struct NonceStatements {
  let db: Database

  /// Marks `nonce` as spent; `false` if it was.
  func spend(_ nonce: Nonce) throws -> Bool {
    try db.cachedStatement(
      sql: """
        INSERT INTO spent_nonces (nonce, issued_at)
        SELECT :nonce, :issued WHERE :issued > (SELECT issued_at FROM nonce_watermark WHERE id = 1)
        ON CONFLICT (nonce) DO NOTHING
        """
    ).execute(arguments: ["nonce": Data(nonce.bytes), "issued": nonce.issuedAt.milliseconds])
    return db.changesCount == 1
  }

  /// Takes back a `spend` of this transaction.
  func giveBack(_ nonce: Nonce) throws {
    try db.cachedStatement(sql: "DELETE FROM spent_nonces WHERE nonce = ?").execute(arguments: [Data(nonce.bytes)])
  }

  /// Writes what is there already: proof that the store takes writes.
  func rewriteWatermark() throws {
    try db.execute(sql: "UPDATE nonce_watermark SET issued_at = issued_at WHERE id = 1")
  }

  // The watermark is the time of the youngest nonce that is forgotten, not `instant`: after a clock that ran ahead for
  // a while, the gate would otherwise refuse every nonce until the world has caught up.
  func raiseWatermark(to instant: Timestamp) throws {
    guard
      let youngest = try Int64.fetchOne(
        db, sql: "SELECT MAX(issued_at) FROM spent_nonces WHERE issued_at <= ?", arguments: [instant.milliseconds])
    else { return }
    try db.execute(
      sql: "UPDATE nonce_watermark SET issued_at = :youngest WHERE id = 1 AND issued_at < :youngest",
      arguments: ["youngest": youngest])
  }

  /// Takes back what a clock that ran ahead had the watermark rise to, now that no nonce of before can be good.
  func lowerWatermark(to instant: Timestamp) throws {
    try db.execute(
      sql: "UPDATE nonce_watermark SET issued_at = :instant WHERE id = 1 AND issued_at > :instant",
      arguments: ["instant": instant.milliseconds])
  }

  /// When the youngest nonce was issued that is spent, or was and is forgotten.
  func youngest() throws -> Timestamp? {
    let milliseconds = try Int64.fetchOne(
      db,
      sql: """
        SELECT MAX(issued_at) FROM (
          SELECT MAX(issued_at) AS issued_at FROM spent_nonces
          UNION ALL SELECT issued_at FROM nonce_watermark WHERE id = 1 AND issued_at >= 0
        )
        """)
    return milliseconds.map(Timestamp.init(milliseconds:))
  }

  private static let portion = 5000

  /// Deletes some of what lies at or below the watermark; `false` if that was all. Not more in one transaction:
  /// admissions wait for it.
  func deletePortion() throws -> Bool {
    try db.execute(
      sql: """
        DELETE FROM spent_nonces WHERE nonce IN (
          SELECT nonce FROM spent_nonces WHERE issued_at <= (SELECT issued_at FROM nonce_watermark WHERE id = 1)
          ORDER BY issued_at LIMIT \(Self.portion)
        )
        """)
    return db.changesCount == Self.portion
  }
}
