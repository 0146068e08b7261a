internal import AttestGate
internal import GRDB
internal import Glibc
internal import Locking

/// The file and its connections: opened when they are first needed, and again after a fault that outlives a call.
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
  /// The database that was opened first: no other one is opened in its place.
  private let known = LockedValue<FileIdentity?>(nil)

  init(path: String, busyTimeout: Double) {
    self.path = path
    self.busyTimeout = busyTimeout
  }

  /// The connections, opened if they are not. Blocks while the file is opened.
  ///
  /// - Throws: `.unreachable` if the files were deleted or replaced since they were opened: what would be committed
  ///   then is lost with the next start. Each batch asks, so that at most the one that runs is affected; three calls
  ///   of `stat(2)` cost little next to its commit. Files that are put back are used again.
  func connections() throws -> DatabasePool {
    try state.withLock { state in
      switch state {
      case .open(let pool, let files):
        try files.requireInPlace()
        return pool
      case .closed: throw StoreError.closed
      case .idle:
        let (pool, files) = try open()
        state = .open(pool, files)
        return pool
      }
    }
  }

  /// Lets go of `pool`; the next call opens the file again.
  func discard(_ pool: DatabasePool) {
    state.withLock { state in
      if case .open(let current, _) = state, current === pool { state = .idle }
    }
  }

  /// Closes for good.
  func close() {
    state.withLock { $0 = .closed }
    use.withLock { $0 = nil }
  }

  private func open() throws -> (DatabasePool, OpenFiles) {
    let known = known.withLock(\.self)
    guard known == nil || known == FileIdentity(of: path) else { throw OpenFiles.displaced(path) }
    try createPrivately()
    let identity = FileIdentity(of: path)
    // Kept until the store is closed: a fault that ends the connection must not let a restore in.
    try use.withLock { use in
      if use == nil { use = try StoreFileLock(of: path, .shared) }
    }
    var configuration = Configuration()
    configuration.busyMode = .timeout(busyTimeout)
    configuration.maximumReaderCount = 1
    configuration.label = "sallyport.store"
    configuration.prepareDatabase { db in
      // In KiB, taken as needed. The inner pages of ten million keys are 15 MB; with SQLite's default of 2 MB each
      // admission would read them again.
      try db.execute(sql: "PRAGMA cache_size = -32768")
    }
    let pool = try DatabasePool(path: path, configuration: configuration)
    _ = try pool.read(SQLiteSchema.state)
    try Self.migrate(pool)
    try Self.makeCommitsDurable(pool)
    let files = OpenFiles(of: path)
    guard let identity, files.isDatabase(identity) else { throw OpenFiles.displaced(path) }
    self.known.withLock { $0 = identity }
    return (pool, files)
  }

  /// Brings the tables to this version. Of several processes at once one does each step, and the others find it done.
  private static func migrate(_ pool: DatabasePool) throws {
    while true {
      let version = try pool.read(SQLiteSchema.state).version
      do {
        return try SQLiteSchema.migrator.migrate(pool)
      } catch {
        // What is missing is asked before the transaction that makes it: another process may have been there between.
        guard try pool.read(SQLiteSchema.state).version > version else { throw error }
      }
    }
  }

  /// The file holds the challenge keys, so only its owner may read it. SQLite gives the companion files the same
  /// mode.
  ///
  /// An existing file is not opened: closing a descriptor of it lifts all locks that this process has on it
  /// (fcntl(2)), and another queue may still use a pool that was discarded. Without its lock, the next process that
  /// closes the store removes the log that this one writes to, and with it what was acknowledged.
  private func createPrivately() throws {
    guard access(path, F_OK) != 0 else { return }
    let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw StoreError(systemError: errno)
    }
    Glibc.close(descriptor)
  }

  // GRDB sets NORMAL behind every preparation of ours when it turns WAL on, and NORMAL loses commits with the power.
  private static func makeCommitsDurable(_ pool: DatabasePool) throws {
    try pool.writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA synchronous = FULL")
      guard try Int.fetchOne(db, sql: "PRAGMA synchronous") == 2 else {
        throw StoreError.unreachable(reason: "SQLite does not take synchronous = FULL")
      }
    }
  }
}
