/// An admitted session, as the engine is to carry it.
///
/// The methods are called on the event loop that owns the connection: they must not block.
public protocol RelayPlan: Sendable {
  var upstream: Upstream { get }
  var limits: SessionLimits { get }

  /// What of `upstream`, the end-to-end fields of the upstream's 101 (none for `.tcp`), the client's 101 carries, and
  /// what else. The engine itself writes the fields of the handshake.
  func answerFields(from upstream: HeaderFields) -> HeaderFields

  /// The answer for the client when the upstream could not be had. Nothing was sent to the client before.
  func response(to fault: UpstreamFault) -> Response

  /// The answer for the client if the session may not begin after all; `nil` if it may.
  ///
  /// Asked before the upstream hears of the client, and again before the client's 101: much may have happened since the
  /// decision. An order that gives an answer is asked nothing more.
  func refusal() -> Response?

  /// Both sides have had their 101. `control` outlives the session: using it later does nothing.
  func opened(_ control: SessionControl)

  /// The session is over, both sockets are closed or closing. Called exactly once after `opened`, never without it.
  func closed(_ summary: SessionSummary)
}

extension RelayPlan {
  /// What was decided stands.
  public func refusal() -> Response? { nil }
}

/// Where admitted sessions go.
public enum Upstream: Sendable, Hashable {
  /// `ws://host:port`; an IPv6 address without brackets.
  case webSocket(host: String, port: UInt16)
  /// `wss://host:port`.
  case secureWebSocket(host: String, port: UInt16, tls: UpstreamTLS)
  /// WebSocket over a Unix socket.
  case unix(path: String)
  /// A TCP service: the engine ends the WebSocket and carries payloads as bytes.
  case tcp(host: String, port: UInt16)
}

/// How an upstream's certificate is verified. There is no way not to verify it.
public struct UpstreamTLS: Sendable, Hashable {
  /// A PEM file of authorities; `nil` for the system's.
  public let caFile: String?
  /// The name to verify and to send as SNI; `nil` for the upstream's host.
  public let serverName: String?

  public init(caFile: String? = nil, serverName: String? = nil) {
    self.caFile = caFile
    self.serverName = serverName
  }
}

/// Bounds of one session. `nil` means no bound.
public struct SessionLimits: Sendable, Hashable {
  /// From the decision to the upstream's 101, name resolution and TLS included.
  public var connectTimeout: Duration
  /// After which a session is closed with 3008, however busy.
  public var maxAge: Duration?
  /// How long a side may be silent before the session is closed with 3008. Pongs count as sound, and so does taking
  /// what had to wait; a side that is not read, because the other one takes nothing, may be silent for as long as
  /// anything moves.
  public var idleTimeout: Duration?
  /// How long a side may be silent before it is sent a Ping.
  public var pingInterval: Duration?
  /// Payload bytes of one message, summed over its fragments and as sent (compressed, if so); more closes with 1009.
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

/// Why there is no 101 from the upstream.
public enum UpstreamFault: Sendable, Hashable {
  /// Name resolution, connection or TLS failed; the text is for the log.
  case unreachable(String)
  /// No answer within `SessionLimits.connectTimeout`.
  case timedOut
  /// The answer broke HTTP, or a 101 did not prove that it understood (`Sec-WebSocket-Accept`, RFC 6455 section 4.1).
  case misbehaved(String)
  /// A whole, well-formed answer other than 101: the upstream's own refusal, at most 64 KiB of body.
  case refused(Response)
}

/// A handle on an open session, for any thread.
public struct SessionControl: Sendable {
  private let closer: @Sendable (CloseCode, String) -> Void

  public init(close: @escaping @Sendable (CloseCode, String) -> Void) { closer = close }

  /// Asks for a Close frame with `code` to both sides, between two frames, and then for the end of the session.
  public func close(_ code: CloseCode, reason: String) { closer(code, reason) }
}

/// A status of a Close frame (RFC 6455 section 7.4).
public struct CloseCode: Sendable, Hashable {
  public let rawValue: UInt16
  public init(_ rawValue: UInt16) { self.rawValue = rawValue }

  public static let normal = CloseCode(1000)
  /// The gate drains.
  public static let goingAway = CloseCode(1001)
  public static let protocolError = CloseCode(1002)
  public static let invalidPayload = CloseCode(1007)
  public static let tooBig = CloseCode(1009)
  public static let internalError = CloseCode(1011)
  public static let serviceRestart = CloseCode(1012)
  public static let tryAgainLater = CloseCode(1013)
  public static let badGateway = CloseCode(1014)
  public static let reauthenticate = CloseCode(3000)
  public static let revoked = CloseCode(3003)
  /// Idle, or too old.
  public static let timeout = CloseCode(3008)
}

/// What a session came to.
public struct SessionSummary: Sendable, Hashable {
  public enum End: Sendable, Hashable {
    /// A side sent a Close frame; its code, or `nil` if it had none.
    case closed(by: Side, code: UInt16?)
    /// The gate sent a Close frame.
    case closedByGate(UInt16, reason: String)
    /// A side's connection ended without a Close frame.
    case lost(Side, String)
  }
  public enum Side: String, Sendable, Hashable { case client, upstream }

  public let end: End
  /// WebSocket bytes, frame headers included, from the client to the upstream.
  public let bytesFromClient: UInt64
  public let bytesFromUpstream: UInt64
  public let duration: Duration

  public init(end: End, bytesFromClient: UInt64, bytesFromUpstream: UInt64, duration: Duration) {
    self.end = end
    self.bytesFromClient = bytesFromClient
    self.bytesFromUpstream = bytesFromUpstream
    self.duration = duration
  }
}
