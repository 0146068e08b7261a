public import AttestGate
internal import Databases

/// The statements on the table of shared documents.
enum DocumentStatements {
  static func content(of name: String, on connection: PostgresConnection) throws(StoreError) -> [UInt8]? {
    let answer = try connection.ask(Call(read, Parameter(name)))
    return try StoreError.onMalformed("shared_documents") { () throws(MalformedColumn) in
      try answer.rows.first?.read("content") { $0 as [UInt8] }
    }
  }

  static func set(_ name: String, to content: [UInt8]?, on connection: PostgresConnection) throws(StoreError) {
    let change = content.map { Call(write, Parameter(name), Parameter($0)) } ?? Call(remove, Parameter(name))
    do throws(TransactionError) {
      _ = try connection.transaction([change] + ChangeStatements.note(nil))
    } catch {
      throw error.storeError
    }
  }

  private static let read = Statement("read_document", "SELECT content FROM shared_documents WHERE name = $1")
  private static let write = Statement(
    "write_document",
    """
    INSERT INTO shared_documents (name, content) VALUES ($1, $2)
    ON CONFLICT (name) DO UPDATE SET content = excluded.content
    """)
  private static let remove = Statement("remove_document", "DELETE FROM shared_documents WHERE name = $1")

  // MARK: Locks

  /// The id of the locks: an arbitrary number that is the same in every version, and the schema with the name.
  private static let lock = "1935763572, hashtext(current_schema() || '/' || $1)"

  static func take(_ name: String, on connection: PostgresConnection) throws(StoreError) -> Bool {
    // A second lock of the same connection would succeed, too: the caller asks for one at a time.
    let answer = try connection.ask(
      Call(Statement("lock_documents", "SELECT pg_try_advisory_lock(\(lock)) AS taken"), Parameter(name)))
    return try StoreError.onMalformed("pg_locks") { () throws(MalformedColumn) in
      try answer.rows.first?.read("taken") { $0 as Bool } ?? false
    }
  }

  // If the lock was released with its connection, the server only warns that it is not held.
  static func release(_ name: String, on connection: PostgresConnection) throws(StoreError) {
    _ = try connection.ask(
      Call(Statement("unlock_documents", "SELECT pg_advisory_unlock(\(lock))"), Parameter(name)))
  }
}

extension PostgresStore: SharedDocuments {
  public func document(_ name: String) async throws(StoreError) -> [UInt8]? {
    try await run { connection throws(StoreError) in try DocumentStatements.content(of: name, on: connection) }
  }

  public func setDocument(_ name: String, to content: [UInt8]?) async throws(StoreError) {
    try await run { connection throws(StoreError) in
      try DocumentStatements.set(name, to: content, on: connection)
    }
  }

  public func lockDocuments(_ name: String) async throws(StoreError) -> Bool {
    try await run { connection throws(StoreError) in try DocumentStatements.take(name, on: connection) }
  }

  public func unlockDocuments(_ name: String) async throws(StoreError) {
    try await run { connection throws(StoreError) in try DocumentStatements.release(name, on: connection) }
  }
}
