internal import AttestGate
internal import Databases
internal import GRDB
internal import Glibc
internal import Locking

/// The database file and its connections. They are opened on first use, and again after a fault that breaks them.
final class DatabaseFile: Sendable {
  private enum State {
    case idle
    case open(DatabasePool, OpenFiles)
    case closed
  }

  let path: String
  private let busyTimeout: Double
  private let state = LockedValue(State.idle)
  private let use = LockedValue<StoreFileLock?>(nil)
  /// The identity of the file that was opened first. No other file is opened in its place.
  private let known = LockedValue<FileIdentity?>(nil)

  init(path: String, busyTimeout: Double) {
    self.path = path
    self.busyTimeout = busyTimeout
  }

  /// Returns the connections and opens them if necessary. Blocks while the file is opened.
  ///
  /// - Throws: `.unreachable` if the files were deleted or replaced since they were opened: later commits would be
  ///   lost at the next start. Each batch checks, so at most the running batch is affected. The three `stat(2)` calls
  ///   are cheap compared with a commit. If the files are put back, they are used again.
  func connections() throws -> DatabasePool {
    try state.withLock { state in
      switch state {
      case .open(let pool, let files):
        do throws(OpenFiles.Displaced) { try files.requireInPlace() } catch { throw StoreError.displaced(error.path) }
        return pool
      case .closed: throw StoreError.closed
      case .idle:
        let (pool, files) = try open()
        state = .open(pool, files)
        return pool
      }
    }
  }

  /// Drops `pool`; the next call opens the file again.
  func discard(_ pool: DatabasePool) {
    state.withLock { state in
      if case .open(let current, _) = state, current === pool { state = .idle }
    }
  }

  /// Closes the file permanently.
  func close() {
    state.withLock { $0 = .closed }
    use.withLock { $0 = nil }
  }

  private func open() throws -> (DatabasePool, OpenFiles) {
    let known = known.withLock(\.self)
    guard known == nil || known == FileIdentity(of: path) else { throw StoreError.displaced(path) }
    try createPrivately()
    let identity = FileIdentity(of: path)
    // Held until the store is closed: a fault that breaks the connection must not allow a restore.
    try use.withLock { use in
      if use == nil { use = try StoreFileLock(of: path, .shared) }
    }
    var configuration = Configuration()
    configuration.busyMode = .timeout(busyTimeout)
    configuration.maximumReaderCount = 1
    configuration.label = "sallyport.store"
    configuration.prepareDatabase { db in try db.setCache(.ofKeys) }
    let pool = try Self.pool(path, configuration)
    _ = try pool.read(SQLiteSchema.state)
    try Self.migrate(pool)
    try Self.makeCommitsDurable(pool)
    let files = OpenFiles(of: path)
    guard let identity, files.isDatabase(identity) else { throw StoreError.displaced(path) }
    self.known.withLock { $0 = identity }
    return (pool, files)
  }

  /// Opens the connections. While a new file gets its write-ahead log, SQLite does not wait for other processes that do
  /// the same, whatever the time limit: this tries again for a second.
  private static func pool(_ path: String, _ configuration: Configuration) throws -> DatabasePool {
    let end = ContinuousClock.now + .seconds(1)
    while true {
      do {
        return try DatabasePool(path: path, configuration: configuration)
      } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY && ContinuousClock.now < end {
        usleep(10_000)
      }
    }
  }

  /// Migrates the tables to this version. If several processes race, one performs each step, and the others find it
  /// done.
  private static func migrate(_ pool: DatabasePool) throws {
    while true {
      let version = try pool.read(SQLiteSchema.state).version
      do {
        return try SQLiteSchema.migrator.migrate(pool)
      } catch {
        // GRDB looks for missing migrations before it starts the transaction; another process may have applied one in
        // between.
        guard try pool.read(SQLiteSchema.state).version > version else { throw error }
      }
    }
  }

  /// Creates the file with mode 0600, since it contains the challenge keys. SQLite gives its companion files the same
  /// mode.
  ///
  /// An existing file is not opened here. Closing any descriptor of a file releases all locks that the process holds
  /// on it (fcntl(2)), and another queue may still use a pool that was discarded. Without its lock, the next process
  /// that closes the store would delete the write-ahead log that this process writes to, and so lose committed data.
  private func createPrivately() throws {
    guard access(path, F_OK) != 0 else { return }
    let owner = StoreOwner(of: path)
    let flags = O_RDWR | O_CREAT | O_CLOEXEC
    // Only a file that this process has created is given away: a link may lead to another one.
    var descriptor = Glibc.open(path, flags | O_EXCL, 0o600)
    if descriptor >= 0 {
      owner?.take(descriptor)
    } else if errno == EEXIST {
      descriptor = Glibc.open(path, flags, 0o600)
    }
    guard descriptor >= 0 else {
      throw StoreError(systemError: errno)
    }
    Glibc.close(descriptor)
  }

  // GRDB sets NORMAL after our preparation when it enables WAL, and NORMAL loses commits in a power failure.
  private static func makeCommitsDurable(_ pool: DatabasePool) throws {
    try pool.writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA synchronous = FULL")
      guard try Int.fetchOne(db, sql: "PRAGMA synchronous") == 2 else {
        throw StoreError.unreachable(reason: "SQLite does not accept synchronous = FULL")
      }
    }
  }
}

/// The pages that a connection keeps in memory, in KiB. They are allocated on demand.
enum PageCache: Int {
  /// The inner pages of ten million keys take 15 MB; with SQLite's default of 2 MB, each admission would read them from
  /// the file again.
  case ofKeys = 32_768
  /// For a statement that reads a whole table, each page once.
  case ofScan = 1024
}

extension Database {
  /// Pages beyond a smaller cache are freed at once.
  func setCache(_ cache: PageCache) throws { try execute(sql: "PRAGMA cache_size = -\(cache.rawValue)") }
}
