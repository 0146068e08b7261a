internal import Commands
/// Heads that different parsers read differently, or that request something forbidden. Each is a valid opening
/// handshake, with valid credentials if there are any, except for one fault.
extension Attack {
  static let heads: [Attack] = [
    line(.head, "two spaces in the first line", "GET  / HTTP/1.1"),
    line(.head, "a tab in the first line", "GET\t/ HTTP/1.1"),
    line(.head, "a space behind the first line", "GET / HTTP/1.1 "),
    line(.head, "HTTP/1.0", "GET / HTTP/1.0"),
    line(.head, "HTTP/9.9", "GET / HTTP/9.9"),
    line(.head, "no version", "GET /"),
    line(.head, "an absolute target", "GET http://localhost/ HTTP/1.1"),
    line(.head, "an absolute target of another host", "GET https://elsewhere.example/ HTTP/1.1"),
    line(.head, "CONNECT", "CONNECT localhost:80 HTTP/1.1"),
    line(.head, "a NUL in the method", "G\0T / HTTP/1.1"),
    changed(.head, "lines that end in LF") { $0.replacing("\r\n", with: "\n") },
    changed(.head, "one line that ends in LF") {
      $0.replacing("Upgrade: websocket\r\n", with: "Upgrade: websocket\n")
    },
    field(.head, "a space before a colon", "X-Attest-Method : app-attest"),
    field(.head, "a folded field", "X-A: b\r\n X-Attest-Method: app-attest"),
    field(.head, "a field without colon", "X-Attest-Method app-attest"),
    field(.head, "a field without name", ": app-attest"),
    field(.head, "a NUL in a value", "X-A: b\0c"),
    field(.head, "a bare CR in a value", "X-A: b\rX-Attest-Method: app-attest"),
    field(.head, "two hosts", "Host: elsewhere.example"),
    replaced(.head, "no host", "Host", nil),
    replaced(.head, "an empty host", "Host", "Host:"),
    replaced(.head, "a host with a user", "Host", "Host: mallory@localhost"),
    field(.head, "101 fields", Array(repeating: "X-A: b", count: 101).joined(separator: "\r\n"), [431]),
    field(.head, "17 KiB of a field", "X-A: " + String(repeating: "a", count: 17 << 10), [431]),
  ]

  static let paths: [Attack] =
    [
      ("a dot segment", "/a/../b"), ("an escaped dot segment", "/a/%2e%2e/b"), ("an escaped slash", "/a%2fb"),
      ("a backslash", "/a\\b"), ("an escaped backslash", "/a%5Cb"), ("an escaped NUL", "/a%00b"),
      ("an escaped line break", "/a%0d%0aX-Attest-Method:%20app-attest"), ("two slashes", "//attest/challenge"),
      ("a dot segment escaped twice", "/a/%252e%252e/b"), ("an overlong dot segment", "/a/%c0%ae%c0%ae/b"),
      ("a dot segment with an escaped semicolon", "/a/..%3b/b"), ("an escape cut off", "/a%2"), ("a fragment", "/a#b"),
      ("bytes beyond ASCII", "/ä"),
    ].map { line(.path, $0.0, "GET \($0.1) HTTP/1.1") } + [
      Attack(.path, "a path of the gate's own that is none", [404]) { prober throws(Failure) in
        try await prober.send(
          Prober.head(["GET /attest/x HTTP/1.1"] + prober.handshake + (try await prober.credentials())))
      }
    ]

  static let upgrades: [Attack] = [
    line(.upgrade, "POST", "POST / HTTP/1.1"),
    replaced(.upgrade, "version 12", "Sec-WebSocket-Version", "Sec-WebSocket-Version: 12", [426]),
    replaced(.upgrade, "no version of WebSocket", "Sec-WebSocket-Version", nil, [426]),
    field(.upgrade, "two versions", "Sec-WebSocket-Version: 13", [426]),
    replaced(.upgrade, "a short key", "Sec-WebSocket-Key", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25j"),
    replaced(.upgrade, "no key of WebSocket", "Sec-WebSocket-Key", nil),
    field(.upgrade, "two keys", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="),
    field(.upgrade, "a foreign origin", "Origin: https://elsewhere.example", [403]),
    field(.upgrade, "the origin null", "Origin: null", [403]),
  ]
}

/// How a head is made that is wrong in one thing.
extension Attack {
  static func line(_ group: Group, _ name: String, _ line: String, _ expected: [Int] = [400]) -> Attack {
    head(group, name, expected) { prober, credentials in Prober.head([line] + prober.handshake + credentials) }
  }

  static func field(_ group: Group, _ name: String, _ field: String, _ expected: [Int] = [400]) -> Attack {
    head(group, name, expected) { prober, credentials in
      Prober.head(["GET \(prober.address.target) HTTP/1.1"] + prober.handshake + [field] + credentials)
    }
  }

  static func replaced(
    _ group: Group, _ name: String, _ prefix: String, _ line: String?, _ expected: [Int] = [400]
  ) -> Attack {
    head(group, name, expected) { prober, credentials in
      let rest = prober.handshake.filter { !$0.hasPrefix(prefix) }
      return Prober.head(["GET \(prober.address.target) HTTP/1.1"] + rest + [line].compactMap(\.self) + credentials)
    }
  }

  static func changed(_ group: Group, _ name: String, _ change: @escaping @Sendable (String) -> String) -> Attack {
    head(group, name, [400]) { prober, credentials in
      let head = Prober.head(["GET \(prober.address.target) HTTP/1.1"] + prober.handshake + credentials)
      return Array(change(String(decoding: head, as: UTF8.self)).utf8)
    }
  }

  /// A well-formed request follows, which must never be processed.
  private static func head(
    _ group: Group, _ name: String, _ expected: [Int], bytes: @escaping @Sendable (Prober, [String]) -> [UInt8]
  ) -> Attack {
    Attack(group, name, expected) { prober throws(Failure) in
      try await prober.send(bytes(prober, try await prober.credentials()) + prober.second)
    }
  }
}

extension Prober {
  /// A request that would be answered if it were read.
  var second: [UInt8] {
    Self.head(["GET /attest/challenge HTTP/1.1", "Host: \(address.hostField)", "Connection: close"])
  }
}
