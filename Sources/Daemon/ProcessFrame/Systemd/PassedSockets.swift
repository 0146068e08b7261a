internal import Glibc

/// Listening sockets that were opened for this process: by systemd for a socket unit, or by the process that it
/// succeeds (sd_listen_fds(3)).
public enum PassedSockets {
  /// Passed descriptors begin after the standard streams.
  private static let first: Int32 = 3
  /// Far more than a gate listens at, and a limit for a damaged environment.
  private static let most: Int32 = 1024

  /// A descriptor and the name that systemd gave it.
  public struct Passed: Sendable, Hashable {
    public let descriptor: Int32
    /// `FileDescriptorName=` of a socket unit; `unknown` without one, as with sd_listen_fds_with_names(3).
    public let name: String

    public init(descriptor: Int32, name: String) {
      self.descriptor = descriptor
      self.name = name
    }
  }

  /// The socket unit that must pass a socket to this process, as `Environment=SOCKET_UNIT=` of its service names it;
  /// `nil` if the variable is absent or empty. Without such a name, a service whose socket unit has failed would open
  /// a socket of its own, at another address.
  public static func expectedUnit(environment: [String: String]) -> String? {
    environment["SOCKET_UNIT"].flatMap { $0.isEmpty ? nil : $0 }
  }

  /// Returns the descriptors, which the caller then owns; empty if there are none, or if they are for another
  /// process.
  ///
  /// Call it once: a descriptor does not show whether it already has an owner.
  public static func descriptors(environment: [String: String]) -> [Int32] {
    guard environment["LISTEN_PID"] == String(getpid()), let count = environment["LISTEN_FDS"].flatMap({ Int32($0) }),
      (1...most).contains(count)
    else { return [] }
    return Array(first..<(first + count))
  }

  /// Returns the same with their names (`LISTEN_FDNAMES`). Names are ignored if their number differs from that of the
  /// descriptors.
  public static func named(environment: [String: String]) -> [Passed] {
    let descriptors = descriptors(environment: environment)
    let names = (environment["LISTEN_FDNAMES"] ?? "").split(separator: ":", omittingEmptySubsequences: false)
    return descriptors.enumerated().map { index, descriptor in
      Passed(descriptor: descriptor, name: names.count == descriptors.count ? String(names[index]) : "unknown")
    }
  }
}
