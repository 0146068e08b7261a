internal import AttestGate
internal import Glibc

/// Identifies the file at a path by device and inode.
struct FileIdentity: Sendable, Hashable {
  private let device: dev_t
  private let inode: ino_t

  /// The file at `path`, behind links; `nil` if there is none.
  init?(of path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    (device, inode) = (status.st_dev, status.st_ino)
  }
}

/// The files of a database, identified when it was opened: the database, its write-ahead log and the index of that.
///
/// SQLite goes on with files that were deleted or replaced, and its commits are gone when it closes them.
struct OpenFiles: Sendable {
  private let path: String
  private let identities: [(path: String, identity: FileIdentity)]

  /// To be called when the database at `path` has just been read in WAL mode: then all three files exist.
  init(of path: String) {
    self.path = path
    identities = ["", "-wal", "-shm"].compactMap { suffix in
      FileIdentity(of: path + suffix).map { (path + suffix, $0) }
    }
  }

  /// Whether `identity` is that of the database itself.
  func isDatabase(_ identity: FileIdentity) -> Bool {
    identities.first.map { $0.path == path && $0.identity == identity } ?? false
  }

  func requireInPlace() throws(StoreError) {
    for (path, identity) in identities where FileIdentity(of: path) != identity { throw Self.displaced(path) }
  }

  static func displaced(_ path: String) -> StoreError {
    .unreachable(
      reason: "\(path) was deleted or replaced while in use: put it back, or stop the gate and restore a backup")
  }
}
