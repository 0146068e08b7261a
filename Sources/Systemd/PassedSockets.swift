internal import Glibc

/// Listening sockets that were opened for this process: by systemd for a socket unit, or by the process that it succeeds
/// (sd_listen_fds(3)).
public enum PassedSockets {
  /// Passed descriptors begin behind the standard streams.
  private static let first: Int32 = 3
  /// Far beyond what a gate listens at, and a bound on what a damaged environment can ask for.
  private static let most: Int32 = 64

  /// The descriptors, which the caller takes over; empty if there are none, or they were meant for another process.
  ///
  /// Call it once: a descriptor does not say whether somebody has it already.
  public static func descriptors(environment: [String: String]) -> [Int32] {
    guard environment["LISTEN_PID"] == String(getpid()), let count = environment["LISTEN_FDS"].flatMap({ Int32($0) }),
      (1...most).contains(count)
    else { return [] }
    return Array(first..<(first + count))
  }
}
