internal import AttestGate
internal import GRDB
internal import Glibc

/// A store's file that is written beside the place where it is to stand, so that it appears there whole or not at all.
///
/// Not for two threads at once. Calls block.
final class NewStoreFile {
  /// Where it is to stand.
  let path: String
  private let draft: String
  private var queue: DatabaseQueue?
  private var isPlaced = false

  /// Makes the draft, with this version's tables, mode 0600.
  init(at path: String) throws {
    self.path = path
    draft = "\(path).new-\(getpid())"
    unlink(draft)
    let descriptor = open(draft, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw StoreError(systemError: errno) }
    close(descriptor)
    do {
      let queue = try DatabaseQueue(path: draft)
      // Nothing of a draft has to survive a crash: it is flushed once, when it is complete.
      try queue.writeWithoutTransaction { db in
        try db.execute(sql: "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
      }
      try Schema.migrator.migrate(queue)
      self.queue = queue
    } catch {
      unlink(draft)
      throw error
    }
  }

  deinit {
    queue = nil
    if !isPlaced { unlink(draft) }
  }

  func write(_ body: (Database) throws -> Void) throws {
    guard let queue else { throw StoreError.closed }
    do {
      try queue.write(body)
    } catch {
      throw StoreError(error)
    }
  }

  func append(_ entries: [KeyEntry]) throws { try write { _ = try CatalogStatements(db: $0).merge(entries) } }

  /// Flushes the draft and calls `prepare`; then the draft stands in its place, in the instant of a rename.
  func place(_ prepare: () throws -> Void = {}) throws {
    // What revocations brought: nobody has read on from a position in this file.
    try write { try $0.execute(sql: "DELETE FROM changes") }
    try queue?.close()
    queue = nil
    try Self.flush(draft)
    try prepare()
    guard rename(draft, path) == 0 else { throw StoreError(systemError: errno) }
    isPlaced = true
    try Self.flush(Self.folder(of: path))
  }

  /// Takes over the owner of `path`, for root.
  func takeOwner(of path: String) {
    var status = stat()
    guard geteuid() == 0, stat(path, &status) == 0 else { return }
    _ = chown(draft, status.st_uid, status.st_gid)
  }

  private static func flush(_ path: String) throws {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw StoreError(systemError: errno) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw StoreError(systemError: errno) }
  }

  static func folder(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }
}
