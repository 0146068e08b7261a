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
  /// The draft's.
  private let inode: ino_t
  private var queue: DatabaseQueue?
  private var isPlaced = false

  /// Makes the draft, with this version's tables, mode 0600.
  init(at path: String) throws {
    self.path = path
    draft = "\(path).new-\(getpid())"
    unlink(draft)
    let descriptor = open(draft, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw StoreError(systemError: errno) }
    var status = stat()
    fstat(descriptor, &status)
    inode = status.st_ino
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
    guard geteuid() == 0, lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return }
    // The draft's folder may be that user's, and so may be what stands at its name by now.
    let descriptor = open(draft, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    var made = stat()
    guard fstat(descriptor, &made) == 0, made.st_ino == inode, made.st_nlink == 1 else { return }
    _ = fchown(descriptor, status.st_uid, status.st_gid)
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
