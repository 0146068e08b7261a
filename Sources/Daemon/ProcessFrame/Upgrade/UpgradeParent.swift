internal import Glibc
internal import Locking

/// The old process of a graceful upgrade. It started this process and waits for its report.
public final class UpgradeParent: Sendable {
  /// The name of the descriptor that leads to the old process (`LISTEN_FDNAMES`).
  public static let descriptorName = "sallyport-predecessor"
  static let readyLine = "ready\n"

  /// The descriptor; -1 after the report was sent.
  private let descriptor: LockedValue<Int32>

  /// Takes ownership of `descriptor`.
  public init(descriptor: Int32) {
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    self.descriptor = LockedValue(descriptor)
  }

  deinit { tell("") }

  /// Reports that this process owns the sockets and serves. The old process then accepts no new clients.
  public func reportReady() { tell(Self.readyLine) }

  /// Reports why this process does not take over. The old process continues unchanged.
  public func tell(failure: String) { tell(failure) }

  /// Sends the report and closes the channel. Only the first report is sent.
  private func tell(_ text: String) {
    descriptor.withLock { descriptor in
      guard descriptor >= 0 else { return }
      var rest = Array(text.utf8)[...]
      while !rest.isEmpty {
        let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
        if count < 0 && errno == EINTR { continue }
        // The old process has exited.
        if count <= 0 { break }
        rest = rest.dropFirst(count)
      }
      close(descriptor)
      descriptor = -1
    }
  }
}
