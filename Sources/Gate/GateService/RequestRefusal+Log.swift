internal import AppAttest
internal import AttestGate
internal import Logging
internal import Transport

extension RequestRefusal {
  /// A stable name of the violated rule, at least as specific as the public code.
  var step: String {
    switch self {
    case .denied(let denial): denial.step
    case .malformedRegistration(let fault): fault.step
    case .foreignOrigin: "origin"
    case .notFound: "path"
    case .methodNotAllowed: "method"
    case .upgradeRequired: "upgrade"
    case .malformedRequest(let fault): fault.step
    case .upstreamUnavailable(let fault): fault.step
    case .rateLimited(let limit, _): "rate_\(limit.rawValue)"
    case .tooManySessions: "global_sessions"
    }
  }

  /// Details for the operator in addition to `step`.
  var detail: String? {
    switch self {
    case .denied(let denial): denial.detail
    case .malformedRegistration(.missing(let name)), .malformedRegistration(.notAString(let name)): name
    case .malformedRequest(let fault): fault.detail
    case .upstreamUnavailable(let fault): fault.detail
    case .tooManySessions(let limit): "\(limit) sessions are open"
    case .malformedRegistration, .rateLimited, .foreignOrigin, .notFound, .methodNotAllowed, .upgradeRequired: nil
    }
  }

  var appID: AppID? {
    if case .denied(let denial) = self { denial.appID } else { nil }
  }

  /// `.error` if the operator has to act, `.notice` if only the client can.
  var level: Logger.Level {
    switch self {
    case .denied(let denial): denial.code == .storeUnavailable || denial.code == .overloaded ? .error : .notice
    case .upstreamUnavailable, .tooManySessions: .error
    case .malformedRegistration, .foreignOrigin, .notFound, .methodNotAllowed, .upgradeRequired,
      .malformedRequest, .rateLimited:
      .notice
    }
  }
}

extension RegistrationBody.Fault {
  fileprivate var step: String {
    switch self {
    case .notJSON: "json_syntax"
    case .notAnObject, .notAString: "json_type"
    case .missing: "json_member"
    }
  }
}

extension RequestFault {
  fileprivate var step: String {
    switch self {
    case .malformedHead: "head_grammar"
    case .headTooLarge: "head_size"
    case .bodyTooLarge: "body_size"
    case .malformedBody: "body_framing"
    case .malformedUpgrade: "upgrade_grammar"
    case .unsupportedWebSocketVersion: "websocket_version"
    case .tooSlow: "request_time"
    }
  }

  fileprivate var detail: String? {
    switch self {
    case .malformedHead(let rule), .headTooLarge(let rule), .malformedBody(let rule), .malformedUpgrade(let rule): rule
    case .bodyTooLarge(let limit): "more than \(limit) bytes"
    case .unsupportedWebSocketVersion, .tooSlow: nil
    }
  }
}

extension UpstreamFault {
  var step: String {
    switch self {
    case .unreachable: "upstream_connect"
    case .timedOut: "upstream_time"
    case .misbehaved: "upstream_protocol"
    case .refused: "upstream_refused"
    }
  }

  var detail: String? {
    switch self {
    case .unreachable(let reason), .misbehaved(let reason): reason
    case .timedOut: nil
    case .refused(let response): "status \(response.status)"
    }
  }
}
