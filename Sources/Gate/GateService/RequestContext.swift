internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import JSONLog
internal import Logging
internal import Transport

/// The data of the current request that its answers and log lines share.
///
/// Every request has one and a session keeps its own, so it contains nothing large or costly to create.
struct RequestContext: Sendable {
  let id: String
  /// The path without the query, which may contain a secret; `nil` if the request was malformed.
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

  /// Returns the fields that every line about this request has. Unknown values of `app` and `key` are omitted.
  func fields(app: AppID? = nil, key: KeyHash? = nil) -> LogFields {
    var fields = LogFields()
    fields.append("request_id", id)
    fields.append("client", address.host)
    fields.append("path", path)
    fields.append("app", app?.text)
    fields.append("key", key?.short)
    return fields
  }

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
  func refuse(_ refusal: RequestRefusal, key: KeyHash? = nil, closes: Bool = false) -> Response {
    refuse(refusal, logging: fields(app: refusal.appID, key: key), closes: closes)
  }

  /// Logs and answers a failed upstream for a client that was admitted. `fields` are those of its session's log
  /// lines.
  ///
  /// - Parameter route: The path of the route whose upstream failed.
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
    logger.log(level: refusal.level, "request refused", fields)
    metrics.refused(answer.code, status: answer.status)
    return response(answer, closes: closes)
  }

  /// Logs and counts a denial that monitor mode does not enforce: the client is admitted anonymously.
  func wouldRefuse(_ denial: Denial, key: KeyHash?) {
    var fields = fields(app: denial.appID, key: key)
    fields.append("code", denial.code.rawValue)
    fields.append("step", denial.step)
    fields.append("detail", denial.detail)
    logger.log(level: .notice, "refusal not enforced", fields)
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
