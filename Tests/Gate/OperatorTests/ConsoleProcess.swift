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

/// A connection that sends and never reads.
final class SilentReader {
  private let descriptor: Int32

  /// Sends as much of `text` as the other end accepts.
  init(port: UInt16, sending text: String) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let code = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, length) }
    }
    try #require(code == 0)
    let bytes = Array(text.utf8)
    #expect(send(descriptor, bytes, bytes.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)) > 0)
  }

  deinit { close(descriptor) }
}
