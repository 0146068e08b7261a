/// The near end of a WebSocket that the engine terminates: messages in, messages out.
///
/// The methods are called on the event loop that owns the connection, one at a time: they must not block.
public protocol WebSocketSession: AnyObject, Sendable {
  /// The chosen subprotocol, one of those that the client offered, or `nil`.
  var subprotocol: String? { get }
  /// Payload bytes of one message; a longer one ends the connection with 1009.
  var maxMessage: Int { get }

  func opened(_ socket: WebSocketChannel)
  func received(_ message: WebSocketMessage)
  /// The peer has closed, or is gone. Called exactly once after `opened`.
  func closed(code: UInt16?, reason: String)
}

/// A whole message (RFC 6455 section 5.6). Text is valid UTF-8.
public enum WebSocketMessage: Sendable, Hashable {
  case text(String)
  case binary([UInt8])
}

/// What a session may do with its socket, from any thread. After the end it does nothing.
public struct WebSocketChannel: Sendable {
  private let sender: @Sendable (WebSocketMessage) -> Void
  private let closer: @Sendable (CloseCode, String) -> Void

  public init(
    send: @escaping @Sendable (WebSocketMessage) -> Void,
    close: @escaping @Sendable (CloseCode, String) -> Void
  ) {
    sender = send
    closer = close
  }

  /// Queues `message`. While more than the engine's bound is queued, the peer is not read: echoing cannot grow without
  /// end.
  public func send(_ message: WebSocketMessage) { sender(message) }

  /// Sends a Close frame behind what is queued and ends the connection when the peer has answered, or a few seconds
  /// later.
  public func close(_ code: CloseCode, reason: String = "") { closer(code, reason) }
}
