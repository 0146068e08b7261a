/// A setting of the backend.
public struct SettingKey: Sendable, Hashable {
  /// The key in the file, such as `gate.jwks`.
  public let path: String
  /// The default value; `nil` if there is none.
  public let standard: String?
  /// The description, in one sentence.
  public let summary: String
  let kind: Kind

  /// The form of a value.
  enum Kind: Sendable, Hashable {
    case text
    /// The name of the service, shown to people.
    case name
    /// A path. A relative path starts at the folder of the file that names it.
    case file
    /// A path as in `file`, or a URL.
    case fileOrURL
    case integer(ClosedRange<Int>)
    case choice([String])
    /// A number. If `canBeOff`, `off` and `0` mean no limit.
    case cap(ClosedRange<Int>, canBeOff: Bool)
    /// A rate such as `120/1m`: a burst, refilled over the time. If `canBeOff`, `off` and `0` mean no limit.
    case rate(canBeOff: Bool)
    /// A number of days, hours, minutes or seconds, such as `7d`.
    case duration
    /// A duration of one hour to thirty days, or `off`. `0` is refused.
    case wait
  }

  init(_ path: String, _ kind: Kind, default standard: String? = nil, _ summary: String) {
    self.path = path
    self.kind = kind
    self.standard = standard
    self.summary = summary
  }

  /// The environment variable that sets it, such as `MFA_BACKEND_GATE__JWKS`.
  public var variable: String {
    Self.prefix + path.uppercased().split(separator: ".").joined(separator: "__")
  }

  static let prefix = "MFA_BACKEND_"

  /// Every setting. The grammar of the file, the environment variables and the reference are derived from this list.
  public static let all: [SettingKey] = [
    SettingKey("version", .integer(1...1), default: "1", "The version of this format."),
    SettingKey(
      "listen", .text, default: "127.0.0.1:8080", "Where to listen: ADDRESS:PORT on loopback, or unix:/path."),
    SettingKey("database", .text, "sqlite:///path, postgres://user@host/database, or ephemeral."),
    SettingKey(
      "database_password_file", .file,
      "File with the password for PostgreSQL on its first line. It is read for each new connection."),
    SettingKey("keys_file", .file, "JSON file with the key-encryption keys, the current key first."),
    SettingKey("gate.jwks", .fileOrURL, "The gate's keys: a file, an https URL, or an http URL on loopback."),
    SettingKey("gate.ca_file", .file, "PEM file with the roots that verify the gate's URL."),
    SettingKey("gate.issuer", .text, "The issuer of the gate's identities."),
    SettingKey("gate.audience", .text, "The audience of the gate's identities."),
    SettingKey("sms.sink", .choice(["log"]), "log writes codes to the log instead of sending them."),
    SettingKey("sms.url", .text, default: "https://api.twilio.com", "A server with the API of api.twilio.com."),
    SettingKey("sms.account", .text, "The account at the SMS provider."),
    SettingKey("sms.token_file", .file, "File with the token of the account."),
    SettingKey("sms.from", .text, "The phone number that sends the SMS."),
    SettingKey("email.smtp", .text, "The mail server, HOST:PORT or [ADDRESS]:PORT. TLS is required."),
    SettingKey(
      "email.tls", .choice(["starttls", "implicit"]),
      "Whether TLS begins by STARTTLS or with the connection; implicit on port 465 if not set, otherwise starttls."),
    SettingKey(
      "email.ehlo", .text, "The name that EHLO tells the mail server; the domain of email.from if not set."),
    SettingKey("email.ca_file", .file, "PEM file with the roots that verify the mail server."),
    SettingKey("email.user", .text, "The user at the mail server."),
    SettingKey("email.password_file", .file, "File with the password of the user."),
    SettingKey(
      "email.token_file", .file,
      "File with an access token of the user for XOAUTH2, instead of a password. It is read for each mail."),
    SettingKey("email.from", .text, "The sender address of e-mail."),
    SettingKey("domain", .text, default: "localhost", "The domain for which phones autofill codes."),
    SettingKey(
      "issuer", .name, default: "Sallyport", "The name of the service in authenticator apps and security keys."),
    SettingKey(
      "webauthn.rp_id", .text, "The domain of security keys. Without it, security keys are off."),
    SettingKey(
      "webauthn.origins", .text,
      "Where keys may be used: web origins and Android apps, separated by commas; https://RP_ID if not set."),
    SettingKey(
      "webauthn.user_verification", .choice(["required", "preferred", "discouraged"]), default: "preferred",
      "Whether a key must verify its user by PIN or biometry."),
    SettingKey(
      "oidc.issuer", .text,
      "The identity provider whose ID tokens are a first factor: an https URL, or http on loopback. Off if not set."),
    SettingKey("oidc.audience", .text, "The app's client ids at the identity provider, separated by commas."),
    SettingKey(
      "oidc.trusted_audiences", .text,
      "Audiences that an ID token may have in addition to a client id of the app, separated by commas: a project, a "
        + "sibling client."),
    SettingKey(
      "oidc.clock_skew", .duration, default: "5m",
      "The difference between the clocks of the identity provider and of the backend that is allowed, at most 15m."),
    SettingKey("oidc.ca_file", .file, "PEM file with the roots that verify the identity provider."),
    SettingKey(
      "policy.second_factor_for", .choice(["nobody", "admins", "everyone"]), default: "nobody",
      "The users who must set up a second factor."),
    SettingKey(
      "policy.grace_period", .duration, default: "7d",
      "How long a user may go without a required second factor. The time starts at the latest of: the creation of the "
        + "account; the day on which the user became an admin (for admins); the first start under this "
        + "`second_factor_for`."),
    SettingKey(
      "policy.recovery_wait", .wait, default: "1d",
      "The wait before a recovery by backup code can enrol a device; off for no such recovery."),
    SettingKey(
      "policy.step_up_score", .cap(1...100, canBeOff: true), default: "off",
      "The risk, 1 to 100, from which a trusted device must give the second factor; or off."),
    SettingKey(
      "policy.trust_networks", .choice(["any", "known"]), default: "any",
      "Where trust replaces the second factor: known means only networks that the device was used from."),
    SettingKey(
      "policy.device_unlock", .choice(["any", "biometric"]), default: "any",
      "The unlock that a device key needs to enrol and sign in: biometric means biometry, as the app reports it."),
    SettingKey(
      "policy.hardware_keys", .choice(["on", "off"]), default: "off",
      "Whether you guarantee that your app keeps device keys in hardware that requires the user's unlock. Tokens then "
        + "contain hwk and aal2 for them, otherwise pop and aal1."),
    SettingKey(
      "policy.biometric_gate", .choice(["on", "off"]), default: "on",
      "Whether a client may show its biometric gate before the user enters the code."),
    SettingKey("policy.most_devices", .integer(1...100), default: "10", "Maximum number of devices per account."),
    SettingKey(
      "limits.messages_per_hour", .cap(mostMessages, canBeOff: false), default: "3000",
      "Messages per hour to all users together, by SMS and by e-mail each."),
    SettingKey(
      "limits.per_ip.messages_per_hour", .cap(mostMessages, canBeOff: true), default: "30",
      "Messages per hour requested from one client address, by SMS and by e-mail each; off if all clients share one."),
    SettingKey(
      "limits.per_ip.code_requests", .rate(canBeOff: true), default: "100/50s",
      "Requests from one client address that send or guess codes: a burst, refilled over the time; or off."),
    SettingKey(
      "limits.per_key.messages_per_hour", .cap(mostMessages, canBeOff: false), default: "30",
      "Messages per hour requested by one app instance, by SMS and by e-mail each."),
    SettingKey(
      "limits.per_key.accounts", .integer(mostMessages), default: "10", "Accounts that one app instance may create."),
    SettingKey(
      "limits.per_key.code_requests", .rate(canBeOff: false), default: "20/40s",
      "Requests from one app instance that send or guess codes."),
    SettingKey(
      "limits.per_key.requests", .rate(canBeOff: false), default: "120/6s", "Other requests from one app instance."),
    SettingKey(
      "admin.listen", .text,
      "The Unix socket of the operator commands, unix:/path, with mode 0600. It answers /livez, /readyz, /metrics and "
        + "/status too. Off if not set."),
    SettingKey(
      "metrics.listen", .text, "Address of /metrics, /livez and /readyz: ADDRESS:PORT on loopback. Off if not set."),
    SettingKey(
      "shutdown.unready_delay", .duration, default: "0s",
      "How long the backend reports that it is not ready, and still accepts requests, before it closes sockets."),
    SettingKey(
      "shutdown.drain_timeout", .duration, default: "8s",
      "How long requests and messages have to finish before the backend exits. Container tools wait ten seconds."),
    SettingKey(
      "log.level", .choice(["debug", "info", "notice", "warning", "error"]), default: "info",
      "The lowest level that is logged."),
    SettingKey(
      "log.sql", .choice(["on", "off"]), default: "off", "Whether SQL statements are logged at debug, without values."),
  ]

  private static let mostMessages = 1...1_000_000

  /// The variable of the operators' socket.
  public static let adminVariable = prefix + "ADMIN__LISTEN"

  /// The variable that names the configuration file. It is not a setting.
  public static let fileVariable = prefix + "CONFIG"

  static func at(_ path: String) -> SettingKey? { all.first { $0.path == path } }
  /// Whether `path` is a section that contains keys.
  static func isSection(_ path: String) -> Bool { all.contains { $0.path.hasPrefix(path + ".") } }

  /// The reason why `text` is not a valid value; `nil` if it is valid.
  func problem(_ text: String) -> String? {
    switch kind {
    case .text, .file, .fileOrURL: text.isEmpty ? "has no value" : nil
    case .name:
      (1...64).contains(text.count) && !text.contains(where: { $0 == ":" || $0.isNewline })
        ? nil : "must be 1 to 64 characters on one line, without a colon, which separates it from the account"
    case .integer(let range):
      Int(text).map(range.contains) == true ? nil : "must be a number from \(range.lowerBound) to \(range.upperBound)"
    case .choice(let words): words.contains(text) ? nil : "must be \(words.joined(separator: " or "))"
    case .cap(let range, let canBeOff):
      (canBeOff && Self.isOff(text)) || Int(text).map(range.contains) == true
        ? nil : "must be a number from \(range.lowerBound) to \(range.upperBound)\(canBeOff ? ", or off" : "")"
    case .rate(let canBeOff):
      (canBeOff && Self.isOff(text)) || Self.rate(text) != nil
        ? nil : "must be a number up to 1000000 per 1s to 1d, like 120/1m\(canBeOff ? ", or off" : "")"
    case .duration: Self.duration(text) == nil ? "must be a number with d, h, m or s, such as 7d" : nil
    case .wait:
      text == "off" || Self.wait(text) != nil
        ? nil : "must be a time from 1h to 30d, or off: the user needs time to stop a thief of the codes"
    }
  }

  static func wait(_ text: String) -> Duration? {
    duration(text).flatMap { (.seconds(3600)...(.seconds(30 * 86400))).contains($0) ? $0 : nil }
  }

  static func isOff(_ text: String) -> Bool { text == "off" || text == "0" }

  static func rate(_ text: String) -> BackendSettings.Rate? {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, let count = Int(parts[0]), (1...1_000_000).contains(count),
      let period = duration(String(parts[1])), period >= .seconds(1), period <= .seconds(86400)
    else { return nil }
    return BackendSettings.Rate(count: count, period: period)
  }

  static func duration(_ text: String) -> Duration? {
    let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86400]
    guard let unit = text.last.flatMap({ units[$0] }), let count = Int64(text.dropLast()), (0...100_000).contains(count)
    else { return nil }
    return .seconds(count * unit)
  }
}
