internal import AttestGate
internal import Glibc

/// The identity of a file: its device and inode.
struct FileIdentity: Sendable, Hashable {
  private let device: dev_t
  private let inode: ino_t

  /// Identifies the file at `path`, following links; `nil` if there is none.
  init?(of path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    (device, inode) = (status.st_dev, status.st_ino)
  }
}

/// The identities of the database file, its write-ahead log and the log's index, taken when the database was opened.
///
/// SQLite keeps using files that were deleted or replaced, and its commits to them are lost when they are closed.
struct OpenFiles: Sendable {
  private let path: String
  private let identities: [(path: String, identity: FileIdentity)]

  /// Call it right after the database at `path` was read in WAL mode: all three files then exist.
  init(of path: String) {
    self.path = path
    identities = ["", "-wal", "-shm"].compactMap { suffix in
      FileIdentity(of: path + suffix).map { (path + suffix, $0) }
    }
  }

  /// Whether `identity` is the identity of the database file.
  func isDatabase(_ identity: FileIdentity) -> Bool {
    identities.first.map { $0.path == path && $0.identity == identity } ?? false
  }

  /// Requires that all files are still in place.
  ///
  /// - Throws: `.unreachable` if one was deleted or replaced.
  func requireInPlace() throws(StoreError) {
    for (path, identity) in identities where FileIdentity(of: path) != identity { throw Self.displaced(path) }
  }

  static func displaced(_ path: String) -> StoreError {
    .unreachable(
      reason: "\(path) was deleted or replaced while in use: put it back, or stop the gate and restore a backup")
  }
}
