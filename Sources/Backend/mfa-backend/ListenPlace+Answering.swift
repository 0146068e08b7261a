internal import Glibc

extension ListenPlace {
  /// Whether a process listens at this Unix socket. Binding would replace its name and make that process unreachable.
  ///
  /// Always `false` for a network address: the kernel refuses a second listener itself.
  var isAnswered: Bool {
    guard case .unix(let path) = self else { return false }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let fits = withUnsafeMutableBytes(of: &address.sun_path) { buffer in
      guard path.utf8.count < buffer.count else { return false }
      buffer.copyBytes(from: path.utf8)
      return true
    }
    guard fits else { return false }
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    let status = withUnsafePointer(to: address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    // EAGAIN means that the backlog is full, so a process listens.
    return status == 0 || errno == EAGAIN
  }

  /// The number of the error that `bind` would fail with; `nil` if the place is free.
  ///
  /// A Unix socket is not created: its folder must be writable, and no process may listen at its path.
  var bindingFault: Int32? {
    switch self {
    case .unix(let path):
      if isAnswered { return EADDRINUSE }
      let folder = path.lastIndex(of: "/").map { path[..<$0] } ?? ""
      return access(folder.isEmpty ? "/" : String(folder), W_OK | X_OK) == 0 ? nil : errno
    case .tcp(let host, let port): return Self.bindingFault(host == "localhost" ? "127.0.0.1" : host, port)
    }
  }

  private static func bindingFault(_ host: String, _ port: Int) -> Int32? {
    var hints = addrinfo()
    hints.ai_flags = AI_NUMERICHOST | AI_PASSIVE
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var found: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(host, String(port), &hints, &found) == 0, let address = found?.pointee else { return EINVAL }
    defer { freeaddrinfo(found) }
    let descriptor = socket(address.ai_family, address.ai_socktype | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return errno }
    defer { close(descriptor) }
    var isReusable: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &isReusable, socklen_t(MemoryLayout<Int32>.size))
    return bind(descriptor, address.ai_addr, address.ai_addrlen) == 0 ? nil : errno
  }
}
