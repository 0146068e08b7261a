internal import Glibc
internal import Transport

/// Sockets that listen, dealt out to loops.
struct ListeningSockets {
  /// Where they listen; that of the first, if there are several.
  let address: SocketAddress
  /// The descriptors of each loop.
  let each: [[Int32]]
  /// Whether anybody else, another loop included, may hold one of them.
  let isShared: Bool
  /// That of a Unix socket of our own.
  let file: UnixSocketFile?

  /// Opens sockets of our own, one for each loop; a Unix socket has one loop.
  init(listeningAt address: SocketAddress, loops: Int) throws(SystemCallError) {
    isShared = false
    if case .unix(let path) = address {
      let (socket, file) = try UnixSocketFile.listen(at: path)
      (each, self.file, self.address) = ([[socket]], file, address)
    } else {
      let sockets = try Self.open(address, count: loops)
      (each, file) = (sockets.map { [$0] }, nil)
      self.address = sockets.first.map { Socket.localAddress(of: $0) } ?? address
    }
  }

  private static func open(_ address: SocketAddress, count: Int) throws(SystemCallError) -> [Int32] {
    do {
      return try Listener.open(address, count: count)
    } catch {
      guard error.number == EAFNOSUPPORT || error.number == EADDRNOTAVAIL,
        case .ipv6(let bytes, let port) = address, bytes.allSatisfy({ $0 == 0 })
      else { throw error }
      return try Listener.open(.ipv4([0, 0, 0, 0], port: port), count: count)
    }
  }

  /// Takes over `descriptors`, which may be anything that a parent process left open.
  ///
  /// Every socket goes to one loop if there are enough of them; otherwise every loop gets a copy of each.
  ///
  /// - Throws: without having closed any, if one of them is not a listening stream socket, or none is given.
  init(inheriting descriptors: [Int32], loops: Int) throws(SystemCallError) {
    guard let first = descriptors.first else { throw SystemCallError("listen", number: EBADF) }
    for fd in descriptors { try Self.prepare(fd) }
    address = Socket.localAddress(of: first)
    isShared = true
    file = nil
    if descriptors.count >= loops {
      each = (0..<loops).map { loop in
        stride(from: loop, to: descriptors.count, by: loops).map { descriptors[$0] }
      }
    } else {
      var each = [descriptors]
      while each.count < loops {
        var copies: [Int32] = []
        for fd in descriptors { copies.append(try attempt("fcntl") { fcntl(fd, F_DUPFD_CLOEXEC, 3) }) }
        each.append(copies)
      }
      self.each = each
    }
  }

  /// What `Socket.make` sets when a socket is our own.
  private static func prepare(_ fd: Int32) throws(SystemCallError) {
    var isListening: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    _ = try attempt("getsockopt") { getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &isListening, &length) }
    guard isListening == 1 else { throw SystemCallError("accept", number: EINVAL) }
    let flags = try attempt("fcntl") { fcntl(fd, F_GETFL) }
    _ = try attempt("fcntl") { fcntl(fd, F_SETFL, flags | O_NONBLOCK) }
    _ = try attempt("fcntl") { fcntl(fd, F_SETFD, FD_CLOEXEC) }
  }

  func close() {
    for fd in each.joined() { Glibc.close(fd) }
    file?.remove()
  }
}
