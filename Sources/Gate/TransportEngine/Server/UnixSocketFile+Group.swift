internal import Glibc

extension UnixSocketFile {
  /// Why the access to a socket was not changed.
  public struct AccessError: Error, Sendable, CustomStringConvertible {
    /// For example `chown: Operation not permitted`.
    public let description: String
  }

  /// Lets the members of the group `id` use the socket at `path` (mode 0660); `nil` leaves it to its user (mode 0600).
  ///
  /// The socket belongs to the group before its mode admits one, so no other group ever has access.
  ///
  /// - Throws: `AccessError`; the socket is then accessible to its user only, if the system allows even that.
  public static func admit(group id: UInt32?, at path: String) throws(AccessError) {
    do throws(SystemCallError) {
      _ = try attempt("chmod") { chmod(path, 0o600) }
      guard let id else { return }
      var status = stat()
      _ = try attempt("stat") { lstat(path, &status) }
      // A sandbox that forbids chown may still create files of the right group.
      if status.st_gid != id { _ = try attempt("chown") { lchown(path, uid_t.max, id) } }
      _ = try attempt("chmod") { chmod(path, 0o660) }
    } catch {
      throw AccessError(description: error.description)
    }
  }
}
