internal import Glibc

/// The identity of a file: its device and inode.
public struct FileIdentity: Sendable, Hashable {
  private let device: dev_t
  private let inode: ino_t

  /// Identifies the file at `path`, following links; `nil` if there is none.
  public init?(of path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    (device, inode) = (status.st_dev, status.st_ino)
  }
}

/// The identities of a SQLite database file, its write-ahead log and the log's index, taken when the database was opened.
///
/// SQLite keeps using files that were deleted or replaced, and its commits to them are lost when they are closed.
public struct OpenFiles: Sendable {
  /// A file was deleted or replaced while it was in use.
  public struct Displaced: Error, Sendable, Hashable {
    public let path: String
    public init(path: String) { self.path = path }
  }

  private let path: String
  private let identities: [(path: String, identity: FileIdentity)]

  /// Call it right after the database at `path` was read in WAL mode: all three files then exist.
  public init(of path: String) {
    self.path = path
    identities = ["", "-wal", "-shm"].compactMap { suffix in
      FileIdentity(of: path + suffix).map { (path + suffix, $0) }
    }
  }

  /// Whether `identity` is the identity of the database file.
  public func isDatabase(_ identity: FileIdentity) -> Bool {
    identities.first.map { $0.path == path && $0.identity == identity } ?? false
  }

  /// Requires that all files are still in place. Costs three `stat(2)` calls.
  public func requireInPlace() throws(Displaced) {
    for (path, identity) in identities where FileIdentity(of: path) != identity { throw Displaced(path: path) }
  }
}
