internal import AttestGate
internal import ByteCoding
internal import Databases

/// The statements on the table of spent nonces.
enum NonceStatements {
  /// The id of the advisory lock: an arbitrary number that is the same in every version, and the table.
  private static let lock = "1935763569, CAST('spent_nonces'::regclass::oid AS integer)"

  /// Takes the shared nonce lock. Every transaction that spends nonces begins with it.
  ///
  /// It is a separate statement, so that the following ones have later snapshots and see the watermark of the
  /// previous lock holder. Otherwise a nonce that is deleted between snapshot and insertion would count as new.
  static let share = Call(
    Statement("share_nonces", "SELECT pg_advisory_xact_lock_shared(\(lock))"))

  /// Marks a nonce as spent: changes one row, or none if the nonce was already spent.
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

  /// Raises the watermark to the newest nonce that is forgotten. Admissions wait for it, for about one commit.
  ///
  /// It does not use `instant` itself: after a clock ran ahead, every nonce would be refused until real time has
  /// passed the watermark.
  static func raiseWatermark(to instant: Timestamp, on connection: PostgresConnection) throws(StoreError) {
    do throws(TransactionError) {
      _ = try connection.transaction([
        Call("SELECT pg_advisory_xact_lock(\(lock))"), Call(raise, Parameter(instant.milliseconds)),
      ])
    } catch {
      throw error.storeError
    }
  }

  /// Deletes a portion of the nonces at or below the watermark; returns `false` if none are left. The portion is
  /// bounded, since other calls wait for the connection.
  static func deletePortion(on connection: PostgresConnection) throws(StoreError) -> Bool {
    do throws(TransactionError) {
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

  /// Lowers a watermark that a clock running ahead had raised. Safe only when all earlier nonces are invalid.
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
