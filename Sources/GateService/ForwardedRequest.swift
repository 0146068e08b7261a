internal import AttestGate
internal import Logging
internal import Transport

/// An admitted ordinary request on its way to an upstream.
struct ForwardedRequest: ForwardOrder {
  let upstream: Upstream
  let limits: ForwardLimits

  private let context: RequestContext
  private let principal: Principal
  private let route: String
  private let session: LiveSession

  /// There is no request without an admission: that is what it is for.
  init(
    _ admission: Admission, to route: Route, context: RequestContext, limits: ForwardLimits = ForwardLimits(),
    session: LiveSession
  ) {
    upstream = route.upstream
    self.limits = limits
    self.context = context
    principal = admission.principal
    self.route = route.path
    self.session = session
  }

  func opened(_ control: SessionControl) { session.opened(control) }

  func answerFields(from upstream: HeaderFields) -> HeaderFields {
    var fields = HeaderHygiene.cleaned(fromUpstream: upstream, keepsDate: true)
    fields.append("X-Request-Id", context.id)
    return fields
  }

  func response(to fault: UpstreamFault) -> Response {
    context.refuse(.upstreamUnavailable(fault), key: principal.keyHash)
  }

  func finished(_ summary: ForwardSummary) {
    session.end()
    var metadata = context.metadata(app: principal.appID, key: principal.keyHash)
    metadata["method"] = "\(principal.method)"
    metadata["route"] = "\(route)"
    metadata["status"] = summary.status.map { .stringConvertible($0) }
    metadata["complete"] = .stringConvertible(summary.isComplete)
    metadata["bytes_from_client"] = .stringConvertible(summary.bytesFromClient)
    metadata["bytes_from_upstream"] = .stringConvertible(summary.bytesFromUpstream)
    metadata["duration_ms"] = .stringConvertible(summary.duration.milliseconds)
    context.logger.info("request forwarded", metadata: metadata)
  }
}
