internal import NIOWebSocket

/// Why the server ends a socket: the codes of its own, from 4400 to 4429, beside those of RFC 6455.
enum SocketClose: Sendable, Hashable {
  /// The client closed, or the server stops.
  case goingAway
  /// A message that is no text.
  case notText
  /// The session that was attached has ended, or its token has expired and no newer one was attached.
  case sessionEnded
  /// More waits for the client than it may let wait.
  case tooSlow
  case tooBig
  case tooFast
  case internalError
  /// Frames that are none, or not in an order that RFC 6455 allows.
  case malformed

  var code: UInt16 {
    switch self {
    case .goingAway: 1001
    case .malformed: 1002
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
    case .notText: "only text messages"
    case .sessionEnded: "session revoked"
    case .tooSlow: "too slow to read"
    case .tooBig: "message too big"
    case .tooFast: "too many messages"
    }
  }
}

extension SocketClose {
  /// What an error of reading frames means; `nil` if it is the connection that broke.
  init?(faultOfFrames error: any Error) {
    switch error {
    case NIOWebSocketError.invalidFrameLength: self = .tooBig
    case is NIOWebSocketError: self = .malformed
    case NIOWebSocketFrameAggregator.Error.tooManyFragments,
      NIOWebSocketFrameAggregator.Error.accumulatedFrameSizeIsTooLarge:
      self = .tooBig
    case is NIOWebSocketFrameAggregator.Error: self = .malformed
    default: return nil
    }
  }
}
