internal import Transport

/// A violation by the peer that fails a WebSocket (RFC 6455 section 7.1.7).
enum WebSocketError: Error, Sendable, Hashable {
  case header(FrameError)
  case close(ClosePayloadError)
  /// A client's frame was not masked (section 5.1).
  case unmasked
  /// A server's frame was masked (section 5.1).
  case masked
  /// A continuation frame without a message to continue (section 5.4).
  case strayContinuation
  /// A message that begins inside another one (section 5.4).
  case interruptedMessage
  /// A text message that is not UTF-8 (section 8.1).
  case notUTF8
  /// A message that is longer than `limit` bytes, or that announces more.
  case tooBig(limit: Int)
}

extension WebSocketError {
  /// The close code.
  var closeCode: CloseCode {
    switch self {
    case .header, .unmasked, .masked, .strayContinuation, .interruptedMessage: .protocolError
    case .close(let fault): fault.closeCode
    case .notUTF8: .invalidPayload
    case .tooBig: .tooBig
    }
  }

  /// The violated rule, for the peer and the log.
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
