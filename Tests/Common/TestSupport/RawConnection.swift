import Glibc

/// A TCP connection to a port of the loopback of which a test decides the user, the own port, the bytes, and when it is
/// closed.
public final class RawConnection {
  /// A call of the system failed.
  public struct Failed: Error, Sendable {
    let call: String
    let number: Int32
  }

  private var descriptor: Int32
  /// The port of this end.
  public let ownPort: UInt16

  /// Connects.
  ///
  /// - Parameters:
  ///   - ownPort: The port of this end; 0 for a free one.
  ///   - user: The user who owns the socket for the kernel, which only root can choose; `nil` for this one.
  public init(port: UInt16, from ownPort: UInt16 = 0, user: UInt32? = nil) throws {
    func require(_ isDone: Bool, _ call: String) throws {
      guard isDone else { throw Failed(call: call, number: errno) }
    }
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    self.descriptor = descriptor
    var isReused: Int32 = 1
    let size = socklen_t(MemoryLayout<Int32>.size)
    try require(setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &isReused, size) == 0, "setsockopt")
    if let user { try require(fchown(descriptor, user, user) == 0, "fchown") }
    var own = Self.loopback(ownPort)
    try require(Self.call(&own) { bind(descriptor, $0, $1.pointee) } == 0, "bind")
    var address = Self.loopback(port)
    try require(Self.call(&address) { connect(descriptor, $0, $1.pointee) } == 0, "connect")
    try require(Self.call(&own) { getsockname(descriptor, $0, $1) } == 0, "getsockname")
    self.ownPort = UInt16(bigEndian: own.sin_port)
  }

  private static func loopback(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
  }

  private static func call(
    _ address: inout sockaddr_in, _ body: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
  ) -> Int32 {
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    return withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, &length) }
    }
  }

  /// Sends as much of `text` as the other end accepts, and returns the number of bytes.
  @discardableResult
  public func send(_ text: String) -> Int {
    let bytes = Array(text.utf8)
    return Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
  }

  /// Returns the first bytes that arrive; empty if the other end closes the connection.
  public func firstAnswer() -> String { String(decoding: receive(), as: UTF8.self) }

  /// Returns all bytes until the other end closes the connection.
  public func wholeAnswer() -> [UInt8] {
    var bytes: [UInt8] = []
    while true {
      let next = receive()
      if next.isEmpty { return bytes }
      bytes += next
    }
  }

  private func receive() -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: 16 << 10)
    let count = recv(descriptor, &bytes, bytes.count, 0)
    return Array(bytes.prefix(max(0, count)))
  }

  /// Closes with a reset, so that the port is free at once.
  public func reset() {
    var option = linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    close()
  }

  public func close() {
    if descriptor >= 0 { Glibc.close(descriptor) }
    descriptor = -1
  }

  deinit { close() }
}
