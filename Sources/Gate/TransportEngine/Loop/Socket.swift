internal import CLinux
internal import Glibc
internal import Transport

/// System calls on sockets, with the project's address type.
enum Socket {
  /// Creates a non-blocking socket that child processes do not inherit.
  static func make(for address: SocketAddress) throws(SystemCallError) -> Int32 {
    let family: Int32
    switch address {
    case .ipv4: family = AF_INET
    case .ipv6: family = AF_INET6
    case .unix: family = AF_UNIX
    }
    let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    return try attempt("socket") { socket(family, type, 0) }
  }

  /// The same, or `EMFILE` if the descriptor's number is not below `ceiling`.
  static func make(for address: SocketAddress, below ceiling: Int32) throws(SystemCallError) -> Int32 {
    let fd = try make(for: address)
    guard fd < ceiling else {
      close(fd)
      throw SystemCallError("socket", number: EMFILE)
    }
    return fd
  }

  /// Takes a byte that the peer has sent. Returns whether there was one, even if the connection was reset since.
  static func takeByte(from fd: Int32) -> Bool {
    var byte: UInt8 = 0
    return read(fd, &byte, 1) > 0
  }

  static func set(_ option: Int32, level: Int32 = SOL_SOCKET, to value: Int32, on fd: Int32) {
    var value = value
    setsockopt(fd, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
  }

  /// Sends small writes at once: the engine batches by itself.
  static func disableDelay(on fd: Int32) { set(TCP_NODELAY, level: Int32(IPPROTO_TCP), to: 1, on: fd) }

  /// Returns the error of a connection attempt; 0 for none.
  static func pendingError(of fd: Int32) -> Int32 {
    var value: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &value, &length)
    return value
  }

  /// Returns whether connections can be accepted from the socket `fd`.
  static func isListening(_ fd: Int32) -> Bool {
    var value: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &length) == 0 && value == 1
  }

  /// Connects from `source`, an IPv4 address, later. The port is chosen with the destination, so that one address has as
  /// many connections to each server as there are ports.
  static func bind(_ fd: Int32, from source: [UInt8]) throws(SystemCallError) {
    set(IP_BIND_ADDRESS_NO_PORT, level: Int32(IPPROTO_IP), to: 1, on: fd)
    _ = try attempt("bind") { withSystemAddress(.ipv4(source, port: 0)) { Glibc.bind(fd, $0, $1) } }
  }

  /// Starts a connection. Returns `true` if it is already established.
  static func connect(_ fd: Int32, to address: SocketAddress) throws(SystemCallError) -> Bool {
    let result = withSystemAddress(address) { Glibc.connect(fd, $0, $1) }
    if result == 0 { return true }
    if errno == EINPROGRESS || errno == EINTR { return false }
    throw SystemCallError("connect")
  }

  /// Returns the result of the connection attempt that `connect` has begun: 0 for a connection, an error number, or
  /// `nil` while it is under way.
  static func outcome(of fd: Int32, to address: SocketAddress) -> Int32? {
    guard withSystemAddress(address, { Glibc.connect(fd, $0, $1) }) != 0 else { return 0 }
    return [EALREADY, EINPROGRESS, EINTR].contains(errno) ? nil : errno
  }

  /// Calls `body` with `address` as a system address.
  static func withSystemAddress<Result>(
    _ address: SocketAddress, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
  ) -> Result {
    var storage = sockaddr_storage()
    let length = withUnsafeMutableBytes(of: &storage) { fill($0, with: address) }
    return withUnsafePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
    }
  }

  private static func fill(_ storage: UnsafeMutableRawBufferPointer, with address: SocketAddress) -> socklen_t {
    switch address {
    case .ipv4(let bytes, let port):
      var value = sockaddr_in()
      value.sin_family = sa_family_t(AF_INET)
      value.sin_port = port.bigEndian
      withUnsafeMutableBytes(of: &value.sin_addr) { $0.copyBytes(from: bytes.prefix(4)) }
      withUnsafeBytes(of: value) { storage.copyMemory(from: $0) }
      return socklen_t(MemoryLayout<sockaddr_in>.size)
    case .ipv6(let bytes, let port):
      var value = sockaddr_in6()
      value.sin6_family = sa_family_t(AF_INET6)
      value.sin6_port = port.bigEndian
      withUnsafeMutableBytes(of: &value.sin6_addr) { $0.copyBytes(from: bytes.prefix(16)) }
      withUnsafeBytes(of: value) { storage.copyMemory(from: $0) }
      return socklen_t(MemoryLayout<sockaddr_in6>.size)
    case .unix(let path):
      var value = sockaddr_un()
      value.sun_family = sa_family_t(AF_UNIX)
      // Longer paths were refused when the settings were read. Here the path is truncated, so
      // the socket is not found.
      withUnsafeMutableBytes(of: &value.sun_path) { $0.copyBytes(from: Array(path.utf8).prefix($0.count - 1)) }
      withUnsafeBytes(of: value) { storage.copyMemory(from: $0) }
      return socklen_t(MemoryLayout<sockaddr_un>.size)
    }
  }

  /// Returns the address in `storage`. An IPv4-mapped IPv6 address becomes an IPv4 address.
  static func address(from storage: sockaddr_storage) -> SocketAddress {
    withUnsafeBytes(of: storage) { bytes in
      switch Int32(storage.ss_family) {
      case AF_INET:
        let value = bytes.loadUnaligned(as: sockaddr_in.self)
        return .ipv4(withUnsafeBytes(of: value.sin_addr, Array.init), port: UInt16(bigEndian: value.sin_port))
      case AF_INET6:
        let value = bytes.loadUnaligned(as: sockaddr_in6.self)
        let address = withUnsafeBytes(of: value.sin6_addr, Array.init)
        let port = UInt16(bigEndian: value.sin6_port)
        let isMapped = address[..<10].allSatisfy { $0 == 0 } && address[10..<12].allSatisfy { $0 == 0xFF }
        return isMapped ? .ipv4(Array(address[12...]), port: port) : .ipv6(address, port: port)
      default:
        // The path ends at its first zero byte. A socket without a name begins with one.
        let path = bytes.dropFirst(MemoryLayout<sa_family_t>.size).prefix { $0 != 0 }
        return .unix(String(decoding: path, as: UTF8.self))
      }
    }
  }

  /// Returns the process at the other end of a Unix socket; `nil` if the kernel does not name it.
  static func process(connectedTo fd: Int32) -> PeerProcess? {
    // struct ucred: process, user and group, 32 bits each.
    var credentials: (id: Int32, user: UInt32, group: UInt32) = (0, 0, 0)
    var length = socklen_t(MemoryLayout.size(ofValue: credentials))
    guard getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 else { return nil }
    return PeerProcess(id: credentials.id, user: credentials.user)
  }

  /// Returns the address to which `fd` is bound.
  static func localAddress(of fd: Int32) -> SocketAddress {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = getsockname(fd, $0, &length) }
    }
    return address(from: storage)
  }
}
