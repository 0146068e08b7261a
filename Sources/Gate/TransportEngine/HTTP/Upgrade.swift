internal import ByteCoding
internal import Transport

/// The meaning of a request's `Upgrade` field (RFC 9110 section 7.8).
enum Upgrade: Sendable, Hashable {
  /// No upgrade: the field is missing, or `Connection` does not name it, so it is not meant for this hop.
  case none
  /// A well-formed opening handshake.
  case webSocket(UpgradeIntent)
  /// Another protocol, or a handshake that violates RFC 6455 section 4.2.1.
  case fault(RequestError)
}

/// The violations of the opening handshake rules, with their texts.
enum UpgradeRequestError: String, Error, Sendable, CaseIterable {
  case proto = "the protocol to upgrade to is not websocket alone"
  case method = "the method of an opening handshake is not GET"
  case version = "the version of WebSocket is not 13"
  case key = "Sec-WebSocket-Key is not one base64 text of 16 bytes"
  case body = "an opening handshake has a body"
  case subprotocols = "Sec-WebSocket-Protocol is not a list of different tokens"
  case extensions = "Sec-WebSocket-Extensions is not a list of extensions"

  /// The fault as the responder receives it.
  var requestError: RequestError {
    switch self {
    case .version: .unsupportedWebSocketVersion
    case .proto, .method, .key, .body, .subprotocols, .extensions: .malformedUpgrade(rule: rawValue)
    }
  }
}

extension Upgrade {
  /// - Parameter options: the options of `Connection`, in lowercase.
  init(method: String, headers: HeaderFields, options: [String], hasBody: Bool) {
    guard headers.contains("Upgrade"), options.contains("upgrade") else {
      self = .none
      return
    }
    do throws(UpgradeRequestError) {
      guard headers.isOnly("Upgrade", "websocket") else { throw .proto }
      if method != "GET" { throw .method }
      guard headers.isOnly("Sec-WebSocket-Version", "13") else { throw .version }
      let key = try Self.key(in: headers)
      if hasBody { throw .body }
      if ExtensionList.names(in: headers) == nil { throw .extensions }
      self = .webSocket(UpgradeIntent(key: key, subprotocols: try Self.subprotocols(in: headers)))
    } catch {
      self = .fault(error.requestError)
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
    guard let tokens = headers.tokens(of: "Sec-WebSocket-Protocol"), !tokens.isEmpty,
      Set(tokens).count == tokens.count
    else { throw .subprotocols }
    return tokens
  }
}
