internal import Glibc
internal import Locking
public import Transport

// How one process serves on where another one did. Copies first, so that a successor which does not come up has changed
// nothing; then the sockets are shared, and this engine stops to listen.
extension Engine {
  /// Where the socket `descriptor` listens; `nil` if it is no listening stream socket.
  public static func address(ofListening descriptor: Int32) -> SocketAddress? {
    Socket.isListening(descriptor) ? Socket.localAddress(of: descriptor) : nil
  }

  /// A copy of each listening socket's descriptor, for a process that succeeds this one; the caller closes them.
  ///
  /// Loops that share a socket count once. Empty if this engine does not listen any more, or if there are no descriptors
  /// left.
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

  /// From now on another process listens on the same sockets: `stopListening` and `drain` leave connections that are
  /// not accepted yet to it, and the file of a Unix socket stays.
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
