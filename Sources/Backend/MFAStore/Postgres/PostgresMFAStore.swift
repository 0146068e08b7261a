internal import Databases
internal import Locking
public import MFADomain

/// Returns the password for a new connection to a PostgreSQL server. It is called for each connection, so that a
/// password that was changed on the server and in its file is used without a restart. It may block.
///
/// - Throws: `MFAStoreError`, whose reason names the place of the password. The connection then fails with it.
public typealias DatabasePassword = @Sendable () throws -> String

/// The store in a PostgreSQL database, for several machines.
///
/// A write that excludes all other writers holds an advisory lock alone, in all processes; a write that excludes rows
/// shares it with others of its kind. Concurrent writes of one process share a transaction.
///
/// A process that stops in the middle of a transaction loses it after `longestPause`, so it delays the others no
/// longer.
public final class PostgresMFAStore: Store {
  private let queue: WriteQueue
  private let reads: ReadQueue
  private let historyKeys = HistoryKeyPlace(nil)

  /// How long a writing transaction may rest between two statements before the server ends its connection. Nothing
  /// waits in a transaction, so a process that rests longer was stopped, or its machine is overloaded; it begins again.
  static let longestPause = Duration.milliseconds(100)

  /// Connects to the database at `url` (`postgres://…`, in the syntax of libpq) and migrates its tables.
  ///
  /// - Parameters:
  ///   - password: takes precedence over one in the URL; `nil` leaves it to the URL, its `passfile`, `PGPASSFILE` or
  ///     `~/.pgpass`.
  ///   - makesTables: whether an empty database gets its tables; otherwise it is refused with `MFAStoreError.noTables`.
  ///   - mostWaiting: the maximum number of waiting writes. Further writes are refused as overload.
  /// - Throws: `MFAStoreError` if the database is unavailable, has no tables or has a newer version.
  public init(
    url: String, password: DatabasePassword? = nil, makesTables: Bool = true, mostWaiting: Int = 4096,
    trace: StatementTrace? = nil
  ) throws(MFAStoreError) {
    let database = PostgresDatabase(url: url, password: password, trace: trace)
    do {
      try database.migrate(makesTables: makesTables)
    } catch let fault as MFAStoreError {
      throw fault
    } catch {
      throw MFAStoreError(error)
    }
    let writer = PostgresDatabase(url: url, password: password, trace: trace, longestPause: Self.longestPause)
    queue = WriteQueue(writer: writer, mostWaiting: mostWaiting, historyKeys: historyKeys)
    reads = ReadQueue(
      database: PostgresDatabase(url: url, password: password, trace: trace), mostWaiting: mostWaiting,
      historyKeys: historyKeys)
  }

  public func read<Value: Sendable>(
    _ body: @escaping @Sendable (any Records) throws -> Value
  ) async throws -> Value {
    try await reads.run(body)
  }

  public func write<Value: Sendable>(
    excluding others: WriteExclusion, _ body: @escaping @Sendable (any Records) throws -> Value
  ) async throws -> Value {
    try await queue.run(excluding: others, body)
  }

  public func authenticateHistory(with keys: HistoryKeys) { historyKeys.withLock { $0 = keys } }
}

/// A database and one connection to it. The connection is opened on demand, and again after it broke.
final class PostgresDatabase: SQLWriter, @unchecked Sendable {
  private let url: String
  private let password: DatabasePassword?
  private let trace: StatementTrace?
  private let patience: Duration
  private let longestPause: Duration
  // Used by one thread at a time: first the migrating thread, then that of the `WriteQueue` or `ReadQueue`.
  private var connection: StoreConnection?

  /// The number of the advisory lock of writers: `mfa` in ASCII.
  private static let lock = 0x6D6661
  /// How much longer than `longestPause` a transaction may rest at each attempt. A process that was stopped loses the
  /// first one; one on an overloaded machine gets on with a later one.
  private static let patienceOfAttempts = [1, 3, 10, 50]
  /// The time after which a transaction is not begun again.
  private static let longestRepetition = Duration.seconds(2)

  /// - Parameters:
  ///   - password: as for the store.
  ///   - patience: the time limit of a statement.
  ///   - longestPause: how long a transaction may rest between two statements.
  init(
    url: String, password: DatabasePassword? = nil, trace: StatementTrace?, patience: Duration = .seconds(10),
    longestPause: Duration = StoreConnection.longestPause
  ) {
    self.url = url
    self.password = password
    self.trace = trace
    self.patience = patience
    self.longestPause = longestPause
  }

  var runsBesideOthers: Bool { true }

  /// Runs `body` again, on another connection if necessary, if the transaction ended and left nothing: the server has
  /// ended its connection, or has chosen it among transactions that wait for each other.
  func transaction(excluding others: WriteExclusion, _ body: (any SQLSession) throws -> Void) throws {
    let start = ContinuousClock.now
    var attempt = 0
    while true {
      do {
        try within(
          Self.beginning(excluding: others), restingAtMost: longestPause * Self.patienceOfAttempts[attempt], body)
        // The next transaction begins with the short pause again.
        if attempt > 0 { connection = nil }
        return
      } catch let interruption as Interruption {
        attempt += 1
        guard attempt < Self.patienceOfAttempts.count, ContinuousClock.now - start < Self.longestRepetition else {
          throw interruption.error
        }
      }
    }
  }

  /// Runs `body` in one transaction that excludes all other writers. It runs once.
  func transaction(_ body: (any SQLSession) throws -> Void) throws {
    do {
      try within(Self.beginning(excluding: .writers), body)
    } catch let interruption as Interruption {
      throw interruption.error
    }
  }

  // Each statement must see what was committed while the transaction waited for its lock, whatever the server's
  // default.
  private static func beginning(excluding others: WriteExclusion) -> [String] {
    let function = others == .writers ? "pg_advisory_xact_lock" : "pg_advisory_xact_lock_shared"
    return ["BEGIN ISOLATION LEVEL READ COMMITTED", "SELECT \(function)(\(lock))"]
  }

  func readTransaction<Value>(_ body: (any SQLSession) throws -> Value) throws -> Value {
    do {
      return try within(["BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"], body)
    } catch let interruption as Interruption {
      throw interruption.error
    }
  }

  /// The time limit of a statement on all rows, in a migration or a restore. An index on a table with millions of rows
  /// takes minutes.
  static let patienceForAllRows = Duration.seconds(3600)

  /// Migrates the tables. Of several servers that start at the same time, one migrates and the others wait.
  func migrate(makesTables: Bool) throws {
    connection = try StoreConnection(
      url: url, password: password, patience: Self.patienceForAllRows, longestPause: longestPause)
    // The next connection uses the normal time limit.
    defer { connection = nil }
    try transaction { sql in
      let found = try Self.version(in: sql)
      // Not with IF NOT EXISTS alone: PostgreSQL requires the right to create tables even if the table exists, and the
      // backend's role may lack it.
      if found == nil {
        guard makesTables else { throw MFAStoreError.noTables }
        try sql.run("CREATE TABLE schema_version (version BIGINT NOT NULL)", [])
      }
      let current = found ?? 0
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

  /// A transaction ended and left nothing, so it may begin again.
  private struct Interruption: Error {
    let error: any Error
  }

  /// - Parameter pause: how long the transaction may rest, if it opens the connection; `nil` for `longestPause`.
  private func within<Value>(
    _ beginning: [String], restingAtMost pause: Duration? = nil, _ body: (any SQLSession) throws -> Value
  ) throws -> Value {
    let connection =
      try self.connection
      ?? StoreConnection(url: url, password: password, patience: patience, longestPause: pause ?? longestPause)
    self.connection = connection
    defer { if connection.isBroken { self.connection = nil } }
    connection.begin()
    do {
      for statement in beginning { try connection.enqueue(statement, []) }
      let value = try body(PostgresSession(connection: connection).traced(by: trace))
      try connection.commit()
      return value
    } catch {
      try? connection.rollBack()
      let hasLeftNothing = (error as? PostgresError)?.leavesNothing ?? false
      guard hasLeftNothing || (connection.isBroken && !connection.hasSentCommit) else { throw error }
      throw Interruption(error: error)
    }
  }
}

extension PostgresError {
  /// Whether the transaction has left nothing, also if its commit was sent: the server has chosen it to end among
  /// several that cannot all go on (serialization_failure, deadlock_detected), or it rested for too long
  /// (idle_in_transaction_session_timeout) and the commit arrived after its end.
  fileprivate var leavesNothing: Bool {
    if case .refused(let error) = self { ["40001", "40P01", "25P03"].contains(error.code) } else { false }
  }
}

/// A transaction of PostgreSQL.
struct PostgresSession: SQLSession {
  let connection: StoreConnection

  /// The number of the advisory lock of the history: `mfah` in ASCII.
  private static let historyLock = 0x6D66_6168
  /// How long a transaction that runs beside others waits for a row.
  private static let longestWaitForRow = 10

  func run(_ sql: String, _ arguments: [SQLValue]) throws -> Int { try connection.run(sql, arguments).changes }
  func rows(_ sql: String, _ arguments: [SQLValue]) throws -> [SQLRow] { try connection.run(sql, arguments).sqlRows() }
  func enqueue(_ sql: String, _ arguments: [SQLValue]) throws { try connection.enqueue(sql, arguments) }

  func limitWaitForRows() throws { try enqueue("SET LOCAL lock_timeout = \(Self.longestWaitForRow)", []) }

  // The holder of this lock has all its rows already and waits for nothing, so the limit for rows does not apply.
  func waitForHistory() throws {
    try enqueue("SET LOCAL lock_timeout = \(connection.longestWait)", [])
    try enqueue("SELECT pg_advisory_xact_lock(\(Self.historyLock))", [])
  }
}
