internal import Glibc
public import MFADomain

/// A lock on a database file: shared by all processes that use it, exclusive for a restore.
///
/// It uses `flock` on a separate file, `FILE.lock`, in the folder of the database file itself: all symbolic links to a
/// database lead to one lock. A lock on the database file would be unsafe: closing any descriptor of that file releases
/// SQLite's locks. The kernel releases the lock when the process ends.
final class DatabaseFileLock: Sendable {
  enum Kind { case shared, exclusive }

  private let descriptor: Int32

  /// - Throws: `MFAStoreError.inUse` if another process holds a conflicting lock.
  init(of path: String, _ kind: Kind) throws(MFAStoreError) { descriptor = try Self.lock(path, kind) }

  private static func lock(_ link: String, _ kind: Kind) throws(MFAStoreError) -> Int32 {
    let path = try resolved(link)
    let lock = path + ".lock"
    // A symbolic link at this name is not followed: the owner of the folder must not make root write elsewhere.
    let descriptor = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
    guard descriptor >= 0 else { throw MFAStoreError(reason: "\(lock): \(String(cString: strerror(errno)))") }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_nlink == 1 else {
      close(descriptor)
      throw MFAStoreError(reason: "\(lock) is not a regular file: find out who created it, then remove it")
    }
    giveToOwner(of: path, descriptor)
    guard flock(descriptor, (kind == .shared ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0 else {
      let number = errno
      close(descriptor)
      throw number == EWOULDBLOCK ? .inUse : MFAStoreError(reason: "\(lock): \(String(cString: strerror(number)))")
    }
    return descriptor
  }

  /// The path without symbolic links.
  private static func resolved(_ path: String) throws(MFAStoreError) -> String {
    guard let real = realpath(path, nil) else {
      throw MFAStoreError(reason: "\(path): \(String(cString: strerror(errno)))")
    }
    defer { free(real) }
    return String(cString: real)
  }

  deinit { close(descriptor) }

  /// When root runs a command, the backend's user must still be able to open the lock file.
  private static func giveToOwner(of path: String, _ descriptor: Int32) {
    var status = stat()
    guard geteuid() == 0, lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return }
    _ = fchown(descriptor, status.st_uid, status.st_gid)
  }
}

extension MFAStoreError {
  /// Another process uses the database.
  public static let inUse = MFAStoreError(reason: "it is in use by a backend or another command")
}
