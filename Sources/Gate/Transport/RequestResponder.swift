/// What decides about requests. The engine parses, asks once for each request, and does the rest by itself.
public protocol RequestResponder: Sendable {
  /// The decision. Total: whatever goes wrong becomes an answer.
  ///
  /// It begins on the event loop, and goes on there after each wait, so it must not block the loop, nor compute for
  /// longer than some hundred microseconds: more is to be done on another executor.
  func respond(to request: Request, from peer: Peer) async -> Disposition

  /// Whether the body of `request`, which is empty so far, is to be handed on as it comes instead of being read
  /// before the decision. Asked on the event loop, only where there is a body: must not block. A decision other than
  /// `.forward` then closes the connection behind its answer.
  func streamsBody(of request: Request) -> Bool

  /// The answer to what never became a request. Called on the event loop: must not block.
  ///
  /// The engine closes the connection behind it.
  func response(to fault: RequestFault, id: String, from peer: Peer) -> Response
}

extension RequestResponder {
  public func streamsBody(of request: Request) -> Bool { false }
}

/// What becomes of a request.
public enum Disposition: Sendable {
  case respond(Response)
  /// Only for a request with an `upgrade`; for another one the engine answers 500 and closes.
  ///
  /// `upgradeHead` is the opening handshake for the upstream, from request line to empty line; unused for `.tcp`. It
  /// carries the client's own `Sec-WebSocket-Key`, so that frames can be relayed without touching them; the engine
  /// verifies the upstream's `Sec-WebSocket-Accept` against it. It is kept until it is sent, unlike the order.
  case relay(any RelayPlan, upgradeHead: [UInt8])
  /// Only for a request without an `upgrade`.
  ///
  /// `head` is what the upstream gets, from request line to the last field line with its CRLF; the engine adds the
  /// fields that frame the body, which must not be among these.
  case forward(any ForwardOrder, head: [UInt8])
  /// Ends the WebSocket here. Only for a request with an `upgrade`.
  case converse(any WebSocketSession)
}

/// Why bytes did not become a request.
public enum RequestFault: Sendable, Hashable {
  /// The head breaks a rule of the grammar; `rule` says which, for people, without echoing what was sent.
  case malformedHead(rule: String)
  /// The head has more bytes or fields than are allowed.
  case headTooLarge(rule: String)
  /// The body is longer than `limit` bytes, or says so.
  case bodyTooLarge(limit: Int)
  /// The body's framing is broken or of a kind that is not taken.
  case malformedBody(rule: String)
  /// An opening handshake that RFC 6455 section 4.2.1 does not allow.
  case malformedUpgrade(rule: String)
  /// A version of WebSocket other than 13: answered with 426 and the version that is spoken.
  case unsupportedWebSocketVersion
  /// The head or the body did not arrive in time.
  case tooSlow
}
