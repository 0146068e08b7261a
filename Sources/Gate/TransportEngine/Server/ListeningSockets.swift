internal import Glibc
internal import Transport

/// Sockets that listen, dealt out to loops.
struct ListeningSockets {
  /// Where they listen; that of the first, if there are several.
  let address: SocketAddress
  /// The descriptors of each loop.
  let each: [[Int32]]
  /// Whether another owner, another loop included, may hold one of them.
  let isShared: Bool
  /// Of a Unix socket that this process has made, or was left.
  let file: UnixSocketFile?

  /// One Unix socket, for one loop.
  init(_ socket: (fd: Int32, file: UnixSocketFile)) {
    each = [[socket.fd]]
    isShared = false
    file = socket.file
    address = .unix(socket.file.path)
  }

  /// - Parameter each: not empty, and every loop has a socket.
  init(each: [[Int32]], isShared: Bool, file: UnixSocketFile? = nil) {
    self.each = each
    self.isShared = isShared
    self.file = file
    address = each.first?.first.map { Socket.localAddress(of: $0) } ?? .unix("")
  }

  /// Takes over `descriptors`, which may be anything that a parent process left open.
  ///
  /// Every socket goes to one loop if there are enough of them; otherwise every loop gets a copy of each.
  ///
  /// - Parameter ownsFile: whether the file of a Unix socket is to be removed in the end.
  /// - Throws: without having closed any, if one of them is not a listening stream socket, or none is given.
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

  /// What `Socket.make` sets when a socket is our own.
  private static func prepare(_ fd: Int32) throws(SystemCallError) {
    guard Socket.isListening(fd) else { throw SystemCallError("accept", number: EINVAL) }
    let flags = try attempt("fcntl") { fcntl(fd, F_GETFL) }
    _ = try attempt("fcntl") { fcntl(fd, F_SETFL, flags | O_NONBLOCK) }
    _ = try attempt("fcntl") { fcntl(fd, F_SETFD, FD_CLOEXEC) }
  }

  /// A socket file that another process has created stays: that process may continue.
  func close() {
    for fd in each.joined() { Glibc.close(fd) }
    if !isShared { file?.remove() }
  }
}
