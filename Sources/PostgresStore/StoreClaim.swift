internal import AttestGate

/// A claim on the tables: of any number of connections that work on them, or of the one that replaces all that is in
/// them. It ends with the connection (an advisory lock of the session).
enum StoreClaim {
  /// Any number, the same in every version: with the schema it names the lock.
  private static let lock = "1935763570, hashtext(current_schema())"

  /// - Throws: `.locked` while a restore is under way.
  static func share(on connection: Connection) throws(StoreError) {
    guard try take("pg_try_advisory_lock_shared", on: connection) else { throw .locked }
  }

  /// `false` if anybody else works on the tables.
  static func takeAlone(on connection: Connection) throws(StoreError) -> Bool {
    try take("pg_try_advisory_lock", on: connection)
  }

  private static func take(_ function: String, on connection: Connection) throws(StoreError) -> Bool {
    let answer = try connection.ask(Call("SELECT \(function)(\(lock)) AS taken"))
    return try StoreError.onMalformed("pg_locks") { () throws(MalformedColumn) in
      try answer.rows.first?.read("taken") { $0 as Bool } ?? false
    }
  }
}
