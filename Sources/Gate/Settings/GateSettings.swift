public import ConfigurationEngine
public import Transport

/// The complete configuration of a gate. Every value is given or defaulted, and has been validated alone and against
/// the others.
///
/// These are plain values, so that users do not depend on how the configuration was read.
public struct GateSettings: Sendable, Hashable {
  public var listen: Listen
  public var tls: TLS
  /// `nil`: the gate requests no client certificates.
  public var debugMTLS: DebugMTLS?
  public var appAttest: AppAttest
  /// Routes with unique paths, in the order of the configuration.
  public var routes: [Route]
  public var session: Session
  public var store: Store
  /// The maximum number of waiting store calls, each for reads and writes.
  public var mostWaitingForStore: Int
  /// How long a key may stay unused before it is removed; `nil` for no limit.
  public var pruneUnusedAfter: Duration?
  /// `nil`: no decisions about keys are kept.
  public var decisions: Decisions?
  /// The default state folder, which the gate creates with mode 0700 if necessary. `nil` if `store.url` names another
  /// store, whose folder must exist.
  public var stateFolder: String?
  public var limits: Limits
  public var identity: Identity
  /// `nil`: the gate issues no tokens.
  public var tokens: Tokens?
  /// `nil`: the gate has no admin server.
  public var admin: Admin?
  /// `nil`: there is no console for people on other machines.
  public var console: ConsoleSettings?
  /// `nil`: only the admin server provides metrics.
  public var metrics: ListeningAddress?
  /// `nil`: nothing is exported.
  public var telemetry: Telemetry?
  /// `nil`: no server hears of events.
  public var webhooks: Webhooks?
  public var log: Log
  /// How long the gate continues to accept sessions after a stop signal.
  public var unreadyDelay: Duration
  /// How long sessions may then take to close.
  public var drainTimeout: Duration
  /// How long the old process keeps its sessions after a graceful upgrade.
  public var linger: Duration

  /// Warnings for the operator at every start.
  public var warnings: [Warning]
  /// Every key of the settings table with its value and origin, in the order of the table.
  public var effective: [EffectiveValue]

  /// The effective settings as an equivalent configuration file: see `SettingsTable.yaml(of:)`.
  public var effectiveYAML: String { SettingsTable.gate.yaml(of: effective) }
}

extension GateSettings {
  /// Which decisions about keys are kept for operators.
  public struct Decisions: Sendable, Hashable {
    /// The maximum age.
    public var keep: Duration
    /// The maximum number of each kind about one key.
    public var mostOfKey: Int
    /// The maximum number in the store.
    public var most: Int
  }

  public struct Listen: Sendable, Hashable {
    /// An IPv4 or IPv6 address; `::` accepts both.
    public var address: String
    /// 0 selects any free port.
    public var port: UInt16
    /// The number of event loops; `nil` for one per usable processor.
    public var loops: Int?
    /// `nil`: connections carry no PROXY header.
    public var proxies: Proxies?
    /// The operator's own proxies, with or without PROXY headers.
    public var trustedProxies: [AddressRange]
    /// The maximum length of the head of a request, in bytes.
    public var maxHead = 16 << 10
    /// Whether these proxies name the clients of their requests in `X-Forwarded-For`.
    public var trustsForwardedFor = false
  }

  public struct TLS: Sendable, Hashable {
    public enum Version: String, Sendable, Hashable, CaseIterable {
      case v1_2 = "1.2"
      case v1_3 = "1.3"
    }
    /// Where the certificates come from.
    public enum Source: Sendable, Hashable {
      /// The first is for clients that request no name or a name that no other certificate has.
      case files(Files, further: [Files])
      case acme(ACME)
    }
    /// A certificate with its key.
    public struct Files: Sendable, Hashable {
      /// A PEM chain, leaf first. An absolute path; validation found a certificate in the file.
      public var certificateFile: String
      /// PEM, not encrypted. An absolute path; validation found a key in the file.
      public var keyFile: String
    }
    public var source: Source

    /// The certificates in files, in the order of selection; empty for certificates by ACME.
    public var files: [Files] {
      if case .files(let first, let further) = source { [first] + further } else { [] }
    }

    /// `nil` for certificates in files.
    public var acme: ACME? {
      if case .acme(let acme) = source { acme } else { nil }
    }

    public var leastVersion: Version
    public enum Reload: String, Sendable, Hashable, CaseIterable { case auto, off }
    /// Whether changed files are loaded without a reload command.
    public var reload: Reload
  }

  public struct DebugMTLS: Sendable, Hashable {
    /// PEM. An absolute path; validation found a certificate in the file.
    public var clientCAFile: String
    /// Whether a client's chain may end at any certificate of the file, not only at a self-signed one.
    public var acceptsPartialChains: Bool
    /// PEM. An absolute path of lists of revoked certificates; `nil` for none.
    public var revocationListFile: String?
    /// Subjects in the form of RFC 2253; empty admits every certificate of the CA.
    public var allowedSubjects: [String]
  }

  public struct AppAttest: Sendable, Hashable {
    public enum Enforcement: String, Sendable, Hashable, CaseIterable { case enforce, monitor, off }
    /// `monitor` admits clients that fail verification anonymously; `off` admits all clients without verification.
    public var enforcement: Enforcement
    /// Unique pairs of team and bundle. If this and `androidApps` are empty, no client can register.
    public var apps: [App]
    /// Unique packages.
    public var androidApps: [AndroidApp]
    /// `nil`: no revocation of Android certificates is checked.
    public var statusList: StatusList?
    public var trust: Trust
    /// Whether users' devices of an app are admitted, and not only those for tests.
    public var hasProductionApp: Bool {
      apps.contains { $0.environments.contains(.production) }
        || (!androidApps.isEmpty && trust.androidRootFile == nil)
    }

    /// How long a nonce is valid.
    public var challengeTTL: Duration
    /// The file with the challenge keys; `nil` for keys in the store.
    public var challengeKeysFile: String?
    /// The age at which a challenge key in the store is replaced; `nil` for never.
    public var challengeKeyRotation: Duration?
    /// How far an unused counter may lie below the highest one seen; 0 accepts only higher counters.
    public var counterWindow: Int
  }

  /// An app of iOS.
  public struct App: Sendable, Hashable {
    public enum Environment: String, Sendable, Hashable, CaseIterable { case production, development }
    /// How the app was installed, according to Apple (iOS 27).
    public enum ValidationCategory: String, Sendable, Hashable, CaseIterable {
      case os
      case testflight
      case development
      case appStore = "app_store"
      case enterprise
      case developerID = "developer_id"
      case other
    }
    /// The rule for a device whose assertion has no category.
    public enum Missing: String, Sendable, Hashable, CaseIterable { case accept, refuse }

    /// Ten characters of A-Z and 0-9.
    public var teamID: String
    public var bundleID: String
    /// Never empty.
    public var environments: Set<Environment>
    /// `nil` allows all categories.
    public var allowedCategories: Set<ValidationCategory>?
    public var missingCategory: Missing
    /// `nil` without a key of the developer account: receipts are not exchanged.
    public var risk: Risk?
  }

  public enum Platform: String, Sendable, Hashable, CaseIterable { case ios, android }

  public struct Month: Sendable, Hashable {
    public var year: Int
    /// 1 to 12.
    public var month: Int
  }

  public struct AndroidApp: Sendable, Hashable {
    public enum SecurityLevel: String, Sendable, Hashable, CaseIterable { case tee, strongbox }
    public enum VerifiedBoot: String, Sendable, Hashable, CaseIterable {
      case verified
      case allowBootKeys = "allow_boot_keys"
    }

    public var package: String
    /// 32 bytes each, at least one.
    public var signers: [[UInt8]]
    public var securityLevel: SecurityLevel
    /// `nil`: only systems of the maker.
    public var bootKeysFile: String?
    public var leastPatchLevel: Month?
    public var requiresRKP: Bool
    /// `nil` without a threshold and without an age of patches: nothing is judged.
    public var risk: Risk?
  }

  /// The list of revoked attestation certificates of Android devices.
  public struct StatusList: Sendable, Hashable {
    public enum Place: Sendable, Hashable {
      case file(path: String)
      /// With `https`. The CA file is PEM; `nil` for the system's CAs.
      case url(String, caFile: String?)
    }
    public var place: Place
    public var refresh: Duration
    public var maximumAge: Duration
  }

  /// Trusted roots instead of Apple's and Google's; never together with an app in environment production.
  public struct Trust: Sendable, Hashable {
    /// PEM; `nil` for Apple's App Attestation root.
    public var attestationRootFile: String?
    /// PEM; `nil` for Apple Root CA - G3.
    public var receiptRootFile: String?
    /// PEM; `nil` for Google's roots.
    public var androidRootFile: String?
  }

  public struct Route: Sendable, Hashable {
    /// A place besides the header fields where clients may put an assertion.
    public enum Carrier: String, Sendable, Hashable, CaseIterable { case subprotocol, query }
    public enum Forward: String, Sendable, Hashable, CaseIterable { case upgrades, all }
    /// How one of several servers is chosen.
    public enum Balance: String, Sendable, Hashable, CaseIterable { case sessions, device }
    /// `/`, or segments without a trailing slash.
    public var path: String
    /// The servers of the upstream: one or several of one scheme.
    public var upstreams: [Upstream]
    public var balance = Balance.sessions
    /// `nil`: no server is asked for its health.
    public var health: HealthCheck?
    /// What replaces the path of the route in the target, `/` to remove it; `nil` to leave the target as it is.
    public var rewrite: String?
    /// `Host` for the upstream; `nil` for the client's.
    public var host: String?
    public var forward: Forward
    /// `aud` of the identity assertions for this upstream; `nil` for `Identity.audience`, and always `nil` for
    /// `.tcp`.
    public var audience: String?
    /// The subprotocol of a `.tcp` upstream; `nil` to choose from what the client offers.
    public var subprotocol: String?
    /// The maximum length of the head of a request, in bytes; `nil` for that of the listener.
    public var maxHead: Int?
    /// The maximum length of the head of a response, in bytes.
    public var maxResponseHead = 64 << 10
    /// The origins of other hosts that are accepted.
    public var origins: [Origin] = []
    /// The places besides the header fields where clients may put an assertion.
    public var carriers: [Carrier] = []
  }

  /// A question to each server of a route, and how often it is asked.
  public struct HealthCheck: Sendable, Hashable {
    public var path: String
    public var interval: Duration
  }

  public enum Upstream: Sendable, Hashable {
    case webSocket(host: String, port: UInt16)
    case secureWebSocket(host: String, port: UInt16, UpstreamTLS)
    case unix(path: String)
    case tcp(host: String, port: UInt16)
  }

  public struct UpstreamTLS: Sendable, Hashable {
    /// PEM; `nil` for the system's roots.
    public var caFile: String?
    /// The name in the upstream's certificate; `nil` for its host.
    public var serverName: String?
    /// The gate's own certificate and its key, for an upstream that asks for one.
    public var identity: TLS.Files?
  }

  public struct Session: Sendable, Hashable {
    /// The limits of one session.
    public var limits: SessionLimits
    /// How soon the sessions of a revoked key are closed; `nil` for never.
    public var closeOnRevoke: Duration?
  }

  /// The identity assertions and headers for upstreams.
  public struct Identity: Sendable, Hashable {
    /// `iss` of identity assertions.
    public var issuer: String
    /// `aud` of identity assertions, unless a route sets its own. Always used in answers of `/attest/verify`.
    public var audience: String
    /// How long an identity signing key is used; `nil` for no limit.
    public var keyLife: Duration?
    /// How long an identity signing key is published before its first use, and after its last.
    public var keyOverlap: Duration
    /// Additional header fields that the gate removes from requests to the upstream.
    public var strippedHeaders: [String]
    /// Header fields that the gate would remove, and does not.
    public var keptHeaders: [String]
  }

  /// The admin server.
  public struct Admin: Sendable, Hashable {
    public enum Address: Sendable, Hashable {
      /// An absolute path of at most 107 bytes.
      case unix(path: String)
      /// A loopback address; port 0 selects any free port.
      case loopback(address: String, port: UInt16)
    }
    public var address: Address
    /// The name of the group whose members may use the Unix socket; `nil` for its user alone, and on loopback.
    public var group: String?
    /// The file existed at validation. `nil` for a Unix socket, and only there.
    public var tokenFile: String?

    /// Creates the settings of an admin server, for example of one that is found without a configuration.
    public init(address: Address, group: String? = nil, tokenFile: String? = nil) {
      self.address = address
      self.group = group
      self.tokenFile = tokenFile
    }
  }

  public enum Store: Sendable, Hashable {
    /// An absolute path. Neither the file nor its folder must exist.
    case sqlite(path: String)
    /// A URL for libpq, and optionally the absolute path of a file with the password.
    case postgres(DatabaseURL, passwordFile: String?)
  }
}
