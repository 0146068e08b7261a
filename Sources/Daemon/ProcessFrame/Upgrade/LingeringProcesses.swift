internal import Glibc
internal import Locking

/// The old processes of this process's upgrades, of which some may still serve their sessions.
///
/// Each passes a socket to its new process, which passes it on at the next upgrade. So the newest process, which is the
/// one that operators and service managers reach, can end all of them.
public final class LingeringProcesses: Sendable {
  /// The name of a descriptor that leads to an old process (`LISTEN_FDNAMES`).
  public static let descriptorName = "sallyport-lingering"

  private let sockets: LockedValue<[Int32]>

  /// Takes ownership of `descriptors`.
  public init(descriptors: [Int32] = []) {
    for descriptor in descriptors { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
    sockets = LockedValue(descriptors)
  }

  deinit { sockets.withLock { for socket in $0 { close(socket) } } }

  /// Asks every old process that still runs to close its sessions. Only the first call has an effect.
  public func end() {
    sockets.withLock { sockets in
      for socket in sockets {
        var byte: UInt8 = 1
        // The old process may have exited.
        _ = send(socket, &byte, 1, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
        close(socket)
      }
      sockets = []
    }
  }

  /// Returns copies of the sockets of the processes that still run, for the next process. The caller owns them.
  public func copies() -> [(name: String, descriptor: Int32)] {
    sockets.withLock { sockets in
      let gone = sockets.filter { Self.isClosed($0) }
      for socket in gone { close(socket) }
      sockets.removeAll { gone.contains($0) }
      return sockets.map { fcntl($0, F_DUPFD_CLOEXEC, 0) }.filter { $0 >= 0 }.map { (Self.descriptorName, $0) }
    }
  }

  /// Whether the other end is closed, so that its process has exited.
  private static func isClosed(_ socket: Int32) -> Bool {
    var wanted = pollfd(fd: socket, events: 0, revents: 0)
    return poll(&wanted, 1, 0) > 0 && wanted.revents & Int16(POLLHUP) != 0
  }
}
