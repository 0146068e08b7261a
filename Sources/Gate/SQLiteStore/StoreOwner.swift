internal import Glibc

/// The owner of the files of a store that root creates, so that the gate's user can open them.
struct StoreOwner {
  private let user: uid_t
  private let group: gid_t

  /// Returns the owner of the database at `path`, or of its folder if there is no database yet. Ask before the database is
  /// created.
  ///
  /// - Returns: `nil` if this process is not root's, and for a `path` that is not a regular file.
  init?(of path: String) {
    guard geteuid() == 0 else { return nil }
    var status = stat()
    if lstat(path, &status) == 0 {
      guard status.st_mode & S_IFMT == S_IFREG else { return nil }
    } else {
      guard errno == ENOENT, stat(Self.folder(of: path), &status) == 0 else { return nil }
    }
    (user, group) = (status.st_uid, status.st_gid)
  }

  private static func folder(of path: String) -> String {
    path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
  }

  /// Gives a file to the owner, which this process has created.
  func take(_ descriptor: Int32) { _ = fchown(descriptor, user, group) }
}
