internal import AppAttest
internal import AttestGate
internal import Logging
internal import Transport

/// An admitted session on its way to an upstream.
struct GateSession: RelayOrder {
  let upstream: Upstream
  let limits: SessionLimits

  private let context: RequestContext
  private let principal: Principal
  private let route: String
  private let session: LiveSession

  /// There is no session without an admission: that is what it is for.
  init(
    _ admission: Admission, to route: Route, context: RequestContext, limits: SessionLimits, session: LiveSession
  ) {
    self.session = session
    upstream = route.upstream
    self.limits = limits
    self.context = context
    principal = admission.principal
    self.route = route.path
  }

  /// An upstream's own refusal is the client's to see; whatever else went wrong is not.
  func response(to fault: UpstreamFault) -> Response {
    guard case .refused(let refusal) = fault else { return context.refuse(.upstreamUnavailable(fault), key: key) }
    var metadata = metadata
    metadata["code"] = "upstream_refused"
    metadata["step"] = "\(fault.step)"
    metadata["status"] = .stringConvertible(refusal.status)
    context.logger.notice("refused by the upstream", metadata: metadata)
    return Response(status: refusal.status, headers: answerFields(from: refusal.headers), body: refusal.body)
  }

  func answerFields(from upstream: HeaderFields) -> HeaderFields {
    var fields = HeaderHygiene.cleaned(fromUpstream: upstream)
    fields.append("X-Request-Id", context.id)
    return fields
  }

  func opened(_ control: SessionControl) {
    session.opened(control)
    context.logger.info("session opened", metadata: metadata)
  }

  func closed(_ summary: SessionSummary) {
    session.end()
    var metadata = metadata
    metadata["end"] = "\(summary.end.word)"
    metadata["close_code"] = summary.end.code.map { .stringConvertible($0) }
    metadata["detail"] = summary.end.detail.map { "\($0)" }
    metadata["bytes_from_client"] = .stringConvertible(summary.bytesFromClient)
    metadata["bytes_from_upstream"] = .stringConvertible(summary.bytesFromUpstream)
    metadata["duration_ms"] = .stringConvertible(summary.duration.milliseconds)
    context.logger.info("session closed", metadata: metadata)
  }

  private var key: KeyHash? { principal.keyHash }

  private var metadata: Logger.Metadata {
    var metadata = context.metadata(app: principal.appID, key: key)
    metadata["method"] = "\(principal.method)"
    metadata["route"] = "\(route)"
    if case .certificate(let certificate) = principal { metadata["subject"] = "\(certificate.subject)" }
    return metadata
  }
}

extension Principal {
  /// The key that was proved, and its app; `nil` for a certificate, or a gate that stands open.
  var keyHash: KeyHash? { if case .device(let device) = self { KeyHash(of: device.keyID) } else { nil } }
  var appID: AppID? { if case .device(let device) = self { device.appID } else { nil } }
}

extension SessionSummary.End {
  /// Who ended the session, and whether in good form.
  fileprivate var word: String {
    switch self {
    case .closed(let side, _): "closed_by_\(side.rawValue)"
    case .closedByGate: "closed_by_gate"
    case .lost(let side, _): "lost_\(side.rawValue)"
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
