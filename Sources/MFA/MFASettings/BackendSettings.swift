internal import Glibc
public import MFADomain

/// Everything that the backend is told, each value one of its kind.
public struct BackendSettings: Sendable, Hashable {
  public enum Database: Sendable, Hashable {
    /// In memory, forgotten at the end.
    case ephemeral
    /// `sqlite:///path` or `postgres://…`, and the file of the keys that its secrets are sealed under.
    case kept(url: String, keysFile: String)
  }

  public struct Gate: Sendable, Hashable {
    /// A URL or a file.
    public let keys: String
    public let authorityFile: String?
    public let issuer: String
    public let audience: String
  }

  public enum Texting: Sendable, Hashable {
    case off
    /// Into the log, for development.
    case log
    case provider(url: String, account: String, tokenFile: String, sender: String)
  }

  public struct Mail: Sendable, Hashable {
    public let host: String
    public let port: Int
    public let authorityFile: String?
    public let user: String?
    public let passwordFile: String?
    public let sender: EmailAddress
  }

  /// The relying party of security keys.
  public struct WebAuthn: Sendable, Hashable {
    public let relyingParty: String
    public let origins: [String]
    /// `required`, `preferred` or `discouraged`.
    public let userVerification: String
  }

  public struct Policy: Sendable, Hashable {
    /// `nobody`, `admins` or `everyone`.
    public let secondFactorFor: String
    public let gracePeriod: Duration
    public let allowsBiometricGate: Bool
    public let mostDevices: Int
    /// `nil` for no recovery by a backup code.
    public let recoveryWait: Duration?
    /// `nil` for no stepping up.
    public let stepUpScore: Int?
    public let bindsTrustToNetwork: Bool
    /// `any` or `biometric`.
    public let deviceUnlock: String
    /// Whether device keys are taken for keys that hardware keeps.
    public let vouchesForDeviceKeys: Bool
  }

  /// How often something may be done: `count` at once, and as many again over `period`.
  public struct Rate: Sendable, Hashable {
    public let count: Int
    public let period: Duration
  }

  /// What callers may have; `nil` where there is no limit.
  public struct Limits: Sendable, Hashable {
    public let messagesPerHour: Int
    public let messagesPerHourOfAddress: Int?
    public let messagesPerHourOfKey: Int
    public let accountsOfKey: Int
    public let codeRequestsOfAddress: Rate?
    public let codeRequestsOfKey: Rate
    public let requestsOfKey: Rate
  }

  public let listen: ListenPlace
  public let database: Database
  public let gate: Gate
  public let texting: Texting
  public let mail: Mail?
  public let domain: String
  public let issuer: String
  /// `nil` where security keys are off.
  public let webAuthn: WebAuthn?
  public let policy: Policy
  public let limits: Limits
  public let metrics: ListenPlace?
  public let logLevel: String
  public let logsStatements: Bool
}

/// A server elsewhere: a name or an address, and a port.
struct HostPort: Sendable, Hashable {
  /// Of IPv6 without its brackets.
  let host: String
  let port: Int

  /// Reads `mail.example.com:587`, `192.0.2.1:587` or `[2001:db8::1]:587`; `nil` for anything else.
  init?(_ text: String) {
    guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]), port > 0 else {
      return nil
    }
    let host = text[..<colon]
    if host.hasPrefix("["), host.hasSuffix("]") {
      var address = in6_addr()
      self.host = String(host.dropFirst().dropLast())
      guard inet_pton(AF_INET6, self.host, &address) == 1 else { return nil }
    } else {
      self.host = String(host)
      guard !host.isEmpty, !host.contains(where: { ":[]/@ ".contains($0) }) else { return nil }
    }
    self.port = Int(port)
  }
}

/// Where a server listens: on loopback or a Unix socket, since it speaks without TLS to the gate alone.
public enum ListenPlace: Sendable, Hashable, CustomStringConvertible {
  /// Port 0 takes a free one.
  case tcp(host: String, port: Int)
  case unix(path: String)

  /// `nil` for a place that others than this machine's programs would reach, or that is none.
  public init?(_ text: String) {
    if text.hasPrefix("unix:/") {
      self = .unix(path: String(text.dropFirst("unix:".count)))
      return
    }
    guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else { return nil }
    var host = text[..<colon]
    if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
    guard Self.isLoopback(String(host)) else { return nil }
    self = .tcp(host: String(host), port: Int(port))
  }

  /// Whether `host`, of IPv6 without brackets, is this machine itself.
  static func isLoopback(_ host: String) -> Bool {
    var address = in_addr()
    guard inet_pton(AF_INET, host, &address) == 1 else { return host == "::1" || host == "localhost" }
    return UInt32(bigEndian: address.s_addr) >> 24 == 127
  }

  /// As the settings write it.
  public var description: String {
    switch self {
    case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    case .unix(let path): "unix:\(path)"
    }
  }
}
