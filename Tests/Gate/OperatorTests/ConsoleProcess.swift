import Foundation
import GateProcesses
import Glibc
import TestSupport
import Testing
import Transport
import TransportEngine

/// A `sallyport console` process and a browser that uses it.
struct ConsoleProcess {
  let process: ChildProcess
  let port: UInt16
  let token: String
  /// The printed address.
  let address: String

  /// Starts a console for the gate of `bench`.
  init(_ bench: AdminBench, _ arguments: [String] = []) async throws {
    process = try ChildProcess(
      try Places.product("sallyport"), ["console", "--print"] + arguments + bench.config)
    address = try await process.output.first("the address of the console") { $0.hasPrefix("http://") }
    let parts = address.components(separatedBy: "/#")
    token = try #require(parts.last)
    port = try #require(parts.first?.components(separatedBy: ":").last.flatMap { UInt16($0) })
  }

  var host: String { "127.0.0.1:\(port)" }

  func connection() async throws -> ClientConnection {
    try await ClientEngine().connect(host: "127.0.0.1", port: port, tls: nil)
  }

  func get(_ target: String, cookie: String? = nil, host: String? = nil) async throws -> Response {
    var headers = HeaderFields([.init(name: "Host", value: host ?? self.host)])
    if let cookie { headers.append("Cookie", cookie) }
    return try await connection().send("GET", target, headers: headers)
  }

  func post(_ target: String, _ body: String, cookie: String? = nil, origin: String? = nil) async throws -> Response {
    var headers = HeaderFields([
      .init(name: "Host", value: host), .init(name: "Origin", value: origin ?? "http://\(host)"),
      .init(name: "Content-Type", value: "application/x-www-form-urlencoded"),
    ])
    if let cookie { headers.append("Cookie", cookie) }
    return try await connection().send("POST", target, headers: headers, body: Array(body.utf8))
  }

  /// Signs in and returns the cookie of the browser.
  func signIn() async throws -> String {
    let answer = try await post("/session", token)
    try #require(answer.status == 200, "\(answer.text)")
    return String(try #require(answer.headers.first("Set-Cookie")).prefix { $0 != ";" })
  }

  /// Does an act by the form of a page.
  func act(_ name: String, _ values: String, on page: String, cookie: String) async throws -> Response {
    let text = try await get(page, cookie: cookie).text
    let token = try #require(text.firstMatch(of: /name="token" value="([^"]+)"/)).output.1
    return try await post("/act/\(name)", "\(values)&token=\(token)&back=\(page)", cookie: cookie)
  }
}

/// A connection to a console of which a test decides the user, the port, and when it is closed.
final class RawConnection {
  private var descriptor: Int32
  /// The port of this end.
  let ownPort: UInt16

  /// Connects.
  ///
  /// - Parameters:
  ///   - ownPort: The port of this end; 0 for a free one.
  ///   - user: The user who owns the socket for the kernel, which only root can choose; `nil` for this one.
  init(port: UInt16, from ownPort: UInt16 = 0, user: UInt32? = nil) throws {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var isReused: Int32 = 1
    let size = socklen_t(MemoryLayout<Int32>.size)
    try #require(setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &isReused, size) == 0)
    if let user { try #require(fchown(descriptor, user, user) == 0) }
    var own = Self.loopback(ownPort)
    try #require(Self.call(&own) { bind(descriptor, $0, $1.pointee) } == 0)
    var address = Self.loopback(port)
    try #require(Self.call(&address) { connect(descriptor, $0, $1.pointee) } == 0)
    try #require(Self.call(&own) { getsockname(descriptor, $0, $1) } == 0)
    (self.descriptor, self.ownPort) = (descriptor, UInt16(bigEndian: own.sin_port))
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
  func send(_ text: String) -> Int {
    let bytes = Array(text.utf8)
    return Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
  }

  /// Returns the first bytes that arrive; empty if the other end closes the connection.
  func firstAnswer() -> String {
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = recv(descriptor, &bytes, bytes.count, 0)
    return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
  }

  /// Closes with a reset, so that the port is free at once.
  func reset() {
    var option = linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    close()
  }

  func close() {
    if descriptor >= 0 { Glibc.close(descriptor) }
    descriptor = -1
  }

  deinit { close() }
}
