internal import GRDB
internal import Glibc
public import MFADomain

/// A database as a whole, for operators: its version, its migration, backups and restores.
public struct StoreArchive: Sendable {
  /// The version of the tables.
  public struct SchemaState: Sendable, Hashable {
    /// The version of the database; 0 if it has no tables.
    public let version: Int
    /// The version of this program.
    public let newest: Int
    /// Whether this program works on the database without a migration.
    public var isCurrent: Bool { version == newest }
  }

  enum Place: Sendable {
    case sqlite(path: String)
    case postgres(url: String, password: DatabasePassword?)
  }

  let place: Place

  /// A SQLite file.
  public init(path: String) { place = .sqlite(path: path) }

  /// A PostgreSQL database, `postgres://…`.
  ///
  /// - Parameter password: as for `PostgresMFAStore`.
  public init(postgres url: String, password: DatabasePassword? = nil) {
    place = .postgres(url: url, password: password)
  }

  /// The version of the tables. Changes nothing, and does not create a file.
  ///
  /// - Throws: `MFAStoreError` if the database cannot be read.
  public func schema() throws(MFAStoreError) -> SchemaState {
    try translating {
      switch place {
      case .sqlite(let path):
        guard try FilePresence.exists(path) else { return SchemaState(version: 0, newest: Self.newest) }
        return SchemaState(
          version: try Self.open(path, isReadOnly: true).read(Self.version), newest: Self.newest)
      case .postgres(let url, let password):
        let version = try PostgresDatabase(url: url, password: password, trace: nil).readTransaction {
          try PostgresDatabase.version(in: $0)
        }
        return SchemaState(version: version ?? 0, newest: Self.newest)
      }
    }
  }

  /// The reason why this user cannot create the file of a SQLite database that does not exist; `nil` if it can, and for
  /// a database that exists.
  public func creationFault() throws(MFAStoreError) -> String? {
    guard case .sqlite(let path) = place, try !FilePresence.exists(path) else { return nil }
    let folder = FilePresence.folder(of: path)
    guard access(folder, W_OK | X_OK) == 0 else { return "\(folder): \(String(cString: strerror(errno)))" }
    return nil
  }

  /// Creates the tables, or migrates them to the version of this program.
  ///
  /// - Returns: The state before.
  public func migrate() throws(MFAStoreError) -> SchemaState {
    let before = try schema()
    switch place {
    case .sqlite(let path): _ = try SQLiteMFAStore(path: path)
    case .postgres(let url, let password): _ = try PostgresMFAStore(url: url, password: password)
    }
    return before
  }

  /// Calls `body` in one transaction that reads a consistent state, while backends keep running.
  func reading<Value>(_ body: (any SQLSession) throws -> Value) throws -> Value {
    switch place {
    case .sqlite(let path): try Self.open(path, isReadOnly: true).read { try body(SQLiteSession(db: $0)) }
    case .postgres(let url, let password):
      try PostgresDatabase(url: url, password: password, trace: nil).readTransaction(body)
    }
  }

  /// Empties `tables` and calls `body`, in one transaction without other users of the database.
  ///
  /// - Parameter tables: tables that refer to others come first.
  /// - Throws: `MFAStoreError.inUse`.
  func replacing(_ tables: [String], _ body: (any SQLSession) throws -> Void) throws {
    switch place {
    case .sqlite(let path):
      let lock = try DatabaseFileLock(of: path, .exclusive)
      let queue = try Self.open(path, isReadOnly: false)
      try queue.writeWithoutTransaction { db in
        try db.execute(sql: "PRAGMA synchronous = FULL")
        try db.inTransaction(.immediate) {
          let sql: any SQLSession = SQLiteSession(db: db)
          for table in tables { try sql.run("DELETE FROM \(table)", []) }
          try body(sql)
          return .commit
        }
      }
      withExtendedLifetime(lock) {}
    case .postgres(let url, let password):
      let database = PostgresDatabase(
        url: url, password: password, trace: nil, patience: PostgresDatabase.patienceForAllRows)
      // The server forgets a connection that this command closed a moment ago only after some milliseconds.
      var attempts = 0
      while attempts < 20, try database.readTransaction(PostgresDatabase.countOfOthers) > 0 {
        usleep(50_000)
        attempts += 1
      }
      try database.transaction { sql in
        guard try PostgresDatabase.countOfOthers(in: sql) == 0 else { throw MFAStoreError.inUse }
        // DELETE would look for the rows that refer to each row, which takes minutes for many accounts.
        try sql.run("TRUNCATE \(tables.joined(separator: ", "))", [])
        try body(sql)
        // Later rows get numbers after those that were inserted.
        _ = try sql.rows(
          """
          SELECT setval(pg_get_serial_sequence('trusted_devices', 'id'), MAX(id)) AS last
          FROM trusted_devices HAVING MAX(id) IS NOT NULL
          """, [])
      }
    }
  }

  /// What SQLite finds wrong with its file, also if that is no database at all; empty without a file, and for
  /// PostgreSQL, whose server checks its own pages.
  ///
  /// - Throws: `MFAStoreError` if the file cannot be read, which says nothing about its content.
  public func damage() throws(MFAStoreError) -> [String] {
    guard case .sqlite(let path) = place, try FilePresence.exists(path) else { return [] }
    do {
      return try Self.open(path, isReadOnly: true).read { db in
        let pages = try String.fetchAll(db, sql: "PRAGMA integrity_check(20)").filter { $0 != "ok" }
        let references = try Row.fetchAll(db, sql: "PRAGMA foreign_key_check").prefix(20).map { row in
          "a row of \(row[0] as String? ?? "?") refers to a missing row of \(row[2] as String? ?? "?")"
        }
        return pages + references
      }
    } catch let fault as DatabaseError
      where fault.resultCode == .SQLITE_CORRUPT || fault.resultCode == .SQLITE_NOTADB
    {
      return [fault.plainReason]
    } catch {
      throw MFAStoreError(error)
    }
  }

  private static let newest = MFASchema.sqlite.versions.count

  private static func open(_ path: String, isReadOnly: Bool) throws -> DatabaseQueue {
    var configuration = Configuration()
    configuration.readonly = isReadOnly
    configuration.busyMode = .timeout(5)
    configuration.label = "mfa.archive"
    return try DatabaseQueue(path: path, configuration: configuration)
  }

  private static func version(in db: Database) throws -> Int {
    guard try db.tableExists("grdb_migrations") else { return 0 }
    return try String.fetchAll(db, sql: "SELECT identifier FROM grdb_migrations").compactMap { Int($0) }.max() ?? 0
  }

  /// Converts errors of the databases.
  func translating<Value>(_ body: () throws -> Value) throws(MFAStoreError) -> Value {
    do { return try body() } catch { throw MFAStoreError(error) }
  }
}
