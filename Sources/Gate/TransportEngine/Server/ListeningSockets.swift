internal import Glibc
internal import Transport

/// Listening sockets, distributed over loops.
struct ListeningSockets {
  /// The address of the sockets; the address of the first one if there are several.
  let address: SocketAddress
  /// The descriptors of each loop.
  let each: [[Int32]]
  /// Whether another process or another loop may hold one of the sockets.
  let isShared: Bool
  /// The file of a Unix socket that this process created or inherited together with its file.
  let file: UnixSocketFile?

  /// Creates the value for one Unix socket on one loop.
  init(_ socket: (fd: Int32, file: UnixSocketFile)) {
    each = [[socket.fd]]
    isShared = false
    file = socket.file
    address = .unix(socket.file.path)
  }

  /// - Parameter each: The descriptors of each loop. Every loop has at least one.
  init(each: [[Int32]], isShared: Bool, file: UnixSocketFile? = nil) {
    self.each = each
    self.isShared = isShared
    self.file = file
    address = each.first?.first.map { Socket.localAddress(of: $0) } ?? .unix("")
  }

  /// Takes ownership of `descriptors`, which a parent process left open and which may be of any kind.
  ///
  /// If there are at least as many sockets as loops, every socket goes to one loop. Otherwise
  /// every loop gets a copy of each.
  ///
  /// - Parameter ownsFile: Whether `close()` and the engine remove the file of a Unix socket.
  /// - Throws: `SystemCallError` if a descriptor is not a listening stream socket, or if none is given. No
  ///   descriptor is closed then.
  init(inheriting descriptors: [Int32], ownsFile: Bool, loops: Int) throws(SystemCallError) {
    guard let first = descriptors.first else { throw SystemCallError("listen", number: EBADF) }
    for fd in descriptors { try Self.prepare(fd) }
    var file: UnixSocketFile?
    if ownsFile, case .unix(let path) = Socket.localAddress(of: first) { file = UnixSocketFile(existingAt: path) }
    if descriptors.count >= loops {
      let dealt = (0..<loops).map { loop in
        stride(from: loop, to: descriptors.count, by: loops).map { descriptors[$0] }
      }
      self.init(each: dealt, isShared: true, file: file)
    } else {
      var each = [descriptors]
      while each.count < loops {
        var copies: [Int32] = []
        for fd in descriptors { copies.append(try attempt("fcntl") { fcntl(fd, F_DUPFD_CLOEXEC, 3) }) }
        each.append(copies)
      }
      self.init(each: each, isShared: true, file: file)
    }
  }

  /// Sets the flags that `Socket.make` sets on a socket of this process.
  private static func prepare(_ fd: Int32) throws(SystemCallError) {
    guard Socket.isListening(fd) else { throw SystemCallError("accept", number: EINVAL) }
    let flags = try attempt("fcntl") { fcntl(fd, F_GETFL) }
    _ = try attempt("fcntl") { fcntl(fd, F_SETFL, flags | O_NONBLOCK) }
    _ = try attempt("fcntl") { fcntl(fd, F_SETFD, FD_CLOEXEC) }
  }

  /// Closes the descriptors. The file of a shared socket stays, because another process may still listen there.
  func close() {
    for fd in each.joined() { Glibc.close(fd) }
    if !isShared { file?.remove() }
  }
}
