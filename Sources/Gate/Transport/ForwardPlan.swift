/// An admitted ordinary request: says how the engine forwards it to an upstream and returns the answer.
///
/// The engine calls the methods on the event loop that owns the connection. They must not block.
public protocol ForwardPlan: Sendable {
  /// The upstream of the request; never `.tcp`, which does not speak HTTP. After `nextUpstream`, the one that it
  /// returned.
  var upstream: Upstream { get }
  /// Whether another upstream can be tried if this one cannot be connected to. It then gets half of the time.
  var hasAlternative: Bool { get }
  var limits: ForwardLimits { get }
  /// The maximum length of the head of the upstream's response, in bytes.
  var maxResponseHead: Int { get }

  /// Reports that a connection to `upstream` was made, TLS included. Called for each new connection, before anything is
  /// sent.
  func reached()

  /// Reports that no connection to `upstream` could be made, TLS included, and returns the one to try instead; `nil` if
  /// none is left.
  ///
  /// - Parameter mayTryAnother: Whether there is time to try another, and nothing of the request was sent that must not be
  ///   sent twice.
  func nextUpstream(after fault: UpstreamError, mayTryAnother: Bool) -> Upstream?

  /// Returns the answer for the client if the request may no longer be sent; `nil` if it may.
  ///
  /// The engine calls this right before it sends the head to the upstream, since the right to send may have ended
  /// after the decision.
  func refusal() -> Response?

  /// Reports that the request was sent. `control` may be kept longer than the request. Closing it closes both
  /// connections at once, whatever is in progress.
  func opened(_ control: SessionControl)

  /// Returns the fields of the client's answer, made from `upstream`, the end-to-end fields of the upstream's answer.
  /// The engine adds the fields that frame the body.
  func answerFields(from upstream: HeaderFields) -> HeaderFields

  /// Returns the answer for the client when the upstream gave none. Nothing was sent to the client before.
  func response(to fault: UpstreamError) -> Response

  /// Reports that the request is finished. Called exactly once, whatever the result.
  func finished(_ summary: ForwardSummary)
}

extension ForwardPlan {
  /// The default: 64 KiB.
  public var maxResponseHead: Int { 64 << 10 }

  /// The default: there is only one upstream.
  public var hasAlternative: Bool { false }
  public func reached() {}
  public func nextUpstream(after fault: UpstreamError, mayTryAnother: Bool) -> Upstream? { nil }

  /// The default: the request may always be sent.
  public func refusal() -> Response? { nil }
}

/// The bounds of one forwarded request.
public struct ForwardLimits: Sendable, Hashable {
  /// The time from the decision to the established connection with the upstream, including name resolution and TLS.
  public var connectTimeout: Duration
  /// The time without data in either direction, including the wait for the upstream's answer, after which the request
  /// fails.
  public var idleTimeout: Duration
  /// The maximum size of the client's body in bytes, without its transfer coding.
  public var maxBody: Int

  public init(
    connectTimeout: Duration = .seconds(10), idleTimeout: Duration = .seconds(60), maxBody: Int = 1 << 30
  ) {
    self.connectTimeout = connectTimeout
    self.idleTimeout = idleTimeout
    self.maxBody = maxBody
  }
}

/// The result of a forwarded request.
public struct ForwardSummary: Sendable, Hashable {
  /// The status of the upstream's answer; `nil` if there was none.
  public let status: Int?
  /// Whether the client was sent the whole answer.
  public let isComplete: Bool
  /// The bytes of the client's body, without its transfer coding.
  public let bytesFromClient: UInt64
  /// The bytes of the upstream's body, without its transfer coding.
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
