public import ConfigurationEngine
internal import Glibc
public import MFADomain

/// The validated settings of the backend.
public struct BackendSettings: Sendable, Hashable {
  /// The database and the keys of its secrets.
  public enum Database: Sendable, Hashable {
    /// A database in memory, lost when the process exits.
    case ephemeral
    /// A SQLite or PostgreSQL database (`sqlite:///path`, `postgres://…`) and the file with the keys that seal its
    /// secrets. The file with the password of a PostgreSQL user is `nil` if the URL, or a file of libpq's, has it.
    case kept(url: String, keysFile: String, passwordFile: String? = nil)
  }

  /// The gate whose identities the backend accepts.
  public struct Gate: Sendable, Hashable {
    /// The URL or path of the gate's JWKS.
    public let keys: String
    /// The PEM file with the roots for the URL; `nil` for the roots of the system.
    public let authorityFile: String?
    /// The issuer that the identities must have.
    public let issuer: String
    /// The audience that the identities must have.
    public let audience: String
  }

  /// The delivery of SMS.
  public enum Texting: Sendable, Hashable {
    /// No delivery.
    case off
    /// Writes messages to the log, for development.
    case log
    /// Sends messages through an HTTP interface like Twilio's. `sender` is the phone number that messages come from.
    case provider(url: String, account: String, tokenFile: String, sender: String)
    /// Sends messages through another HTTP interface, by a request that follows a template.
    case template(TextRequest)
  }

  /// The request that sends an SMS, with placeholders as the operator wrote them.
  public struct TextRequest: Sendable, Hashable {
    public let method: String
    public let url: String
    /// Lines `Name: value`.
    public let headers: [String]
    public let body: String?
    /// `json` or `form`; `nil` if it is not set.
    public let escape: String?
    /// The status codes of an accepted message.
    public let status: ClosedRange<Int>
    public let tokenFile: String?
    public let authorityFile: String?
    /// The value of `{{from}}`.
    public let sender: String?

    /// Scheme, host and port, with a final slash: the URL without what may be personal or secret.
    public var origin: String {
      let start = url.firstRange(of: "://")?.upperBound ?? url.startIndex
      return url[..<(url[start...].firstIndex { "/?#{".contains($0) } ?? url.endIndex)] + "/"
    }
  }

  /// The mail server and the sender of e-mail.
  public struct Mail: Sendable, Hashable {
    public let host: String
    public let port: Int
    public let authorityFile: String?
    public let user: String?
    public let passwordFile: String?
    /// The file with an access token, instead of a password.
    public let tokenFile: String?
    /// Whether TLS begins with the connection.
    public let beginsWithTLS: Bool
    /// The name for EHLO; `nil` for the domain of the sender.
    public let greeting: String?
    public let sender: EmailAddress
  }

  /// The delivery of push notifications.
  public struct Push: Sendable, Hashable {
    /// Apple Push Notification service.
    public struct APNS: Sendable, Hashable {
      public let keyFile: String
      public let keyID: String
      public let teamID: String
      /// Another server than Apple's.
      public let endpoint: String?
      public let authorityFile: String?
    }

    /// Firebase Cloud Messaging.
    public struct FCM: Sendable, Hashable {
      public let accountFile: String
      public let endpoint: String
      public let authorityFile: String?
    }

    /// `nil` turns it off.
    public let apns: APNS?
    /// `nil` turns it off.
    public let fcm: FCM?
    /// Whether notices about the security of an account are push notifications as well.
    public let includesNotices: Bool
  }

  /// Where new entries of the history are copied to.
  public struct AuditExports: Sendable, Hashable {
    public let file: String?
    /// The size in bytes from which the file is rotated; `nil` for none.
    public let largestFile: Int?
    public let keptFiles: Int
    public let syslog: SyslogPlace?
    public let facility: String
    public let authorityFile: String?
    public let webhook: Webhook?
  }

  /// The server that hears of new entries of the history.
  public struct Webhook: Sendable, Hashable {
    public let url: String
    public let secretFile: String
    public let authorityFile: String?
    /// Empty for all.
    public let events: Set<String>
  }

  /// The relying party that security keys sign for.
  public struct WebAuthn: Sendable, Hashable {
    /// The domain that keys are registered for.
    public let relyingParty: String
    /// The web origins and Android apps from which keys may be used.
    public let origins: [String]
    /// Whether a key verifies its user: `required`, `preferred` or `discouraged`.
    public let userVerification: String
  }

  /// The identity provider whose ID tokens are a first factor.
  public struct Provider: Sendable, Hashable {
    public let issuer: String
    /// The client ids of the app at the provider.
    public let audiences: [String]
    /// The audiences that a token may have in addition.
    public let trustedAudiences: [String]
    /// The difference between the clocks of the provider and of the backend that is allowed.
    public let clockSkew: Duration
    /// The PEM file with the roots for the provider; `nil` for the roots of the system.
    public let authorityFile: String?
  }

  /// The rules that the operator can set.
  public struct Policy: Sendable, Hashable {
    /// The accounts that must set up a second factor: `nobody`, `admins` or `everyone`.
    public let secondFactorFor: String
    public let gracePeriod: Duration
    /// Whether a client may show its biometric gate before the user enters the code.
    public let allowsBiometricGate: Bool
    /// The maximum number of devices of one account.
    public let mostDevices: Int
    /// The time between the start of a recovery by backup code and its completion; `nil` turns such recoveries off.
    public let recoveryWait: Duration?
    /// The risk score, 1 to 100, from which a trusted device must give the second factor; `nil` turns this off.
    public let stepUpScore: Int?
    /// Whether trust is valid only in networks that the device was used from.
    public let bindsTrustToNetwork: Bool
    /// The unlock that devices need: `any` or `biometric`.
    public let deviceUnlock: String
    /// Whether the operator guarantees that hardware keeps the device keys.
    public let vouchesForDeviceKeys: Bool
  }

  public typealias Rate = RateSetting

  /// The limits for callers; `nil` means no limit.
  public struct Limits: Sendable, Hashable {
    public let messagesPerHour: Int
    public let messagesPerHourOfAddress: Int?
    public let messagesPerHourOfKey: Int
    public let accountsOfKey: Int
    public let codeRequestsOfAddress: Rate?
    public let codeRequestsOfKey: Rate
    public let requestsOfKey: Rate
  }

  public internal(set) var listen: ListenPlace
  public internal(set) var database: Database
  public let gate: Gate
  public let texting: Texting
  public let mail: Mail?
  public let push: Push
  /// The folder with the templates of messages; `nil` for the built-in texts.
  public let templates: String?
  public let domain: String
  public let issuer: String
  /// The settings of security keys; `nil` turns them off.
  public let webAuthn: WebAuthn?
  /// The settings of the identity provider; `nil` turns it off.
  public let provider: Provider?
  public let policy: Policy
  public let limits: Limits
  public let audit: AuditExports
  /// The path of the operators' Unix socket; `nil` for none.
  public internal(set) var admin: AdminSocket?
  /// The console over TLS; `nil` for none. Another process serves it.
  public internal(set) var console: ConsoleSettings?
  public internal(set) var metrics: ListenPlace?
  public internal(set) var shutdown: Shutdown
  public let logLevel: String
  public internal(set) var logsStatements: Bool

  /// The Unix socket of the operator commands.
  public struct AdminSocket: Sendable, Hashable {
    public let path: String

    public init(path: String) { self.path = path }
  }

  /// The times of a shutdown.
  public struct Shutdown: Sendable, Hashable {
    /// How long the backend is unready and still serves.
    public let unreadyDelay: Duration
    /// How long requests have to finish.
    public internal(set) var drainTimeout: Duration
  }

  /// These settings with the values of `old` for everything that a running process cannot change, and the keys of the
  /// changed settings that therefore need a restart.
  public func keepingWhatNeedsRestart(of old: BackendSettings) -> (settings: BackendSettings, needsRestart: [String]) {
    var kept = self
    var changed: [String] = []
    func keep<Value: Equatable>(_ key: String, _ path: WritableKeyPath<BackendSettings, Value>) {
      guard kept[keyPath: path] != old[keyPath: path] else { return }
      changed.append(key)
      kept[keyPath: path] = old[keyPath: path]
    }
    keep("listen", \.listen)
    keep("database", \.database.url)
    keep("database_password_file", \.database.passwordFile)
    keep("keys_file", \.database.keysFile)
    keep("admin.listen", \.admin)
    keep("metrics.listen", \.metrics)
    keep("shutdown.drain_timeout", \.shutdown.drainTimeout)
    keep("log.sql", \.logsStatements)
    return (kept, changed)
  }
}

extension BackendSettings.Database {
  /// The URL; `ephemeral` for a database in memory.
  fileprivate var url: String {
    get { if case .kept(let url, _, _) = self { url } else { "ephemeral" } }
    set {
      self =
        newValue == "ephemeral"
        ? .ephemeral : .kept(url: newValue, keysFile: keysFile ?? "", passwordFile: passwordFile)
    }
  }

  /// `nil` for a database in memory.
  fileprivate var keysFile: String? {
    get { if case .kept(_, let file, _) = self { file } else { nil } }
    set {
      if case .kept(let url, _, let password) = self {
        self = .kept(url: url, keysFile: newValue ?? "", passwordFile: password)
      }
    }
  }

  /// `nil` for a database without such a file.
  fileprivate var passwordFile: String? {
    get { if case .kept(_, _, let file) = self { file } else { nil } }
    set {
      if case .kept(let url, let keys, _) = self {
        self = .kept(url: url, keysFile: keys, passwordFile: newValue)
      }
    }
  }
}

/// A remote server: a host name or address, and a port.
struct HostPort: Sendable, Hashable {
  /// The host name or address. An IPv6 address has no brackets.
  let host: String
  let port: Int

  /// Parses `mail.example.com:587`, `192.0.2.1:587` or `[2001:db8::1]:587`; `nil` for anything else.
  init?(_ text: String) {
    guard let colon = text.lastIndex(of: ":"), let port = UInt16(digits: text[text.index(after: colon)...]), port > 0
    else { return nil }
    let host = text[..<colon]
    if host.hasPrefix("["), host.hasSuffix("]") {
      var address = in6_addr()
      self.host = String(host.dropFirst().dropLast())
      guard inet_pton(AF_INET6, self.host, &address) == 1 else { return nil }
    } else {
      self.host = String(host)
      guard NetworkName.isHostName(host) else { return nil }
    }
    self.port = Int(port)
  }
}

/// A receiver of syslog messages.
public enum SyslogPlace: Sendable, Hashable, CustomStringConvertible {
  /// How messages reach a server.
  public enum Transport: String, Sendable { case udp, tcp, tls }

  /// The path of a datagram socket.
  case local(path: String)
  /// A server. An IPv6 address has no brackets.
  case server(Transport, host: String, port: Int)

  /// Whether entries cross a network unencrypted.
  var isExposed: Bool {
    guard case .server(let transport, let host, _) = self, transport != .tls else { return false }
    return !ListenPlace.isLoopback(host)
  }

  /// The receiver as written in the settings.
  public var description: String {
    switch self {
    case .local(let path): "unix:\(path)"
    case .server(let transport, let host, let port):
      "\(transport.rawValue)://" + (host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)")
    }
  }
}

/// The address of a listener. Only loopback and Unix sockets are allowed, because the backend has no TLS.
public enum ListenPlace: Sendable, Hashable, CustomStringConvertible {
  /// An address of the network. Port 0 selects a free port.
  case tcp(host: String, port: Int)
  /// The path of a Unix socket.
  case unix(path: String)

  /// Parses `ADDRESS:PORT` or `unix:/path`; `nil` if the text is malformed or the address is not on loopback.
  public init?(_ text: String) {
    if text.hasPrefix("unix:") {
      guard let path = try? SocketPath.read(text) else { return nil }
      self = .unix(path: path)
      return
    }
    guard let colon = text.lastIndex(of: ":"), let port = UInt16(digits: text[text.index(after: colon)...]) else {
      return nil
    }
    var host = text[..<colon]
    if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
    guard Self.isLoopback(String(host)) else { return nil }
    self = .tcp(host: String(host), port: Int(port))
  }

  /// Whether `host` is a loopback address or `localhost`. An IPv6 address has no brackets.
  static func isLoopback(_ host: String) -> Bool {
    var address = in_addr()
    guard inet_pton(AF_INET, host, &address) == 1 else { return host == "::1" || host == "localhost" }
    return UInt32(bigEndian: address.s_addr) >> 24 == 127
  }

  /// Whether a listener at one of the two places also receives connections to the other.
  func meets(_ other: ListenPlace) -> Bool {
    guard case .tcp(let host, let port) = self, case .tcp(let otherHost, let otherPort) = other else {
      return self == other
    }
    return port == otherPort
      && Self.addresses(of: host).contains { one in
        Self.addresses(of: otherHost).contains { NetworkName.listenersMeet(one, $0) }
      }
  }

  /// The addresses that `host` can mean.
  private static func addresses(of host: String) -> [String] { host == "localhost" ? ["127.0.0.1", "::1"] : [host] }

  /// The address as written in the settings.
  public var description: String {
    switch self {
    case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    case .unix(let path): "unix:\(path)"
    }
  }
}

extension UInt16 {
  /// The number that `digits` is: without a sign, which the standard library accepts.
  fileprivate init?(digits: Substring) {
    guard let value = Digits.value(of: digits), let number = UInt16(exactly: value) else { return nil }
    self = number
  }
}
