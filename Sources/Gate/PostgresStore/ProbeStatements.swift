internal import AttestGate
internal import Postgres

/// What shows that the store takes calls, where none is at hand: it needs the rights and the locks that they need, and
/// changes nothing.
enum ProbeStatements {
  /// As an admission does: it uses a key, and spends a nonce.
  private static let written = [
    Call("UPDATE attested_keys SET counter = counter WHERE FALSE"),
    Call("INSERT INTO spent_nonces (nonce, issued_at) SELECT nonce, issued_at FROM spent_nonces WHERE FALSE"),
    // Of a server that takes no writes any more the commit of nothing says nothing.
    Call("UPDATE nonce_watermark SET issued_at = issued_at WHERE id = 1"),
  ]

  static func write(on connection: PostgresConnection) throws(StoreError) {
    do throws(TransactionFault) {
      _ = try connection.transaction(written)
    } catch {
      throw error.storeError
    }
  }

  static func read(on connection: PostgresConnection) throws(StoreError) {
    _ = try connection.ask(Call("SELECT 1 FROM attested_keys LIMIT 1"))
  }
}
