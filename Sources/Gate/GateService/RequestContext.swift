internal import AttestGate
internal import ByteCoding
internal import Wire
internal import Logging
internal import Observability
internal import Transport

/// The data of the current request that its answers and log lines share.
///
/// Every request has one and a session keeps its own, so it contains nothing large or costly to create.
struct RequestContext: Sendable {
  let id: String
  /// The path without the query, which may contain a secret; `nil` if the request was malformed.
  let path: String?
  let wantsJSON: Bool
  let logger: FieldLogger
  let metrics: GateMetrics
  /// The spans of the request; `nil` without telemetry.
  let trace: RequestTrace?
  private let address: SocketAddress
  private let endpoint: String?

  init(_ request: Request, from peer: Peer, logger: FieldLogger, metrics: GateMetrics, trace: RequestTrace? = nil) {
    self.trace = trace
    id = request.id
    address = peer.address
    endpoint = peer.endpoint
    path = request.path
    wantsJSON = Accept.namesJSON(in: request.headers)
    self.logger = logger
    self.metrics = metrics
  }

  init(id: String, from peer: Peer, wantsJSON: Bool, logger: FieldLogger, metrics: GateMetrics) {
    self.id = id
    address = peer.address
    endpoint = peer.endpoint
    path = nil
    self.wantsJSON = wantsJSON
    trace = nil
    self.logger = logger
    self.metrics = metrics
  }

  /// Returns the fields that every line about this request has. Unknown values of `app` and `key` are omitted.
  func fields(app: AppName? = nil, key: KeyHash? = nil) -> LogFields {
    var fields = LogFields()
    fields.append("request_id", id)
    fields.append("client", address.host)
    fields.append("endpoint", endpoint)
    fields.append("path", path)
    fields.append("app", app?.text)
    fields.append("key", key?.short)
    return fields
  }

  /// The client and the request, for the list of refusals.
  func subject(app: AppName?, key: KeyHash?) -> RefusalLog.Subject {
    RefusalLog.Subject(requestID: id, address: address, endpoint: endpoint, path: path, app: app, key: key)
  }

  /// Keeps the admission of a device for the page of its key.
  func keep(_ admission: Admission) { metrics.decisions.note(admission, requestID: id, from: address) }

  /// Returns an answer with status 200.
  func ok(json body: String) -> Response {
    Response(status: 200, headers: headers(type: "application/json"), body: Array(body.utf8))
  }

  /// Returns the answer with the public identity keys. Verifiers may cache it, since keys are published long before
  /// they sign.
  func ok(keySet: String) -> Response {
    Response(
      status: 200,
      headers: headers(type: "application/jwk-set+json", caching: "public, max-age=300"), body: Array(keySet.utf8))
  }

  /// Logs `refusal` and returns the answer for the client.
  ///
  /// - Parameters:
  ///   - key: The key that the client claimed, if any.
  ///   - closes: Whether the connection is closed after the answer, regardless of the request.
  ///   - mayProveKey: Whether the request may have had a signature of the key. A registration has none.
  func refuse(
    _ refusal: RequestRefusal, key: KeyHash? = nil, closes: Bool = false, mayProveKey: Bool = true
  ) -> Response {
    let report = refusal.report
    return refuse(
      refusal, report, subject(app: report.app, key: key), logging: fields(app: report.app, key: key), closes: closes,
      provesKey: mayProveKey && refusal.provesKey)
  }

  /// Logs and answers a failed upstream for a client that was admitted. `fields` are those of its session's log
  /// lines.
  ///
  /// - Parameters:
  ///   - principal: The client.
  ///   - route: The path of the route whose upstream failed.
  func refuse(
    _ fault: UpstreamError, to principal: Principal, on route: String, logging fields: LogFields
  ) -> Response {
    metrics.upstreamFailed(fault, on: route)
    let refusal = RequestRefusal.upstreamUnavailable(fault)
    return refuse(
      refusal, refusal.report, subject(app: principal.app, key: principal.keyHash), logging: fields, closes: false,
      provesKey: true)
  }

  /// Logs at the level `debug` which fields of the client do not reach the upstream, if any.
  func dropped(_ names: () -> [String]) {
    guard logger.isEnabled(.debug) else { return }
    let names = names()
    guard !names.isEmpty else { return }
    var fields = LogFields()
    fields.append("request_id", id)
    fields.append("fields", names.prefix(32).joined(separator: " "))
    logger.log(level: .debug, "header fields of the client removed", fields)
  }

  /// Turns `target` to another server after one that could not be reached, which is logged and counted.
  ///
  /// - Parameters:
  ///   - mayTryAnother: Whether the request may still go to another server.
  ///   - fields: Those of the session's log lines, with the server that failed.
  /// - Returns: `nil` if none is tried; `refuse` logs the failure then.
  func nextServer(
    of target: UpstreamTarget, after fault: UpstreamError, mayTryAnother: Bool, on route: String,
    logging fields: LogFields
  ) -> Upstream? {
    guard let next = target.next(mayTryAnother: mayTryAnother) else { return nil }
    metrics.passedOver(fault, on: route)
    var fields = fields
    fields.append("step", fault.step)
    fields.append("detail", fault.detail)
    logger.log(level: .warning, "upstream not reached, another one is tried", fields)
    trace?.admitted(to: next.text)
    return next.upstream
  }

  private func refuse(
    _ refusal: RequestRefusal, _ report: RefusalReport, _ subject: RefusalLog.Subject, logging known: LogFields,
    closes: Bool, provesKey: Bool
  ) -> Response {
    let status = report.code.definition.status
    var fields = known
    fields.append("status", status)
    fields.append("code", report.code.rawValue)
    fields.append("step", report.step)
    fields.append("detail", report.detail)
    logger.log(level: Self.level(of: report.code), "request refused", fields)
    metrics.refused(report.code.rawValue, status: status)
    metrics.note(report, status: status, subject, provesKey: provesKey)
    return response(report, status: status, fields: refusal.fields, closes: closes)
  }

  /// `.error` if the operator has to act, `.notice` if only the client can.
  private static func level(of code: GateRefusalCode) -> Logger.Level {
    [.storeUnavailable, .overloaded, .upstreamUnavailable].contains(code) ? .error : .notice
  }

  /// Logs and counts a denial that monitor mode does not enforce: the client is admitted anonymously.
  func wouldRefuse(_ denial: Denial, key: KeyHash?) {
    let report = denial.report
    var fields = fields(app: report.app, key: key)
    fields.append("code", report.code.rawValue)
    fields.append("step", report.step)
    fields.append("detail", report.detail)
    logger.log(level: .notice, "refusal not enforced", fields)
    metrics.wouldRefuse(report.code.rawValue)
    metrics.note(report, status: nil, subject(app: report.app, key: key), provesKey: denial.provesKey)
  }

  private func response(_ report: RefusalReport, status: Int, fields: HeaderFields, closes: Bool) -> Response {
    let code = report.code.rawValue
    let body = wantsJSON ? JSONText.object(["error": report.text, "code": code, "request_id": id]) : report.text
    var headers = headers(type: wantsJSON ? "application/json" : "text/plain; charset=utf-8")
    headers.append("X-Attest-Error", code)
    for field in fields.fields { headers.append(field.name, field.value) }
    return Response(status: status, headers: headers, body: Array(body.utf8), closes: closes)
  }

  private func headers(type: String, caching: String = "no-store") -> HeaderFields {
    var headers = HeaderFields()
    headers.append("Content-Type", type)
    headers.append("Cache-Control", caching)
    headers.append("X-Request-Id", id)
    return headers
  }
}
