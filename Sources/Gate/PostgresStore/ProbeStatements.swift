internal import AttestGate
internal import Databases

/// Checks that the store accepts calls when none is waiting. The probes need the same privileges and locks as the
/// calls and change nothing.
enum ProbeStatements {
  /// The writes of an admission: they use a key and spend a nonce.
  private static let written = [
    Call("UPDATE attested_keys SET counter = counter WHERE FALSE"),
    Call("INSERT INTO spent_nonces (nonce, issued_at) SELECT nonce, issued_at FROM spent_nonces WHERE FALSE"),
    // A server that refuses writes still commits an empty transaction, so the probe changes a row.
    Call("UPDATE nonce_watermark SET issued_at = issued_at WHERE id = 1"),
  ]

  static func write(on connection: PostgresConnection) throws(StoreError) {
    do throws(TransactionError) {
      _ = try connection.transaction(written)
    } catch {
      throw error.storeError
    }
  }

  static func read(on connection: PostgresConnection) throws(StoreError) {
    _ = try connection.ask(Call("SELECT 1 FROM attested_keys LIMIT 1"))
  }
}
