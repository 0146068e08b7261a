/// Decides about requests. The engine parses each request, asks for one decision, and carries it out.
public protocol RequestResponder: Sendable {
  /// Returns the decision about `request`. There is always one: every failure becomes an answer.
  ///
  /// The call begins on the event loop and returns to it after each suspension. It must not block the loop or compute
  /// for more than a few hundred microseconds; longer work belongs on another executor.
  func respond(to request: Request, from peer: Peer) async -> Disposition

  /// Returns the decision about `request` if it needs no waiting; `nil` if `respond` is to be asked. Then the request
  /// has had no effect yet.
  ///
  /// Called on the event loop, before `respond`: must not block. It saves the task that `respond` runs in.
  func respondAtOnce(to request: Request, from peer: Peer) -> Disposition?

  /// Returns `true` if the body of `request` is to be streamed to an upstream as it arrives, instead of being read
  /// before the decision.
  ///
  /// Called on the event loop, only for requests with a body, whose `body` is still empty: must not block. After a
  /// decision other than `.forward`, the engine closes the connection after its answer.
  func streamsBody(of request: Request) -> Bool

  /// Returns the answer to bytes that did not become a request. Called on the event loop: must not block.
  ///
  /// The engine closes the connection after the answer.
  ///
  /// - Parameter headers: The fields of the request; `nil` if the fault is in its head.
  func response(to fault: RequestError, of headers: HeaderFields?, id: String, from peer: Peer) -> Response

  /// The same, for bytes whose request line is complete. The engine calls this one.
  ///
  /// - Parameter path: The path of the request, in its normal form only if `headers` is not `nil`; `nil` if the fault is
  ///   in the request line or before its end.
  func response(
    to fault: RequestError, at path: String?, of headers: HeaderFields?, id: String, from peer: Peer
  ) -> Response

  /// Returns the answer to a request without a decision that can be carried out: it took too long, or the configuration
  /// was replaced before its end. Called on the event loop: must not block.
  ///
  /// The engine closes the connection after the answer.
  func responseWithoutDecision(on request: Request, from peer: Peer) -> Response

  /// The beginning of paths whose rest the responder does not read, with a slash at its end; `nil` for none. A proxy
  /// may append a path there that is not meant for this server. The engine accepts every visible ASCII character after
  /// it, and gives such a request this beginning as its `path`.
  var unreadPaths: StaticString? { get }

  /// The fields that the responder reads and whose values are ASCII. The engine refuses a request with another value in
  /// them that is not even UTF-8. Such values in other fields reach the upstream as they are.
  var ownFields: FieldNameSet { get }
}

extension RequestResponder {
  /// The default: the path does not matter.
  public func response(
    to fault: RequestError, at path: String?, of headers: HeaderFields?, id: String, from peer: Peer
  ) -> Response {
    response(to: fault, of: headers, id: id, from: peer)
  }

  /// The default: 503 with a line of text.
  public func responseWithoutDecision(on request: Request, from peer: Peer) -> Response {
    Response(
      status: 503, headers: HeaderFields([.init(name: "Content-Type", value: "text/plain")]),
      body: Array("the request was not decided in time\n".utf8))
  }

  /// The default: every path is read.
  public var unreadPaths: StaticString? { nil }

  /// The default: none.
  public var ownFields: FieldNameSet { FieldNameSet(names: []) }

  /// The default: each decision is made by `respond`.
  public func respondAtOnce(to request: Request, from peer: Peer) -> Disposition? { nil }

  /// The default: bodies are read before the decision.
  public func streamsBody(of request: Request) -> Bool { false }
}

/// The decision about a request.
public enum Disposition: Sendable {
  case respond(Response)
  /// Relays a WebSocket session to an upstream. Only for a request with an `upgrade`; for any other, the engine
  /// answers 500 and closes the connection.
  ///
  /// `upgradeHead` is the opening handshake for the upstream, from the request line to the empty line; unused for
  /// `.tcp`. It carries the client's own `Sec-WebSocket-Key`, so that frames can be relayed unchanged. The engine
  /// verifies the upstream's `Sec-WebSocket-Accept` against that key. The engine keeps `upgradeHead` only until it is
  /// sent.
  case relay(any RelayPlan, upgradeHead: [UInt8])
  /// Forwards an ordinary request to an upstream. Only for a request without an `upgrade`.
  ///
  /// `head` is the head for the upstream, from the request line to the last field line with its CRLF. It must not
  /// contain fields that frame the body: the engine adds them.
  case forward(any ForwardPlan, head: [UInt8])
  /// Terminates the WebSocket in this process. Only for a request with an `upgrade`.
  case converse(any WebSocketSession)
}

/// Why bytes did not become a request.
public enum RequestError: Sendable, Hashable {
  /// The head violates the grammar. `rule` names the violated rule for people, without quoting the input.
  case malformedHead(rule: String)
  /// A field has a value that is not accepted. The lines of the head are well-formed.
  case unacceptableField(rule: String)
  /// The head has more bytes or fields than allowed.
  case headTooLarge(rule: String)
  /// The body is longer than `limit` bytes, or is declared to be longer.
  case bodyTooLarge(limit: Int)
  /// The framing of the body is malformed or not supported.
  case malformedBody(rule: String)
  /// The opening handshake violates RFC 6455 section 4.2.1. `rule` may quote the beginning of an offered subprotocol, in
  /// printable ASCII.
  case malformedUpgrade(rule: String)
  /// The version of WebSocket is not 13. The answer is 426 with the supported version.
  case unsupportedWebSocketVersion
  /// The head or the body did not arrive in time.
  case tooSlow
}
