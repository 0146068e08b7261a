#if !canImport(Darwin)
  internal import Glibc

  /// An exclusive lock between processes on a folder (`flock`). The system releases it when the process exits.
  package final class FileLock: Sendable {
    private let file: Int32

    /// Locks the folder at `path`. If another process holds the lock, this waits, or fails with `EWOULDBLOCK`.
    package init(path: String, waits: Bool) throws(PrivateFile.AccessError) {
      let file = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
      guard file >= 0 else { throw PrivateFile.AccessError(action: "open", path: path, code: errno) }
      while flock(file, waits ? LOCK_EX : LOCK_EX | LOCK_NB) != 0 {
        let code = errno
        if code == EINTR { continue }
        close(file)
        throw PrivateFile.AccessError(action: "lock", path: path, code: code)
      }
      self.file = file
    }

    /// Releases the lock. Call it at the end of the locked section: otherwise the compiler may release the object,
    /// and the lock, earlier.
    package func release() { flock(file, LOCK_UN) }

    deinit { close(file) }
  }
#endif
