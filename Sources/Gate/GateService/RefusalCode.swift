extension RequestRefusal {
  /// A stable code for refusals that are not a `Denial`.
  enum Code: String, Sendable, Hashable, CaseIterable {
    case malformedHead = "malformed_head"
    case malformedBody = "malformed_body"
    case malformedUpgrade = "malformed_upgrade"
    case malformedJSON = "malformed_json"
    case originRefused = "origin_refused"
    case notFound = "not_found"
    case methodNotAllowed = "method_not_allowed"
    case requestTimeout = "request_timeout"
    case bodyTooLarge = "body_too_large"
    case headTooLarge = "head_too_large"
    case upgradeRequired = "upgrade_required"
    case webSocketVersion = "websocket_version"
    case rateLimited = "rate_limited"
    case upstreamUnavailable = "upstream_unavailable"
  }
}
