internal import AttestGate
internal import Glibc

/// A claim on a store's file: of any number of processes that work on it, or of the one that replaces it.
///
/// It is a lock (`flock`) on a file beside it, `FILE.lock`: the store's own file may be replaced, and SQLite's locks
/// go with any descriptor of it that is closed. The system lifts the lock when the process ends, however it ends.
/// What stands in that file outlives the process: that a replacement was begun and not finished.
final class StoreFileLock: Sendable {
  enum Kind { case shared, exclusive }

  private let descriptor: Int32

  /// - Throws: `.locked` if the claims of others stand against it, `.unreachable` behind a replacement that was cut
  ///   off.
  init(of path: String, _ kind: Kind) throws(StoreError) {
    descriptor = try Self.openLock(beside: path)
    do throws(StoreError) {
      let operation = kind == .shared ? LOCK_SH : LOCK_EX
      guard flock(descriptor, operation | LOCK_NB) == 0 else {
        throw errno == EWOULDBLOCK ? .locked : Self.fault()
      }
      if kind == .shared, isUnfinished {
        throw .unreachable(reason: "a restore was cut off: run `sallyport store restore` again")
      }
    } catch {
      close(descriptor)
      throw error
    }
  }

  deinit { close(descriptor) }

  /// Opens `PATH.lock`, which is made if it is not there.
  ///
  /// A link is not followed, and nothing is done to a file that has another name: the folder belongs to the gate's
  /// user, who must not be able to have root write to a file of his choice.
  private static func openLock(beside path: String) throws(StoreError) -> Int32 {
    let lock = path + ".lock"
    let flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
    // Twice, for a lock that another process makes in between.
    for _ in 0..<2 {
      let new = open(lock, flags | O_CREAT | O_EXCL, 0o600)
      if new >= 0 {
        giveToOwner(of: path, new)
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
    .unreachable(reason: "\(lock) is a link, or no plain file: find out who put it there, and remove it")
  }

  /// A command that root runs must not keep the gate out that runs as another user.
  private static func giveToOwner(of path: String, _ descriptor: Int32) {
    var status = stat()
    guard geteuid() == 0, lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return }
    _ = fchown(descriptor, status.st_uid, status.st_gid)
  }

  /// Whether a replacement was begun and not finished.
  var isUnfinished: Bool {
    var status = stat()
    return fstat(descriptor, &status) == 0 && status.st_size > 0
  }

  /// Records that the file is being replaced, so that no process uses what a crash may leave. Requires the exclusive
  /// lock.
  func begin() throws(StoreError) {
    guard write(descriptor, "restoring\n", 10) == 10, fsync(descriptor) == 0 else { throw Self.fault() }
  }

  func finish() throws(StoreError) {
    guard ftruncate(descriptor, 0) == 0, fsync(descriptor) == 0 else { throw Self.fault() }
  }

  private static func fault() -> StoreError { StoreError(systemError: errno) }
}

extension StoreError {
  /// What a failed system call means to the gate.
  init(systemError number: Int32) {
    self =
      switch number {
      case EROFS: .readOnly
      case ENOSPC, EDQUOT: .full
      default: .unreachable(reason: String(cString: strerror(number)))
      }
  }
}
