internal import AppAttest
public import AttestGate
public import ByteCoding
internal import Foundation
internal import GRDB
internal import Glibc

/// A backup: an SQLite file with the tables of a store of any kind, and a digest of all keys.
///
/// It contains keys, counters, revocations and receipts, but neither challenge keys nor spent nonces. A restored
/// store gets new challenge keys and refuses every earlier nonce.
public struct BackupFile: Sendable {
  /// The reason why a backup cannot be written or restored.
  public enum BackupError: Error, Sendable, Hashable {
    case missing
    /// This user may not read it, or it is no file: why.
    case unreadable(reason: String)
    case exists
    /// The file was not made by `write`, or was made by a newer version.
    case foreign(reason: String)
    /// The content is not what was written.
    case damaged(reason: String)
    /// The file cannot be created or completed.
    case unwritable(StoreError)
    /// The file cannot be read.
    case store(StoreError)
  }

  public let path: String
  public let madeAt: Timestamp
  /// The location of the store that was backed up.
  public let place: String
  /// The number of keys.
  public let count: Int64
  private let digest: [UInt8]

  /// Copies `store` to a new file at `path` with mode 0600. The file appears only when it is complete.
  ///
  /// - Throws: `BackupError` for the file, `StoreError` for the store.
  public static func write(_ store: some StoreArchive, to path: String, at now: Timestamp) throws -> BackupFile {
    guard access(path, F_OK) != 0 else { throw BackupError.exists }
    let file = try aboutTheFile { try NewStoreFile(at: path) }
    var digest = EntryDigest()
    try store.copyOut { entries in
      for entry in entries { digest.add(entry) }
      try aboutTheFile { try file.append(entries) }
    }
    try aboutTheFile {
      try file.write { db in
        try db.execute(
          sql: """
            CREATE TABLE sallyport_backup (made_at BIGINT, place TEXT, keys BIGINT, digest BLOB);
            """)
        try db.execute(
          sql: "INSERT INTO sallyport_backup (made_at, place, keys, digest) VALUES (?, ?, ?, ?)",
          arguments: [now.milliseconds, store.place, digest.count, Data(digest.bytes)])
      }
      // If two backups race for the same path, the first one stays.
      try file.place(preparing: { guard access(path, F_OK) != 0 else { throw BackupError.exists } })
    }
    return try BackupFile(path: path)
  }

  /// Opens the backup at `path` and reads its description.
  public init(path: String) throws(BackupError) {
    guard access(path, F_OK) == 0 else { throw .missing }
    guard access(path, R_OK) == 0 else { throw .unreadable(reason: String(cString: strerror(errno))) }
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT != S_IFDIR else {
      throw .unreadable(reason: String(cString: strerror(EISDIR)))
    }
    let row: Row?
    do {
      row = try Self.open(path).read { db in
        _ = try SQLiteSchema.state(of: db)
        return try Row.fetchOne(db, sql: "SELECT made_at, place, keys, digest FROM sallyport_backup")
      }
    } catch {
      throw Self.fault(of: error)
    }
    guard let row else { throw .damaged(reason: "its description is missing") }
    do throws(MalformedColumn) {
      self.path = path
      madeAt = try row.read("made_at", Timestamp.init(milliseconds:))
      place = try row.read("place") { $0 }
      count = try row.read("keys") { $0 }
      digest = try row.read("digest") { Array($0 as Data) }
    } catch {
      throw .damaged(reason: "sallyport_backup.\(error.name) is malformed")
    }
  }

  /// Passes all keys to `take`, then checks that they are the keys that were written.
  ///
  /// - Throws: `BackupError`, and any error of `take`. The caller must then discard what it received.
  public func read(_ take: ([KeyEntry]) throws -> Void) throws {
    var found = EntryDigest()
    try KeyPages.read(queue: Self.open(path), fault: Self.fault) { entries in
      for entry in entries { found.add(entry) }
      try take(entries)
    }
    guard found.count == count else {
      throw BackupError.damaged(reason: "it contains \(found.count) keys, but \(count) were written")
    }
    guard found.bytes == digest else {
      throw BackupError.damaged(reason: "its keys differ from the keys that were written")
    }
  }

  /// Opens a read-only connection.
  ///
  /// Commands with `--store` that work on a backup, such as `store check`, give it a write-ahead log. Even a reader of
  /// such a file creates companion files in its folder, which may be read-only, unless the file is declared immutable.
  private static func open(_ path: String) throws -> DatabaseQueue {
    var configuration = Configuration()
    configuration.readonly = true
    // A companion file belongs to a process that works on the file, or has commits that are in no other file. In a
    // URI, a path with two slashes in front would name a host.
    let isInUse = ["-wal", "-shm", "-journal"].contains { access(path + $0, F_OK) == 0 }
    let name = isInUse || path.hasPrefix("//") ? path : ImmutableFile.name(of: path)
    return try DatabaseQueue(path: name, configuration: configuration)
  }

  /// Converts errors of the new file. A `BackupError` is thrown unchanged.
  private static func aboutTheFile<Value>(_ body: () throws -> Value) throws -> Value {
    do {
      return try body()
    } catch let error as BackupError {
      throw error
    } catch {
      throw BackupError.unwritable(StoreError(error))
    }
  }

  private static func fault(of error: any Error) -> BackupError {
    if let error = error as? DatabaseError, error.resultCode == .SQLITE_ERROR {
      return .foreign(reason: error.message ?? "not a backup")
    }
    return switch StoreError(error) {
    case .corrupt(let reason): .damaged(reason: reason)
    case .unreachable(let reason): .foreign(reason: reason)
    case let error: .store(error)
    }
  }
}

/// Reads the keys of a file page by page, in one transaction.
enum KeyPages {
  static let size = 500

  /// - Parameter fault: Converts an error of the file for the caller; errors of `take` are thrown unchanged.
  static func read(
    queue: @autoclosure () throws -> DatabaseQueue, fault: (any Error) -> any Error, _ take: ([KeyEntry]) throws -> Void
  ) throws {
    var takeFault: (any Error)?
    do {
      try queue().read { db in
        let statements = CatalogStatements(db: db)
        var page = try statements.entries(after: nil, limit: size)
        while let last = page.last {
          do { try take(page) } catch {
            takeFault = error
            return
          }
          page = try statements.entries(after: last.record.key.keyID, limit: size)
        }
      }
    } catch {
      throw fault(error)
    }
    if let takeFault { throw takeFault }
  }
}
