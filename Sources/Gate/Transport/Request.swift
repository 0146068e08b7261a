/// A request with a well-formed head.
public struct Request: Sendable {
  /// The id of this request in logs and in `X-Request-Id`: 32 hex digits, unique, made by the engine.
  public let id: String
  /// The method as sent; upper and lower case are kept (RFC 9110 section 9.1).
  public let method: String
  /// The request target as sent, in origin form: path and query.
  public let target: String
  /// The path in its normal form, for matching with routes: percent-encoded unreserved characters are decoded, other
  /// escapes are in capitals, and there are no dot segments and no empty segments. Below a path that the responder
  /// does not read further, that path.
  public let path: String
  /// The header fields in the order in which they were sent.
  public let headers: HeaderFields
  /// The body, at most as long as the engine's limit. Empty if the responder streams it.
  public let body: [UInt8]
  /// The parsed opening handshake, if the request is a well-formed one (RFC 6455 section 4.1); otherwise `nil`.
  public let upgrade: UpgradeIntent?

  public init(
    id: String, method: String, target: String, path: String, headers: HeaderFields, body: [UInt8] = [],
    upgrade: UpgradeIntent? = nil
  ) {
    self.id = id
    self.method = method
    self.target = target
    self.path = path
    self.headers = headers
    self.body = body
    self.upgrade = upgrade
  }
}

/// The contents of a WebSocket opening handshake.
public struct UpgradeIntent: Sendable, Hashable {
  /// The value of `Sec-WebSocket-Key`: the base64 of 16 bytes.
  public let key: String
  /// The offered subprotocols, in the client's order.
  public let subprotocols: [String]

  public init(key: String, subprotocols: [String] = []) {
    self.key = key
    self.subprotocols = subprotocols
  }
}
