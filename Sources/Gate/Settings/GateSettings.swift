/// The configuration of a gate: every value given or defaulted, checked alone and against the others.
///
/// Plain values, so that nothing that uses them depends on how they were read.
public struct GateSettings: Sendable, Hashable {
  public var listen: Listen
  public var tls: TLS
  /// `nil`: client certificates are not asked for.
  public var debugMTLS: DebugMTLS?
  public var appAttest: AppAttest
  /// Each path once; in the order of the configuration.
  public var routes: [Route]
  public var session: Session
  public var store: Store
  /// How many calls may wait for the store, for reads and writes each, before further ones are refused.
  public var mostWaitingForStore: Int
  /// How long a key may stay unused before it is removed; `nil` for ever.
  public var pruneUnusedAfter: Duration?
  /// The folder of a store without a configured place, to be created (mode 0700) if it is absent; `nil` if
  /// `store.url` was given: a folder that an operator names must exist.
  public var stateFolder: String?
  public var limits: Limits
  public var identity: Identity
  /// `nil`: there is no admin server.
  public var admin: Admin?
  /// `nil`: only the admin server has metrics.
  public var metrics: Metrics?
  public var log: Log
  /// How long the gate goes on as before after a signal to stop.
  public var unreadyDelay: Duration
  /// How long sessions have to end after that.
  public var drainTimeout: Duration
  /// How long sessions go on once a successor has taken over.
  public var linger: Duration

  /// What an operator should read at every start.
  public var warnings: [Warning]
  /// Every key of the table with its value and where that comes from, in the order of the table.
  public var effective: [EffectiveValue]
}

extension GateSettings {
  public struct Listen: Sendable, Hashable {
    /// An IPv4 or IPv6 address; `::` takes both.
    public var address: String
    /// 0 takes any free port.
    public var port: UInt16
    /// Event loops; `nil` for one per core.
    public var loops: Int?
    /// `nil`: connections are their clients' own.
    public var proxies: Proxies?
    /// The operator's own proxies, whether or not they send PROXY headers.
    public var trustedProxies: [AddressRange]
  }

  public struct TLS: Sendable, Hashable {
    public enum Version: String, Sendable, Hashable, CaseIterable {
      case v1_2 = "1.2"
      case v1_3 = "1.3"
    }
    /// PEM, the chain with the leaf first; an absolute path to a file that held a certificate a moment ago.
    public var certificateFile: String
    /// PEM, not encrypted; an absolute path to a file that held a key a moment ago.
    public var keyFile: String
    /// A certificate that is served to clients that ask for a name that it is good for.
    public struct Further: Sendable, Hashable {
      /// As `TLS.certificateFile`.
      public var certificateFile: String
      /// As `TLS.keyFile`.
      public var keyFile: String
    }
    /// In the order in which they are looked through.
    public var further: [Further]
    public var leastVersion: Version
    public enum Reload: String, Sendable, Hashable, CaseIterable { case auto, off }
    /// Whether changed files are served without being asked to.
    public var reload: Reload
  }

  public struct DebugMTLS: Sendable, Hashable {
    /// PEM; an absolute path to a file that held a certificate a moment ago.
    public var clientCAFile: String
    /// Subjects in the form of RFC 2253; none means any that the authority signed.
    public var allowedSubjects: [String]
  }

  public struct AppAttest: Sendable, Hashable {
    public enum Enforcement: String, Sendable, Hashable, CaseIterable { case enforce, monitor, off }
    /// `monitor` admits clients that it would refuse, `off` all of them.
    public var enforcement: Enforcement
    /// Each pair of team and bundle once; an empty list means that no device can register.
    public var apps: [App]
    public var trust: Trust
    /// How long a nonce is valid.
    public var challengeTTL: Duration
    /// The file that holds the keys of the nonces; `nil` for keys that the store makes and keeps.
    public var challengeKeysFile: String?
    /// The age at which the key that makes nonces is replaced, unless it is in a file; `nil` for never.
    public var challengeKeyRotation: Duration?
    /// How far behind the greatest counter one may lie that was not seen yet; 0 for not at all.
    public var counterWindow: Int
  }

  public struct App: Sendable, Hashable {
    public enum Environment: String, Sendable, Hashable, CaseIterable { case production, development }
    /// What Apple says about how an app was installed (iOS 27).
    public enum ValidationCategory: String, Sendable, Hashable, CaseIterable {
      case os
      case testflight
      case development
      case appStore = "app_store"
      case enterprise
      case developerID = "developer_id"
      case other
    }
    /// What happens to a device whose assertion names no category.
    public enum Missing: String, Sendable, Hashable, CaseIterable { case accept, refuse }

    /// Ten of A-Z and 0-9.
    public var teamID: String
    public var bundleID: String
    /// Never empty.
    public var environments: Set<Environment>
    /// `nil` for any.
    public var allowedCategories: Set<ValidationCategory>?
    public var missingCategory: Missing
  }

  /// Roots to trust instead of Apple's; never beside an app with environment production.
  public struct Trust: Sendable, Hashable {
    /// PEM; `nil` for Apple's App Attestation root.
    public var attestationRootFile: String?
    /// PEM; `nil` for Apple Root CA - G3.
    public var receiptRootFile: String?
  }

  public struct Route: Sendable, Hashable {
    public enum Forward: String, Sendable, Hashable, CaseIterable { case upgrades, all }
    /// `/`, or segments without a slash at their end.
    public var path: String
    public var upstream: Upstream
    public var forward: Forward
    /// `aud` of the assertions that this upstream gets; `nil` for `Identity.audience`, and always `nil` for `.tcp`.
    public var audience: String?
  }

  public enum Upstream: Sendable, Hashable {
    case webSocket(host: String, port: UInt16)
    /// The certificate is verified against `caFile` (PEM; `nil` for the system's roots) and `serverName` (`nil` for the
    /// host).
    case secureWebSocket(host: String, port: UInt16, caFile: String?, serverName: String?)
    case unix(path: String)
    case tcp(host: String, port: UInt16)
  }

  /// Bounds of one session; `nil` for none.
  public struct Session: Sendable, Hashable {
    public var maxAge: Duration?
    public var idleTimeout: Duration?
    public var pingInterval: Duration?
    /// Payload bytes of one message.
    public var maxMessage: Int
    /// How soon the sockets of a revoked key are closed; `nil` for not at all.
    public var closeOnRevoke: Duration?
  }

  /// What upstreams are told about clients.
  public struct Identity: Sendable, Hashable {
    /// `iss` of assertions.
    public var issuer: String
    /// `aud` of assertions for routes without an audience of their own, and of those that `/attest/verify` answers
    /// with.
    public var audience: String
    /// How long a key signs; `nil` for ever.
    public var keyLife: Duration?
    /// How long a key is published before it signs, and after it has.
    public var keyOverlap: Duration
    /// Header fields that the upstream never sees, beside those that are always removed.
    public var strippedHeaders: [String]
  }

  /// Where operators' commands reach the gate.
  public struct Admin: Sendable, Hashable {
    public enum Address: Sendable, Hashable {
      /// An absolute path of at most 107 bytes.
      case unix(path: String)
      /// An address of this machine alone; port 0 takes any free one.
      case loopback(address: String, port: UInt16)
    }
    public var address: Address
    /// A file that was there a moment ago; `nil` for a Unix socket, and only there.
    public var tokenFile: String?
  }

  public enum Store: Sendable, Hashable {
    /// An absolute path; neither the file nor its folder need exist.
    case sqlite(path: String)
    /// As libpq takes it; the file, an absolute path, holds the password if one is named.
    case postgres(StoreURL, passwordFile: String?)
  }
}

/// A key, its value as text, and where the value comes from.
public struct EffectiveValue: Sendable, Hashable {
  /// The path of the key: `routes[0].upstream`.
  public let key: String
  /// `nil` for a key that has no value.
  public let text: String?
  public let origin: SettingSource
}
