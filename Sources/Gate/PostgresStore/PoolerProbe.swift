internal import AttestGate
internal import Databases

/// Detects a pooler that assigns each transaction to a different server connection.
///
/// With such a pooler, prepared statements, session settings, session locks and `LISTEN` do not work, and the
/// guarantees of the store are lost. A pooler that assigns a server connection per client session is safe.
enum PoolerProbe {
  /// - Parameter other: Opens a second connection.
  /// - Throws: `.unreachable` with advice.
  static func check(_ connection: PostgresConnection, other: () throws(StoreError) -> PostgresConnection)
    throws(StoreError)
  {
    // A pooler invents the process id that it reports to its clients for cancellation.
    guard try serverProcess(of: connection) != Int64(connection.serverProcess) else { return }
    let second = try other()
    // The second connection holds a server connection, so a transaction pooler must assign another one to the first
    // connection's next transaction.
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
    a pooler between the gate and the database assigns each transaction to another connection: \
    set pool_mode = session in the pooler, or name the database server itself in store.url
    """

  private static func serverProcess(of connection: PostgresConnection) throws(StoreError) -> Int64 {
    let answer = try connection.ask(Call("SELECT pg_backend_pid() AS process"))
    return try StoreError.onMalformed("pg_backend_pid") { () throws(MalformedColumn) in
      try answer.rows.first?.read("process") { $0 as Int64 } ?? 0
    }
  }
}
