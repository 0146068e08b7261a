internal import AttestGate
internal import ByteCoding
internal import Postgres

/// What is said to the table of spent nonces.
enum NonceStatements {
  /// What names the lock: any number, the same in every version, and the table.
  private static let lock = "1935763569, CAST('spent_nonces'::regclass::oid AS integer)"

  /// Begins every transaction that spends nonces.
  ///
  /// A statement of its own, so that the following ones have younger snapshots: they see the watermark that the
  /// previous holder of the lock wrote. Otherwise a nonce that is forgotten between snapshot and insertion would pass
  /// for a new one.
  static let share = Call(
    Statement("share_nonces", "SELECT pg_advisory_xact_lock_shared(\(lock))"))

  /// Marks a nonce as spent: one row if it was not, none if it was.
  static func spend(_ nonce: Nonce) -> Call {
    Call(spend, Parameter(nonce.bytes), Parameter(nonce.issuedAt.milliseconds))
  }

  private static let spend = Statement(
    "spend",
    """
    INSERT INTO spent_nonces (nonce, issued_at)
    SELECT $1, $2 WHERE $2 > (SELECT issued_at FROM nonce_watermark WHERE id = 1)
    ON CONFLICT (nonce) DO NOTHING
    """)

  /// Raises the watermark to the youngest nonce that is forgotten.
  ///
  /// It keeps admissions waiting, for as long as one commit. Not `instant` itself: after a clock that ran ahead for a
  /// while, every nonce would otherwise be refused until the world has caught up.
  static func raiseWatermark(to instant: Timestamp, on connection: PostgresConnection) throws(StoreError) {
    do throws(TransactionFault) {
      _ = try connection.transaction([
        Call("SELECT pg_advisory_xact_lock(\(lock))"), Call(raise, Parameter(instant.milliseconds)),
      ])
    } catch {
      throw error.storeError
    }
  }

  /// Deletes some of what lies at or below the watermark; `false` if that was all. Not more at once: others wait for
  /// the connection.
  static func deletePortion(on connection: PostgresConnection) throws(StoreError) -> Bool {
    do throws(TransactionFault) {
      return try connection.transaction([Call(delete)]).first?.changes == portion
    } catch {
      throw error.storeError
    }
  }

  private static let raise = Statement(
    "raise_watermark",
    """
    UPDATE nonce_watermark SET issued_at = youngest
    FROM (SELECT MAX(issued_at) AS youngest FROM spent_nonces WHERE issued_at <= $1) AS forgotten
    WHERE id = 1 AND issued_at < youngest
    """)

  /// Takes back what a clock that ran ahead had the watermark rise to, now that no nonce of before can be good.
  static func lowerWatermark(to instant: Timestamp) -> Call {
    Call(
      Statement("lower_watermark", "UPDATE nonce_watermark SET issued_at = $1 WHERE id = 1 AND issued_at > $1"),
      Parameter(instant.milliseconds))
  }

  private static let portion = 5000

  private static let delete = Statement(
    "delete_nonces",
    """
    DELETE FROM spent_nonces WHERE nonce IN (
      SELECT nonce FROM spent_nonces WHERE issued_at <= (SELECT issued_at FROM nonce_watermark WHERE id = 1)
      ORDER BY issued_at LIMIT \(portion)
    )
    """)
}
