import Foundation
import Glibc
import Testing

/// A connection whose calls block, for tests that hold event loops of the process, or that do not read.
struct BlockingConnection: Sendable {
  let descriptor: Int32

  init(port: Int) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(UInt16(port).bigEndian)
    address.sin_addr.s_addr = in_addr_t(UInt32(0x7F00_0001).bigEndian)
    try connect(&address)
  }

  init(path: String) throws {
    descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
    try connect(&address)
  }

  private func connect<Address>(_ address: inout Address) throws {
    var limit = timeval(tv_sec: 20, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    let status = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<Address>.size))
      }
    }
    guard status == 0 else { throw NotConnected(number: errno) }
  }

  struct NotConnected: Error { let number: Int32 }

  func send(_ text: String) {
    let bytes = Array(text.utf8)
    #expect(Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
  }

  /// Receives until `mark` has arrived; shorter if the peer closes, or says nothing for 20 s.
  func receive(until mark: String) -> String {
    var text = ""
    var bytes = [UInt8](repeating: 0, count: 65_536)
    while !text.contains(mark) {
      let count = recv(descriptor, &bytes, bytes.count, 0)
      guard count > 0 else { break }
      text += String(decoding: bytes.prefix(count), as: UTF8.self)
    }
    return text
  }

  func close() { Glibc.close(descriptor) }

  /// Whether the peer closes the connection, within 20 s. Reads nothing.
  func hangsUp() -> Bool {
    var place = pollfd(fd: descriptor, events: 0, revents: 0)
    return poll(&place, 1, 20_000) == 1 && place.revents & Int16(POLLHUP) != 0
  }

  /// Runs `body` on a thread of its own.
  static func onThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread { continuation.resume(with: Result(catching: body)) }
    }
  }
}
