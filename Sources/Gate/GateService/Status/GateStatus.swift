/// How a gate is, for people and programs: what `/status` shows and `/v1/status` tells.
///
/// Instants are RFC 3339.
public struct GateStatus: Codable, Sendable, Hashable {
  public var version: String
  /// Whether new sessions can be let in.
  public var ready: Bool
  public var checks: [Check]
  /// `enforce`, `monitor` or `off`.
  public var enforcement: String
  /// Of the public listener.
  public var address: String
  public var startedAt: String
  public var uptimeSeconds: Int64
  public var sessions: Sessions
  public var traffic: Traffic
  public var activity: Activity
  /// The most frequent of the last hour first.
  public var refusals: [RefusalCount]
  public var certificates: [CertificateState]
  /// Why the certificates that have changed cannot be served: a line for each fault; absent if there is none.
  public var certificateFault: String?
  public var store: Store
  public var configuration: Configuration

  enum CodingKeys: String, CodingKey {
    case version, ready, checks, enforcement, address, sessions, traffic, activity, refusals, certificates, store
    case configuration
    case certificateFault = "certificate_fault"
    case startedAt = "started_at"
    case uptimeSeconds = "uptime_seconds"
  }

  public init(
    version: String, ready: Bool, checks: [Check], enforcement: String, address: String, startedAt: String,
    uptimeSeconds: Int64, sessions: Sessions, traffic: Traffic, activity: Activity, refusals: [RefusalCount],
    certificates: [CertificateState], certificateFault: String? = nil, store: Store, configuration: Configuration
  ) {
    (self.version, self.ready, self.checks, self.enforcement) = (version, ready, checks, enforcement)
    (self.address, self.startedAt, self.uptimeSeconds) = (address, startedAt, uptimeSeconds)
    (self.sessions, self.traffic, self.activity, self.refusals) = (sessions, traffic, activity, refusals)
    (self.certificates, self.certificateFault) = (certificates, certificateFault)
    (self.store, self.configuration) = (store, configuration)
  }

  public struct Check: Codable, Sendable, Hashable {
    public var name: String
    public var ready: Bool
    public var detail: String
  }

  public struct Sessions: Codable, Sendable, Hashable {
    public var open: Int
    /// Open connections of clients, in whatever phase.
    public var connections: Int
    /// The newest first; some of them, if there are many.
    public var newest: [SessionDescription]

    public init(open: Int, connections: Int, newest: [SessionDescription]) {
      (self.open, self.connections, self.newest) = (open, connections, newest)
    }
  }

  /// Relayed WebSocket bytes since the start, frame headers included.
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

  /// What was decided lately.
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

  public struct Counts: Codable, Sendable, Hashable {
    public var admitted: UInt64 = 0
    /// Requests of any kind.
    public var refused: UInt64 = 0
    public var registered: UInt64 = 0

    public init(admitted: UInt64 = 0, refused: UInt64 = 0, registered: UInt64 = 0) {
      (self.admitted, self.refused, self.registered) = (admitted, refused, registered)
    }
  }

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

  public struct CertificateState: Codable, Sendable, Hashable {
    /// `server`, `server_2` and so on for further ones, or `client_ca`: of several authorities the one that ends first.
    public var name: String
    public var subject: String
    public var endsAt: String
    /// Negative when it is over.
    public var secondsLeft: Int64
    /// Whether its files hold what is served; `false` for those that were replaced and not taken, or not yet.
    public var isFileServed: Bool

    enum CodingKeys: String, CodingKey {
      case name, subject
      case isFileServed = "file_served"
      case endsAt = "ends_at"
      case secondsLeft = "seconds_left"
    }

    public init(name: String, subject: String, endsAt: String, secondsLeft: Int64, isFileServed: Bool = true) {
      (self.name, self.subject, self.endsAt, self.secondsLeft) = (name, subject, endsAt, secondsLeft)
      self.isFileServed = isFileServed
    }

    public init(from decoder: any Decoder) throws {
      let fields = try decoder.container(keyedBy: CodingKeys.self)
      name = try fields.decode(String.self, forKey: .name)
      subject = try fields.decode(String.self, forKey: .subject)
      endsAt = try fields.decode(String.self, forKey: .endsAt)
      secondsLeft = try fields.decode(Int64.self, forKey: .secondsLeft)
      // A gate that was not restarted after an upgrade may be too old to say it.
      isFileServed = try fields.decodeIfPresent(Bool.self, forKey: .isFileServed) ?? true
    }
  }

  public struct Store: Codable, Sendable, Hashable {
    /// Without a password.
    public var place: String
    public var healthy: Bool
    public var detail: String

    public init(place: String, healthy: Bool, detail: String) {
      (self.place, self.healthy, self.detail) = (place, healthy, detail)
    }
  }

  public struct Configuration: Codable, Sendable, Hashable {
    /// Whether the last attempt to read it succeeded.
    public var current: Bool
    public var loadedAt: String
    /// Why the last attempt failed; absent if it did not.
    public var fault: String?

    enum CodingKeys: String, CodingKey {
      case current, fault
      case loadedAt = "loaded_at"
    }

    public init(current: Bool, loadedAt: String, fault: String?) {
      (self.current, self.loadedAt, self.fault) = (current, loadedAt, fault)
    }
  }
}
