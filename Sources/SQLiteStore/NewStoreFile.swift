internal import AttestGate
internal import GRDB
internal import Glibc
internal import ProcessSignals

/// A store's file that is written beside the place where it is to stand, so that it appears there whole or not at all.
///
/// Not for two threads at once. Calls block.
final class NewStoreFile {
  /// Where it is to stand.
  let path: String
  private let draft: String
  /// The draft's.
  private let inode: ino_t
  /// Of the draft, with a lock that says that somebody works on it; the system lifts it when the process ends.
  private let claim: Int32
  private var queue: DatabaseQueue?
  private var isPlaced = false

  /// Makes the draft, with this version's tables, mode 0600. Drafts for the same place that others left behind, and that
  /// nobody works on any more, are removed.
  init(at path: String) throws {
    self.path = path
    Self.removeAbandonedDrafts(of: path)
    draft = "\(path)\(Self.mark)\(getpid())"
    UnfinishedFiles.begin(draft)
    unlink(draft)
    claim = open(draft, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard claim >= 0 else {
      let code = errno
      UnfinishedFiles.forget(draft)
      throw StoreError(systemError: code)
    }
    flock(claim, LOCK_EX | LOCK_NB)
    var status = stat()
    fstat(claim, &status)
    inode = status.st_ino
    // From here on all is initialised: whatever is thrown, `deinit` removes the draft.
    let queue = try DatabaseQueue(path: draft)
    // Nothing of a draft has to survive a crash: it is flushed once, when it is complete.
    try queue.writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
    }
    try Schema.migrator.migrate(queue)
    self.queue = queue
  }

  deinit {
    queue = nil
    if !isPlaced { unlink(draft) }
    UnfinishedFiles.forget(draft)
    close(claim)
  }

  /// What stands between the place and the number of the process in the name of a draft.
  private static let mark = ".new-"

  /// Drafts whose process is gone have lost their lock.
  private static func removeAbandonedDrafts(of path: String) {
    let folder = folder(of: path)
    let prefix = (path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path) + mark
    guard let entries = opendir(folder) else { return }
    defer { closedir(entries) }
    while let entry = readdir(entries) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      guard name.hasPrefix(prefix), Int32(name.dropFirst(prefix.count)) != nil else { continue }
      let draft = folder + "/" + name
      let descriptor = open(draft, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
      guard descriptor >= 0 else { continue }
      defer { close(descriptor) }
      var status = stat()
      guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
      if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { unlink(draft) }
    }
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
    // A signal that would end the process waits: it finds either all of it done or nothing.
    try UnfinishedFiles.finish(draft) {
      try prepare()
      guard rename(draft, path) == 0 else { throw StoreError(systemError: errno) }
      isPlaced = true
    }
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
