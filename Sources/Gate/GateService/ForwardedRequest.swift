internal import AttestGate
internal import Logging
internal import Observability
internal import Transport

/// An admitted ordinary request on its way to an upstream.
struct ForwardedRequest: ForwardPlan {
  let limits: ForwardLimits

  private let context: RequestContext
  private let principal: Principal
  private let route: Route
  private let target: UpstreamTarget
  private let session: LiveSession

  /// Requires an `Admission`, so that no request is forwarded without one.
  init(
    _ admission: Admission, to route: Route, at target: UpstreamTarget, context: RequestContext,
    limits: ForwardLimits = ForwardLimits(), session: LiveSession
  ) {
    self.target = target
    self.limits = limits
    self.context = context
    principal = admission.principal
    self.route = route
    self.session = session
  }

  var upstream: Upstream { target.server.upstream }
  var hasAlternative: Bool { target.hasAlternative }
  func reached() { target.connected() }

  func nextUpstream(after fault: UpstreamError, mayTryAnother: Bool) -> Upstream? {
    context.nextServer(of: target, after: fault, mayTryAnother: mayTryAnother, on: route.path, logging: fields)
  }

  var maxResponseHead: Int { route.maxResponseHead }

  func refusal() -> Response? { context.refusal(of: session) }
  func opened(_ control: SessionControl) { session.opened(control) }

  func answerFields(from upstream: HeaderFields) -> HeaderFields {
    var fields = HeaderSanitizer.cleaned(fromUpstream: upstream, keepsDate: true)
    fields.append("X-Request-Id", context.id)
    return fields
  }

  func response(to fault: UpstreamError) -> Response {
    let response = context.refuse(fault, to: principal, on: route.path, logging: fields)
    context.trace?.answered(UpstreamResult(fault), status: response.status)
    return response
  }

  func finished(_ summary: ForwardSummary) {
    session.end()
    target.end()
    if let status = summary.status {
      context.metrics.upstreamAnswered(on: route.path)
      context.trace?.answered(.connected, status: status)
    }
    var fields = fields
    fields.append("status", summary.status)
    fields.append("complete", summary.isComplete)
    fields.append("bytes_from_client", summary.bytesFromClient)
    fields.append("bytes_from_upstream", summary.bytesFromUpstream)
    fields.append("duration_ms", summary.duration.milliseconds)
    context.logger.log(level: .info, "request forwarded", fields)
  }

  private var fields: LogFields {
    var fields = context.fields(app: principal.app, key: principal.keyHash)
    fields.append("method", principal.method)
    fields.append(target.server.logFields)
    return fields
  }
}
