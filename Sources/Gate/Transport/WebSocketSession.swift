/// The local end of a WebSocket that the engine terminates.
///
/// The engine calls the methods on the event loop that owns the connection, one at a time. They must not block.
public protocol WebSocketSession: AnyObject, Sendable {
  /// The chosen subprotocol, one of those that the client offered; `nil` for none.
  var subprotocol: String? { get }
  /// The maximum payload of one message in bytes. A longer message causes a close with 1009.
  var maxMessage: Int { get }

  /// Reports that the handshake is complete. `socket` sends messages to the client.
  func opened(_ socket: WebSocketChannel)
  func received(_ message: WebSocketMessage)
  /// Reports that the client closed the socket or that the connection was lost. Called exactly once after `opened`.
  func closed(code: UInt16?, reason: String)
}

/// A complete message (RFC 6455 section 5.6). Text is valid UTF-8.
public enum WebSocketMessage: Sendable, Hashable {
  case text(String)
  case binary([UInt8])
}

/// A handle for sending on a WebSocket, usable from any thread. After the socket is closed it does nothing.
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

  /// Queues `message`. While the queue is longer than the engine's limit, the engine does not read from the client,
  /// so that an echo cannot grow the queue without limit.
  public func send(_ message: WebSocketMessage) { sender(message) }

  /// Sends a Close frame after the queued messages. The connection is closed when the client has answered, or after a
  /// few seconds.
  public func close(_ code: CloseCode, reason: String = "") { closer(code, reason) }
}
