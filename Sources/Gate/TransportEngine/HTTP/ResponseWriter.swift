internal import ByteCoding
internal import Transport

/// Writes the responses of the gate.
enum ResponseWriter {
  /// The fields that frame the message and control the connection. Only the engine writes them.
  private static let ownNames = ["Connection", "Keep-Alive", "Content-Length", "Transfer-Encoding", "Trailer"]
  private static let own = FieldNameSet(names: ownNames)

  /// Encodes `response`.
  ///
  /// Adds `Content-Length`, and `Date` if it is missing. Leaves out fields of `response` that frame the message.
  ///
  /// - Parameters:
  ///   - closes: Whether to announce that the connection closes after this response.
  ///   - isForHEAD: Whether the request is HEAD: the length is declared and the body left out
  ///     (RFC 9110 section 9.3.2).
  ///   - time: The time for `Date`.
  /// - Throws: `HeadWriteError` for a status outside 200 to 599 or a field that cannot be written.
  static func bytes(
    of response: Response, closes: Bool, isForHEAD: Bool = false, at time: Timestamp
  ) throws(HeadWriteError) -> [UInt8] {
    guard (200...599).contains(response.status) else { throw .status }
    var head = HeadWriter(status: response.status)
    if !response.headers.contains("Date") { try head.field("Date", HTTPDate.text(for: time)) }
    try head.fields(response.headers, except: own)
    // These two end with their heads (RFC 9112 section 6.3), and a 204 must not have a length (RFC 9110 section 8.6).
    let hasBody = response.status != 204 && response.status != 304
    if hasBody { try head.field("Content-Length", String(response.body.count)) }
    if let options = connection(of: response, closes: closes) { try head.field("Connection", options) }
    return head.ended(with: hasBody && !isForHEAD ? response.body : [])
  }

  /// Encodes the head of an upstream's response with a new framing: a body that ends with the
  /// connection becomes chunked.
  ///
  /// Adds `Date` if it is missing. Leaves out those of `fields` that frame the message.
  static func forwarded(
    status: Int, fields: HeaderFields, framing: BodyFraming, closes: Bool, isForHEAD: Bool, at time: Timestamp
  ) throws(HeadWriteError) -> [UInt8] {
    guard (200...599).contains(status) else { throw .status }
    var head = HeadWriter(status: status)
    if !fields.contains("Date") { try head.field("Date", HTTPDate.text(for: time)) }
    try head.fields(fields, except: own)
    switch framing {
    case .none: break
    case .length(let length): try head.field("Content-Length", String(length))
    case .chunked, .untilClose:
      // The response to HEAD has no body, and its length is unknown.
      if !isForHEAD { try head.field("Transfer-Encoding", "chunked") }
    }
    if closes { try head.field("Connection", "close") }
    return head.ended()
  }

  /// Returns the value of `Connection`. It must name `Upgrade`, which a 426 carries (RFC 9110 section 7.8).
  private static func connection(of response: Response, closes: Bool) -> String? {
    switch (response.headers.contains("Upgrade"), closes) {
    case (true, true): "upgrade, close"
    case (true, false): "upgrade"
    case (false, true): "close"
    case (false, false): nil
    }
  }

  /// Encodes the 101 that opens a WebSocket (RFC 6455 section 4.2.2).
  ///
  /// - Parameters:
  ///   - accept: The `Sec-WebSocket-Accept` for the client's key.
  ///   - subprotocol: The negotiated subprotocol.
  ///   - extensions: The values of `Sec-WebSocket-Extensions`, as the upstream sent them.
  ///   - fields: Other fields. Fields of the handshake among them are left out.
  static func switchingProtocols(
    accept: String, subprotocol: String? = nil, extensions: [String] = [], fields: HeaderFields = HeaderFields()
  ) throws(HeadWriteError) -> [UInt8] {
    var head = try HeadWriter(openingWebSocket: accept)
    if let subprotocol { try head.field("Sec-WebSocket-Protocol", subprotocol) }
    for value in extensions { try head.field("Sec-WebSocket-Extensions", value) }
    try head.fields(fields, except: handshake)
    return head.ended()
  }

  private static let handshake = FieldNameSet(
    names: ownNames + ["Upgrade", "Sec-WebSocket-Accept", "Sec-WebSocket-Protocol", "Sec-WebSocket-Extensions"])

  /// The interim response that tells a client to send its body (RFC 9110 section 15.2.1).
  static let goOn = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)
}
