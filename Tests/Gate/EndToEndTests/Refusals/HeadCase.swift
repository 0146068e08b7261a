/// A head that more than one reader would read in more than one way, or that asks for what it must not.
///
/// Each is a good request with good credentials but for one thing: an opening handshake, or for `body` a registration.
struct HeadCase: Sendable {
  /// What is wrong, roughly: the sections of the table.
  enum Kind: String, Sendable, CaseIterable {
    case requestLine = "request line"
    case target
    case field
    case framing
    case body
    case upgrade

    /// Whether every HTTP server ought to refuse it, and not a gate for WebSockets alone.
    var isForEverybody: Bool { self != .upgrade }
  }

  /// What is wrong, in words that finish the sentence "a request with …".
  let name: String
  /// What the gate answers; the connection closes behind it.
  let status: Int
  private(set) var kind = Kind.field
  /// The bytes to send, of the credentials' lines.
  let bytes: @Sendable ([String]) -> [UInt8]

  static let handshake = [
    "Host: localhost", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  ]

  /// A head of these lines, with the line ends of the standard.
  static func head(_ lines: [String]) -> [UInt8] { Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) }

  init(_ name: String, _ status: Int = 400, bytes: @escaping @Sendable ([String]) -> [UInt8]) {
    (self.name, self.status, self.bytes) = (name, status, bytes)
  }

  /// The whole table.
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

// MARK: - How a good request becomes a bad one

extension HeadCase {
  /// With another first line.
  static func line(_ name: String, _ line: String, _ status: Int = 400) -> HeadCase {
    HeadCase(name, status) { head([line] + handshake + $0) }
  }

  /// With another target.
  static func target(_ name: String, _ target: String) -> HeadCase { line(name, "GET \(target) HTTP/1.1") }

  /// With other bytes in front of it.
  static func front(_ name: String, _ bytes: [UInt8]) -> HeadCase {
    HeadCase(name) { bytes + head(["GET / HTTP/1.1"] + handshake + $0) }
  }

  /// With one line more.
  static func field(_ name: String, _ line: String, _ status: Int = 400) -> HeadCase {
    HeadCase(name, status) { head(["GET / HTTP/1.1"] + handshake + [line] + $0) }
  }

  /// With one line more, whose value has bytes that are no text.
  static func raw(_ name: String, _ bytes: [UInt8]) -> HeadCase {
    HeadCase(name) {
      let start = (["GET / HTTP/1.1"] + handshake + $0).joined(separator: "\r\n") + "\r\nX-A: "
      return Array(start.utf8) + bytes + Array("\r\n\r\n".utf8)
    }
  }

  /// With one line of the handshake replaced, or without it.
  static func replaced(_ name: String, _ prefix: String, _ line: String?, _ status: Int = 400) -> HeadCase {
    HeadCase(name, status) {
      let rest = handshake.filter { !$0.hasPrefix(prefix) }
      return head(["GET / HTTP/1.1"] + rest + [line].compactMap(\.self) + $0)
    }
  }

  /// With another host.
  static func host(_ name: String, _ host: String) -> HeadCase { replaced(name, "Host", "Host: \(host)") }

  /// With its bytes changed as a whole.
  static func changed(
    _ name: String, _ status: Int = 400, _ change: @escaping @Sendable (String) -> String
  ) -> HeadCase {
    HeadCase(name, status) {
      Array(change(String(decoding: head(["GET / HTTP/1.1"] + handshake + $0), as: UTF8.self)).utf8)
    }
  }

  /// A registration with these lines about its body, and this body.
  static func body(_ name: String, _ lines: [String], _ body: String, _ status: Int = 400) -> HeadCase {
    HeadCase(name, status) { _ in
      head(["POST /attest/register HTTP/1.1", "Host: localhost", "Content-Type: application/json"] + lines)
        + Array(body.utf8)
    }
  }

  /// A registration whose body comes in these chunks.
  static func chunks(_ name: String, _ chunks: String, _ status: Int = 400) -> HeadCase {
    body(name, ["Transfer-Encoding: chunked"], chunks, status)
  }
}
