public import AttestGate

/// The state of a gate, as `/status` and `/v1/status` show it.
///
/// Timestamps are RFC 3339.
public struct GateStatus: Codable, Sendable, Hashable {
  public var version: String
  /// Whether new sessions can be admitted.
  public var ready: Bool
  public var checks: [Check]
  /// The id of the gate's process, as it sees it itself; `nil` from a gate of an older version.
  public var process: Int32?
  /// `enforce`, `monitor` or `off`.
  public var enforcement: Gate.Enforcement
  /// The address of the public listener.
  public var address: String
  public var startedAt: String
  public var uptimeSeconds: Int64
  public var sessions: Sessions
  /// The event loops of the public listener; `nil` from a gate of an older version.
  public var loops: Loops?
  /// The groups for the key exchange of TLS, by preference; `nil` from a gate of an older version.
  public var keyExchange: [String]?
  /// The issued tokens; `nil` if the gate issues none, and from a gate of an older version.
  public var tokens: Tokens?
  /// The list of revoked Android attestation certificates; `nil` if none is configured, and from a gate of an older
  /// version.
  public var statusList: StatusList?
  /// The exchange of receipts with Apple; `nil` if receipts of no app are exchanged, and from a gate of an older version.
  public var receiptExchange: ReceiptExchange?
  /// The risk metrics of apps whose receipts are exchanged; `nil` if there is none, and from a gate of an older version.
  public var risk: [Risk]?
  public var traffic: Traffic
  public var activity: Activity
  /// Sorted by their number in the last hour, the highest first.
  public var refusals: [RefusalCount]
  /// The upstream of each route; `nil` from a gate of an older version.
  public var upstreams: [UpstreamState]?
  public var certificates: [CertificateState]
  /// Why changed certificates cannot be used, with a line for each fault; absent if there is none.
  public var certificateFault: String?
  public var store: Store
  public var configuration: Configuration

  enum CodingKeys: String, CodingKey {
    case version, ready, checks, enforcement, address, sessions, loops, tokens, traffic, activity, refusals, upstreams
    case certificates, store, configuration, process, risk
    case certificateFault = "certificate_fault"
    case keyExchange = "key_exchange"
    case statusList = "status_list"
    case receiptExchange = "receipt_exchange"
    case startedAt = "started_at"
    case uptimeSeconds = "uptime_seconds"
  }

  public init(
    version: String, ready: Bool, checks: [Check], enforcement: Gate.Enforcement, address: String, startedAt: String,
    uptimeSeconds: Int64, sessions: Sessions, loops: Loops, keyExchange: [String], tokens: Tokens? = nil,
    statusList: StatusList? = nil, receiptExchange: ReceiptExchange? = nil, risk: [Risk]? = nil, traffic: Traffic,
    activity: Activity,
    refusals: [RefusalCount],
    upstreams: [UpstreamState], certificates: [CertificateState], certificateFault: String? = nil, store: Store,
    configuration: Configuration, process: Int32? = nil
  ) {
    (self.version, self.ready, self.checks, self.enforcement) = (version, ready, checks, enforcement)
    (self.address, self.startedAt, self.uptimeSeconds) = (address, startedAt, uptimeSeconds)
    (self.sessions, self.loops, self.keyExchange, self.tokens) = (sessions, loops, keyExchange, tokens)
    (self.statusList, self.receiptExchange, self.risk) = (statusList, receiptExchange, risk)
    (self.traffic, self.activity, self.refusals) = (traffic, activity, refusals)
    self.upstreams = upstreams
    (self.certificates, self.certificateFault) = (certificates, certificateFault)
    (self.store, self.configuration, self.process) = (store, configuration, process)
  }

  /// The state of one dependency of the gate.
  public struct Check: Codable, Sendable, Hashable {
    public var name: String
    public var ready: Bool
    public var detail: String
    /// `true` if an operator should act although the gate is ready; otherwise absent.
    public var warning: Bool?
  }

  /// The open sessions and connections.
  public struct Sessions: Codable, Sendable, Hashable {
    public var open: Int
    /// The number of open client connections, in any phase.
    public var connections: Int
    /// The newest sessions first, up to a maximum number.
    public var newest: [SessionDescription]

    public init(open: Int, connections: Int, newest: [SessionDescription]) {
      (self.open, self.connections, self.newest) = (open, connections, newest)
    }
  }

  /// The threads that carry the connections.
  public struct Loops: Codable, Sendable, Hashable {
    public var count: Int
    /// Why there are so many.
    public var reason: String

    public init(count: Int, reason: String) { (self.count, self.reason) = (count, reason) }
  }

  /// The tokens of `POST /attest/token`.
  public struct Tokens: Codable, Sendable, Hashable {
    /// The audiences that clients may ask for.
    public var audiences: [String]
    public var lifetimeSeconds: Int64
    /// The numbers of requests since the start.
    public var issued: UInt64
    public var refused: UInt64

    enum CodingKeys: String, CodingKey {
      case audiences, issued, refused
      case lifetimeSeconds = "lifetime_seconds"
    }

    public init(audiences: [String], lifetimeSeconds: Int64, issued: UInt64, refused: UInt64) {
      (self.audiences, self.lifetimeSeconds) = (audiences, lifetimeSeconds)
      (self.issued, self.refused) = (issued, refused)
    }

    /// The state as text.
    public var text: String {
      // Without audiences there are client attestations alone.
      "\(issued) issued, \(refused) refused"
        + (audiences.isEmpty ? "" : ", for \(audiences.joined(separator: ", "))")
    }
  }

  /// The list of revoked Android attestation certificates.
  public struct StatusList: Codable, Sendable, Hashable {
    /// The URL or the path.
    public var source: String
    /// The number of certificates in the list in use; absent if none was read yet, like the next two.
    public var entries: Int?
    public var currentAt: String?
    public var ageSeconds: Int64?
    public var maximumAgeSeconds: Int64
    /// Whether the list is new enough for registrations of Android keys. Registered keys are admitted anyway.
    public var usable: Bool
    /// Why the last attempt to read it, or to compare the keys with it, failed; absent if it succeeded.
    public var fault: String?

    enum CodingKeys: String, CodingKey {
      case source, entries, usable, fault
      case currentAt = "current_at"
      case ageSeconds = "age_seconds"
      case maximumAgeSeconds = "max_age_seconds"
    }

    public init(
      source: String, entries: Int?, currentAt: String?, ageSeconds: Int64?, maximumAgeSeconds: Int64, usable: Bool,
      fault: String?
    ) {
      (self.source, self.entries, self.currentAt) = (source, entries, currentAt)
      (self.ageSeconds, self.maximumAgeSeconds) = (ageSeconds, maximumAgeSeconds)
      (self.usable, self.fault) = (usable, fault)
    }

    /// The state as text.
    public var text: String {
      guard let entries, let ageSeconds else { return "none read yet" }
      let age = "\(Figures.span(seconds: ageSeconds)) old"
      let limit = usable ? "" : ", over the limit of \(Figures.span(seconds: maximumAgeSeconds))"
      return "\(entries) \(entries == 1 ? "certificate" : "certificates"), \(age)\(limit)"
    }
  }

  /// The relayed WebSocket bytes since the start, including frame headers.
  public struct Traffic: Codable, Sendable, Hashable {
    public var bytesFromClients: UInt64
    public var bytesFromUpstreams: UInt64

    enum CodingKeys: String, CodingKey {
      case bytesFromClients = "bytes_from_clients"
      case bytesFromUpstreams = "bytes_from_upstreams"
    }

    public init(bytesFromClients: UInt64, bytesFromUpstreams: UInt64) {
      (self.bytesFromClients, self.bytesFromUpstreams) = (bytesFromClients, bytesFromUpstreams)
    }
  }

  /// The recent decisions of the gate.
  public struct Activity: Codable, Sendable, Hashable {
    public var lastMinute: Counts
    public var lastHour: Counts
    /// The last minutes, up to 60, the oldest first.
    public var minutes: [Counts]

    enum CodingKeys: String, CodingKey {
      case minutes
      case lastMinute = "last_minute"
      case lastHour = "last_hour"
    }
  }

  /// The numbers of decisions in a period.
  public struct Counts: Codable, Sendable, Hashable {
    public var admitted: UInt64 = 0
    /// Refused requests of any kind.
    public var refused: UInt64 = 0
    public var registered: UInt64 = 0

    public init(admitted: UInt64 = 0, refused: UInt64 = 0, registered: UInt64 = 0) {
      (self.admitted, self.refused, self.registered) = (admitted, refused, registered)
    }
  }

  /// A reason for refusals, with its numbers in the last hour and since the start.
  public struct RefusalCount: Codable, Sendable, Hashable {
    public var code: String
    public var status: String
    public var lastHour: UInt64
    public var total: UInt64

    enum CodingKeys: String, CodingKey {
      case code, status, total
      case lastHour = "last_hour"
    }

    public init(code: String, status: String, lastHour: UInt64, total: UInt64) {
      (self.code, self.status, self.lastHour, self.total) = (code, status, lastHour, total)
    }
  }

  /// The upstream of a route, as the last requests found it.
  public struct UpstreamState: Codable, Sendable, Hashable {
    public enum Condition: String, Codable, Sendable, Hashable, CaseIterable {
      /// No request has been admitted for this route yet.
      case untried
      case available
      /// The last attempt failed, or at least half of the recent ones.
      case failing
    }

    /// The path of the route.
    public var route: String
    /// The upstream in the notation of the configuration.
    public var upstream: String
    public var condition: Condition
    /// The number of attempts since the start that reached the upstream.
    public var connected: UInt64
    /// The number of opening handshakes that the upstream itself refused with a status below 500.
    public var refused: UInt64
    public var failed: UInt64
    /// The number of remembered attempts, at most 16.
    public var recentAttempts: Int
    public var recentFailures: Int
    public var lastSuccess: Moment?
    public var lastFailure: Moment?
    public var lastFailureReason: String?
    /// The servers of a route that has several.
    public var servers: [UpstreamServerState]?

    enum CodingKeys: String, CodingKey {
      case route, upstream, condition, connected, refused, failed, servers
      case recentAttempts = "recent_attempts"
      case recentFailures = "recent_failures"
      case lastSuccess = "last_success"
      case lastFailure = "last_failure"
      case lastFailureReason = "last_failure_reason"
    }
  }

  /// An instant, and its distance by the clock of the gate.
  public struct Moment: Codable, Sendable, Hashable {
    public var at: String
    public var secondsAgo: Int64

    enum CodingKeys: String, CodingKey {
      case at
      case secondsAgo = "seconds_ago"
    }
  }

  /// A certificate of the gate or of a client authority.
  public struct CertificateState: Codable, Sendable, Hashable {
    /// `server`, then `server_2` and so on for additional certificates, or `client_ca`. If there are several client
    /// authorities, this describes the one that expires first.
    public var name: String
    public var subject: String
    public var endsAt: String
    /// Negative after expiry.
    public var secondsLeft: Int64
    /// Whether the files contain the active certificate; `false` if they were replaced and the new certificate is not
    /// active, or not yet.
    public var isFileServed: Bool
    /// Whether the certificate has ended or should be renewed now.
    public var endsSoon: Bool
    /// How the gate renews it by itself (ACME); `nil` for certificates from files.
    public var renewal: CertificateRenewal?

    enum CodingKeys: String, CodingKey {
      case name, subject, renewal
      case endsSoon = "ends_soon"
      case isFileServed = "file_served"
      case endsAt = "ends_at"
      case secondsLeft = "seconds_left"
    }

    public init(
      name: String, subject: String, endsAt: String, secondsLeft: Int64, isFileServed: Bool = true,
      endsSoon: Bool = false
    ) {
      (self.name, self.subject, self.endsAt, self.secondsLeft) = (name, subject, endsAt, secondsLeft)
      self.isFileServed = isFileServed
      self.endsSoon = endsSoon
    }

    public init(from decoder: any Decoder) throws {
      let fields = try decoder.container(keyedBy: CodingKeys.self)
      name = try fields.decode(String.self, forKey: .name)
      subject = try fields.decode(String.self, forKey: .subject)
      endsAt = try fields.decode(String.self, forKey: .endsAt)
      secondsLeft = try fields.decode(Int64.self, forKey: .secondsLeft)
      // A gate that still runs an older version does not send these members.
      isFileServed = try fields.decodeIfPresent(Bool.self, forKey: .isFileServed) ?? true
      endsSoon = try fields.decodeIfPresent(Bool.self, forKey: .endsSoon) ?? false
      renewal = try fields.decodeIfPresent(CertificateRenewal.self, forKey: .renewal)
    }
  }

  /// The store and the result of its last calls.
  public struct Store: Codable, Sendable, Hashable {
    /// The URL or path of the store, without a password.
    public var place: String
    public var healthy: Bool
    public var detail: String

    public init(place: String, healthy: Bool, detail: String) {
      (self.place, self.healthy, self.detail) = (place, healthy, detail)
    }
  }

  /// The active configuration and the result of its last reload.
  public struct Configuration: Codable, Sendable, Hashable {
    /// Whether the last reload of the configuration succeeded.
    public var current: Bool
    /// The path of the file; absent if there is none, and from a gate of an older version.
    public var file: String?
    public var loadedAt: String
    /// Why the last reload failed; absent if it succeeded.
    public var fault: String?

    enum CodingKeys: String, CodingKey {
      case current, fault, file
      case loadedAt = "loaded_at"
    }

    public init(current: Bool, loadedAt: String, fault: String?, file: String? = nil) {
      (self.current, self.loadedAt, self.fault, self.file) = (current, loadedAt, fault, file)
    }
  }
}

extension GateStatus {
  /// Whether an operator should act although the gate may be ready: a check warns, an upstream fails, changed files are
  /// not in use, a certificate ends soon, or clients are admitted without verification.
  public var hasWarnings: Bool {
    enforcement != .enforce || configuration.fault != nil || certificateFault != nil
      || checks.contains { $0.warning == true } || certificates.contains { $0.endsSoon || !$0.isFileServed }
      || upstreams?.contains { $0.condition == .failing } == true
  }
}
