/// An admitted ordinary request, as the engine is to carry it to an upstream, and the answer back.
///
/// The methods are called on the event loop that owns the connection: they must not block.
public protocol ForwardOrder: Sendable {
  /// Not `.tcp`, which speaks no HTTP.
  var upstream: Upstream { get }
  var limits: ForwardLimits { get }

  /// The answer for the client if the request may not be sent after all; `nil` if it may. Asked before the upstream
  /// gets the head: much may have happened since the decision.
  func refusal() -> Response?

  /// The request has been sent. `control` outlives it: closing ends both connections at once, whatever is under way.
  func opened(_ control: SessionControl)

  /// What of `upstream`, the end-to-end fields of the upstream's answer, the client's answer carries, and what else.
  /// The engine itself frames the body.
  func answerFields(from upstream: HeaderFields) -> HeaderFields

  /// The answer for the client when there is none from the upstream. Nothing was sent to the client before.
  func response(to fault: UpstreamFault) -> Response

  /// It is over. Called exactly once, whatever became of it.
  func finished(_ summary: ForwardSummary)
}

extension ForwardOrder {
  /// What was decided stands.
  public func refusal() -> Response? { nil }
}

/// Bounds of one forwarded request.
public struct ForwardLimits: Sendable, Hashable {
  /// From the decision to the connection with the upstream, name resolution and TLS included.
  public var connectTimeout: Duration
  /// How long nothing may move in either direction, the wait for the upstream's answer included.
  public var idleTimeout: Duration
  /// Bytes of the client's body, without its coding.
  public var maxBody: Int

  public init(
    connectTimeout: Duration = .seconds(10), idleTimeout: Duration = .seconds(60), maxBody: Int = 1 << 30
  ) {
    self.connectTimeout = connectTimeout
    self.idleTimeout = idleTimeout
    self.maxBody = maxBody
  }
}

/// What a forwarded request came to.
public struct ForwardSummary: Sendable, Hashable {
  /// Of the upstream's answer; `nil` if there was none.
  public let status: Int?
  /// Whether the whole answer has been handed on.
  public let isComplete: Bool
  /// Bytes of the bodies, without their codings.
  public let bytesFromClient: UInt64
  public let bytesFromUpstream: UInt64
  public let duration: Duration

  public init(
    status: Int?, isComplete: Bool, bytesFromClient: UInt64, bytesFromUpstream: UInt64, duration: Duration
  ) {
    self.status = status
    self.isComplete = isComplete
    self.bytesFromClient = bytesFromClient
    self.bytesFromUpstream = bytesFromUpstream
    self.duration = duration
  }
}
