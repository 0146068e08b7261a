internal import Glibc

/// The socket on which a service reports its state to systemd (sd_notify(3)), without libsystemd: one datagram for
/// each message, without an answer.
public struct NotifySocket: Sendable, Hashable {
  /// The states of a service of `Type=notify` in systemd.
  public enum State: Sendable, Hashable {
    /// It serves.
    case ready
    /// The service reloads its configuration, since the given instant of the monotonic clock, in microseconds.
    case reloading(at: UInt64)
    /// It is about to end.
    case stopping
    /// The service is alive. Must be sent more often than `WatchdogSec=`.
    case watchdog
    /// The process that is the service from now on, which has to be one of the same unit.
    case mainProcess(Int32)
    /// A line for `systemctl status`.
    case status(String)

    var line: String {
      switch self {
      case .ready: "READY=1"
      case .reloading(let instant): "RELOADING=1\nMONOTONIC_USEC=\(instant)"
      case .stopping: "STOPPING=1"
      case .watchdog: "WATCHDOG=1"
      case .mainProcess(let id): "MAINPID=\(id)"
      case .status(let text): "STATUS=" + text.split(whereSeparator: \.isNewline).joined(separator: " ")
      }
    }
  }

  /// A path, or `@` and a name in Linux's abstract namespace.
  public let address: String

  /// The socket that `$NOTIFY_SOCKET` names; `nil` if the variable is not set.
  public init?(environment: [String: String]) {
    // sun_path has 108 bytes, and a path ends with a zero byte.
    guard let address = environment["NOTIFY_SOCKET"], address.utf8.count <= 107, address.utf8.count > 1,
      address.hasPrefix("/") || address.hasPrefix("@")
    else { return nil }
    self.address = address
  }

  /// Sends `states` as one message.
  ///
  /// - Returns: `false` if the message was not delivered. The caller need not act, because systemd notices it.
  @discardableResult
  public func send(_ states: State...) -> Bool {
    let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    let message = Array(states.map(\.line).joined(separator: "\n").utf8)
    var destination = sockaddr_un()
    destination.sun_family = sa_family_t(AF_UNIX)
    var name = Array(address.utf8)
    if name.first == UInt8(ascii: "@") { name[0] = 0 }
    withUnsafeMutableBytes(of: &destination.sun_path) { $0.copyBytes(from: name) }
    // The names of the abstract namespace have no end but their length.
    let offset = MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? MemoryLayout<sa_family_t>.size
    let length = socklen_t(offset + name.count)
    let sent = withUnsafePointer(to: &destination) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        sendto(descriptor, message, message.count, Int32(MSG_NOSIGNAL), $0, length)
      }
    }
    return sent == message.count
  }
}
