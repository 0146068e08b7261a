import Cryptography
import Foundation
import GateProcesses
import Locking

@testable import TransportEngine

/// A backend that sends 32 messages of 1 MiB to every socket as fast as the kernel accepts them, and counts the
/// accepted bytes.
///
/// A message begins with the number of its socket, 8 bytes; the rest is the same for all sockets. Each socket has a
/// thread, which blocks in `send` as a simple backend would.
final class FloodBackend: Sendable {
  static let messageSize = 1 << 20
  static let messageCount = 32
  private static let tagSize = 8

  let port: UInt16
  private let listener: Int32
  private let bodies: [[UInt8]]
  private let digests: [[UInt8]]
  private let sent = LockedValue(0)

  init() throws {
    bodies = (0..<Self.messageCount).map { _ in SecureRandom.bytes(Self.messageSize - Self.tagSize) }
    digests = bodies.map { SHA256.hash($0) }
    (listener, port) = try Self.listen()
    Thread.detachNewThread { [listener, weak self] in
      var number: UInt64 = 0
      while case let socket = accept(listener, nil, nil), socket >= 0 {
        guard let self else { break }
        let tag = withUnsafeBytes(of: number.bigEndian) { Array($0) }
        number += 1
        Thread.detachNewThread {
          self.flood(socket, tag)
          close(socket)
        }
      }
      close(listener)
    }
  }

  /// Stops waiting for sockets. Each open socket remains open until its gate closes it.
  func stop() { shutdown(listener, Int32(SHUT_RDWR)) }

  /// The number of message bytes that the kernel accepted, over all sockets.
  var bytesSent: Int { sent.withLock { $0 } }

  /// Returns the socket's number if `message` is exactly the one at `index`; otherwise `nil`.
  func tag(of message: [UInt8], at index: Int) -> [UInt8]? {
    guard message.count == Self.messageSize else { return nil }
    guard SHA256.hash(message[Self.tagSize...]) == digests[index] else { return nil }
    return Array(message[..<Self.tagSize])
  }

  private func flood(_ socket: Int32, _ tag: [UInt8]) {
    guard let head = Self.readHead(socket), let line = head.split(separator: "\r\n").first(where: Self.isKey),
      let key = line.split(separator: " ").last
    else { return }
    let switching =
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      + "Sec-WebSocket-Accept: \(HandshakeKey.accept(for: String(key)))\r\n\r\n"
    guard Self.write(Array(switching.utf8), to: socket) else { return }
    // The header of a whole binary message with an eight-byte length.
    let header = [0x82, 127] + withUnsafeBytes(of: UInt64(Self.messageSize).bigEndian) { Array($0) } + tag
    for body in bodies {
      guard Self.write(header, to: socket), Self.write(body, to: socket) else { return }
      sent.withLock { $0 += Self.messageSize }
    }
    // Reads until the other side closes.
    var rest = [UInt8](repeating: 0, count: 256)
    while recv(socket, &rest, rest.count, 0) > 0 {}
  }

  private static func isKey(_ line: Substring) -> Bool { line.lowercased().hasPrefix("sec-websocket-key: ") }

  private static func readHead(_ socket: Int32) -> String? {
    var head: [UInt8] = []
    var byte: UInt8 = 0
    while head.count < 16384, recv(socket, &byte, 1, 0) == 1 {
      head.append(byte)
      if head.suffix(4).elementsEqual("\r\n\r\n".utf8) { return String(decoding: head, as: UTF8.self) }
    }
    return nil
  }

  private static func write(_ bytes: [UInt8], to socket: Int32) -> Bool {
    bytes.withUnsafeBytes { bytes in
      var sent = 0
      while sent < bytes.count {
        let count = send(socket, bytes.baseAddress.map { $0 + sent }, bytes.count - sent, Int32(MSG_NOSIGNAL))
        guard count > 0 else { return false }
        sent += count
      }
      return true
    }
  }

  private static func listen() throws -> (Int32, UInt16) {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = Loopback.address(port: 0)
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isListening = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, length) == 0 && Glibc.listen(listener, 64) == 0 && getsockname(listener, $0, &length) == 0
      }
    }
    guard isListening else { throw Unexpected("the backend cannot listen: \(String(cString: strerror(errno)))") }
    return (listener, UInt16(bigEndian: address.sin_port))
  }
}

enum Loopback {
  static func address(port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
  }
}
