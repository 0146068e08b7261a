#if !canImport(Darwin)
  internal import Glibc

  /// An exclusive lock between processes on a folder (`flock`), which the system gives back when its holder ends.
  package final class FileLock: Sendable {
    private let file: Int32

    /// Locks the folder at `path`; a process that holds it already makes this wait, or fail with `EWOULDBLOCK`.
    package init(path: String, waits: Bool) throws(PrivateFile.Fault) {
      let file = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
      guard file >= 0 else { throw PrivateFile.Fault(action: "open", path: path, code: errno) }
      while flock(file, waits ? LOCK_EX : LOCK_EX | LOCK_NB) != 0 {
        let code = errno
        if code == EINTR { continue }
        close(file)
        throw PrivateFile.Fault(action: "lock", path: path, code: code)
      }
      self.file = file
    }

    /// Gives the lock back before the object ends: to be named where its holding ends, so that it is not released
    /// early.
    package func release() { flock(file, LOCK_UN) }

    deinit { close(file) }
  }
#endif
