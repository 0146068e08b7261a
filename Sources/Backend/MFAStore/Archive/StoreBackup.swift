public import ByteCoding
internal import GRDB
internal import Glibc
public import MFADomain
internal import ProcessSignals

/// A backup: a SQLite file with the rows of a database of either kind, and a digest of all of them.
///
/// It contains accounts, factors, trust and the history. It contains neither sessions nor challenges nor codes, so that
/// a restore does not make valid again what was spent or revoked. Secrets in it stay sealed: reading them needs the keys
/// file, which is not part of it.
public struct StoreBackup: Sendable, Hashable {
  /// The reason why a backup cannot be written or restored.
  public enum BackupError: Error, Sendable, Hashable {
    case missing
    /// This user cannot read the file.
    case unreadable(reason: String)
    case exists
    /// Not a backup, or of a newer version.
    case foreign(reason: String)
    /// The file or its rows differ from those that were written.
    case damaged(reason: String)
    case unwritable(reason: String)
  }

  public let path: String
  public let madeAt: Timestamp
  /// The database that it was made of, without a password.
  public let origin: String
  public let rows: Int64
  public let accounts: Int64
  /// The version of its tables. Those of an older version are migrated before a restore.
  private let schema: Int
  private let digest: [UInt8]

  private static let version = 1

  // MARK: Write

  /// Writes a consistent state of `store` into a new file with mode 0600, while backends keep running. The file appears
  /// only when it is complete.
  ///
  /// - Parameter origin: The database for people, without a password.
  /// - Throws: `BackupError`, `MFAStoreError`.
  public static func write(
    _ store: StoreArchive, named origin: String, to path: String, at now: Timestamp
  ) throws -> StoreBackup {
    guard access(path, F_OK) != 0 else { throw BackupError.exists }
    let draft = try draft(for: path)
    // The draft is removed when it is released.
    try withExtendedLifetime(draft) {
      try fill(draft.path, from: store, named: origin, at: now)
      // Never replaces a file that was created meanwhile.
      guard link(draft.path, path) == 0 else {
        throw errno == EEXIST ? BackupError.exists : .unwritable(reason: String(cString: strerror(errno)))
      }
    }
    try keepEntry(of: path)
    return try StoreBackup(path: path)
  }

  /// Creates the file under a temporary name. Those that killed processes have left for the same path are removed.
  private static func draft(for path: String) throws(BackupError) -> TemporaryFile {
    do throws(TemporaryFile.WriteError) {
      return try TemporaryFile(for: path)
    } catch {
      throw .unwritable(reason: String(cString: strerror(error.number)))
    }
  }

  /// Writes the new name to the disk. Without that, the file may be gone after a power failure.
  private static func keepEntry(of path: String) throws(BackupError) {
    let folder = Glibc.open(FilePresence.folder(of: path), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    defer { if folder >= 0 { close(folder) } }
    guard folder >= 0, fsync(folder) == 0 else {
      let number = errno
      unlink(path)
      throw .unwritable(reason: String(cString: strerror(number)))
    }
  }

  private static func fill(_ file: String, from store: StoreArchive, named origin: String, at now: Timestamp) throws {
    let queue = try aboutFile { try DatabaseQueue(path: file) }
    defer { try? queue.close() }
    try aboutFile {
      // A journal in a file would stay when a signal ends the process.
      try queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA journal_mode = MEMORY") }
      try queue.write { db in
        let sql: any SQLSession = SQLiteSession(db: db)
        for step in MFASchema.sqlite.versions { try step.take(in: sql) }
        // Rows that migrations make belong to new databases.
        for (name, _) in ArchivedTables.all { try sql.run("DELETE FROM \(name)", []) }
        try db.execute(
          sql: """
            CREATE TABLE mfa_backup (
              version INTEGER NOT NULL, schema INTEGER NOT NULL, made_at INTEGER NOT NULL, origin TEXT NOT NULL,
              rows INTEGER NOT NULL, digest BLOB NOT NULL)
            """)
      }
    }
    try aboutFile {
      try queue.inDatabase { db in
        try db.inTransaction {
          let target: any SQLSession = SQLiteSession(db: db)
          try copy(store, into: target)
          let digest = try Self.digest(of: target)
          try target.run(
            "INSERT INTO mfa_backup (version, schema, made_at, origin, rows, digest) VALUES (?, ?, ?, ?, ?, ?)",
            [
              .integer(version), .integer(MFASchema.sqlite.versions.count), .integer(now.milliseconds), .text(origin),
              .integer(digest.count), .blob(digest.bytes),
            ])
          return .commit
        }
      }
    }
  }

  /// - Throws: `BackupError.unwritable` for a fault of the file, `MFAStoreError` for one of the store.
  private static func copy(_ store: StoreArchive, into target: any SQLSession) throws {
    do {
      try store.reading { source in
        for (name, key) in ArchivedTables.all {
          try ArchivedTables.read(name, key: key, in: source) { rows in
            try aboutFile { try ArchivedTables.insert(rows, into: name, target) }
          }
        }
      }
    } catch let fault as BackupError {
      throw fault
    } catch {
      throw MFAStoreError(error)
    }
  }

  /// The digest of all rows. An older backup does not have all tables.
  private static func digest(of sql: any SQLSession) throws -> RowDigest {
    var digest = RowDigest()
    for (name, key) in ArchivedTables.all where try isThere(name, in: sql) {
      try ArchivedTables.read(name, key: key, in: sql) { digest.add($0, of: name) }
    }
    return digest
  }

  private static func isThere(_ table: String, in sql: any SQLSession) throws -> Bool {
    try !sql.rows("SELECT 1 AS found FROM sqlite_master WHERE type = 'table' AND name = ?", [.text(table)]).isEmpty
  }

  /// Converts errors of SQLite to errors of the new file.
  private static func aboutFile<Value>(_ body: () throws -> Value) throws -> Value {
    do { return try body() } catch let fault as DatabaseError {
      throw BackupError.unwritable(reason: fault.message ?? fault.plainReason)
    }
  }

  // MARK: Read

  /// Opens a backup and reads its description.
  ///
  /// - Throws: `BackupError`.
  public init(path: String) throws(BackupError) {
    guard access(path, R_OK) == 0 else {
      throw errno == ENOENT ? .missing : .unreadable(reason: String(cString: strerror(errno)))
    }
    // SQLite reports a folder as an I/O error, which would count as damage.
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT != S_IFDIR else {
      throw .unreadable(reason: String(cString: strerror(EISDIR)))
    }
    do {
      let (row, accounts) = try Self.open(path).read { db in
        let sql = SQLiteSession(db: db)
        guard let row = try sql.rows("SELECT * FROM mfa_backup", []).first else {
          throw BackupError.damaged(reason: "its description is missing")
        }
        return (row, try sql.rows("SELECT COUNT(*) AS count FROM users", []).first?.integer("count") ?? 0)
      }
      guard try row.integer("version") == Self.version, try row.integer("schema") <= MFASchema.sqlite.versions.count
      else { throw BackupError.foreign(reason: "a newer version wrote it") }
      self.path = path
      self.accounts = accounts
      madeAt = Timestamp(milliseconds: try row.integer("made_at"))
      origin = try row.text("origin")
      rows = try row.integer("rows")
      schema = max(0, Int(try row.integer("schema")))
      digest = try row.blob("digest")
    } catch {
      throw BackupError(reading: error)
    }
  }

  private static func open(_ path: String) throws -> DatabaseQueue {
    var configuration = Configuration()
    configuration.readonly = true
    return try DatabaseQueue(path: path, configuration: configuration)
  }

  /// Replaces everything in `store` with this backup, in one transaction. Sessions, open challenges and open recoveries
  /// end.
  ///
  /// The tables of `store` must have the version of this program. Those of the backup may be older.
  ///
  /// - Parameter keys: the keys of the servers that will use the database.
  /// - Throws: `BackupError`; `Vault.Unopenable` if `keys` do not open the data keys of the backup; `MFAStoreError`,
  ///   `.inUse` among them. Then nothing was changed.
  public func restore(into store: StoreArchive, with keys: KeyEncryptionKeys, at now: Timestamp) throws {
    try aboutBackup { try Self.open(path).read { try verify(SQLiteSession(db: $0)) } }
    let copy = try aboutBackup { try current() }
    try aboutBackup {
      try copy.read { db in
        let source = SQLiteSession(db: db)
        try keys.verify(try SQLRecords(sql: source).dataKeys())
        try replaceAll(of: store, from: source, at: now)
      }
    }
  }

  /// - Throws: `BackupError` for a fault of the backup, `MFAStoreError` for one of the store.
  private func replaceAll(of store: StoreArchive, from source: any SQLSession, at now: Timestamp) throws {
    let backup = BackupSession(base: source)
    do {
      try store.replacing(ArchivedTables.dropped + ArchivedTables.all.reversed().map(\.name)) { target in
        for (name, key) in ArchivedTables.all {
          try ArchivedTables.read(name, key: key, in: backup) { rows in
            try ArchivedTables.insert(rows, into: name, target)
          }
        }
        try ArchivedTables.endRecoveries(in: target, at: now)
        try ArchivedTables.moveExports(in: target)
      }
    } catch let fault as BackupError {
      throw fault
    } catch {
      throw MFAStoreError(error)
    }
  }

  /// Converts errors of SQLite to errors of the backup.
  private func aboutBackup<Value>(_ body: () throws -> Value) throws -> Value {
    do { return try body() } catch let fault as any UnderlyingStoreError {
      throw BackupError(reading: fault)
    }
  }

  private func verify(_ source: any SQLSession) throws {
    let found = try Self.digest(of: source)
    guard found.count == rows else {
      throw BackupError.damaged(reason: "it contains \(found.count) rows, but \(rows) were written")
    }
    guard found.bytes == digest else { throw BackupError.damaged(reason: "its rows differ from those written") }
  }

  /// The rows in tables of this version: those of the file, or of a temporary copy that was migrated.
  private func current() throws -> DatabaseQueue {
    let steps = MFASchema.sqlite.versions
    let file = try Self.open(path)
    guard schema < steps.count else { return file }
    var configuration = Configuration()
    // A step may create a table again, which must not delete the rows that refer to it.
    configuration.foreignKeysEnabled = false
    // SQLite removes a database without a name when it is closed.
    let copy = try DatabaseQueue(path: "", configuration: configuration)
    try file.backup(to: copy)
    try copy.write { db in
      for step in steps.dropFirst(schema) { try step.take(in: SQLiteSession(db: db)) }
    }
    return copy
  }
}

/// The rows of a backup. Its errors are those of the backup, also within a transaction of another database.
private struct BackupSession: SQLSession {
  let base: any SQLSession

  func run(_ sql: String, _ arguments: [SQLValue]) throws -> Int {
    do { return try base.run(sql, arguments) } catch { throw StoreBackup.BackupError(reading: error) }
  }

  func rows(_ sql: String, _ arguments: [SQLValue]) throws -> [SQLRow] {
    do { return try base.rows(sql, arguments) } catch { throw StoreBackup.BackupError(reading: error) }
  }
}

extension StoreBackup.BackupError {
  /// An error while a backup is read.
  fileprivate init(reading error: any Error) {
    switch error {
    case let fault as Self: self = fault
    case let fault as DatabaseError:
      let reason = fault.message ?? fault.plainReason
      switch fault.resultCode {
      // Another kind of file, or a database without the tables of a backup.
      case .SQLITE_NOTADB, .SQLITE_ERROR: self = .foreign(reason: reason)
      case .SQLITE_CANTOPEN, .SQLITE_PERM, .SQLITE_BUSY, .SQLITE_FULL, .SQLITE_NOMEM: self = .unreadable(reason: reason)
      default: self = .damaged(reason: reason)
      }
    default: self = .damaged(reason: (error as? any UnderlyingStoreError)?.plainReason ?? "\(error)")
    }
  }
}
