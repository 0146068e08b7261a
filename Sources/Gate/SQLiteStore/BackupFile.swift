internal import AppAttest
public import AttestGate
public import ByteCoding
internal import Foundation
internal import GRDB
internal import Glibc

/// A backup: an SQLite file with the tables of a store, whatever the store was, and a digest of all keys.
///
/// It holds keys, counters, revocations and receipts. It holds neither keys of nonces nor spent nonces: a store that is
/// restored has new ones, and refuses every nonce of before.
public struct BackupFile: Sendable {
  /// Why a file is no backup that could be restored.
  public enum Fault: Error, Sendable, Hashable {
    case missing
    case exists
    /// Not made by `write`, or by a newer version.
    case foreign(reason: String)
    /// It does not hold what was written.
    case damaged(reason: String)
    /// It cannot be made, or not to its end.
    case unwritable(StoreError)
    /// It cannot be read.
    case store(StoreError)
  }

  public let path: String
  public let madeAt: Timestamp
  /// Where the store was.
  public let place: String
  public let count: Int64
  private let digest: [UInt8]

  /// Copies `store` to a new file at `path`, mode 0600, which appears when it is complete.
  ///
  /// - Throws: `Fault` for the file, `StoreError` for the store.
  public static func write(_ store: some StoreArchive, to path: String, at now: Timestamp) throws -> BackupFile {
    guard access(path, F_OK) != 0 else { throw Fault.exists }
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
      // Of two that are made at once the first one stays.
      try file.place(preparing: { guard access(path, F_OK) != 0 else { throw Fault.exists } })
    }
    return try BackupFile(path: path)
  }

  /// Opens the backup at `path` and reads what it says about itself.
  public init(path: String) throws(Fault) {
    guard access(path, F_OK) == 0 else { throw .missing }
    let row: Row?
    do {
      row = try Self.open(path).read { db in
        _ = try SQLiteSchema.state(of: db)
        return try Row.fetchOne(db, sql: "SELECT made_at, place, keys, digest FROM sallyport_backup")
      }
    } catch {
      throw Self.fault(of: error)
    }
    guard let row else { throw .damaged(reason: "it does not say what it holds") }
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

  /// Hands all keys to `take`, and makes sure behind the last one that they are those that were written.
  ///
  /// - Throws: `Fault`, and what `take` throws: what was taken until then is worth nothing.
  public func read(_ take: ([KeyEntry]) throws -> Void) throws {
    var found = EntryDigest()
    try KeyPages.read(queue: Self.open(path), fault: Self.fault) { entries in
      for entry in entries { found.add(entry) }
      try take(entries)
    }
    guard found.count == count else {
      throw Fault.damaged(reason: "it holds \(found.count) keys, and \(count) were written")
    }
    guard found.bytes == digest else { throw Fault.damaged(reason: "its keys are not those that were written") }
  }

  private static func open(_ path: String) throws -> DatabaseQueue {
    var configuration = Configuration()
    configuration.readonly = true
    return try DatabaseQueue(path: path, configuration: configuration)
  }

  private static func aboutTheFile<Value>(_ body: () throws -> Value) throws -> Value {
    do { return try body() } catch { throw Fault.unwritable(StoreError(error)) }
  }

  private static func fault(of error: any Error) -> Fault {
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

/// Reads the keys of a file in pages, in one transaction.
enum KeyPages {
  static let size = 500

  /// - Parameter fault: what an error of the file is to the caller; those of `take` are thrown as they are.
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
