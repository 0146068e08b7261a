internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import JSONLog
internal import Logging
internal import Transport

/// The request at hand: what its answers and its log lines have in common.
///
/// There is one for each request, and a session keeps its own: nothing is in it that is long, or long in the making.
struct RequestContext: Sendable {
  let id: String
  /// Without the query, which may hold a secret. `nil` if no request came to be.
  let path: String?
  let wantsJSON: Bool
  let logger: Logger
  let metrics: GateMetrics
  private let address: SocketAddress

  init(_ request: Request, from peer: Peer, logger: Logger, metrics: GateMetrics) {
    id = request.id
    address = peer.address
    path = request.path
    wantsJSON = Accept.namesJSON(in: request.headers)
    self.logger = logger
    self.metrics = metrics
  }

  init(id: String, from peer: Peer, logger: Logger, metrics: GateMetrics) {
    self.id = id
    address = peer.address
    path = nil
    wantsJSON = false
    self.logger = logger
    self.metrics = metrics
  }

  /// What every line about this request says. `app` and `key` are left out where they are not known.
  func fields(app: AppID? = nil, key: KeyHash? = nil) -> LogFields {
    var fields = LogFields()
    fields.append("request_id", id)
    fields.append("client", address.host)
    fields.append("path", path)
    fields.append("app", app?.text)
    fields.append("key", key?.short)
    return fields
  }

  /// An answer that is no refusal.
  func ok(json body: String) -> Response {
    Response(status: 200, headers: headers(type: "application/json"), body: Array(body.utf8))
  }

  /// The answer with the keys of identities. Verifiers may keep it for a while: keys are published long before they
  /// sign.
  func ok(keySet: String) -> Response {
    Response(
      status: 200,
      headers: headers(type: "application/jwk-set+json", caching: "public, max-age=300"), body: Array(keySet.utf8))
  }

  /// Logs `refusal` and tells the client. `key` is the one that was claimed, if any.
  ///
  /// - Parameter closes: whether the connection ends behind the answer, though the request would not have it so.
  func refuse(_ refusal: RequestRefusal, key: KeyHash? = nil, closes: Bool = false) -> Response {
    refuse(refusal, logging: fields(app: refusal.appID, key: key), closes: closes)
  }

  /// The same to a client that had been let in; the line says what its session's own do.
  ///
  /// - Parameter route: the path of the route whose upstream failed.
  func refuse(_ fault: UpstreamFault, on route: String, logging fields: LogFields) -> Response {
    metrics.upstreamFailed(on: route)
    return refuse(.upstreamUnavailable(fault), logging: fields, closes: false)
  }

  private func refuse(_ refusal: RequestRefusal, logging known: LogFields, closes: Bool) -> Response {
    let answer = refusal.answer
    var fields = known
    fields.append("status", answer.status)
    fields.append("code", answer.code)
    fields.append("step", refusal.step)
    fields.append("detail", refusal.detail)
    logger.log(level: refusal.level, "refused", fields)
    metrics.refused(answer.code, status: answer.status)
    return response(answer, closes: closes)
  }

  /// In monitor mode: logs and counts what `denial` would have refused. The client is admitted anonymously.
  func wouldRefuse(_ denial: Denial, key: KeyHash?) {
    var fields = fields(app: denial.appID, key: key)
    fields.append("code", denial.code.rawValue)
    fields.append("step", denial.step)
    fields.append("detail", denial.detail)
    logger.log(level: .notice, "would be refused", fields)
    metrics.wouldRefuse(denial.code.rawValue)
  }

  private func response(_ answer: PublicAnswer, closes: Bool) -> Response {
    let body =
      wantsJSON
      ? JSONText.object(["error": answer.text, "code": answer.code, "request_id": id])
      : answer.text
    var headers = headers(type: wantsJSON ? "application/json" : "text/plain; charset=utf-8")
    headers.append("X-Attest-Error", answer.code)
    for field in answer.headers.fields { headers.append(field.name, field.value) }
    return Response(status: answer.status, headers: headers, body: Array(body.utf8), closes: closes)
  }

  private func headers(type: String, caching: String = "no-store") -> HeaderFields {
    var headers = HeaderFields()
    headers.append("Content-Type", type)
    headers.append("Cache-Control", caching)
    headers.append("X-Request-Id", id)
    return headers
  }
}
