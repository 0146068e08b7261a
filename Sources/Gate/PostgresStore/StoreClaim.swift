internal import AttestGate

/// A claim on the tables: of any number of connections that work on them, or of the one that replaces all that is in
/// them. It ends with the connection (an advisory lock of the session).
enum StoreClaim {
  /// Any number, the same in every version: with the schema it names the lock.
  private static let lock = "1935763570, hashtext(current_schema())"

  /// How long others' claims are waited for. The server hears of a connection's end a moment later: who starts right
  /// behind somebody who has stopped must not be told that he works on the tables.
  private static let patience = Duration.seconds(1)

  /// Blocks for at most `patience`.
  ///
  /// - Throws: `.locked` while a restore is under way.
  static func share(on connection: Connection) throws(StoreError) {
    guard try take("pg_try_advisory_lock_shared", on: connection) else { throw .locked }
  }

  /// `false` if anybody else works on the tables. Blocks for at most `patience`.
  static func takeAlone(on connection: Connection) throws(StoreError) -> Bool {
    try take("pg_try_advisory_lock", on: connection)
  }

  // Asked again instead of waited for at the server: whoever waits there keeps out those who come behind him.
  private static func take(_ function: String, on connection: Connection) throws(StoreError) -> Bool {
    let deadline = ContinuousClock.now + patience
    while try !takeNow(function, on: connection) {
      guard .now < deadline else { return false }
      Worker.pause(for: .milliseconds(20))
    }
    return true
  }

  private static func takeNow(_ function: String, on connection: Connection) throws(StoreError) -> Bool {
    let answer = try connection.ask(Call("SELECT \(function)(\(lock)) AS taken"))
    return try StoreError.onMalformed("pg_locks") { () throws(MalformedColumn) in
      try answer.rows.first?.read("taken") { $0 as Bool } ?? false
    }
  }
}
