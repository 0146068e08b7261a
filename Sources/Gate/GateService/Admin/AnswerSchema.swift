/// The JSON Schema of each answer of the admin server, for the OpenAPI document.
///
/// A schema names every member and allows no other, so that a test that compares it with answers finds omissions.
public enum AnswerSchema: String, Sendable, Hashable, CaseIterable {
  case key = "Key"
  case keyListing = "KeyListing"
  case keyRemoval = "KeyRemoval"
  case decision = "Decision"
  case decisionListing = "DecisionListing"
  case session = "Session"
  case sessionListing = "SessionListing"
  case sessionClosing = "SessionClosing"
  case reload = "Reload"
  case upgrade = "Upgrade"
  case drain = "Drain"
  case liveness = "Liveness"
  case readiness = "Readiness"
  case check = "Check"
  case status = "Status"
  case counts = "Counts"
  case upstreamServer = "UpstreamServer"
  case upstreamListing = "UpstreamListing"
  case refusalEntry = "RefusalEntry"
  case refusalListing = "RefusalListing"
  case configurationListing = "ConfigurationListing"
  case activityListing = "ActivityListing"
  /// An OpenAPI 3.1 document. OpenAPI publishes its schema.
  case document = "Document"

  var reference: JSONContent { ["$ref": .text("#/components/schemas/\(rawValue)")] }

  var content: JSONContent {
    switch self {
    case .key: Self.keyContent
    case .keyListing:
      .members(["keys": .list(of: .key)], ["unreadable": ["type": "array", "items": .string], "next": .string])
    case .keyRemoval: .members(["key": .string, "removed": .truth])
    case .decision: Self.decisionContent
    case .decisionListing: .members(["key": .string, "decisions": .list(of: .decision)], ["next": .string])
    case .session: Self.sessionContent
    case .sessionListing: .members(["sessions": .list(of: .session)], ["next": .string])
    case .sessionClosing: .members(["id": .string, "closed": .truth])
    case .reload:
      .members(["reloaded": .truth, "needsRestart": ["type": "array", "items": .string]])
    case .upgrade: .members(["upgraded": .truth, "process": .count])
    case .drain: .members(["draining": .truth])
    case .liveness: .members(["live": .truth])
    case .readiness: .members(["ready": .truth], ["checks": .list(of: .check), "warning": .string])
    case .check: .members(["name": .string, "ready": .truth, "detail": .string], ["warning": .truth])
    case .status: Self.statusContent
    case .counts: .members(["admitted": .count, "refused": .count, "registered": .count])
    case .upstreamServer: Self.serverContent
    case .upstreamListing: .members(["upstreams": .list(of: .upstreamServer)])
    case .refusalEntry: Self.refusalContent
    case .refusalListing: .members(["refusals": .list(of: .refusalEntry), "newest": .string], ["next": .string])
    case .configurationListing:
      .members(
        ["settings": .list(.members(["key": .string, "source": .string], ["value": .string]))],
        ["changes": .list(.members(["at": .instant, "key": .string], ["before": .string, "after": .string]))])
    case .activityListing: .members(["minutes": .list(Self.minuteContent)])
    case .document: ["type": "object", "required": ["openapi", "info", "paths"]]
    }
  }

  private static let keyContent = JSONContent.members(
    [
      "key": .string, "platform": ["enum": ["ios", "android"]], "app": .string,
      "environment": ["enum": ["production", "development"]],
      "state": ["enum": ["active", "revoked"]], "counter": .count, "registered_at": .instant,
    ],
    [
      "last_used_at": .instant, "revoked_at": .instant, "category": .string, "bundle_version": .string,
      "security_level": ["enum": ["tee", "strongbox"]], "boot_state": ["enum": ["verified", "self_signed"]],
      "patch_level": .string, "provisioning": ["enum": ["factory", "remote", "unknown"]],
      "risk": .count, "risk_at": .instant, "risk_outdated": .truth,
      "key_id": .string, "public_key": .string, "sessions": .count,
    ])

  private static let decisionContent = JSONContent.members(
    [
      "at": .instant, "outcome": ["enum": .list(DecisionDescription.Outcome.allCases.map { .text($0.rawValue) })],
      "verified": .truth, "app": .string, "address": .string, "request_id": .string, "count": .count,
    ],
    [
      "code": .string, "step": .string, "status": .count, "detail": .string, "advice": .string, "since": .instant,
    ])

  private static let sessionContent = JSONContent.members(
    [
      "id": .string, "route": .string, "method": ["enum": ["app-attest", "android-key", "mtls", "none"]],
      "opened_at": .instant,
      "age_seconds": .integer, "address": .string,
    ], ["key": .string, "app": .string])

  private static let upstreamContent = JSONContent.members(
    [
      "route": .string, "upstream": .string, "condition": ["enum": ["untried", "available", "failing"]],
      "connected": .count, "refused": .count, "failed": .count, "recent_attempts": .count, "recent_failures": .count,
    ],
    [
      "last_success": moment, "last_failure": moment, "last_failure_reason": .string, "servers": .list(serverContent),
    ])

  private static let serverContent = JSONContent.members(
    [
      "upstream": .string,
      "condition": ["enum": .list(UpstreamServerState.Condition.allCases.map { .text($0.rawValue) })],
      "failures": .count,
    ], ["route": .string, "sessions": .count])

  private static let refusalContent = JSONContent.members(
    ["at": .instant, "request_id": .string, "code": .string, "step": .string, "text": .string, "address": .string],
    [
      "status": .count, "detail": .string, "advice": .string, "key": .string, "app": .string, "endpoint": .string,
      "path": .string,
    ])

  private static let minuteContent = JSONContent.members([
    "admitted": .count, "registered": .count, "sessions": .count,
    "refusals": ["type": "object", "additionalProperties": .count],
  ])

  private static let moment = JSONContent.members(["at": .instant, "seconds_ago": .count])

  private static let statusContent = JSONContent.members(
    [
      "version": .string, "ready": .truth, "checks": .list(of: .check),
      "enforcement": ["enum": ["enforce", "monitor", "off"]], "address": .string, "started_at": .instant,
      "uptime_seconds": .integer,
      "sessions": .members(["open": .count, "connections": .count, "newest": .list(of: .session)]),
      "loops": .members(["count": .count, "reason": .string]), "key_exchange": .list(.string),
      "traffic": .members(["bytes_from_clients": .count, "bytes_from_upstreams": .count]),
      "activity": .members([
        "last_minute": AnswerSchema.counts.reference, "last_hour": AnswerSchema.counts.reference,
        "minutes": .list(of: .counts),
      ]),
      "refusals": .list(.members(["code": .string, "status": .string, "last_hour": .count, "total": .count])),
      "upstreams": .list(upstreamContent),
      "certificates": .list(
        .members(
          [
            "name": .string, "subject": .string, "ends_at": .instant, "seconds_left": .integer, "file_served": .truth,
            "ends_soon": .truth,
          ], ["renewal": .members([:], ["obtained_at": .instant, "next_at": .instant, "fault": .string])])),
      "store": .members(["place": .string, "healthy": .truth, "detail": .string]),
      "configuration": .members(["current": .truth, "loaded_at": .instant], ["fault": .string, "file": .string]),
    ],
    [
      "certificate_fault": .string, "process": .integer,
      "tokens": .members([
        "audiences": .list(.string), "lifetime_seconds": .count, "issued": .count, "refused": .count,
      ]),
      "status_list": .members(
        ["source": .string, "max_age_seconds": .count, "usable": .truth],
        ["entries": .count, "current_at": .instant, "age_seconds": .count, "fault": .string]),
      "receipt_exchange": .members(
        ["renewed": .count, "failed": .count, "stopped": .truth],
        ["last_renewal_at": .instant, "seconds_since_renewal": .count, "fault": .string]),
      "risk": .list(
        .members(
          ["app": .string, "action": ["enum": ["observe", "refuse", "revoke"]]],
          ["threshold": .count, "assessed": .count, "unknown": .count, "above": .count])),
    ])
}

extension JSONContent {
  fileprivate static let string: JSONContent = ["type": "string"]
  fileprivate static let integer: JSONContent = ["type": "integer"]
  fileprivate static let count: JSONContent = ["type": "integer", "minimum": 0]
  fileprivate static let truth: JSONContent = ["type": "boolean"]
  /// An RFC 3339 timestamp.
  fileprivate static let instant: JSONContent = ["type": "string", "format": "date-time"]

  fileprivate static func list(_ element: JSONContent) -> JSONContent { ["type": "array", "items": element] }

  fileprivate static func list(of schema: AnswerSchema) -> JSONContent { list(schema.reference) }

  /// An object with all members of `required`, any of `optional`, and no others.
  fileprivate static func members(
    _ required: [String: JSONContent], _ optional: [String: JSONContent] = [:]
  ) -> JSONContent {
    [
      "type": "object", "additionalProperties": false, "required": .list(required.keys.sorted().map(JSONContent.text)),
      "properties": .object(required.merging(optional, uniquingKeysWith: { first, _ in first })),
    ]
  }
}
