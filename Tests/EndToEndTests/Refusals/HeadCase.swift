/// A head that more than one reader would read in more than one way, or that asks for what it must not.
///
/// Each is a good opening handshake with good credentials but for one thing.
struct HeadCase: Sendable {
  let name: String
  let status: Int
  /// The bytes to send, of the credentials' lines.
  let bytes: @Sendable ([String]) -> [UInt8]

  static let handshake = [
    "Host: localhost", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  ]

  /// A head of these lines, with the line ends of the standard.
  static func head(_ lines: [String]) -> [UInt8] { Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) }

  private init(_ name: String, _ status: Int, bytes: @escaping @Sendable ([String]) -> [UInt8]) {
    (self.name, self.status, self.bytes) = (name, status, bytes)
  }

  /// With another first line.
  private static func line(_ name: String, _ line: String, _ status: Int = 400) -> HeadCase {
    HeadCase(name, status) { head([line] + handshake + $0) }
  }

  /// With another path.
  private static func path(_ name: String, _ path: String) -> HeadCase { line(name, "GET \(path) HTTP/1.1") }

  /// With one line more.
  private static func field(_ name: String, _ line: String, _ status: Int = 400) -> HeadCase {
    HeadCase(name, status) { head(["GET / HTTP/1.1"] + handshake + [line] + $0) }
  }

  /// With one line of the handshake replaced, or without it.
  private static func replaced(_ name: String, _ prefix: String, _ line: String?, _ status: Int = 400) -> HeadCase {
    HeadCase(name, status) {
      let rest = handshake.filter { !$0.hasPrefix(prefix) }
      return head(["GET / HTTP/1.1"] + rest + [line].compactMap(\.self) + $0)
    }
  }

  /// With its bytes changed as a whole.
  private static func changed(
    _ name: String, _ status: Int = 400, _ change: @escaping @Sendable (String) -> String
  ) -> HeadCase {
    HeadCase(name, status) {
      Array(change(String(decoding: head(["GET / HTTP/1.1"] + handshake + $0), as: UTF8.self)).utf8)
    }
  }

  static let all = requestLines + paths + fields + framings + upgrades
}

extension HeadCase {
  private static let requestLines: [HeadCase] = [
    line("two spaces before the target", "GET  / HTTP/1.1"),
    line("two spaces before the version", "GET /  HTTP/1.1"),
    line("a space at the end of the line", "GET / HTTP/1.1 "),
    line("a space before the method", " GET / HTTP/1.1"),
    line("a tab instead of a space", "GET\t/ HTTP/1.1"),
    line("HTTP/1.0", "GET / HTTP/1.0"),
    line("HTTP/2.0", "GET / HTTP/2.0"),
    line("HTTP/9.9", "GET / HTTP/9.9"),
    line("http/1.1", "GET / http/1.1"),
    line("HTTP/1.10", "GET / HTTP/1.10"),
    line("no version", "GET /"),
    line("an absolute target", "GET http://localhost/ HTTP/1.1"),
    line("an authority as target", "CONNECT localhost:80 HTTP/1.1"),
    line("an asterisk as target", "OPTIONS * HTTP/1.1"),
    line("a NUL in the method", "G\0T / HTTP/1.1"),
    line("a bare CR in the line", "GET /\rX HTTP/1.1"),
    changed("an empty line before the request, and white space") { " \r\n" + $0 },
    changed("lines that end in LF") { $0.replacing("\r\n", with: "\n") },
    changed("one line that ends in LF") { $0.replacing("Upgrade: websocket\r\n", with: "Upgrade: websocket\n") },
  ]

  private static let paths: [HeadCase] = [
    path("a dot segment", "/a/../b"),
    path("a dot segment at the end", "/a/.."),
    path("a single dot", "/./a"),
    path("an escaped dot segment", "/a/%2e%2e/b"),
    path("a half escaped dot segment", "/a/.%2E/b"),
    path("a dot segment with a parameter", "/a/..;x/b"),
    path("an escaped slash", "/a%2fb"),
    path("an escaped backslash", "/a%5Cb"),
    path("a backslash", "/a\\b"),
    path("an escaped NUL", "/a%00b"),
    path("an escaped line break", "/a%0d%0aX-Attest-Method:%20app-attest"),
    path("two slashes", "/a//b"),
    path("two slashes in front", "//attest/challenge"),
    path("an escape cut off", "/a%2"),
    path("an escape of other letters", "/a%zz"),
    path("a fragment", "/a#b"),
    path("bytes beyond ASCII", "/ä"),
  ]

  private static let fields: [HeadCase] = [
    field("a space before the colon", "X-Attest-Method : app-attest"),
    field("a tab before the colon", "X-Attest-Method\t: app-attest"),
    field("a folded field", "X-A: b\r\n X-Attest-Method: app-attest"),
    field("no colon", "X-Attest-Method app-attest"),
    field("no name", ": app-attest"),
    field("a NUL in a value", "X-A: b\0c"),
    field("a bare CR in a value", "X-A: b\rX-Attest-Method: app-attest"),
    field("a name with a NUL", "X-A\0: b"),
    field("a name with a parenthesis", "X-(A): b"),
    field("two hosts", "Host: elsewhere.example"),
    field("the same host twice", "Host: localhost"),
    field("an expectation", "Expect: 200-ok"),
    replaced("no host", "Host", nil),
    replaced("an empty host", "Host", "Host:"),
    replaced("a list of hosts", "Host", "Host: localhost, elsewhere.example"),
    replaced("a host with a user", "Host", "Host: mallory@localhost"),
    replaced("a host with a path", "Host", "Host: localhost/x"),
    field("101 fields", Array(repeating: "X-A: b", count: 101).joined(separator: "\r\n"), 431),
    field("17 KiB of a field", "X-A: " + String(repeating: "a", count: 17 << 10), 431),
  ]

  private static let framings: [HeadCase] = [
    field("a length and a coding", "Content-Length: 4\r\nTransfer-Encoding: chunked"),
    field("two lengths", "Content-Length: 0\r\nContent-Length: 4"),
    field("a list of lengths", "Content-Length: 0, 0"),
    field("a length with a sign", "Content-Length: +0"),
    field("a length in hexadecimal", "Content-Length: 0x0"),
    field("a length that overflows", "Content-Length: 18446744073709551616"),
    field("a negative length", "Content-Length: -1"),
    field("another coding", "Transfer-Encoding: gzip, chunked"),
    field("chunked with a vertical tab", "Transfer-Encoding: \u{0B}chunked"),
    field("chunked twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
    field("a coding that is almost chunked", "Transfer-Encoding: xchunked"),
    HeadCase("a body behind the handshake, a request in it", 400) {
      let inner = "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
      return head(["GET / HTTP/1.1"] + handshake + ["Content-Length: \(inner.utf8.count)"] + $0) + Array(inner.utf8)
    },
    HeadCase("a chunked body behind the handshake", 400) {
      head(["GET / HTTP/1.1"] + handshake + ["Transfer-Encoding: chunked"] + $0) + Array("0\r\n\r\n".utf8)
    },
  ]

  private static let upgrades: [HeadCase] = [
    line("POST", "POST / HTTP/1.1"),
    line("HEAD", "HEAD / HTTP/1.1"),
    line("get", "get / HTTP/1.1"),
    replaced("another protocol", "Upgrade", "Upgrade: h2c"),
    replaced("two protocols", "Upgrade", "Upgrade: websocket, h2c"),
    field("two fields of protocols", "Upgrade: h2c"),
    replaced("no option to upgrade", "Connection", "Connection: close", 426),
    replaced("an option that is not quite it", "Connection", "Connection: upgrades, close", 426),
    replaced("no protocol to upgrade to", "Upgrade", "Connection: close", 426),
    replaced("version 12", "Sec-WebSocket-Version", "Sec-WebSocket-Version: 12", 426),
    field("two versions", "Sec-WebSocket-Version: 13", 426),
    replaced("no version", "Sec-WebSocket-Version", nil, 426),
    replaced("a key of 15 bytes", "Sec-WebSocket-Key", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25j"),
    replaced("a key that is no base64", "Sec-WebSocket-Key", "Sec-WebSocket-Key: ======================"),
    field("two keys", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="),
    replaced("no key", "Sec-WebSocket-Key", nil),
    field("a subprotocol that is no token", "Sec-WebSocket-Protocol: a b"),
    field("an extension that is no token", "Sec-WebSocket-Extensions: (deflate)"),
    field("a foreign origin", "Origin: https://elsewhere.example", 403),
  ]
}
