internal import Transport

/// Writes what this server answers.
enum ResponseWriter {
  /// The fields that say where a message ends and what becomes of the connection: the engine alone says so.
  private static let own = ["Connection", "Keep-Alive", "Content-Length", "Transfer-Encoding", "Trailer"]

  /// The fields of a 101 that belong to the handshake with one peer.
  private static let handshake = ["Upgrade", "Sec-WebSocket-Accept"]

  /// The bytes of `response`, with `Content-Length` and, unless it is among the fields, `Date` added.
  ///
  /// Fields of `response` that frame the message are left out. A response that cannot be written, which is the
  /// responder's mistake, becomes a bare 500.
  ///
  /// - Parameters:
  ///   - closes: whether to announce that the connection ends behind this answer.
  ///   - omitsBody: whether HEAD is answered: then the length is told and the body left out (RFC 9110 section 9.3.2).
  ///   - date: for `Date`.
  static func encode(_ response: Response, closes: Bool, omitsBody: Bool = false, date: String) -> [UInt8] {
    do throws(HeadWriteFault) {
      return try strictly(response, closes: closes, omitsBody: omitsBody, date: date)
    } catch {
      return Array("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".utf8)
    }
  }

  private static func strictly(
    _ response: Response, closes: Bool, omitsBody: Bool, date: String
  ) throws(HeadWriteFault) -> [UInt8] {
    guard (200...599).contains(response.status) else { throw .status }
    var head = HeadWriter(status: response.status)
    if response.headers.first("Date") == nil { try head.field("Date", date) }
    try head.fields(response.headers, except: own)
    // These two end with their heads (RFC 9112 section 6.3), and a 204 must not have a length (RFC 9110 section 8.6).
    let hasBody = response.status != 204 && response.status != 304
    if hasBody { try head.field("Content-Length", String(response.body.count)) }
    if let options = connection(of: response, closes: closes) { try head.field("Connection", options) }
    return head.ended(with: hasBody && !omitsBody ? response.body : [])
  }

  /// `Upgrade`, which a 426 carries, is nothing without being named here (RFC 9110 section 7.8).
  private static func connection(of response: Response, closes: Bool) -> String? {
    switch (response.headers.first("Upgrade") != nil, closes) {
    case (true, true): "upgrade, close"
    case (true, false): "upgrade"
    case (false, true): "close"
    case (false, false): nil
    }
  }

  /// The bytes of the 101 that opens a WebSocket (RFC 6455 section 4.2.2).
  ///
  /// - Parameters:
  ///   - accept: `Sec-WebSocket-Accept`, for the client's key.
  ///   - fields: what the gate has to say. A field that cannot be written is left out.
  ///   - upstream: the upstream's fields, the agreed subprotocol and extensions among them; the gate's own word
  ///     replaces the upstream's of the same name.
  static func switchingProtocols(
    accept: String, fields: HeaderFields = HeaderFields(), from upstream: HeaderFields = HeaderFields()
  ) -> [UInt8] {
    var head = HeadWriter(status: 101)
    head.writableFields(
      HeaderFields([
        .init(name: "Upgrade", value: "websocket"), .init(name: "Connection", value: "Upgrade"),
        .init(name: "Sec-WebSocket-Accept", value: accept),
      ]))
    head.writableFields(upstream, except: own + handshake + fields.fields.map(\.name))
    head.writableFields(fields, except: own + handshake)
    return head.ended()
  }

  /// The interim answer that tells a client to send its body (RFC 9110 section 15.2.1).
  static let goOn = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)
}
