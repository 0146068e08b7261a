internal import Glibc
internal import Locking
public import Transport

// Graceful upgrade: hands the listening sockets to a new process. The descriptors are copied first, so that a new
// process that fails to start changes nothing. Then the sockets are shared and this engine stops listening.
extension Engine {
  /// Returns the address at which the socket `descriptor` listens; `nil` if it is not a listening stream socket.
  public static func address(ofListening descriptor: Int32) -> SocketAddress? {
    Socket.isListening(descriptor) ? Socket.localAddress(of: descriptor) : nil
  }

  /// Returns a copy of each listening socket's descriptor, for the new process. The caller closes the copies.
  ///
  /// Loops that share a socket yield one copy. Empty if this engine no longer listens; incomplete if the
  /// process runs out of descriptors.
  public func socketCopies() async -> [Int32] {
    var copies: [Int32] = []
    var sockets: Set<UInt> = []
    for loop in loops {
      let listening: [Int32] = await withCheckedContinuation { continuation in
        let isAccepted = loop.execute { loop in
          continuation.resume(returning: loop.listeners.map { fcntl($0.fd, F_DUPFD_CLOEXEC, 3) })
        }
        if !isAccepted { continuation.resume(returning: []) }
      }
      for copy in listening {
        var status = stat()
        if fstat(copy, &status) == 0, sockets.insert(UInt(status.st_ino)).inserted {
          copies.append(copy)
        } else if copy >= 0 {
          close(copy)
        }
      }
    }
    return copies
  }

  /// Marks the listening sockets as shared with another process.
  ///
  /// Afterwards `stopListening` and `drain` leave connections that are not yet accepted to the other process, and the
  /// file of a Unix socket stays.
  public func shareSockets() async {
    file.withLock { $0 = nil }
    for loop in loops {
      await withCheckedContinuation { continuation in
        let isAccepted = loop.execute { loop in
          for listener in loop.listeners { listener.share() }
          continuation.resume()
        }
        if !isAccepted { continuation.resume() }
      }
    }
  }
}
