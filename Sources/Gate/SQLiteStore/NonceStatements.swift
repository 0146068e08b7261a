internal import AttestGate
internal import ByteCoding
internal import Foundation
internal import GRDB

/// The statements on the table of spent nonces.
struct NonceStatements {
  let db: Database

  /// Marks `nonce` as spent; returns `false` if it already was.
  func spend(_ nonce: Nonce) throws -> Bool {
    try db.cachedStatement(
      sql: """
        INSERT INTO spent_nonces (nonce, issued_at)
        SELECT ?1, ?2 WHERE ?2 > (SELECT issued_at FROM nonce_watermark WHERE id = 1)
        ON CONFLICT (nonce) DO NOTHING
        """
    ).execute(arguments: [Data(nonce.bytes), nonce.issuedAt.milliseconds])
    return db.changesCount == 1
  }

  /// Undoes a `spend` of the same transaction.
  func giveBack(_ nonce: Nonce) throws {
    try db.cachedStatement(sql: "DELETE FROM spent_nonces WHERE nonce = ?").execute(arguments: [Data(nonce.bytes)])
  }

  /// Rewrites the stored watermark, which proves that the store accepts writes.
  func rewriteWatermark() throws {
    try db.execute(sql: "UPDATE nonce_watermark SET issued_at = issued_at WHERE id = 1")
  }

  // The watermark becomes the time of the newest forgotten nonce, not `instant`. Otherwise, after a clock ran ahead,
  // the gate would refuse every nonce until real time has passed the watermark.
  func raiseWatermark(to instant: Timestamp) throws {
    guard
      let youngest = try Int64.fetchOne(
        db, sql: "SELECT MAX(issued_at) FROM spent_nonces WHERE issued_at <= ?", arguments: [instant.milliseconds])
    else { return }
    try db.execute(
      sql: "UPDATE nonce_watermark SET issued_at = :youngest WHERE id = 1 AND issued_at < :youngest",
      arguments: ["youngest": youngest])
  }

  /// Lowers a watermark that a clock running ahead had raised. Safe only when all earlier nonces are invalid.
  func lowerWatermark(to instant: Timestamp) throws {
    try db.execute(
      sql: "UPDATE nonce_watermark SET issued_at = :instant WHERE id = 1 AND issued_at > :instant",
      arguments: ["instant": instant.milliseconds])
  }

  /// Returns the issue time of the newest nonce that was ever spent, including deleted ones.
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

  /// Deletes a portion of the nonces at or below the watermark; returns `false` if none are left. The portion is
  /// bounded, since admissions wait for the transaction.
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
