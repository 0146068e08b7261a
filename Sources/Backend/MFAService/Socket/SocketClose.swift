internal import NIOWebSocket

/// The reasons why the server closes a socket. Codes 4400 to 4429 are specific to this server; the others are from
/// RFC 6455.
enum SocketClose: Sendable, Hashable {
  /// The client closed the socket, or the server is stopping.
  case goingAway
  /// A message that is not text.
  case notText
  /// The attached session has ended, or its access token has expired and no newer one was attached.
  case sessionEnded
  /// The outgoing frames exceed the limit because the client reads too slowly.
  case tooSlow
  case tooBig
  case tooFast
  case internalError
  /// Malformed frames, or a sequence of frames that RFC 6455 does not allow.
  case malformed
  /// A text or a reason that is not UTF-8 (RFC 6455, section 8.1).
  case notUTF8

  var code: UInt16 {
    switch self {
    case .goingAway: 1001
    case .malformed: 1002
    case .notUTF8: 1007
    case .internalError: 1011
    case .notText: 4400
    case .sessionEnded: 4403
    case .tooSlow: 4408
    case .tooBig: 4413
    case .tooFast: 4429
    }
  }

  var reason: String {
    switch self {
    case .goingAway: ""
    case .internalError: "internal error"
    case .malformed: "protocol error"
    case .notUTF8: "not UTF-8"
    case .notText: "only text messages"
    case .sessionEnded: "session revoked"
    case .tooSlow: "too slow to read"
    case .tooBig: "message too big"
    case .tooFast: "too many messages"
    }
  }
}

extension SocketClose {
  /// Creates the close code for an error while reading frames; `nil` if the connection broke.
  init?(faultOfFrames error: any Error) {
    switch error {
    case NIOWebSocketError.invalidFrameLength: self = .tooBig
    case is NIOWebSocketError, FrameFault.malformed: self = .malformed
    case FrameFault.notUTF8: self = .notUTF8
    case NIOWebSocketFrameAggregator.Error.tooManyFragments,
      NIOWebSocketFrameAggregator.Error.accumulatedFrameSizeIsTooLarge:
      self = .tooBig
    case is NIOWebSocketFrameAggregator.Error: self = .malformed
    default: return nil
    }
  }
}
