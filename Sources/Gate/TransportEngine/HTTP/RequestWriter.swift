internal import Transport

/// Writes requests to servers.
enum RequestWriter {
  /// Encodes a request. It gets a `Content-Length`, unless it is a GET without a body.
  ///
  /// - Parameters:
  ///   - fields: All other fields, including `Host`.
  ///   - toProxy: Whether a proxy reads the request: `target` is then in absolute form.
  static func bytes(
    method: String, target: String, fields: HeaderFields, body: [UInt8] = [], toProxy: Bool = false
  ) throws(HeadWriteError) -> [UInt8] {
    var head = try HeadWriter(method: method, target: target, toProxy: toProxy)
    try head.fields(fields)
    if !body.isEmpty || method != "GET" { try head.field("Content-Length", String(body.count)) }
    return head.ended(with: body)
  }

  /// Encodes an opening handshake (RFC 6455 section 4.1) that offers no extensions.
  ///
  /// - Parameters:
  ///   - host: The host, with the port unless it is the default port of the scheme.
  ///   - key: 16 random bytes in base64, fresh for each connection.
  static func upgrade(
    target: String, host: String, key: String, subprotocols: [String] = [], fields: HeaderFields = HeaderFields()
  ) throws(HeadWriteError) -> [UInt8] {
    var head = try HeadWriter(method: "GET", target: target)
    try head.field("Host", host)
    try head.field("Upgrade", "websocket")
    try head.field("Connection", "Upgrade")
    try head.field("Sec-WebSocket-Key", key)
    try head.field("Sec-WebSocket-Version", "13")
    if !subprotocols.isEmpty {
      try head.field("Sec-WebSocket-Protocol", subprotocols.joined(separator: ", "))
    }
    try head.fields(fields)
    return head.ended()
  }
}
