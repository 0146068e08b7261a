/// An admitted session: says how the engine relays it to an upstream.
///
/// The engine calls the methods on the event loop that owns the connection. They must not block. Every session keeps its
/// plan, and passing on an object costs one reference count.
public protocol RelayPlan: AnyObject, Sendable {
  /// The upstream to connect to; after `nextUpstream`, the one that it returned.
  var upstream: Upstream { get }
  /// Whether another upstream can be tried if this one cannot be connected to. It then gets half of the time.
  var hasAlternative: Bool { get }
  var limits: SessionLimits { get }
  /// The maximum length of the head of the upstream's response, in bytes.
  var maxResponseHead: Int { get }
  /// The subprotocol of a `.tcp` upstream, which cannot choose itself. `nil` chooses from what the client offers.
  var subprotocol: String? { get }
  /// The offered subprotocols that are the gate's own: the upstream does not see them and may not choose them. If it
  /// chooses none, the client's 101 has the first of these.
  var ownSubprotocols: [String] { get }

  /// Reports that a connection to `upstream` was made, TLS included. Called for each new connection, before anything is
  /// sent.
  func reached()

  /// Reports that no connection to `upstream` could be made, TLS included, and returns the one to try instead; `nil` if
  /// none is left.
  ///
  /// - Parameter mayTryAnother: Whether there is time to try another, and nothing of the request was sent that must not be
  ///   sent twice.
  func nextUpstream(after fault: UpstreamError, mayTryAnother: Bool) -> Upstream?

  /// Returns the fields of the client's 101, made from `upstream`, the end-to-end fields of the upstream's 101 (none
  /// for `.tcp`). The engine adds the fields of the handshake.
  func answerFields(from upstream: HeaderFields) -> HeaderFields

  /// Returns the answer for the client when the upstream gave no 101. Nothing was sent to the client before.
  func response(to fault: UpstreamError) -> Response

  /// Returns the answer for the client if the session may no longer begin; `nil` if it may.
  ///
  /// The engine calls this before it sends anything to the upstream, and again before the client's 101, since the
  /// right to a session may have ended after the decision. After an answer, the engine makes no further calls.
  func refusal() -> Response?

  /// Reports that both sides have a 101. `control` may be kept longer than the session: then it does nothing.
  func opened(_ control: SessionControl)

  /// Reports that the session is over and both sockets are closed or closing. Called exactly once after `opened`,
  /// never without it.
  func closed(_ summary: SessionSummary)
}

extension RelayPlan {
  /// The default: 64 KiB.
  public var maxResponseHead: Int { 64 << 10 }

  /// The default: no subprotocol in particular.
  public var subprotocol: String? { nil }

  /// The default: none.
  public var ownSubprotocols: [String] { [] }

  /// The default: there is only one upstream.
  public var hasAlternative: Bool { false }
  public func reached() {}
  public func nextUpstream(after fault: UpstreamError, mayTryAnother: Bool) -> Upstream? { nil }

  /// The default: the session may always begin.
  public func refusal() -> Response? { nil }
}

/// The destination of admitted sessions.
public enum Upstream: Sendable, Hashable {
  /// `ws://host:port`. An IPv6 address has no brackets.
  case webSocket(host: String, port: UInt16)
  /// `wss://host:port`.
  case secureWebSocket(host: String, port: UInt16, tls: UpstreamTLS)
  /// WebSocket over a Unix socket.
  case unix(path: String)
  /// A TCP service. The engine terminates the WebSocket and relays payloads as bytes.
  case tcp(host: String, port: UInt16)
}

/// The verification of an upstream's certificate, which cannot be turned off, and the gate's own certificate.
public struct UpstreamTLS: Sendable, Hashable {
  /// The path of a PEM file of trusted authorities; `nil` for those of the system.
  public let caFile: String?
  /// The name to verify and to send as SNI; `nil` for the upstream's host.
  public let serverName: String?
  /// The PEM files of the gate's own certificate, with its chain, and of its key, for an upstream that asks for one.
  public let identity: Identity?

  public struct Identity: Sendable, Hashable {
    public let certificateFile: String
    public let keyFile: String

    public init(certificateFile: String, keyFile: String) {
      self.certificateFile = certificateFile
      self.keyFile = keyFile
    }
  }

  public init(caFile: String? = nil, serverName: String? = nil, identity: Identity? = nil) {
    self.caFile = caFile
    self.serverName = serverName
    self.identity = identity
  }
}

/// The bounds of one session. `nil` means no bound.
public struct SessionLimits: Sendable, Hashable {
  /// The time from the decision to the upstream's 101, including name resolution and TLS.
  public var connectTimeout: Duration
  /// The age at which a session is closed with 3008, even if it is active.
  public var maxAge: Duration?
  /// The time after which a silent side causes a close with 3008.
  ///
  /// Received Pongs count as activity, and so does progress in sending queued bytes to the side. A side that the
  /// engine does not read, because the other side accepts no data, may stay silent as long as any data moves.
  public var idleTimeout: Duration?
  /// The time of silence after which a side is sent a Ping.
  public var pingInterval: Duration?
  /// The maximum payload of one message in bytes, summed over its fragments and counted as sent (compressed, if so).
  /// A longer message causes a close with 1009.
  public var maxMessage: Int

  public init(
    connectTimeout: Duration = .seconds(10), maxAge: Duration? = .seconds(43200),
    idleTimeout: Duration? = .seconds(90), pingInterval: Duration? = .seconds(30), maxMessage: Int = 32 << 20
  ) {
    self.connectTimeout = connectTimeout
    self.maxAge = maxAge
    self.idleTimeout = idleTimeout
    self.pingInterval = pingInterval
    self.maxMessage = maxMessage
  }
}

/// Why the upstream gave no 101.
public enum UpstreamError: Sendable, Hashable {
  /// Name resolution, connection or TLS failed. The text is for the log.
  case unreachable(String)
  /// The gate itself lacks descriptors or memory for the connection: no upstream is to blame, and none is asked. The text is
  /// for the log.
  case exhausted(String)
  /// No answer arrived within `SessionLimits.connectTimeout`.
  case timedOut
  /// The answer violates HTTP, or a 101 lacks the correct `Sec-WebSocket-Accept` (RFC 6455 section 4.1).
  case misbehaved(String)
  /// A complete, well-formed answer other than 101, with at most 64 KiB of body.
  case refused(Response)
}

/// A handle on an open session, usable from any thread.
public struct SessionControl: Sendable {
  private let closer: @Sendable (CloseCode, String) -> Void

  public init(close: @escaping @Sendable (CloseCode, String) -> Void) { closer = close }

  /// Sends a Close frame with `code` to both sides, between two frames, and then closes the session.
  public func close(_ code: CloseCode, reason: String) { closer(code, reason) }
}

/// The status code of a Close frame (RFC 6455 section 7.4).
public struct CloseCode: Sendable, Hashable {
  public let rawValue: UInt16
  public init(_ rawValue: UInt16) { self.rawValue = rawValue }

  /// Normal closure.
  public static let normal = CloseCode(1000)
  /// The gate is draining.
  public static let goingAway = CloseCode(1001)
  public static let protocolError = CloseCode(1002)
  public static let invalidPayload = CloseCode(1007)
  /// A newer session of the client's key took the place of this one.
  public static let policyViolation = CloseCode(1008)
  /// A message is longer than `SessionLimits.maxMessage`.
  public static let tooBig = CloseCode(1009)
  public static let internalError = CloseCode(1011)
  public static let serviceRestart = CloseCode(1012)
  public static let tryAgainLater = CloseCode(1013)
  /// The upstream closed the connection without a Close frame.
  public static let badGateway = CloseCode(1014)
  /// The client's key was revoked.
  public static let revoked = CloseCode(3003)
  /// The session was idle or has reached its maximum age.
  public static let timeout = CloseCode(3008)

  /// The codes of the gate's own Close frames. Other codes reach a peer only from the other peer.
  public static let sentByGate: [CloseCode] = [
    .normal, .goingAway, .protocolError, .invalidPayload, .policyViolation, .tooBig,
    .internalError, .serviceRestart, .badGateway, .revoked, .timeout,
  ]
}

/// The result of a session.
public struct SessionSummary: Sendable, Hashable {
  /// Why the session is over.
  public enum End: Sendable, Hashable {
    /// A side sent a Close frame with this code; `nil` if the frame had no code.
    case closed(by: Side, code: UInt16?)
    /// The gate sent a Close frame.
    case closedByGate(UInt16, reason: String)
    /// A side's connection was closed or failed without a Close frame.
    case lost(Side, String)
  }
  /// A side of a relayed session.
  public enum Side: String, Sendable, Hashable { case client, upstream }

  public let end: End
  /// The bytes from the client to the upstream: of a WebSocket with its frame headers, of a `tcp:` upstream the
  /// payload of the messages.
  public let bytesFromClient: UInt64
  /// The bytes from the upstream to the client, counted in the same way.
  public let bytesFromUpstream: UInt64
  public let duration: Duration

  public init(end: End, bytesFromClient: UInt64, bytesFromUpstream: UInt64, duration: Duration) {
    self.end = end
    self.bytesFromClient = bytesFromClient
    self.bytesFromUpstream = bytesFromUpstream
    self.duration = duration
  }
}
