internal import ByteCoding
internal import Transport

/// The meaning of a request's `Upgrade` field (RFC 9110 section 7.8).
enum Upgrade: Sendable, Hashable {
  /// No upgrade: the field is missing, does not name WebSocket, or `Connection` does not name it, so it is not meant
  /// for this hop. A server may ignore protocols that it does not know.
  case none
  /// A well-formed opening handshake.
  case webSocket(UpgradeIntent)
  /// A handshake that violates RFC 6455 section 4.2.1.
  case fault(RequestError)
}

/// The violations of the opening handshake rules, with their texts.
enum UpgradeRequestError: String, Error, Sendable, CaseIterable {
  case method = "the method of an opening handshake is not GET"
  case version = "the version of WebSocket is not 13"
  case key = "Sec-WebSocket-Key is not one base64 text of 16 bytes"
  case body = "an opening handshake has a body"
  case subprotocols = "Sec-WebSocket-Protocol is not a list of different tokens"
  case extensions = "Sec-WebSocket-Extensions is not a list of extensions"

  /// The fault as the responder receives it.
  ///
  /// - Parameter detail: What violates the rule.
  func requestError(_ detail: String? = nil) -> RequestError {
    switch self {
    case .version: .unsupportedWebSocketVersion
    case .method, .key, .body, .subprotocols, .extensions:
      .malformedUpgrade(rule: detail.map { "\(rawValue): \($0)" } ?? rawValue)
    }
  }
}

extension Upgrade {
  /// - Parameter options: the options of `Connection`, in lowercase.
  init(method: String, headers: HeaderFields, options: [String], hasBody: Bool) {
    guard headers.contains("Upgrade"), options.contains("upgrade"), headers.offersWebSocket else {
      self = .none
      return
    }
    do throws(UpgradeRequestError) {
      if method != "GET" { throw .method }
      guard headers.isOnly("Sec-WebSocket-Version", "13") else { throw .version }
      let key = try Self.key(in: headers)
      if hasBody { throw .body }
      if ExtensionList.names(in: headers) == nil { throw .extensions }
      self = .webSocket(UpgradeIntent(key: key, subprotocols: try Self.subprotocols(in: headers)))
    } catch {
      self = .fault(error.requestError(error == .subprotocols ? Self.invalidSubprotocol(in: headers) : nil))
    }
  }

  private static func key(in headers: HeaderFields) throws(UpgradeRequestError) -> String {
    let key = headers.withOnly("Sec-WebSocket-Key") { key in
      Base64.decode(key)?.count == 16 ? String(decoding: key, as: UTF8.self) : nil
    }
    guard let key = key.flatMap(\.self) else { throw .key }
    return key
  }

  private static func subprotocols(in headers: HeaderFields) throws(UpgradeRequestError) -> [String] {
    guard headers.contains("Sec-WebSocket-Protocol") else { return [] }
    guard let tokens = headers.tokens(of: "Sec-WebSocket-Protocol"), Set(tokens).count == tokens.count else {
      throw .subprotocols
    }
    return tokens
  }

  /// Returns what is wrong with the first offered subprotocol that is not a token or is offered twice.
  private static func invalidSubprotocol(in headers: HeaderFields) -> String? {
    var known: Set<String> = []
    for value in headers.values(of: "Sec-WebSocket-Protocol") {
      for element in value.utf8.split(separator: UInt8(ascii: ",")) {
        let element = element.trimmingWhitespace()
        guard !element.isEmpty else { continue }
        if let character = element.first(where: { !ByteSet.token.contains($0) }) {
          let reason =
            "has \(quoted([character])), which no token has: encode it, for example as base64url without padding"
          return "\(quoted(element)) \(reason)"
        }
        if !known.insert(String(Substring(element))).inserted { return "\(quoted(element)) is offered twice" }
      }
    }
    return nil
  }

  /// Quotes the beginning of a client's value, which may be a secret: at most 24 bytes, in ASCII without control
  /// characters.
  private static func quoted(_ value: some Collection<UInt8>) -> String {
    let shown = value.prefix(24).map { byte in
      byte >= 0x20 && byte < 0x7F && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
        ? String(UnicodeScalar(byte)) : "\\x" + String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
    }
    return "\"\(shown.joined())\(value.count > 24 ? "…" : "")\""
  }
}
