internal import Transport

/// The parameters that an upstream accepted in its 101.
struct UpgradeAnswer: Sendable, Hashable {
  /// The verified `Sec-WebSocket-Accept`.
  let accept: String
  /// One of the offered subprotocols, or `nil`.
  var subprotocol: String?
  /// The names of the extensions in use. Each was offered.
  let extensions: [String]
}

/// Why a response to an opening handshake does not open a WebSocket (RFC 6455 section 4.1).
enum UpgradeAnswerError: String, Error, Sendable, CaseIterable {
  case status = "the status is not 101"
  case version = "a 101 came from HTTP/1.0"
  case upgrade = "the 101 does not upgrade to websocket alone"
  case connection = "the 101 does not name Upgrade in Connection"
  case accept = "the 101 does not carry exactly one correct Sec-WebSocket-Accept"
  case subprotocol = "the 101 chose a subprotocol that was not offered, or several"
  case extensions = "the 101 uses an extension that was not offered"
  case framing = "the 101 frames a body: it has a Content-Length, or a transfer coding other than chunked"
}

extension UpgradeAnswer {
  /// Validates `head` as the response to an opening handshake.
  ///
  /// - Parameters:
  ///   - accept: The `Sec-WebSocket-Accept` that matches the sent key.
  ///   - subprotocols: The offered subprotocols.
  ///   - extensions: The names of the offered extensions.
  /// - Throws: `UpgradeAnswerError` with the violated rule.
  init(
    _ head: ResponseHead, accept: String, subprotocols: [String], extensions: [String]
  ) throws(UpgradeAnswerError) {
    if head.status != 101 { throw .status }
    if head.isVersion10 { throw .version }
    guard head.headers.isOnly("Upgrade", "websocket") || Self.namesWebSocketAlone(head.headers.upgradeProtocols) else {
      throw .upgrade
    }
    guard head.connectionOptions.contains("upgrade") else { throw .connection }
    guard !accept.isEmpty, head.headers.only("Sec-WebSocket-Accept") == .once(accept) else { throw .accept }
    // A reader that uses these fields would read the frames as a body. Neither reaches the client. Some servers write
    // `chunked` into every answer; a 101 ends at its empty line in any case (RFC 9112 section 6.3).
    if head.headers.contains("Transfer-Encoding"), !head.headers.isOnly("Transfer-Encoding", "chunked") {
      throw .framing
    }
    if head.headers.values(of: "Content-Length").contains(where: { $0 != "0" }) { throw .framing }
    self.accept = accept
    subprotocol = try Self.choice(in: head.headers, offered: subprotocols)
    guard let used = ExtensionList.names(in: head.headers), used.allSatisfy(extensions.contains) else {
      throw .extensions
    }
    self.extensions = used
  }

  private static func choice(
    in headers: HeaderFields, offered: [String]
  ) throws(UpgradeAnswerError) -> String? {
    guard headers.contains("Sec-WebSocket-Protocol") else { return nil }
    guard let chosen = headers.tokens(of: "Sec-WebSocket-Protocol"), chosen.count <= 1 else { throw .subprotocol }
    guard let choice = chosen.first else { return nil }
    guard offered.contains(choice) else { throw .subprotocol }
    return choice
  }

  private static func namesWebSocketAlone(_ protocols: [String]) -> Bool {
    protocols.count == 1 && HeaderFields.isSame(protocols[0], "websocket")
  }
}
