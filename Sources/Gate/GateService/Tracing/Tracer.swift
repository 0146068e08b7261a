internal import ByteCoding
public import Observability
internal import Transport

/// Decides which requests are traced, and collects their spans.
public struct Tracer: Sendable {
  private let sampler: Sampler
  private let queue: SpanQueue
  private let clock: WallClock
  /// The value of `db.system.name` for the store.
  private let database: String

  /// - Parameters:
  ///   - queue: Gets the spans of a request when it is over.
  ///   - database: The kind of the store by OpenTelemetry's names: `sqlite` or `postgresql`.
  public init(sampler: Sampler, queue: SpanQueue, database: String) {
    (self.sampler, self.queue, self.database) = (sampler, queue, database)
    clock = .system
  }

  /// Begins the trace of `request`, or continues the client's. Requests that are not sampled have no spans, but their
  /// upstream still gets a place in the trace.
  func trace(of request: Request, from peer: Peer) -> RequestTrace? {
    let isSampled = sampler.samples(request.id)
    var parent: TraceContext?
    if case .once(let value) = request.headers.only("traceparent") { parent = TraceContext(traceparent: value) }
    guard let root = TraceContext.root(traceID: parent?.traceID ?? request.id, isSampled: isSampled) else { return nil }
    // Belongs to the client's trace, and means nothing in another one.
    let state = parent.flatMap { _ in TraceState.forwarded(request.headers.values(of: "tracestate")) }
    return RequestTrace(
      request, from: peer, root: root, parentID: parent?.spanID, state: state, database: database, clock: clock,
      queue: isSampled ? queue : nil)
  }
}
