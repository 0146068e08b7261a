internal import Transport

/// What a peer did that ends a WebSocket at once (RFC 6455 section 7.1.7).
enum WebSocketFault: Error, Sendable, Hashable {
  case header(FrameFault)
  case close(ClosePayloadFault)
  /// A client's frame was not masked (section 5.1).
  case unmasked
  /// A server's frame was masked (section 5.1).
  case masked
  /// A continuation came without a message to go on with (section 5.4).
  case strayContinuation
  /// A message began inside another (section 5.4).
  case interruptedMessage
  /// A text message is not UTF-8 (section 8.1).
  case notUTF8
  /// A message is longer than `limit` bytes, or will be.
  case tooBig(limit: Int)
}

extension WebSocketFault {
  /// The code to close with.
  var closeCode: CloseCode {
    switch self {
    case .header, .unmasked, .masked, .strayContinuation, .interruptedMessage: .protocolError
    case .close(let fault): fault.closeCode
    case .notUTF8: .invalidPayload
    case .tooBig: .tooBig
    }
  }

  /// The broken rule, for the peer and the log.
  var rule: String {
    switch self {
    case .header(let fault): fault.rawValue
    case .close(let fault): fault.rawValue
    case .unmasked: "a frame from the client is not masked"
    case .masked: "a frame from the server is masked"
    case .strayContinuation: "a continuation belongs to no message"
    case .interruptedMessage: "a message begins inside another"
    case .notUTF8: "a text message is not UTF-8"
    case .tooBig(let limit): "a message is longer than \(limit) bytes"
    }
  }
}
