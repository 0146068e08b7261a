import Foundation
import Glibc
import Locking

/// An HTTP proxy on loopback, for programs that find their proxy in variables of the environment.
///
/// Whatever host a client names, a tunnel leads to one port of loopback. Each connection uses blocking threads, so the
/// proxy is suitable for few connections only.
public final class ForwardProxyServer: Sendable {
  /// What the proxy does when it has the head of a request.
  public enum Conduct: Sendable {
    /// Opens a tunnel to a port of loopback, and answers a request in absolute form with a document.
    case serve(port: UInt16, document: String)
    /// Writes these bytes and closes the connection.
    case answer([UInt8])
    /// Writes these bytes and then one more every few milliseconds.
    case drip([UInt8])
    /// Writes nothing.
    case silence
  }

  public let port: UInt16
  private let listener: Int32
  private let conduct: Conduct
  private let received = Watched<[String]>([])

  /// The heads of the requests so far.
  public var heads: [String] { received.value }
  /// The URL for a variable, without credentials.
  public var url: String { "http://127.0.0.1:\(port)" }

  public init(_ conduct: Conduct) throws {
    self.conduct = conduct
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = Self.loopback(0)
    let size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let bound = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, size) }
    }
    var length = size
    let named = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
    }
    guard bound == 0, named == 0, listen(descriptor, 64) == 0 else { throw NotThere(what: "a port of loopback") }
    listener = descriptor
    port = UInt16(bigEndian: address.sin_port)
    Thread.detachNewThread { [self] in accept() }
  }

  /// Waits for a head that satisfies `condition`.
  public func head(_ what: String, where condition: @escaping @Sendable (String) -> Bool) async throws -> String {
    try await received.wait(for: what) { $0.first(where: condition) }
  }

  /// Ends the proxy; connections end with their peers.
  public func stop() { shutdown(listener, Int32(SHUT_RDWR)) }

  private static func loopback(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    address.sin_port = port.bigEndian
    return address
  }

  private func accept() {
    while true {
      let connection = Glibc.accept(listener, nil, nil)
      guard connection >= 0 else { break }
      Thread.detachNewThread { [self] in
        serve(connection)
        close(connection)
      }
    }
    close(listener)
  }

  private func serve(_ connection: Int32) {
    guard let head = Self.head(from: connection) else { return }
    received.update { $0.append(head) }
    switch conduct {
    case .answer(let bytes): _ = Self.write(bytes, to: connection)
    case .silence: Self.discard(connection)
    case .drip(let bytes):
      guard Self.write(bytes, to: connection) else { return }
      repeat { usleep(5_000) } while Self.write([0x20], to: connection)
    case .serve(let port, let document):
      guard head.hasPrefix("CONNECT ") else {
        let fields = "Content-Type: application/json\r\nConnection: close\r\nContent-Length: \(document.utf8.count)"
        _ = Self.write(Array("HTTP/1.1 200 OK\r\n\(fields)\r\n\r\n\(document)".utf8), to: connection)
        return
      }
      tunnel(connection, to: port)
    }
  }

  private func tunnel(_ connection: Int32, to port: UInt16) {
    let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    defer { close(server) }
    var address = Self.loopback(port)
    let isConnected = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
    let answer = isConnected ? "HTTP/1.1 200 Connection established\r\n\r\n" : "HTTP/1.1 502 Bad Gateway\r\n\r\n"
    guard Self.write(Array(answer.utf8), to: connection), isConnected else { return }
    let done = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      Self.pump(from: server, to: connection)
      done.signal()
    }
    Self.pump(from: connection, to: server)
    done.wait()
  }

  private static func pump(from source: Int32, to target: Int32) {
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = read(source, &buffer, buffer.count)
      guard count > 0, write(Array(buffer[..<count]), to: target) else { break }
    }
    shutdown(target, Int32(SHUT_WR))
  }

  private static func discard(_ connection: Int32) {
    var buffer = [UInt8](repeating: 0, count: 1 << 12)
    while read(connection, &buffer, buffer.count) > 0 {}
  }

  /// Reads a request with its body; returns its head.
  private static func head(from connection: Int32) -> String? {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = read(connection, &buffer, buffer.count)
      guard count > 0 else { return nil }
      bytes += buffer[..<count]
      let text = String(decoding: bytes, as: UTF8.self)
      guard let end = text.range(of: "\r\n\r\n") else { continue }
      let head = String(text[..<end.lowerBound])
      let field = head.lowercased().components(separatedBy: "\r\ncontent-length: ").dropFirst().first
      let length = field.flatMap { Int($0.prefix { $0.isNumber }) } ?? 0
      if bytes.count >= head.utf8.count + 4 + length { return head }
    }
  }

  private static func write(_ bytes: [UInt8], to connection: Int32) -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }
}
