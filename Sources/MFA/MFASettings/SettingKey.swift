/// A setting of the backend.
public struct SettingKey: Sendable, Hashable {
  /// As the file has it: `gate.jwks`.
  public let path: String
  /// The value if the setting is absent; `nil` for none.
  public let standard: String?
  /// What it does, in a sentence.
  public let summary: String
  let kind: Kind

  /// What a value must be.
  enum Kind: Sendable, Hashable {
    case text
    /// What people are shown of the service.
    case name
    /// A path, taken from the folder of the file that names it.
    case file
    /// The same, or a URL.
    case fileOrURL
    case integer(ClosedRange<Int>)
    case choice([String])
    /// A number; where it may be without, `off` and `0` stand for no limit.
    case cap(ClosedRange<Int>, canBeOff: Bool)
    /// So many at once, and as many again over a time, as `120/1m`; where it may be without, `off` and `0` stand for no
    /// limit.
    case rate(canBeOff: Bool)
    /// Days, hours, minutes or seconds, as `7d`.
    case duration
    /// The same, from an hour to thirty days; or `off`, for which 0 does not stand.
    case wait
  }

  init(_ path: String, _ kind: Kind, default standard: String? = nil, _ summary: String) {
    self.path = path
    self.kind = kind
    self.standard = standard
    self.summary = summary
  }

  /// The variable of the environment that sets it: `MFA_BACKEND_GATE__JWKS`.
  public var variable: String {
    Self.prefix + path.uppercased().split(separator: ".").joined(separator: "__")
  }

  static let prefix = "MFA_BACKEND_"

  /// Every setting, once: the file's grammar, the environment's names and the reference come from here.
  public static let all: [SettingKey] = [
    SettingKey("version", .integer(1...1), default: "1", "The version of this format."),
    SettingKey(
      "listen", .text, default: "127.0.0.1:8080", "Where to listen: ADDRESS:PORT on loopback, or unix:/path."),
    SettingKey("database", .text, "sqlite:///path, postgres://user@host/database, or ephemeral."),
    SettingKey("keys_file", .file, "JSON file with the key-encryption keys, the current one first."),
    SettingKey("gate.jwks", .fileOrURL, "The gate's keys: a URL, of https unless it is on loopback, or a file."),
    SettingKey("gate.ca_file", .file, "PEM file with the roots that the gate's URL is checked against."),
    SettingKey("gate.issuer", .text, "What the gate's identities have as issuer."),
    SettingKey("gate.audience", .text, "What the gate's identities have as audience."),
    SettingKey("sms.sink", .choice(["log"]), "log writes codes to the log in place of sending them."),
    SettingKey("sms.url", .text, default: "https://api.twilio.com", "A server that speaks as api.twilio.com does."),
    SettingKey("sms.account", .text, "The account there."),
    SettingKey("sms.token_file", .file, "File with the account's token."),
    SettingKey("sms.from", .text, "The number that SMS come from."),
    SettingKey("email.smtp", .text, "The mail server, HOST:PORT or [ADDRESS]:PORT. TLS by STARTTLS is required."),
    SettingKey("email.ca_file", .file, "PEM file with the roots that the mail server is checked against."),
    SettingKey("email.user", .text, "The user there."),
    SettingKey("email.password_file", .file, "File with the user's password."),
    SettingKey("email.from", .text, "The address that e-mail comes from."),
    SettingKey("domain", .text, default: "localhost", "The domain for which a phone's autofill offers codes."),
    SettingKey(
      "issuer", .name, default: "Sallyport", "The name of the service, as authenticator apps and security keys show it."
    ),
    SettingKey(
      "webauthn.rp_id", .text, "The domain that security keys are registered for. Without it they are off."),
    SettingKey(
      "webauthn.origins", .text,
      "Where keys may be used: web origins and Android apps, a comma between; https://RP_ID where nothing is given."),
    SettingKey(
      "webauthn.user_verification", .choice(["required", "preferred", "discouraged"]), default: "preferred",
      "Whether a key must verify its user by a PIN or a finger."),
    SettingKey(
      "policy.second_factor_for", .choice(["nobody", "admins", "everyone"]), default: "nobody",
      "Who must set a second factor up."),
    SettingKey(
      "policy.grace_period", .duration, default: "7d",
      "How long a user may be without one that is required: from the account's first day, from the day on which the user "
        + "became an admin where it is asked of admins, or from the first start under this `second_factor_for`, "
        + "whichever is last."),
    SettingKey(
      "policy.recovery_wait", .wait, default: "1d",
      "How long a recovery by a backup code waits before it lets a device in; off for no such recovery."),
    SettingKey(
      "policy.step_up_score", .cap(1...100, canBeOff: true), default: "off",
      "From which risk on, 1 to 100, a trusted device is asked for the second factor all the same; or off."),
    SettingKey(
      "policy.trust_networks", .choice(["any", "known"]), default: "any",
      "Where a trusted device is spared the second factor: known is the networks that it was used from."),
    SettingKey(
      "policy.device_unlock", .choice(["any", "biometric"]), default: "any",
      "What devices are enrolled and sign in with: biometric is a key that biometry unlocks, by what the app says."),
    SettingKey(
      "policy.hardware_keys", .choice(["on", "off"]), default: "off",
      "Whether you vouch that your app keeps device keys in hardware that asks for the user's unlock: tokens then say hwk "
        + "and aal2 for them, else pop and aal1."),
    SettingKey(
      "policy.biometric_gate", .choice(["on", "off"]), default: "on",
      "Whether a client may put its biometric gate in front of the code."),
    SettingKey("policy.most_devices", .integer(1...100), default: "10", "Devices of one account."),
    SettingKey(
      "limits.messages_per_hour", .cap(mostMessages, canBeOff: false), default: "3000",
      "Messages to all users together, by SMS and by e-mail each."),
    SettingKey(
      "limits.per_ip.messages_per_hour", .cap(mostMessages, canBeOff: true), default: "30",
      "Messages that one address has sent, by SMS and by e-mail each; off where all clients come from one."),
    SettingKey(
      "limits.per_ip.code_requests", .rate(canBeOff: true), default: "100/50s",
      "Requests of one address that send or guess codes: so many at once, and so many again over the time; or off."),
    SettingKey(
      "limits.per_key.messages_per_hour", .cap(mostMessages, canBeOff: false), default: "30",
      "Messages that one app instance has sent, by SMS and by e-mail each."),
    SettingKey(
      "limits.per_key.accounts", .integer(mostMessages), default: "10", "Accounts that one app instance creates."),
    SettingKey(
      "limits.per_key.code_requests", .rate(canBeOff: false), default: "20/40s",
      "Requests of one app instance that send or guess codes."),
    SettingKey(
      "limits.per_key.requests", .rate(canBeOff: false), default: "120/6s", "Other requests of one app instance."),
    SettingKey("metrics.listen", .text, "Where /metrics is answered: ADDRESS:PORT on loopback. Without it nowhere."),
    SettingKey(
      "log.level", .choice(["debug", "info", "notice", "warning", "error"]), default: "info",
      "What is logged, from this level on."),
    SettingKey(
      "log.sql", .choice(["on", "off"]), default: "off", "Whether statements are logged, at debug, without values."),
  ]

  private static let mostMessages = 1...1_000_000

  static func at(_ path: String) -> SettingKey? { all.first { $0.path == path } }
  /// Whether keys stand below `path`.
  static func isSection(_ path: String) -> Bool { all.contains { $0.path.hasPrefix(path + ".") } }

  /// Why `text` cannot be the value; `nil` if it can.
  func misfit(_ text: String) -> String? {
    switch kind {
    case .text, .file, .fileOrURL: text.isEmpty ? "has no value" : nil
    case .name:
      (1...64).contains(text.count) && !text.contains(where: { $0 == ":" || $0.isNewline })
        ? nil : "is 1 to 64 characters on one line, without a colon: behind that comes the account"
    case .integer(let range):
      Int(text).map(range.contains) == true ? nil : "is a number from \(range.lowerBound) to \(range.upperBound)"
    case .choice(let words): words.contains(text) ? nil : "is \(words.joined(separator: " or "))"
    case .cap(let range, let canBeOff):
      (canBeOff && Self.isOff(text)) || Int(text).map(range.contains) == true
        ? nil : "is a number from \(range.lowerBound) to \(range.upperBound)\(canBeOff ? ", or off" : "")"
    case .rate(let canBeOff):
      (canBeOff && Self.isOff(text)) || Self.rate(text) != nil
        ? nil : "is a number up to 1000000 and a time from 1s to 1d, as 120/1m\(canBeOff ? ", or off" : "")"
    case .duration: Self.duration(text) == nil ? "is a number with d, h, m or s, as 7d" : nil
    case .wait:
      text == "off" || Self.wait(text) != nil
        ? nil : "is a time from 1h to 30d, or off: without a wait a thief of the codes could not be stopped"
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
