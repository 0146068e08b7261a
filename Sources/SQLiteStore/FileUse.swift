internal import AttestGate
internal import Glibc

/// A claim on a store's file: of any number of processes that work on it, or of the one that replaces it.
///
/// It is a lock (`flock`) on a file beside it, `FILE.lock`: the store's own file may be replaced, and SQLite's locks go with
/// any descriptor of it that is closed. The system lifts the lock when the process ends, however it ends. What stands in
/// that file outlives the process: that a replacement was begun and not finished.
final class FileUse: Sendable {
  enum Kind { case shared, exclusive }

  private let descriptor: Int32

  /// - Throws: `.locked` if the claims of others stand against it, `.unreachable` behind a replacement that was cut off.
  init(of path: String, _ kind: Kind) throws(StoreError) {
    descriptor = open(path + ".lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Self.fault() }
    do throws(StoreError) {
      Self.giveToOwner(of: path, descriptor)
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

  /// A command that root runs must not keep the gate out that runs as another user.
  private static func giveToOwner(of path: String, _ descriptor: Int32) {
    var status = stat()
    guard geteuid() == 0, stat(path, &status) == 0 else { return }
    _ = fchown(descriptor, status.st_uid, status.st_gid)
  }

  private var isUnfinished: Bool {
    var status = stat()
    return fstat(descriptor, &status) == 0 && status.st_size > 0
  }

  /// Notes that the file is being replaced, so that nobody uses what a crash may leave. For the exclusive claim.
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
