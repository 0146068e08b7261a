internal import Glibc

/// Listening sockets that the service manager opened for this process (sd_listen_fds(3)): descriptors 3 and on, as many as
/// `$LISTEN_FDS` says.
public enum InheritedSockets {
  /// What the environment says cannot be meant.
  public struct Malformed: Error, Sendable, Hashable, CustomStringConvertible {
    public let description: String
  }

  private static let first: Int32 = 3

  /// The descriptors; none if nobody opened any for this process.
  ///
  /// `$LISTEN_PID` has to be this process, as systemd sets it; a supervisor that cannot know the number may leave it out.
  public static func descriptors(
    environment: [String: String], process: pid_t = getpid()
  ) throws(Malformed) -> [Int32] {
    guard let text = environment["LISTEN_FDS"] else { return [] }
    if let owner = environment["LISTEN_PID"], owner != String(process) { return [] }
    guard let count = Int32(text), (0...1024).contains(count) else {
      throw Malformed(description: "LISTEN_FDS is no number of sockets")
    }
    return Array(first..<(first + count))
  }

  /// Removes the variables, so that no process that this one starts takes them for its own.
  public static func forget() {
    for name in ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"] { unsetenv(name) }
  }
}
