import Foundation
import Glibc
import Locking

/// A server on loopback, or on a Unix socket, whose answers drip until it is mended: their beginning at once, then a byte
/// every few milliseconds, for ever. A connection that drips goes on when the server is mended.
///
/// Each connection uses a blocking thread, so the server is suitable for few connections only.
public final class DrippingServer: Sendable {
  private struct State: Sendable {
    var drips = true
    var paths: [String] = []
    var connections = 0
    var documents: [String: String]
  }

  /// 0 on a Unix socket.
  public let port: UInt16
  private let listener: Int32
  private let opening: [UInt8]?
  private let state: LockedValue<State>

  /// The URL without a slash at its end.
  public var base: String { "http://127.0.0.1:\(port)" }
  /// The paths of the requests so far.
  public var paths: [String] { state.withLock(\.paths) }
  public var connections: Int { state.withLock(\.connections) }

  /// - Parameters:
  ///   - documents: The bodies of the answers once the server is mended, by their paths. `BASE` in them is the URL of the
  ///     server. Other paths get 404.
  ///   - opening: The bytes that begin a connection of a server for another protocol, which then drips; for HTTP and TLS
  ///     after the first byte of the client. With `nil`, a request is awaited, and the head of an answer with status 200
  ///     and a long body begins.
  ///   - path: The path of a Unix socket to listen on, in place of a port of loopback.
  public init(_ documents: [String: String] = [:], opening: [UInt8]? = nil, socket path: String? = nil) throws {
    state = LockedValue(State(documents: documents))
    self.opening = opening
    if let path {
      listener = try Self.listener(at: path)
      port = 0
      Thread.detachNewThread { [self] in accept() }
      return
    }
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
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

  private static func listener(at path: String) throws -> Int32 {
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let fits = withUnsafeMutableBytes(of: &address.sun_path) { field in
      field.copyBytes(from: path.utf8.prefix(field.count - 1))
      return path.utf8.count < field.count
    }
    let bound = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard fits, bound == 0, listen(descriptor, 64) == 0 else { throw NotThere(what: "the Unix socket \(path)") }
    return descriptor
  }

  /// Makes the server answer what comes from now on, with further documents.
  public func mend(with documents: [String: String] = [:]) {
    state.withLock { state in
      state.drips = false
      state.documents.merge(documents) { $1 }
    }
  }

  /// Makes the answers drip again to what comes from now on.
  public func dripAgain() { state.withLock { $0.drips = true } }

  /// Ends the server; connections end with their peers.
  public func stop() { shutdown(listener, Int32(SHUT_RDWR)) }

  private func accept() {
    while true {
      let connection = Glibc.accept(listener, nil, nil)
      guard connection >= 0 else { break }
      state.withLock { $0.connections += 1 }
      Thread.detachNewThread { [self] in
        serve(connection)
        close(connection)
      }
    }
    close(listener)
  }

  private func serve(_ connection: Int32) {
    if let opening {
      // Of HTTP and TLS the client speaks first. What comes before is a fault of another kind.
      if opening.starts(with: "HTTP/".utf8) || opening.first == 0x16 {
        var byte: UInt8 = 0
        guard recv(connection, &byte, 1, Int32(MSG_PEEK)) == 1 else { return }
      }
      if write(opening, to: connection) { drip(into: connection) }
      return
    }
    guard let path = Self.requestPath(connection) else { return }
    let (drips, document) = state.withLock { state in
      state.paths.append(path)
      return (state.drips, state.documents[path])
    }
    let fields = "Content-Type: application/json\r\nConnection: close\r\n"
    if drips {
      if write(Array("HTTP/1.1 200 OK\r\n\(fields)Content-Length: 50000\r\n\r\n{".utf8), to: connection) {
        drip(into: connection)
      }
      return
    }
    let body = document?.replacingOccurrences(of: "BASE", with: base)
    let head = "HTTP/1.1 \(body == nil ? "404 Not Found" : "200 OK")\r\n\(fields)"
    _ = write(Array("\(head)Content-Length: \(body?.utf8.count ?? 0)\r\n\r\n\(body ?? "")".utf8), to: connection)
  }

  /// Reads a request with its body; returns its path without the query.
  private static func requestPath(_ connection: Int32) -> String? {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = read(connection, &buffer, buffer.count)
      guard count > 0 else { return nil }
      bytes += buffer[..<count]
      let parts = String(decoding: bytes, as: UTF8.self).components(separatedBy: "\r\n\r\n")
      guard parts.count > 1 else { continue }
      let field = parts[0].lowercased().components(separatedBy: "\r\ncontent-length: ").dropFirst().first
      let length = field.flatMap { Int($0.prefix { $0.isNumber }) } ?? 0
      guard bytes.count >= parts[0].utf8.count + 4 + length else { continue }
      let words = parts[0].split(separator: " ")
      return words.count > 1 ? String(words[1].prefix { $0 != "?" }) : nil
    }
  }

  private func write(_ bytes: [UInt8], to connection: Int32) -> Bool {
    send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
  }

  private func drip(into connection: Int32) {
    repeat { usleep(10_000) } while write([0x20], to: connection)
  }
}
