import Glibc

/// A TCP socket that only does what a test requests. Every wait fails after ten seconds.
final class ScriptedSocket: @unchecked Sendable {
  // Only one test uses the socket at a time, and the descriptor never changes.
  let fd: Int32

  struct Failure: Error, CustomStringConvertible { let description: String }

  init(fd: Int32) {
    self.fd = fd
    var limit = timeval(tv_sec: 10, tv_usec: 0)
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
  }

  convenience init(connectingTo port: UInt16) throws {
    let fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = ScriptedSocket.loopback(port)
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(fd, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else { throw Failure(description: "connect: \(errno)") }
    self.init(fd: fd)
  }

  deinit { close(fd) }

  static func loopback(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
  }

  func send(_ bytes: [UInt8]) throws {
    var rest = bytes[...]
    while !rest.isEmpty {
      let sent = rest.withUnsafeBytes { Glibc.send(fd, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      guard sent > 0 else { throw Failure(description: "send: \(errno)") }
      rest = rest.dropFirst(sent)
    }
  }

  func send(_ text: String) throws { try send(Array(text.utf8)) }

  /// Sends `block` repeatedly until `most` bytes were accepted, or until the kernel accepts no more and `isStalled`
  /// confirms that the peer does not read. Returns the number of accepted bytes.
  ///
  /// A busy machine delays a peer that reads, so a pause of the peer is not enough.
  func flood(_ block: [UInt8], most: Int, until isStalled: () async -> Bool) async -> Int {
    let deadline = ContinuousClock.now + .seconds(60)
    var sent = 0
    while sent < most, ContinuousClock.now < deadline {
      var event = pollfd(fd: fd, events: Int16(POLLOUT), revents: 0)
      guard poll(&event, 1, 100) == 1 else {
        if await isStalled() { break }
        continue
      }
      // A frame must be complete: the next call sends the rest of the block.
      let more = block.dropFirst(sent % block.count).withUnsafeBytes {
        Glibc.send(fd, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
      }
      guard more > 0 else { break }
      sent += more
    }
    return sent
  }

  /// Reads exactly `count` bytes.
  func read(_ count: Int) throws -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < count {
      let more = try readSome(count - bytes.count)
      guard !more.isEmpty else { throw Failure(description: "closed after \(bytes.count) of \(count) bytes") }
      bytes += more
    }
    return bytes
  }

  /// Reads at least one byte; returns an empty array at the end of the stream.
  func readSome(_ most: Int = 65536) throws -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: most)
    let count = recv(fd, &buffer, most, 0)
    guard count >= 0 else { throw Failure(description: "recv: \(errno)") }
    return Array(buffer[..<count])
  }

  func readToEnd() throws -> [UInt8] {
    var bytes: [UInt8] = []
    while true {
      let more = try readSome()
      if more.isEmpty { return bytes }
      bytes += more
    }
  }

  /// Reads a head up to and including its empty line.
  func readHead() throws -> String {
    var bytes: [UInt8] = []
    while !bytes.suffix(4).elementsEqual("\r\n\r\n".utf8) { bytes += try read(1) }
    return String(decoding: bytes, as: UTF8.self)
  }

  func sendEnd() { shutdown(fd, Int32(SHUT_WR)) }

  /// Closes the connection with a reset.
  func reset() {
    var option = linger(l_onoff: 1, l_linger: 0)
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    var nowhere = sockaddr()
    nowhere.sa_family = sa_family_t(AF_UNSPEC)
    // Connecting to AF_UNSPEC sends the reset immediately. `deinit` closes the descriptor.
    connect(fd, &nowhere, socklen_t(MemoryLayout<sockaddr>.size))
  }
}

/// A listening socket for an upstream that the test plays.
final class RawListener: Sendable {
  let fd: Int32
  let port: UInt16

  init() throws {
    let fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    self.fd = fd
    var address = ScriptedSocket.loopback(0)
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        let bound = bind(fd, address, length) == 0 && listen(fd, 64) == 0
        return bound && getsockname(fd, address, &length) == 0
      }
    }
    guard result else { throw ScriptedSocket.Failure(description: "listen: \(errno)") }
    port = UInt16(bigEndian: address.sin_port)
    var limit = timeval(tv_sec: 10, tv_usec: 0)
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
  }

  deinit { close(fd) }

  func accept() throws -> ScriptedSocket {
    let accepted = Glibc.accept(fd, nil, nil)
    guard accepted >= 0 else { throw ScriptedSocket.Failure(description: "accept: \(errno)") }
    return ScriptedSocket(fd: accepted)
  }
}
