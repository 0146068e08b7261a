import Wire
import Foundation
import Glibc
import HTTPClientTransport
import TestSupport
import Testing

/// The name of this machine if it leads to loopback.
private enum ThisMachine {
  /// `nil` if there is none that a proxy can resolve.
  static let name: String? = {
    var buffer = [CChar](repeating: 0, count: 256)
    guard gethostname(&buffer, buffer.count - 1) == 0 else { return nil }
    let name = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    guard let entry = gethostbyname(name), entry.pointee.h_addrtype == AF_INET,
      let address = entry.pointee.h_addr_list[0], UInt8(bitPattern: address[0]) == 127, name != "localhost"
    else { return nil }
    return name
  }()
}

/// Debian's tinyproxy, with a user and a password. It resolves the name of this machine, which no rule exempts.
@Suite("Exchanges through tinyproxy", .enabled(if: ThisMachine.name != nil), .timeLimit(.minutes(2)))
struct TinyproxyTests {
  private func transport(_ proxy: String, _ authority: String? = nil) -> HTTPClientTransport {
    HTTPClientTransport(
      .init(
        authorityFile: authority, exchangeTime: .seconds(60),
        proxies: ProxyVariables { ["https_proxy", "http_proxy"].contains($0) ? proxy : nil }))
  }

  @Test func `https and http with the right password, 407 with a wrong one, and 403 for another port`() async throws {
    let name = try #require(ThisMachine.name)
    try await Places.withTemporaryFolder { folder in
      let server = try await HTTPSServer("DNS:\(name)", in: folder)
      defer { server.stop() }
      let plain = try DrippingServer(["/jwks": "{}"])
      defer { plain.stop() }
      plain.mend()
      let port = try Places.freePort()
      let lines = [
        "Port \(port)", "Listen 127.0.0.1", "Timeout 60", "MaxClients 20", "Allow 127.0.0.1",
        "ConnectPort \(server.port)",
        "BasicAuth user pa_ss.word", "LogLevel Info",
      ]
      try (lines.joined(separator: "\n") + "\n").write(
        toFile: folder + "/tinyproxy.conf", atomically: true, encoding: .utf8)
      let tinyproxy = try ChildProcess(Places.tool("tinyproxy"), ["-d", "-c", folder + "/tinyproxy.conf"])
      defer { tinyproxy.kill() }
      _ = try await tinyproxy.output.first("its start") { $0.contains("Accepting connections") }
      let right = transport("http://user:pa%5Fss.word@127.0.0.1:\(port)", server.authorityFile)
      let secure = HTTPRequest(url: try #require(URL(string: "https://\(name):\(server.port)/a")))
      #expect(try await right.send(secure).status == 200)
      let open = HTTPRequest(url: try #require(URL(string: "http://\(name):\(plain.port)/jwks")))
      #expect(try await right.send(open).body == Array("{}".utf8))
      // tinyproxy answers 401 to a wrong password.
      for (proxy, request, words) in [
        ("http://user:wrong@127.0.0.1:\(port)", secure, "status 401: it refuses the user and the password"),
        ("http://127.0.0.1:\(port)", secure, "status 407: it requires a user and a password"),
        ("http://127.0.0.1:\(port)", open, "status 407: it requires a user and a password"),
      ] {
        let error = await #expect(throws: TransportError.self) {
          try await transport(proxy, server.authorityFile).send(request)
        }
        guard case .unreachable(let reason) = error else {
          Issue.record("\(String(describing: error))")
          return
        }
        #expect(reason.contains(words), "\(reason)")
      }
      let other = HTTPRequest(url: try #require(URL(string: "https://\(name):\(plain.port)/")))
      let error = await #expect(throws: TransportError.self) { try await right.send(other) }
      #expect(error?.description.contains("status 403") == true)
    }
  }
}
