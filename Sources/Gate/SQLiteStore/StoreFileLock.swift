internal import AttestGate
internal import Glibc

/// A lock on a store's file: shared by all processes that work on it, or exclusive for the process that replaces it.
///
/// It uses `flock` on a separate file, `FILE.lock`: the database file may be replaced, and closing any of its
/// descriptors would release SQLite's locks. The kernel releases the lock when the process exits for any reason. The
/// content of `FILE.lock` outlives the process: it records that a replacement was started and not finished.
final class StoreFileLock: Sendable {
  enum Kind { case shared, exclusive }

  private let descriptor: Int32

  /// - Throws: `.locked` if another process holds a conflicting lock; `.unreachable` after an interrupted
  ///   replacement, or if `path` is that of a folder, next to which no lock file is made.
  init(of path: String, _ kind: Kind) throws(StoreError) {
    try Self.requireNoFolder(at: path)
    descriptor = try Self.openLock(beside: path)
    do throws(StoreError) {
      let operation = kind == .shared ? LOCK_SH : LOCK_EX
      guard flock(descriptor, operation | LOCK_NB) == 0 else {
        throw errno == EWOULDBLOCK ? .locked : Self.fault()
      }
      if kind == .shared, isUnfinished {
        throw .unreachable(reason: "a restore was interrupted: run `sallyport store restore` again")
      }
    } catch {
      close(descriptor)
      throw error
    }
  }

  deinit { close(descriptor) }

  /// Refuses a folder, which SQLite reports as an I/O error or as a file that cannot be opened.
  static func requireNoFolder(at path: String) throws(StoreError) {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else { return }
    throw StoreError(systemError: EISDIR)
  }

  /// Opens `PATH.lock` and creates it if necessary.
  ///
  /// Symbolic links are not followed, and a file with several hard links is refused. The folder belongs to the gate's
  /// user, who must not be able to make root write to another file.
  private static func openLock(beside path: String) throws(StoreError) -> Int32 {
    let lock = path + ".lock"
    let flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
    // The second attempt covers a lock file that another process creates in between.
    for _ in 0..<2 {
      let new = open(lock, flags | O_CREAT | O_EXCL, 0o600)
      if new >= 0 {
        // When root runs a command, the gate's user must still be able to open the lock file.
        StoreOwner(of: path)?.take(new)
        return new
      }
      guard errno == EEXIST else { throw fault() }
      let old = open(lock, flags)
      guard old < 0 else { return try requirePlain(old, lock) }
      guard errno == ENOENT else { throw errno == ELOOP ? foreign(lock) : fault() }
    }
    throw fault()
  }

  private static func requirePlain(_ descriptor: Int32, _ lock: String) throws(StoreError) -> Int32 {
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_nlink == 1 else {
      close(descriptor)
      throw foreign(lock)
    }
    return descriptor
  }

  private static func foreign(_ lock: String) -> StoreError {
    .unreachable(reason: "\(lock) is a link or not a regular file: find out who created it, then remove it")
  }

  /// Whether a replacement was started and not finished.
  var isUnfinished: Bool {
    var status = stat()
    return fstat(descriptor, &status) == 0 && status.st_size > 0
  }

  /// Records that a replacement has started, so that a half-written store is not used after a crash. Requires the
  /// exclusive lock.
  func begin() throws(StoreError) {
    guard write(descriptor, "restoring\n", 10) == 10, fsync(descriptor) == 0 else { throw Self.fault() }
  }

  /// Records that the replacement is complete.
  func finish() throws(StoreError) {
    guard ftruncate(descriptor, 0) == 0, fsync(descriptor) == 0 else { throw Self.fault() }
  }

  private static func fault() -> StoreError { StoreError(systemError: errno) }
}

extension StoreError {
  /// Converts the `errno` of a failed system call.
  init(systemError number: Int32) {
    self =
      switch number {
      case EROFS: .readOnly
      case ENOSPC, EDQUOT: .full
      default: .unreachable(reason: String(cString: strerror(number)))
      }
  }
}
