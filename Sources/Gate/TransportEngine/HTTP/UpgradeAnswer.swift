internal import Transport

/// What an upstream agreed to in its 101.
struct UpgradeAnswer: Sendable, Hashable {
  /// The `Sec-WebSocket-Accept`, which is right.
  let accept: String
  /// One of those offered, or `nil`.
  let subprotocol: String?
  /// The names of the extensions in use, each one offered.
  let extensions: [String]
}

/// Why an answer of status 101 does not open a WebSocket (RFC 6455 section 4.1).
enum UpgradeAnswerFault: String, Error, Sendable, CaseIterable {
  case status = "the status is not 101"
  case version = "a 101 came from HTTP/1.0"
  case upgrade = "the 101 does not upgrade to websocket alone"
  case connection = "the 101 does not name Upgrade in Connection"
  case accept = "the 101 does not carry the one right Sec-WebSocket-Accept"
  case subprotocol = "the 101 chose a subprotocol that was not offered, or several"
  case extensions = "the 101 uses an extension that was not offered"
  case framing = "the 101 frames a body"
}

extension UpgradeAnswer {
  /// Takes `head` for the answer to an opening handshake, or says why it is not.
  ///
  /// - Parameters:
  ///   - accept: what `Sec-WebSocket-Accept` must be for the key that was sent.
  ///   - subprotocols: those offered.
  ///   - extensions: the names of those offered.
  init(
    _ head: ResponseHead, accept: String, subprotocols: [String], extensions: [String]
  ) throws(UpgradeAnswerFault) {
    if head.status != 101 { throw .status }
    if head.isVersion10 { throw .version }
    guard case .once(let proto) = head.headers.only("Upgrade"), HeaderFields.isSame(proto, "websocket") else {
      throw .upgrade
    }
    guard head.connectionOptions.contains("upgrade") else { throw .connection }
    guard !accept.isEmpty, head.headers.only("Sec-WebSocket-Accept") == .once(accept) else { throw .accept }
    // To a reader that honoured them, frames would be a body.
    if head.headers.first("Transfer-Encoding") != nil { throw .framing }
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
  ) throws(UpgradeAnswerFault) -> String? {
    switch headers.only("Sec-WebSocket-Protocol") {
    case .absent: return nil
    case .once(let choice) where offered.contains(choice): return choice
    case .once, .repeated: throw .subprotocol
    }
  }
}
