internal import AttestGate
internal import ByteCoding
internal import Logging
internal import Observability
internal import Transport

/// An admitted session on its way to an upstream.
///
/// Kept as long as the session is open, so it refers to what it shares with others.
final class GateSession: RelayPlan {
  private let context: RequestContext
  private let route: Route
  private let session: LiveSession
  private let target: UpstreamTarget
  private let shared: SharedLimits
  let ownSubprotocols: [String]
  private let admittedAt = ContinuousClock.now

  /// Limits that all sessions of a configuration refer to.
  final class SharedLimits: Sendable {
    let value: SessionLimits

    init(_ value: SessionLimits) { self.value = value }
  }

  /// - Parameter session: The entry of an admitted client: only `LiveSessions.add` creates one, with an `Admission`.
  init(
    _ session: LiveSession, to route: Route, at target: UpstreamTarget, context: RequestContext, limits: SharedLimits,
    ownSubprotocols: [String] = []
  ) {
    self.session = session
    self.context = context
    self.route = route
    self.target = target
    shared = limits
    self.ownSubprotocols = ownSubprotocols
  }

  var upstream: Upstream { target.server.upstream }
  var hasAlternative: Bool { target.hasAlternative }
  func reached() { target.connected() }

  func nextUpstream(after fault: UpstreamError, mayTryAnother: Bool) -> Upstream? {
    context.nextServer(of: target, after: fault, mayTryAnother: mayTryAnother, on: route.path, logging: fields)
  }
  /// A session ends with the validity of the certificate that admitted it.
  var limits: SessionLimits {
    guard case .certificate(let certificate) = principal else { return shared.value }
    var limits = shared.value
    let rest = certificate.expiresAt.since(session.record.admittedAt) - (ContinuousClock.now - admittedAt)
    limits.maxAge = max(min(limits.maxAge ?? rest, rest), .zero)
    return limits
  }
  var maxResponseHead: Int { route.maxResponseHead }
  var subprotocol: String? { route.subprotocol }

  private var principal: Principal { session.record.principal }

  /// Passes the upstream's own refusal to the client. Other failures are logged, and the client gets the gate's 502.
  func response(to fault: UpstreamError) -> Response {
    var fields = fields
    guard case .refused(let refusal) = fault else {
      let response = context.refuse(fault, to: principal, on: route.path, logging: fields)
      context.trace?.answered(UpstreamResult(fault), status: response.status)
      return response
    }
    context.trace?.answered(UpstreamResult(fault), status: refusal.status)
    context.metrics.upstreamAnswered(fault, on: route.path)
    fields.append("status", refusal.status)
    fields.append("code", "upstream_refused")
    fields.append("step", fault.step)
    context.logger.log(level: .notice, "upgrade refused by upstream", fields)
    context.metrics.noteUpstreamRefusal(
      status: refusal.status, step: fault.step, context.subject(app: principal.app, key: principal.keyHash))
    return Response(status: refusal.status, headers: answerFields(from: refusal.headers), body: refusal.body)
  }

  func answerFields(from upstream: HeaderFields) -> HeaderFields {
    var fields = HeaderSanitizer.cleaned(fromUpstream: upstream)
    fields.append("X-Request-Id", context.id)
    return fields
  }

  func refusal() -> Response? { context.refusal(of: session) }

  func opened(_ control: SessionControl) {
    session.opened(control)
    context.trace?.answered(.connected, status: 101)
    context.metrics.opened(on: route.path, after: ContinuousClock.now - admittedAt)
    context.logger.log(level: .info, "session opened", fields)
  }

  func closed(_ summary: SessionSummary) {
    session.end()
    target.end()
    var fields = fields
    let end = summary.end.word
    fields.append("end", end)
    fields.append("close_code", summary.end.code)
    fields.append("detail", summary.end.detail)
    fields.append("bytes_from_client", summary.bytesFromClient)
    fields.append("bytes_from_upstream", summary.bytesFromUpstream)
    fields.append("duration_ms", summary.duration.milliseconds)
    // Counted before it is logged, so that a reader of the line finds it in the metrics.
    context.metrics.closed(end)
    context.logger.log(level: .info, "session closed", fields)
  }

  private var fields: LogFields {
    var fields = context.fields(app: principal.app, key: principal.keyHash)
    fields.append("method", principal.method)
    fields.append(target.server.logFields)
    if case .certificate(let certificate) = principal { fields.append("subject", certificate.subject) }
    return fields
  }
}

extension Principal {
  /// Whether an assertion admitted the client.
  var isDevice: Bool { if case .device = self { true } else { false } }
  /// The proved key and its app; `nil` for a certificate or an anonymous client.
  var keyHash: KeyHash? { if case .device(let device) = self { device.keyHash } else { nil } }
  var app: AppName? { if case .device(let device) = self { device.app } else { nil } }
}

extension RequestContext {
  /// Refuses a session that may no longer open; `nil` if it may.
  func refusal(of session: LiveSession) -> Response? {
    guard let denial = session.denial else { return nil }
    let response = refuse(.denied(denial), key: session.record.principal.keyHash)
    trace?.answered(nil, status: response.status)
    return response
  }
}

extension SessionSummary.End {
  /// The words of all ends.
  static let words = ["closed_by_client", "closed_by_upstream", "closed_by_gate", "lost_client", "lost_upstream"]

  /// The side that closed the session, and whether it sent a Close frame.
  var word: String {
    switch self {
    case .closed(.client, _): "closed_by_client"
    case .closed(.upstream, _): "closed_by_upstream"
    case .closedByGate: "closed_by_gate"
    case .lost(.client, _): "lost_client"
    case .lost(.upstream, _): "lost_upstream"
    }
  }

  fileprivate var code: UInt16? {
    switch self {
    case .closed(_, let code): code
    case .closedByGate(let code, _): code
    case .lost: nil
    }
  }

  fileprivate var detail: String? {
    switch self {
    case .closed: nil
    case .closedByGate(_, let reason), .lost(_, let reason): reason
    }
  }
}

extension Duration {
  var milliseconds: Int64 {
    components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000
  }
}
