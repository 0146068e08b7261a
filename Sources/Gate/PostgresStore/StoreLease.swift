internal import AttestGate
internal import Postgres

/// A claim on the tables: of any number of connections that work on them, or of the one that replaces all that is in
/// them. It ends with the connection (an advisory lock of the session).
enum StoreLease {
  /// Any number, the same in every version: with the schema it names the lock.
  private static let lock = "1935763570, hashtext(current_schema())"

  /// How long to wait for other processes' leases. The server notices the end of a connection a moment later: a
  /// process that starts right after another one has stopped must not be told that the tables are in use.
  private static let patience = Duration.seconds(1)

  /// Blocks for at most `patience`.
  ///
  /// - Throws: `.locked` while a restore is under way.
  static func share(on connection: PostgresConnection) throws(StoreError) {
    guard try take("pg_try_advisory_lock_shared", on: connection) else { throw .locked }
  }

  /// Returns `false` if another process uses the tables. Blocks for at most `patience`.
  static func takeAlone(on connection: PostgresConnection) throws(StoreError) -> Bool {
    try take("pg_try_advisory_lock", on: connection)
  }

  // Polls instead of waiting at the server: a waiting exclusive request there would hold up later shared ones.
  private static func take(_ function: String, on connection: PostgresConnection) throws(StoreError) -> Bool {
    let deadline = ContinuousClock.now + patience
    while try !takeNow(function, on: connection) {
      guard .now < deadline else { return false }
      Worker.pause(for: .milliseconds(20))
    }
    return true
  }

  private static func takeNow(_ function: String, on connection: PostgresConnection) throws(StoreError) -> Bool {
    let answer = try connection.ask(Call("SELECT \(function)(\(lock)) AS taken"))
    return try StoreError.onMalformed("pg_locks") { () throws(MalformedColumn) in
      try answer.rows.first?.read("taken") { $0 as Bool } ?? false
    }
  }
}
