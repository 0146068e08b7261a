internal import Glibc
internal import MFADomain

/// Whether files exist. A folder that this user may not search is an error, not an absent file.
enum FilePresence {
  /// - Throws: `MFAStoreError` if that cannot be known.
  static func exists(_ path: String) throws(MFAStoreError) -> Bool {
    guard access(path, F_OK) != 0 else { return true }
    let number = errno
    guard number == ENOENT else { throw MFAStoreError(reason: "\(path): \(String(cString: strerror(number)))") }
    return false
  }

  /// The folder that contains `path`.
  static func folder(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }
}
