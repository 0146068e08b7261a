import Foundation
import Glibc

/// The datagram socket of a service manager, such as systemd.
public final class ServiceManager: @unchecked Sendable {
  public let path: String
  // Set in `init` and not changed afterwards.
  private let descriptor: Int32

  public init(in folder: String) throws {
    path = folder + "/notify"
    descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
    let isBound = withUnsafePointer(to: &address) { [descriptor] pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
      }
    }
    guard isBound else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EINVAL) }
    var patience = timeval(tv_sec: 120, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
  }

  deinit { close(descriptor) }

  /// Returns the next message that is not a watchdog message; `nil` if none arrives within two minutes.
  public func news() async -> String? {
    let start = ContinuousClock.now
    while start.duration(to: .now) < .seconds(120) {
      let message = await next()
      if message != "WATCHDOG=1" { return message }
    }
    return nil
  }

  /// Whether a message has arrived and was not read.
  public var isWaiting: Bool {
    var wanted = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&wanted, 1, 0) == 1
  }

  /// Returns the next message; `nil` if none arrives within two minutes. Runs on a new thread because it blocks.
  public func next() async -> String? {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread { [self] in
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = withExtendedLifetime(self) { recv(descriptor, &buffer, buffer.count, 0) }
        continuation.resume(returning: count < 0 ? nil : String(decoding: buffer.prefix(count), as: UTF8.self))
      }
    }
  }
}
