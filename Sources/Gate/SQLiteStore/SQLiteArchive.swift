public import AttestGate
internal import ByteCoding
internal import GRDB
internal import Glibc

/// The SQLite file as a whole, for commands of an operator.
public struct SQLiteArchive: StoreArchive {
  public let path: String
  private let busyTimeout: Double

  /// - Parameter busyTimeout: how long another process may hold the file, in seconds.
  public init(path: String, busyTimeout: Double = 10) {
    self.path = path
    self.busyTimeout = busyTimeout
  }

  public var place: String { "sqlite://\(path)" }

  public func schema() throws(StoreError) -> SchemaState {
    guard access(path, F_OK) == 0 else {
      return SchemaState(version: 0, newest: SQLiteSchema.migrator.migrations.count)
    }
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
    // No restore meanwhile. What a restore left that was cut off is not worth a copy either.
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
          // A log that is found beside another file would be taken for that one's.
          for companion in Self.companions { unlink(path + companion) }
        }, finishing: { try use.finish() })
      return kept
    }
  }

  /// What SQLite keeps beside a file.
  private static let companions = ["-wal", "-shm", "-journal"]

  /// Makes the file hold all that SQLite keeps beside it, and keeps it under another name; `nil` if there is none, or
  /// it cannot be kept whole. A log that cannot be emptied is kept beside it, under the name by which SQLite finds
  /// it.
  ///
  /// - Parameter isRepeated: whether a restore was cut off. Then that one has put it aside already, and what stands
  ///   here may be what it brought.
  private func setAside(isRepeated: Bool) -> String? {
    guard access(path, F_OK) == 0 else { return nil }
    let kept = path + ".replaced"
    if isRepeated && access(kept, F_OK) == 0 { return kept }
    let isWhole = emptyLog()
    // Under its name stands a whole file or none: what was kept before gives way in one step.
    let draft = kept + ".new"
    unlink(draft)
    guard link(path, draft) == 0 else { return nil }
    for companion in Self.companions { unlink(kept + companion) }
    let isKept = rename(draft, kept) == 0
    // Of two names of one file a rename leaves both (POSIX).
    unlink(draft)
    guard isKept else { return nil }
    guard !isWhole else { return kept }
    return link(path + "-wal", kept + "-wal") == 0 || errno == ENOENT ? kept : nil
  }

  /// Whether the file holds all that was committed. The last connection that closes would see to it, but another
  /// program may have the file open; if that reads at this moment, or the file is damaged, the log stays.
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
