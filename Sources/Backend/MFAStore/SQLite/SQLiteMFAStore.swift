internal import Databases
internal import GRDB
internal import Glibc
internal import Locking
public import MFADomain

/// The store in one SQLite file or in memory.
///
/// A write returns after its commit is on disk (`synchronous = FULL`). If the file was deleted or replaced while it was in
/// use, writes fail, and so do reads that do not run on the thread that asks, like those of the readiness check: SQLite
/// itself would go on with a file that is lost at the end. The file may be put back.
public final class SQLiteMFAStore: Store {
  private let writer: any DatabaseWriter
  private let queue: WriteQueue
  private let trace: StatementTrace?
  private let historyKeys = HistoryKeyPlace(nil)
  private let quickReads = QuickReads()
  /// `nil` in memory, where a read waits for the writer.
  private let readers: SQLiteReaders?
  /// `nil` in memory.
  private let files: OpenFiles?
  /// Prevents a restore while this store is open; `nil` in memory.
  private let fileLock: DatabaseFileLock?

  /// Opens the file at `path`, or creates it with mode 0600. Its folder must exist.
  ///
  /// - Parameters:
  ///   - makesTables: whether an empty database gets its tables; otherwise it is refused with `MFAStoreError.noTables`.
  ///   - mostWaiting: the maximum number of waiting writes. Further writes are refused as overload.
  /// - Throws: `MFAStoreError` if the file cannot be opened, has no tables or has a newer version.
  public convenience init(
    path: String, makesTables: Bool = true, mostWaiting: Int = 4096, trace: StatementTrace? = nil
  ) throws(MFAStoreError) {
    do {
      try Self.createPrivately(path)
      let lock = try DatabaseFileLock(of: path, .shared)
      var configuration = Configuration()
      configuration.busyMode = .timeout(2)
      configuration.label = "mfa.store"
      let pool = try DatabasePool(path: path, configuration: configuration)
      try self.init(
        writer: pool, makesTables: makesTables, mostWaiting: mostWaiting, trace: trace, path: path, fileLock: lock)
      // GRDB sets NORMAL when it turns WAL on. NORMAL may lose commits at a power failure.
      try pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = FULL") }
    } catch let fault as MFAStoreError {
      throw fault
    } catch {
      throw MFAStoreError(error)
    }
  }

  /// Creates a store in memory, which is lost with this object.
  public static func ephemeral(
    mostWaiting: Int = 4096, trace: StatementTrace? = nil
  ) throws(MFAStoreError) -> SQLiteMFAStore {
    do {
      return try SQLiteMFAStore(writer: try DatabaseQueue(), makesTables: true, mostWaiting: mostWaiting, trace: trace)
    } catch {
      throw MFAStoreError(error)
    }
  }

  private init(
    writer: any DatabaseWriter, makesTables: Bool, mostWaiting: Int, trace: StatementTrace?,
    path: String? = nil, fileLock: DatabaseFileLock? = nil
  ) throws {
    var migrator = DatabaseMigrator()
    for (index, step) in MFASchema.sqlite.versions.enumerated() {
      migrator.registerMigration("\(index + 1)") { try step.take(in: SQLiteSession(db: $0)) }
    }
    guard try writer.read({ try !migrator.hasBeenSuperseded($0) }) else {
      throw MFAStoreError(reason: "the database was written by a newer version")
    }
    if !makesTables, try writer.read({ try migrator.appliedIdentifiers($0).isEmpty }) { throw MFAStoreError.noTables }
    try migrator.migrate(writer)
    // A reader that opened the tables before the migration has cached the old columns.
    (writer as? DatabasePool)?.invalidateReadOnlyConnections()
    self.writer = writer
    self.trace = trace
    let files = path.map(OpenFiles.init)
    self.files = files
    readers = path.flatMap { path in files.map { SQLiteReaders(path: path, files: $0) } }
    self.fileLock = fileLock
    queue = WriteQueue(
      writer: SQLiteWriter(writer: writer, files: files, trace: trace), mostWaiting: mostWaiting,
      historyKeys: historyKeys)
  }

  /// Whether the task has chosen its thread, as those of connections do. Others run on the few threads of Swift's pool,
  /// which a read must not block, and keep their deadlines.
  private static var hasOwnThread: Bool { withUnsafeCurrentTask { $0?.unownedTaskExecutor != nil } }

  public func read<Value: Sendable>(
    _ body: @escaping @Sendable (any Records) throws -> Value
  ) async throws -> Value {
    let deadline = StoreDeadline.current
    let read = { @Sendable [trace, historyKeys] (session: SQLiteSession) throws -> Value in
      if StoreDeadline.hasPassed(deadline) { throw MFAStoreError.late }
      return try body(SQLRecords(sql: session.traced(by: trace), historyKeys: historyKeys.withLock { $0 }))
    }
    do {
      if let readers, Self.hasOwnThread, quickReads.arePossible {
        return try quickReads.run { try readers.read(read) }
      }
      return try await StoreDeadline.answer { answer in
        writer.asyncRead { [files] db in
          answer(
            Result {
              let db = try db.get()
              try files?.requireInPlace()
              return try read(SQLiteSession(db: db))
            })
        }
      }
    } catch {
      throw MFAStoreError.translated(error)
    }
  }

  public func write<Value: Sendable>(
    excluding others: WriteExclusion, _ body: @escaping @Sendable (any Records) throws -> Value
  ) async throws -> Value {
    try await queue.run(excluding: others, body)
  }

  public func authenticateHistory(with keys: HistoryKeys) { historyKeys.withLock { $0 = keys } }

  // An existing file is not opened here: closing its descriptor would release the locks of this process's other
  // connections.
  private static func createPrivately(_ path: String) throws(MFAStoreError) {
    guard access(path, F_OK) != 0 else { return }
    let flags = O_RDWR | O_CREAT | O_CLOEXEC
    // Only a file that this process has created is given away: a link may lead to another one.
    var descriptor = open(path, flags | O_EXCL, 0o600)
    if descriptor >= 0 {
      giveToOwnerOfFolder(of: path, descriptor)
    } else if errno == EEXIST {
      descriptor = open(path, flags, 0o600)
    }
    guard descriptor >= 0 else { throw MFAStoreError(reason: "\(path): \(String(cString: strerror(errno)))") }
    close(descriptor)
  }

  /// When root runs a command, the backend's user must still be able to open the file. SQLite gives its companion files
  /// to the same owner.
  private static func giveToOwnerOfFolder(of path: String, _ descriptor: Int32) {
    let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    var status = stat()
    guard geteuid() == 0, stat(folder, &status) == 0 else { return }
    _ = fchown(descriptor, status.st_uid, status.st_gid)
  }
}
