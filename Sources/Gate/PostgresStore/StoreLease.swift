internal import AttestGate
internal import Databases

/// A lease on the tables, implemented as a session-level advisory lock: shared by all connections that use the
/// tables, or exclusive for a connection that replaces their content. It is released when the connection closes.
enum StoreLease {
  /// The id of the lock: an arbitrary number that is the same in every version, and the schema.
  private static let lock = "1935763570, hashtext(current_schema())"

  /// The time to wait for other leases. The server notices a closed connection with a delay, so a process that starts
  /// right after another one has stopped must not be refused.
  private static let patience = Duration.seconds(1)

  /// Takes the shared lease. Blocks for at most `patience`.
  ///
  /// - Throws: `.locked` while a restore is in progress.
  static func share(on connection: PostgresConnection) throws(StoreError) {
    guard try take("pg_try_advisory_lock_shared", on: connection) else { throw .locked }
  }

  /// Takes the exclusive lease. Blocks for at most `patience`, and returns `false` if another connection holds a
  /// lease.
  static func takeAlone(on connection: PostgresConnection) throws(StoreError) -> Bool {
    try take("pg_try_advisory_lock", on: connection)
  }

  // Polls instead of waiting at the server: a waiting exclusive request would block the shared requests that come
  // after it.
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
