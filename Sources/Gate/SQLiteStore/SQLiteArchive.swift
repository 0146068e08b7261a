public import AttestGate
internal import ByteCoding
internal import GRDB
internal import Glibc

/// Operator commands on a whole SQLite store file.
public struct SQLiteArchive: StoreArchive {
  public let path: String
  private let busyTimeout: Double

  /// - Parameter busyTimeout: The maximum time to wait for another process that holds the file, in seconds.
  public init(path: String, busyTimeout: Double = 10) {
    self.path = path
    self.busyTimeout = busyTimeout
  }

  public var place: String { "sqlite://\(path)" }

  public func schema() throws(StoreError) -> SchemaState {
    guard access(path, F_OK) == 0 else {
      return SchemaState(version: 0, newest: SQLiteSchema.migrator.migrations.count)
    }
    try StoreFileLock.requireNoFolder(at: path)
    do { return try open().read(SQLiteSchema.state) } catch { throw StoreError(error) }
  }

  public func migrate() throws(StoreError) -> SchemaChange {
    let before = try schema()
    let file = DatabaseFile(path: path, busyTimeout: busyTimeout)
    defer { file.close() }
    do { _ = try file.connections() } catch { throw StoreError(error) }
    return SchemaChange(from: before, Array(SQLiteSchema.migrator.migrations.dropFirst(before.version)))
  }

  public func copyOut(_ take: ([KeyEntry]) throws -> Void) throws {
    guard access(path, F_OK) == 0 else { throw StoreError(systemError: errno) }
    // No restore may run meanwhile, and the result of an interrupted restore must not be copied.
    let use = try StoreFileLock(of: path, .shared)
    try withExtendedLifetime(use) {
      try KeyPages.read(queue: open(), fault: { StoreError($0) }, take)
    }
  }

  public func replace(
    with start: ArchiveHeader, _ feed: (_ take: ([KeyEntry]) throws -> Void) throws -> Void
  ) throws -> String? {
    let use: StoreFileLock
    do throws(StoreError) {
      use = try StoreFileLock(of: path, .exclusive)
    } catch {
      if error == .locked { throw StoreInUse() }
      throw error
    }
    return try withExtendedLifetime(use) {
      let file = try NewStoreFile(at: path)
      file.takeOwner(of: path)
      try feed { try file.append($0) }
      try file.write { db in
        try ChallengeKeyStatements(db: db).replace(with: start.ring)
        try db.execute(
          sql: "UPDATE nonce_watermark SET issued_at = ? WHERE id = 1", arguments: [start.instant.milliseconds])
      }
      var kept: String?
      let isRepeated = use.isUnfinished
      try file.place(
        preparing: {
          kept = setAside(isRepeated: isRepeated)
          try use.begin()
          // SQLite would apply a leftover log to the new file.
          for companion in Self.companions { unlink(path + companion) }
        }, finishing: { try use.finish() })
      return kept
    }
  }

  /// The suffixes of the files that SQLite keeps next to the database.
  private static let companions = ["-wal", "-shm", "-journal"]

  /// Moves all data into the database file and keeps that file under another name. Returns `nil` if there is no file
  /// or it cannot be kept completely. A log that cannot be emptied is kept too, under the name by which SQLite finds
  /// it.
  ///
  /// - Parameter isRepeated: Whether an earlier restore was interrupted. That restore has already kept the original
  ///   file, and the current file may be its result.
  private func setAside(isRepeated: Bool) -> String? {
    guard access(path, F_OK) == 0 else { return nil }
    let kept = path + ".replaced"
    if isRepeated && access(kept, F_OK) == 0 { return kept }
    let isWhole = emptyLog()
    // The kept name refers to a complete file or to none: an earlier kept file is replaced in one step.
    let draft = kept + ".new"
    unlink(draft)
    guard link(path, draft) == 0 else { return nil }
    for companion in Self.companions { unlink(kept + companion) }
    let isKept = rename(draft, kept) == 0
    // Renaming one hard link onto another link of the same file leaves both (POSIX).
    unlink(draft)
    guard isKept else { return nil }
    guard !isWhole else { return kept }
    return link(path + "-wal", kept + "-wal") == 0 || errno == ENOENT ? kept : nil
  }

  /// Whether the file contains all commits. The last connection normally moves the log into the file when it closes.
  /// The log stays if another program is reading the file at this moment, or if the file is damaged.
  private func emptyLog() -> Bool {
    do {
      let queue = try open()
      try queue.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
      try queue.close()
      return true
    } catch {
      return false
    }
  }

  private func open() throws -> DatabaseQueue {
    var configuration = Configuration()
    configuration.busyMode = .timeout(busyTimeout)
    return try DatabaseQueue(path: path, configuration: configuration)
  }
}
