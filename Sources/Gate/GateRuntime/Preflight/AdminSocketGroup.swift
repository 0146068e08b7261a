internal import Glibc
public import Settings

/// The group whose members may use the admin socket.
public struct AdminSocketGroup: Sendable, Hashable {
  public let name: String
  /// The group's number on this machine.
  public let id: UInt32

  /// Looks up the group of `admin`; `nil` if the socket is for its user alone.
  ///
  /// - Throws: `StartError` if this machine has no such group.
  public static func of(_ admin: GateSettings.Admin) throws(StartError) -> AdminSocketGroup? {
    guard let name = admin.group else { return nil }
    guard let id = number(of: name) else {
      throw StartError(
        "admin.group", "there is no group \(name)",
        hint: "create it with groupadd --system \(name), or name another group")
    }
    return AdminSocketGroup(name: name, id: id)
  }

  /// Whether this process may give a file to the group: it is root, or a member.
  public var mayBeGivenFiles: Bool {
    guard geteuid() != 0, getegid() != id else { return true }
    var groups = [gid_t](repeating: 0, count: Int(max(0, getgroups(0, nil))))
    let count = getgroups(Int32(groups.count), &groups)
    return groups.prefix(Int(max(0, count))).contains(id)
  }

  private static func number(of name: String) -> UInt32? {
    var (entry, found) = (group(), UnsafeMutablePointer<group>?.none)
    var buffer = [CChar](repeating: 0, count: 4096)
    while true {
      let status = getgrnam_r(name, &entry, &buffer, buffer.count, &found)
      guard status == ERANGE, buffer.count < 1 << 24 else { return status == 0 && found != nil ? entry.gr_gid : nil }
      // A group with many members.
      buffer = [CChar](repeating: 0, count: buffer.count * 4)
    }
  }
}
