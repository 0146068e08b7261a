internal import AppAttest
internal import AttestGate
internal import Wire
internal import Transport

/// Why the gate refuses a client's request.
enum RequestRefusal: Error, Sendable, Hashable {
  case denied(Denial)
  case malformedRegistration(RegistrationBody.ParseError)
  case tokenRefused(TokenRefusal)
  case foreignOrigin
  /// A proxy asks about a request that it could upgrade to another protocol than WebSocket.
  case foreignUpgrade
  case notFound
  case methodNotAllowed(allowed: String)
  case upgradeRequired
  case malformedRequest(RequestError)
  case upstreamUnavailable(UpstreamError)
  /// The client sent too many requests; `wait` is the time until the next one is allowed.
  case rateLimited(RateLimit, wait: Duration)
  /// The maximum number of sessions is open.
  case tooManySessions(limit: Int)
  /// The maximum number of sessions of the client's key is open.
  case tooManySessionsOfKey(limit: Int)
  /// The decision took too long, or the configuration was replaced before its end.
  case undecided
}

extension RequestRefusal {
  /// The code for the client.
  var code: GateRefusalCode { report.code }

  /// The answer and the log line that follow from this refusal: the one place to extend for a new case.
  var report: RefusalReport {
    switch self {
    case .denied(let denial): denial.report
    case .malformedRegistration(let fault): fault.report
    case .tokenRefused(let refusal): refusal.report
    case .foreignOrigin: RefusalReport(.originRefused, "origin")
    case .foreignUpgrade: RefusalReport(.upgradeRefused, "verify_upgrade")
    case .notFound: RefusalReport(.notFound, "path")
    case .methodNotAllowed(let allowed): RefusalReport(.methodNotAllowed, "method", text: "Use \(allowed) here")
    case .upgradeRequired: RefusalReport(.upgradeRequired, "upgrade")
    case .malformedRequest(let fault): fault.report
    case .upstreamUnavailable(let fault):
      RefusalReport(fault.isOfTheGate ? .overloaded : .upstreamUnavailable, fault.step, detail: fault.detail)
    case .rateLimited(let limit, let wait):
      RefusalReport(
        .rateLimited, "rate_\(limit.rawValue)",
        text: "Too many requests: try again in \(wait.wholeSeconds) \(wait.wholeSeconds == 1 ? "second" : "seconds")",
        // This limit is checked after the key is proved.
        followsVerification: limit == .upgradesPerKey)
    // To a client, this is like any other overload.
    case .tooManySessions(let limit):
      RefusalReport(
        .overloaded, "global_sessions", text: "Too many sessions are open: try again later",
        detail: "\(limit) sessions are open")
    case .tooManySessionsOfKey(let limit):
      RefusalReport(
        .rateLimited, "sessions_per_key",
        text: "Too many sessions of this device are open: close one, or try again later",
        detail: "\(limit) sessions of the key are open", followsVerification: true)
    case .undecided:
      RefusalReport(.overloaded, "decision_time", text: "The request was not decided in time: try again later")
    }
  }

  /// The header fields that the status requires.
  var fields: HeaderFields {
    var fields: [HeaderFields.Field] = []
    let definition = code.definition
    switch self {
    case .methodNotAllowed(let allowed): fields.append(.init(name: "Allow", value: allowed))
    case .upgradeRequired: fields += Self.upgradeFields
    case .malformedRequest(.unsupportedWebSocketVersion):
      fields += Self.upgradeFields + [.init(name: "Sec-WebSocket-Version", value: "13")]
    case .rateLimited(_, let wait): fields.append(.init(name: "Retry-After", value: "\(wait.wholeSeconds)"))
    // Sessions last longer than a call of the store.
    case .tooManySessions, .tooManySessionsOfKey: fields.append(.init(name: "Retry-After", value: "10"))
    case .denied, .malformedRegistration, .tokenRefused, .foreignOrigin, .foreignUpgrade, .notFound, .malformedRequest,
      .upstreamUnavailable, .undecided:
      if let seconds = definition.retryAfter { fields.append(.init(name: "Retry-After", value: "\(seconds)")) }
    }
    if definition.status == 401 { fields.append(Self.challenge) }
    return HeaderFields(fields)
  }

  /// The field that a 401 requires (RFC 9110 sections 11.6.1 and 15.5.2). The scheme is specific to the gate; clients
  /// and browsers that do not know it ignore it. `challenge` is the path that issues nonces.
  static var challenge: HeaderFields.Field {
    .init(name: "WWW-Authenticate", value: #"AppAttest realm="sallyport", challenge="/attest/challenge""#)
  }

  private static var upgradeFields: [HeaderFields.Field] {
    [.init(name: "Connection", value: "Upgrade"), .init(name: "Upgrade", value: "websocket")]
  }
}

extension RegistrationBody.ParseError {
  fileprivate var report: RefusalReport {
    switch self {
    case .notJSON:
      RefusalReport(
        .malformedJSON, "json_syntax",
        text: "The body must be JSON in UTF-8: at most 256 values, 64 members an object, each once, names in ASCII")
    case .notAnObject: RefusalReport(.malformedJSON, "json_type")
    case .missing(let name): RefusalReport(.malformedJSON, "json_member", text: "\(name) is missing", detail: name)
    case .wrongType(let name, let expected):
      RefusalReport(.malformedJSON, "json_type", text: "\(name) must be \(expected)", detail: name)
    case .unknownPlatform:
      RefusalReport(.malformedJSON, "platform", text: "platform must be ios or android", detail: "platform")
    }
  }
}

extension RequestError {
  fileprivate var report: RefusalReport {
    switch self {
    case .malformedHead(let rule), .unacceptableField(let rule):
      RefusalReport(.malformedHead, "head_grammar", text: "Malformed request: \(rule)", detail: rule)
    case .headTooLarge(let rule):
      RefusalReport(.headTooLarge, "head_size", text: "Request header too large: \(rule)", detail: rule)
    case .bodyTooLarge(let limit):
      RefusalReport(
        .bodyTooLarge, "body_size", text: "The body may have at most \(limit) bytes",
        detail: "more than \(limit) bytes")
    case .malformedBody(let rule):
      RefusalReport(.malformedBody, "body_framing", text: "Malformed body: \(rule)", detail: rule)
    case .malformedUpgrade(let rule):
      RefusalReport(.malformedUpgrade, "upgrade_grammar", text: "Malformed opening handshake: \(rule)", detail: rule)
    case .unsupportedWebSocketVersion: RefusalReport(.webSocketVersion)
    case .tooSlow: RefusalReport(.requestTimeout, "request_time")
    }
  }
}

extension UpstreamError {
  /// Whether the upstream has nothing to do with it.
  var isOfTheGate: Bool { if case .exhausted = self { true } else { false } }

  /// The point of failure, as a stable word for the log.
  var step: String {
    switch self {
    case .unreachable: "upstream_connect"
    case .exhausted: "descriptors"
    case .timedOut: "upstream_time"
    case .misbehaved: "upstream_protocol"
    case .refused: "upstream_refused"
    }
  }

  /// The reason of the failure, for the log.
  var detail: String? {
    switch self {
    case .unreachable(let reason), .misbehaved(let reason), .exhausted(let reason): reason
    case .timedOut: nil
    case .refused(let response): "status \(response.status)"
    }
  }
}

extension Duration {
  /// The duration rounded up to whole seconds, at least 1, so that a retry after it is allowed (RFC 9110 section
  /// 10.2.3).
  fileprivate var wholeSeconds: Int64 {
    max(1, components.seconds + (components.attoseconds > 0 ? 1 : 0))
  }
}
