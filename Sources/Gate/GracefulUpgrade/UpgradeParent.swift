internal import Glibc
internal import Locking

/// The process that started this one to take its place, and waits to hear how that goes.
public final class UpgradeParent: Sendable {
  /// The name of the descriptor that leads to it (`LISTEN_FDNAMES`).
  public static let descriptorName = "sallyport-predecessor"
  static let readyLine = "ready\n"

  /// -1 once it was told.
  private let descriptor: LockedValue<Int32>

  /// Takes over `descriptor`.
  public init(descriptor: Int32) {
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    self.descriptor = LockedValue(descriptor)
  }

  deinit { tell("") }

  /// From here nothing can fail: the sockets belong to this process, and the other one accepts no new connections.
  public func tellReady() { tell(Self.readyLine) }

  /// Why this process does not take over. The other one goes on as if nothing had been.
  public func tell(failure: String) { tell(failure) }

  /// What was told first counts.
  private func tell(_ text: String) {
    descriptor.withLock { descriptor in
      guard descriptor >= 0 else { return }
      var rest = Array(text.utf8)[...]
      while !rest.isEmpty {
        let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
        if count < 0 && errno == EINTR { continue }
        // The other process is gone.
        if count <= 0 { break }
        rest = rest.dropFirst(count)
      }
      close(descriptor)
      descriptor = -1
    }
  }
}
