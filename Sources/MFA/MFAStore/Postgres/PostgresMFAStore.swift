internal import Dispatch
internal import Locking
public import MFADomain
internal import Postgres

/// The store in a PostgreSQL database, for several machines.
///
/// Each transaction takes an advisory lock, so one writer runs at a time across all processes. The services rely on
/// this, and it keeps the history a single chain. Concurrent writes of one process share a transaction.
public final class PostgresMFAStore: Store {
  private let queue: WriteQueue
  private let reader: PostgresDatabase
  private let historyKeys = HistoryKeyPlace(nil)

  /// Connects to the database at `url` (`postgres://…`, in the syntax of libpq) and migrates its tables.
  ///
  /// - Parameters:
  ///   - makesTables: whether an empty database gets its tables; otherwise it is refused with `MFAStoreError.noTables`.
  ///   - mostWaiting: the maximum number of waiting writes. Further writes are refused as overload.
  /// - Throws: `MFAStoreError` if the database is unavailable, has no tables or has a newer version.
  public init(
    url: String, makesTables: Bool = true, mostWaiting: Int = 4096, trace: StatementTrace? = nil
  ) throws(MFAStoreError) {
    let database = PostgresDatabase(url: url, trace: trace)
    do {
      try database.migrate(makesTables: makesTables)
    } catch let fault as MFAStoreError {
      throw fault
    } catch {
      throw MFAStoreError(error)
    }
    queue = WriteQueue(writer: database, mostWaiting: mostWaiting, historyKeys: historyKeys)
    reader = PostgresDatabase(url: url, trace: trace)
  }

  public func read<Value: Sendable>(
    _ body: @escaping @Sendable (any Records) throws -> Value
  ) async throws -> Value {
    let deadline = StoreDeadline.current
    return try await withCheckedThrowingContinuation { continuation in
      reader.queue.async { [reader, historyKeys] in
        continuation.resume(
          with: Result {
            if StoreDeadline.hasPassed(deadline) { throw MFAStoreError.late }
            do {
              return try reader.readTransaction {
                try body(SQLRecords(sql: $0, historyKeys: historyKeys.withLock { $0 }))
              }
            } catch {
              throw MFAStoreError.translated(error)
            }
          })
      }
    }
  }

  public func write<Value: Sendable>(
    _ body: @escaping @Sendable (any Records) throws -> Value
  ) async throws -> Value {
    try await queue.run(body)
  }

  public func authenticateHistory(with keys: HistoryKeys) { historyKeys.withLock { $0 = keys } }
}

/// A database and one connection to it. The connection is opened on demand, and again after it broke.
final class PostgresDatabase: SQLWriter, @unchecked Sendable {
  private let url: String
  private let trace: StatementTrace?
  private let patience: Duration
  // Used by one thread at a time: first the migrating thread, then the queue of the writer or `queue`.
  private var connection: StoreConnection?
  let queue = DispatchQueue(label: "mfa.store.postgres")

  /// The number of the advisory lock of all writers: `mfa` in ASCII.
  private static let lock = 0x6D6661

  /// - Parameter patience: the time limit of a statement.
  init(url: String, trace: StatementTrace?, patience: Duration = .seconds(10)) {
    self.url = url
    self.trace = trace
    self.patience = patience
  }

  func transaction(_ body: (any SQLSession) throws -> Void) throws {
    try within({ try $0.execute("BEGIN", "SELECT pg_advisory_xact_lock(\(Self.lock))") }, body)
  }

  func readTransaction<Value>(_ body: (any SQLSession) throws -> Value) throws -> Value {
    try within({ try $0.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") }, body)
  }

  /// The time limit of a statement on all rows, in a migration or a restore. An index on a table with millions of rows
  /// takes minutes.
  static let patienceForAllRows = Duration.seconds(3600)

  /// Migrates the tables. Of several servers that start at the same time, one migrates and the others wait.
  func migrate(makesTables: Bool) throws {
    connection = try StoreConnection(url: url, patience: Self.patienceForAllRows)
    // The next connection uses the normal time limit.
    defer { connection = nil }
    try transaction { sql in
      guard try makesTables || Self.version(in: sql) != nil else { throw MFAStoreError.noTables }
      try sql.run("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)", [])
      let found = try sql.rows("SELECT MAX(version) AS version FROM schema_version", [])
      let current = try found.first.flatMap { try $0.optional("version", $0.int) } ?? 0
      let versions = MFASchema.postgres.versions
      guard current <= versions.count else {
        throw MFAStoreError(reason: "the database was written by a newer version")
      }
      for (index, step) in versions.enumerated().dropFirst(current) {
        try step.take(in: sql)
        try sql.run("INSERT INTO schema_version (version) VALUES (?)", [.integer(index + 1)])
      }
    }
  }

  /// The version of the tables; `nil` if there are none.
  static func version(in sql: any SQLSession) throws -> Int? {
    let found = try sql.rows("SELECT to_regclass('schema_version')::text AS name", []).first
    guard let found, try found.optional("name", found.text) != nil else { return nil }
    return try sql.rows("SELECT MAX(version) AS version FROM schema_version", []).first
      .flatMap { try $0.optional("version", $0.int) } ?? 0
  }

  /// The number of other connections of backends and their commands to this database.
  static func countOfOthers(in sql: any SQLSession) throws -> Int {
    try sql.rows(
      """
      SELECT COUNT(*) AS count FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = 'mfa-backend' AND pid <> pg_backend_pid()
      """, []
    ).first?.int("count") ?? 0
  }

  private func within<Value>(
    _ begin: (StoreConnection) throws -> Void, _ body: (any SQLSession) throws -> Value
  ) throws -> Value {
    let connection = try self.connection ?? StoreConnection(url: url, patience: patience)
    self.connection = connection
    defer { if connection.isBroken { self.connection = nil } }
    do {
      try begin(connection)
      let value = try body(PostgresSession(connection: connection).traced(by: trace))
      guard try connection.run("COMMIT", []).commandTag == "COMMIT" else {
        throw MFAStoreError(reason: "the transaction was rolled back")
      }
      return value
    } catch {
      try? connection.execute("ROLLBACK")
      throw error
    }
  }
}

/// A transaction of PostgreSQL.
struct PostgresSession: SQLSession {
  let connection: StoreConnection

  func run(_ sql: String, _ arguments: [SQLValue]) throws -> Int { try connection.run(sql, arguments).changes }
  func rows(_ sql: String, _ arguments: [SQLValue]) throws -> [SQLRow] { try connection.run(sql, arguments).sqlRows() }
}
