/// A request head that different readers would parse differently, or that asks for something forbidden.
///
/// Each is a valid request with valid credentials and one error: an opening handshake, or for `body` a registration.
struct HeadCase: Sendable {
  /// The part of the request with the error: the sections of the table.
  enum Kind: String, Sendable, CaseIterable {
    case requestLine = "request line"
    case target
    case field
    case framing
    case body
    case upgrade

    /// Whether every HTTP server should refuse it; `false` for rules of WebSocket upgrades.
    var isForEverybody: Bool { self != .upgrade }
  }

  /// The error, as the end of the phrase "a request with …".
  let name: String
  /// The status of the gate's answer. The connection closes afterwards.
  let status: Int
  private(set) var kind = Kind.field
  /// Returns the bytes to send for the lines with the credentials.
  let bytes: @Sendable ([String]) -> [UInt8]

  static let handshake = [
    "Host: localhost", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  ]

  /// Returns a head of these lines, with CRLF line ends.
  static func head(_ lines: [String]) -> [UInt8] { Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) }

  init(_ name: String, _ status: Int = 400, bytes: @escaping @Sendable ([String]) -> [UInt8]) {
    (self.name, self.status, self.bytes) = (name, status, bytes)
  }

  /// All cases.
  static let all: [HeadCase] =
    of(.requestLine, requestLines) + of(.target, targets) + of(.field, fields + hosts) + of(.framing, framings)
    + of(.body, bodies) + of(.upgrade, upgrades)

  private static func of(_ kind: Kind, _ cases: [HeadCase]) -> [HeadCase] {
    cases.map {
      var own = $0
      own.kind = kind
      return own
    }
  }
}

// MARK: - Changes that make a valid request invalid

extension HeadCase {
  /// Replaces the first line.
  static func line(_ name: String, _ line: String, _ status: Int = 400) -> HeadCase {
    HeadCase(name, status) { head([line] + handshake + $0) }
  }

  /// Replaces the target.
  static func target(_ name: String, _ target: String) -> HeadCase { line(name, "GET \(target) HTTP/1.1") }

  /// Puts bytes before the request.
  static func front(_ name: String, _ bytes: [UInt8]) -> HeadCase {
    HeadCase(name) { bytes + head(["GET / HTTP/1.1"] + handshake + $0) }
  }

  /// Adds a line.
  static func field(_ name: String, _ line: String, _ status: Int = 400) -> HeadCase {
    HeadCase(name, status) { head(["GET / HTTP/1.1"] + handshake + [line] + $0) }
  }

  /// Adds a line whose value contains bytes that are not text, under a name that the gate reads.
  static func raw(_ name: String, _ bytes: [UInt8], in field: String = "X-App-Anything") -> HeadCase {
    HeadCase(name) {
      let start = (["GET / HTTP/1.1"] + handshake + $0).joined(separator: "\r\n") + "\r\n\(field): "
      return Array(start.utf8) + bytes + Array("\r\n\r\n".utf8)
    }
  }

  /// Replaces or removes a line of the handshake.
  static func replaced(_ name: String, _ prefix: String, _ line: String?, _ status: Int = 400) -> HeadCase {
    HeadCase(name, status) {
      let rest = handshake.filter { !$0.hasPrefix(prefix) }
      return head(["GET / HTTP/1.1"] + rest + [line].compactMap(\.self) + $0)
    }
  }

  /// Replaces the host.
  static func host(_ name: String, _ host: String) -> HeadCase { replaced(name, "Host", "Host: \(host)") }

  /// Changes the whole head as text.
  static func changed(
    _ name: String, _ status: Int = 400, _ change: @escaping @Sendable (String) -> String
  ) -> HeadCase {
    HeadCase(name, status) {
      Array(change(String(decoding: head(["GET / HTTP/1.1"] + handshake + $0), as: UTF8.self)).utf8)
    }
  }

  /// Returns a registration with these lines about its body, and this body.
  static func body(_ name: String, _ lines: [String], _ body: String, _ status: Int = 400) -> HeadCase {
    HeadCase(name, status) { _ in
      head(["POST /attest/register HTTP/1.1", "Host: localhost", "Content-Type: application/json"] + lines)
        + Array(body.utf8)
    }
  }

  /// Returns a registration with a body in these chunks.
  static func chunks(_ name: String, _ chunks: String, _ status: Int = 400) -> HeadCase {
    body(name, ["Transfer-Encoding: chunked"], chunks, status)
  }
}
