internal import AttestGate
internal import ByteCoding
internal import Locking
internal import Observability
internal import Transport

/// The spans of one request: TLS handshake, decision with its store calls, and upstream.
///
/// No attribute has a key, an address of a client, a nonce or a query. The request id leads to the log line.
final class RequestTrace: Sendable {
  /// The trace of the request that the current task decides about.
  @TaskLocal static var current: RequestTrace?

  /// The methods of RFC 9110 and RFC 5789, which the semantic conventions name.
  private static let methods: Set = [
    "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE",
  ]

  private struct State {
    var spans: [Span] = []
    /// When the decision ended, and with it the wait for the upstream began.
    var decidedAt: Timestamp?
    var route: String?
    var upstream: String?
    var isFinished = false

    /// Adds the span of the upstream, if the decision ended with one.
    mutating func addUpstream(
      _ context: TraceContext, under root: TraceContext, until end: Timestamp,
      _ attributes: [(name: String, value: Span.Value)], isFailure: Bool = false
    ) {
      guard let start = decidedAt, let upstream, !isFinished else { return }
      spans.append(
        Span(
          "upstream", .client, context: context, parentID: root.spanID, from: start, to: end,
          attributes: attributes + [("sallyport.upstream", .text(upstream))], isFailure: isFailure))
    }
  }

  /// The place of the gate's span for the upstream, which the upstream's spans have as their parent.
  let upstreamContext: TraceContext

  /// The client's `tracestate`, for the upstream; `nil` if it sent none or its trace is not continued.
  let traceState: String?

  private let root: TraceContext
  private let decision: TraceContext
  private let parentID: String?
  private let method: String
  private let requestID: String
  private let isUpgrade: Bool
  private let start: Timestamp
  private let requestedAt: Timestamp
  private let database: String
  private let clock: WallClock
  /// `nil` if the request is not sampled: then nothing is recorded.
  private let queue: SpanQueue?
  private let state: LockedValue<State>

  init(
    _ request: Request, from peer: Peer, root: TraceContext, parentID: String?, state traceState: String?,
    database: String, clock: WallClock, queue: SpanQueue?
  ) {
    self.traceState = traceState
    (self.root, self.parentID, self.clock, self.queue, self.database) = (root, parentID, clock, queue, database)
    (decision, upstreamContext) = (root.child(), root.child())
    // A client may send any word as its method; the conventions have one name for all unknown ones.
    method = Self.methods.contains(request.method) ? request.method : "_OTHER"
    (requestID, isUpgrade) = (request.id, request.upgrade != nil)
    let now = clock.now()
    requestedAt = now
    var state = State()
    if queue != nil, let handshake = peer.handshake {
      let end = now.advanced(by: .zero - handshake.age)
      let begin = end.advanced(by: .zero - handshake.duration)
      state.spans.append(
        Span("TLS handshake", .internal, context: root.child(), parentID: root.spanID, from: begin, to: end))
      start = begin
    } else {
      start = now
    }
    self.state = LockedValue(state)
  }

  // Without another call, the client left during the decision or before its upstream answered.
  deinit {
    guard queue != nil else { return }
    let now = clock.now()
    state.withLock { $0.addUpstream(upstreamContext, under: root, until: now, [Self.errorType("client_left")]) }
    finish(at: now, status: nil, errorType: "client_left")
  }

  /// Names the route or the endpoint of the gate.
  func matched(_ route: String?) {
    guard queue != nil else { return }
    state.withLock { $0.route = route }
  }

  /// Records a step of the decision that has just ended.
  func worked(_ work: Stopwatch.Work, for duration: Duration) {
    guard queue != nil else { return }
    let end = clock.now()
    let start = end.advanced(by: .zero - duration)
    var attributes: [(name: String, value: Span.Value)] = []
    let isStore: Bool
    switch work {
    case .assertion, .attestation: isStore = false
    case .admit, .register, .lookup:
      isStore = true
      attributes = [("db.system.name", .text(database)), ("db.operation.name", .text(work.rawValue))]
    }
    let span = Span(
      work.rawValue, isStore ? .client : .internal, context: decision.child(), parentID: decision.spanID, from: start,
      to: end, attributes: attributes)
    state.withLock { $0.spans.append(span) }
  }

  /// Records the end of the decision. The request is over if the gate answers itself.
  func decided(_ disposition: Disposition) {
    guard queue != nil else { return }
    let now = clock.now()
    let answer: Response? = if case .respond(let response) = disposition { response } else { nil }
    let code = answer?.headers.first("X-Attest-Error")
    var attributes: [(name: String, value: Span.Value)] = []
    if let code { attributes.append(Self.errorType(code)) }
    let span = Span(
      "decision", .internal, context: decision, parentID: root.spanID, from: requestedAt, to: now,
      attributes: attributes)
    state.withLock { state in
      state.spans.append(span)
      state.decidedAt = now
    }
    if let answer { finish(at: now, status: answer.status, errorType: code) }
  }

  /// Names the upstream of an admitted request.
  func admitted(to upstream: String) {
    guard queue != nil else { return }
    state.withLock { $0.upstream = upstream }
  }

  /// Records the upstream's answer, or the lack of one, and ends the trace.
  ///
  /// - Parameters:
  ///   - result: `nil` if the upstream was not reached, because the right to the session had ended.
  ///   - status: The status that the client gets.
  func answered(_ result: UpstreamResult?, status: Int) {
    guard queue != nil else { return }
    let now = clock.now()
    if let result {
      var attributes: [(name: String, value: Span.Value)] = []
      switch result {
      case .connected, .refused, .serverError:
        attributes.append(("http.response.status_code", .number(Int64(status))))
        // For a client, the conventions count every status from 400 as an error.
        if status >= 400 { attributes.append(Self.errorType(String(status))) }
      case .unreachable, .timedOut, .misbehaved: attributes.append(Self.errorType(result.rawValue))
      }
      let isFailure = attributes.contains { $0.name == "error.type" }
      state.withLock {
        $0.addUpstream(upstreamContext, under: root, until: now, attributes, isFailure: isFailure)
      }
    }
    let isUnavailable = [.unreachable, .timedOut, .misbehaved].contains(result)
    finish(
      at: now, status: status,
      errorType: isUnavailable ? "upstream_unavailable" : status >= 500 ? String(status) : nil)
  }

  private func finish(at now: Timestamp, status: Int?, errorType: String?) {
    guard let queue else { return }
    let spans = state.withLock { state -> [Span] in
      guard !state.isFinished else { return [] }
      state.isFinished = true
      var attributes: [(name: String, value: Span.Value)] = [
        ("http.request.method", .text(method)), ("url.scheme", .text("https")),
        ("sallyport.request_id", .text(requestID)),
      ]
      if isUpgrade { attributes.append(("network.protocol.name", .text("websocket"))) }
      if let route = state.route { attributes.append(("http.route", .text(route))) }
      if let status { attributes.append(("http.response.status_code", .number(Int64(status)))) }
      if let errorType { attributes.append(Self.errorType(errorType)) }
      let verb = method == "_OTHER" ? "HTTP" : method
      // By the conventions, a status below 500 is no failure of the server.
      let span = Span(
        state.route.map { "\(verb) \($0)" } ?? verb, .server, context: root, parentID: parentID, from: start, to: now,
        attributes: attributes, isFailure: status.map { $0 >= 500 } ?? false)
      // A session may last for days after its trace.
      defer { state.spans = [] }
      return [span] + state.spans
    }
    if !spans.isEmpty { queue.add(spans) }
  }

  private static func errorType(_ code: String) -> (name: String, value: Span.Value) { ("error.type", .text(code)) }
}
