internal import AttestGate
internal import Postgres

/// Finds out whether a pooler stands between, which gives each transaction another connection to the server.
///
/// Prepared statements, settings of the session, its locks and `LISTEN` are then lost, and with them what the store
/// promises. A pooler that keeps a connection for a client's whole session does no harm.
enum PoolerProbe {
  /// - Parameter other: opens a second connection.
  /// - Throws: `.unreachable` with what to do about it.
  static func check(_ connection: PostgresConnection, other: () throws(StoreError) -> PostgresConnection)
    throws(StoreError)
  {
    // A pooler makes up the number that it gives its clients for cancelling.
    guard try serverProcess(of: connection) != Int64(connection.serverProcess) else { return }
    let second = try other()
    // Whatever connection the second one occupies, the first one's next transaction gets another, unless it has its
    // own.
    for _ in 0..<3 {
      let mark = String(UInt64.random(in: 0 ... .max), radix: 16)
      _ = try connection.ask(Call("SELECT set_config('sallyport.session', $1, false)", Parameter(mark)))
      _ = try second.ask(Call("BEGIN"))
      _ = try second.ask(Call("SELECT 1"))
      let answer = try connection.ask(Call("SELECT current_setting('sallyport.session', true) AS mark"))
      _ = try second.ask(Call("COMMIT"))
      let found = try StoreError.onMalformed("pg_settings") { () throws(MalformedColumn) in
        try answer.rows.first?.readIfPresent("mark") { $0 as String } ?? nil
      }
      guard found == mark else { throw .unreachable(reason: advice) }
    }
  }

  static let advice = """
    a pooler between gate and database gives each transaction another connection: set pool_mode = session for it, or \
    name the database itself in store.url
    """

  private static func serverProcess(of connection: PostgresConnection) throws(StoreError) -> Int64 {
    let answer = try connection.ask(Call("SELECT pg_backend_pid() AS process"))
    return try StoreError.onMalformed("pg_backend_pid") { () throws(MalformedColumn) in
      try answer.rows.first?.read("process") { $0 as Int64 } ?? 0
    }
  }
}
