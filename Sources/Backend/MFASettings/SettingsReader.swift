internal import Foundation
internal import Glibc
internal import MFADomain

/// Merges the layers: flags override the environment, which overrides the file, which overrides the defaults.
///
/// Reports all faults together. Its only side effect is to read the file.
public struct SettingsReader: Sendable {
  /// The path of the YAML file; `nil` for none.
  public let file: String?
  private let environment: [String: String]
  private let flags: [SettingFlag]

  /// Creates a reader.
  ///
  /// - Parameter file: the path of the YAML file; `nil` for none.
  public init(file: String?, environment: [String: String], flags: [SettingFlag]) {
    self.file = file
    self.environment = environment
    self.flags = flags
  }

  /// Reads the settings of the server.
  ///
  /// - Throws: `SettingsErrors` with all faults.
  public func read() throws(SettingsErrors) -> BackendSettings {
    var sheet = try self.sheet()
    let settings = sheet.settings()
    guard sheet.faults.isEmpty, let settings else { throw SettingsErrors(sheet.faults) }
    return settings
  }

  /// Reads the settings of the server with everything that a check shows. Never throws: faults are part of the result.
  public func examine() -> SettingsDiagnostics {
    var sheet: SettingsSheet
    do throws(SettingsErrors) {
      sheet = try self.sheet()
    } catch {
      return SettingsDiagnostics(settings: nil, faults: error.faults, values: [:])
    }
    let settings = sheet.settings()
    return SettingsDiagnostics(
      settings: sheet.faults.isEmpty ? settings : nil, faults: sheet.faults, values: sheet.values)
  }

  /// Reads the database settings only, for commands that need nothing else. Other required settings may be missing.
  ///
  /// - Parameter needsKeys: whether `keys_file` is required.
  /// - Throws: `SettingsErrors` with all faults.
  public func readDatabase(needsKeys: Bool = true) throws(SettingsErrors) -> BackendSettings.Database {
    var sheet = try self.sheet()
    let database = sheet.database(needsKeys: needsKeys)
    guard sheet.faults.isEmpty, let database else { throw SettingsErrors(sheet.faults) }
    return database
  }

  /// Reads the operators' socket only. Faults of other settings are ignored: `reload` must reach the backend, which
  /// reports them.
  ///
  /// - Throws: `SettingsErrors`, also if the socket is not set.
  public func readAdmin() throws(SettingsErrors) -> BackendSettings.AdminSocket {
    var sheet = try self.sheet()
    _ = sheet.required("admin.listen")
    let admin = sheet.admin()
    let own = sheet.faults.filter { $0.key == "admin.listen" }
    guard own.isEmpty, let admin else { throw SettingsErrors(own.isEmpty ? sheet.faults : own) }
    return admin
  }

  /// - Throws: only the fault of the file if it cannot be read or is not YAML; missing settings would just follow from
  ///   it.
  private func sheet() throws(SettingsErrors) -> SettingsSheet {
    var layer = SettingsLayer()
    if let file {
      guard let bytes = FileManager.default.contents(atPath: file) else {
        throw SettingsErrors([SettingsError(.nowhere, nil, "\(file) cannot be read: \(Self.fault(of: file))")])
      }
      guard let text = String(validating: bytes, as: UTF8.self) else {
        throw SettingsErrors([SettingsError(.file(file, line: 1, column: 1), nil, "not valid UTF-8")])
      }
      layer = try SettingsLayer(yaml: text, of: file)
    }
    layer.overlay(SettingsLayer(environment: environment))
    layer.overlay(SettingsLayer(flags: flags))
    return SettingsSheet(values: layer.values, faults: layer.faults)
  }

  /// Why the file cannot be read.
  private static func fault(of file: String) -> String {
    access(file, R_OK) == 0 ? "not a file" : String(cString: strerror(errno))
  }
}

/// The merged values of all layers, and the conversion to settings.
private struct SettingsSheet {
  let values: [String: GivenValue]
  var faults: [SettingsError]

  mutating func settings() -> BackendSettings? {
    let listen = place("listen")
    let database = self.database(needsKeys: true)
    let gate = self.gate()
    let texting = self.texting()
    let mail = self.mail()
    let webAuthn = self.webAuthn()
    let provider = self.provider()
    let metrics = given("metrics.listen") == nil ? nil : place("metrics.listen")
    let admin = self.admin()
    guard let listen, let database, let gate, let texting else { return nil }
    return BackendSettings(
      listen: listen, database: database, gate: gate, texting: texting, mail: mail, domain: value("domain"),
      issuer: value("issuer"), webAuthn: webAuthn, provider: provider, policy: policy, limits: limits, admin: admin,
      metrics: metrics, shutdown: shutdown, logLevel: value("log.level"),
      logsStatements: value("log.sql") == "on")
  }

  /// The value from any layer; `nil` if only the default applies.
  private func given(_ path: String) -> String? { values[path]?.text }

  /// The value or the default; empty if there is neither, which does not happen for the keys read this way.
  private func value(_ path: String) -> String { given(path) ?? SettingKey.at(path)?.standard ?? "" }

  /// Records a fault at the place of the value of `path`, if it has one.
  private mutating func refuse(_ path: String, _ reason: String) {
    faults.append(SettingsError(values[path]?.origin ?? .nowhere, path, reason))
  }

  mutating func required(_ path: String) -> String? {
    // A value that is present but invalid has its fault already.
    if given(path) == nil, !faults.contains(where: { $0.key == path }) { refuse(path, "is required") }
    return given(path)
  }

  mutating func admin() -> BackendSettings.AdminSocket? {
    guard let text = given("admin.listen") else { return nil }
    guard case .unix(let path)? = ListenPlace(text) else {
      refuse("admin.listen", "must be unix:/path: access is limited by the mode of the socket")
      return nil
    }
    return BackendSettings.AdminSocket(path: path)
  }

  private mutating func place(_ path: String) -> ListenPlace? {
    guard let place = ListenPlace(value(path)) else {
      refuse(path, "must be ADDRESS:PORT on loopback or unix:/path, because the backend has no TLS")
      return nil
    }
    return place
  }

  mutating func database(needsKeys: Bool) -> BackendSettings.Database? {
    guard let url = required("database") else { return nil }
    if url == "ephemeral" { return .ephemeral }
    guard ["sqlite:///", "postgres://", "postgresql://"].contains(where: url.hasPrefix) else {
      refuse("database", "must be sqlite:///path, postgres://… or ephemeral")
      return nil
    }
    let password = passwordFile(for: url)
    guard needsKeys else { return .kept(url: url, keysFile: "", passwordFile: password) }
    guard let keys = required("keys_file") else { return nil }
    return .kept(url: url, keysFile: keys, passwordFile: password)
  }

  /// The password file of the database at `url`.
  ///
  /// A password is never sent to another database than the one that it was set for: where a flag or a variable names
  /// another database than the file, the password file of the file does not apply.
  private mutating func passwordFile(for url: String) -> String? {
    let path = "database_password_file"
    guard let password = values[path], let database = values["database"],
      password.origin.rank >= database.origin.rank
    else { return nil }
    guard !url.hasPrefix("sqlite:") else {
      refuse(path, "has no effect for a SQLite database, which has no password")
      return nil
    }
    return password.text
  }

  /// Whether `place` is a URL with a user or a password. Readiness, status and logs show the places of settings.
  private static func hasUser(_ place: String) -> Bool {
    guard ["http://", "https://"].contains(where: place.lowercased().hasPrefix) else { return false }
    let authority = place.drop { $0 != ":" }.dropFirst(3).prefix { !"/?#".contains($0) }
    return authority.contains("@")
  }

  private mutating func gate() -> BackendSettings.Gate? {
    let (keys, issuer, audience) = (required("gate.jwks"), required("gate.issuer"), required("gate.audience"))
    guard let keys, let issuer, let audience else { return nil }
    guard Self.isTrustworthy(keys) else {
      refuse(
        "gate.jwks",
        "must be a file, an https URL, or an http URL on loopback: changed keys would let an attacker forge identities")
      return nil
    }
    guard !Self.hasUser(keys) else {
      refuse("gate.jwks", "must not contain a user or a password: the keys are public, and status shows the URL")
      return nil
    }
    return BackendSettings.Gate(
      keys: keys, authorityFile: given("gate.ca_file"), issuer: issuer, audience: audience)
  }

  /// Whether data sent to `place` is protected from other parties: a file, https, or http on loopback.
  private static func isTrustworthy(_ place: String) -> Bool {
    guard place.lowercased().hasPrefix("http://") else { return true }
    guard let host = URLComponents(string: place)?.host else { return false }
    return ListenPlace.isLoopback(host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host)
  }

  private mutating func texting() -> BackendSettings.Texting? {
    let own = ["sms.account", "sms.token_file", "sms.from"]
    guard own.contains(where: { given($0) != nil }) else { return given("sms.sink") == nil ? .off : .log }
    if given("sms.sink") != nil { refuse("sms.sink", "cannot be set together with sms.account") }
    let (account, token, sender) = (required(own[0]), required(own[1]), required(own[2]))
    let url = value("sms.url")
    guard let scheme = URLComponents(string: url)?.scheme?.lowercased(), ["http", "https"].contains(scheme),
      Self.isTrustworthy(url)
    else {
      refuse("sms.url", "must be https, or http on loopback: codes and the account's token are sent there")
      return nil
    }
    guard !Self.hasUser(url) else {
      refuse("sms.url", "must not contain a user or a password: set sms.account and sms.token_file")
      return nil
    }
    guard let account, let token, let sender else { return nil }
    return .provider(url: url, account: account, tokenFile: token, sender: sender)
  }

  private mutating func mail() -> BackendSettings.Mail? {
    let own = [
      "email.smtp", "email.from", "email.user", "email.password_file", "email.token_file", "email.ca_file", "email.tls",
      "email.ehlo",
    ]
    guard own.contains(where: { given($0) != nil }) else { return nil }
    if given("sms.sink") != nil {
      refuse("sms.sink", "cannot be set together with a mail server: it writes e-mail to the log too")
    }
    let (server, sender) = (required("email.smtp"), required("email.from"))
    let secrets = ["email.password_file", "email.token_file"].filter { given($0) != nil }
    if (given("email.user") == nil) != secrets.isEmpty {
      refuse("email.user", "must be set together with email.password_file or email.token_file")
    }
    if secrets.count > 1 { refuse("email.token_file", "cannot be set together with email.password_file") }
    if let name = given("email.ehlo"), !Self.isGreeting(name) {
      refuse("email.ehlo", "must be a host name, as mail.example.com, or an address in brackets")
    }
    let place = server.flatMap(HostPort.init)
    if server != nil, place == nil { refuse("email.smtp", "must be HOST:PORT, or [ADDRESS]:PORT for IPv6") }
    guard let sender = sender.flatMap({ emailAddress($0) }), let place else { return nil }
    return BackendSettings.Mail(
      host: place.host, port: place.port, authorityFile: given("email.ca_file"), user: given("email.user"),
      passwordFile: given("email.password_file"), tokenFile: given("email.token_file"),
      beginsWithTLS: given("email.tls").map { $0 == "implicit" } ?? (place.port == 465), greeting: given("email.ehlo"),
      sender: sender)
  }

  /// Whether `text` may be the argument of EHLO (RFC 5321, section 4.1.1.1).
  private static func isGreeting(_ text: String) -> Bool {
    (1...255).contains(text.utf8.count)
      && text.utf8.allSatisfy { byte in
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "-.:[]".utf8.contains(byte)
        }
      }
  }

  /// Parses the value of `email.from`.
  private mutating func emailAddress(_ text: String) -> EmailAddress? {
    do throws(InvalidValue) {
      return try EmailAddress(trusted: text)
    } catch {
      refuse("email.from", error.rule)
      return nil
    }
  }

  private mutating func webAuthn() -> BackendSettings.WebAuthn? {
    guard let party = given("webauthn.rp_id") else {
      if given("webauthn.origins") != nil { _ = required("webauthn.rp_id") }
      return nil
    }
    guard WebOrigin.isDomain(party) else {
      refuse("webauthn.rp_id", "must be a lower-case domain without scheme and port, such as example.com")
      return nil
    }
    let origins = given("webauthn.origins")?.split { $0 == "," || $0 == " " }.map(String.init) ?? ["https://\(party)"]
    for origin in origins where !WebOrigin.isAllowed(origin, for: party) {
      refuse(
        "webauthn.origins",
        "\(origin): must be https://HOST or https://HOST:PORT, where HOST is \(party) or a subdomain of it, "
          + "or android:apk-key-hash:HASH")
    }
    return BackendSettings.WebAuthn(
      relyingParty: party, origins: origins, userVerification: value("webauthn.user_verification"))
  }

  private mutating func provider() -> BackendSettings.Provider? {
    let keys = ["oidc.issuer", "oidc.audience", "oidc.trusted_audiences", "oidc.clock_skew", "oidc.ca_file"]
    guard keys.contains(where: { given($0) != nil }) else { return nil }
    let (issuer, audience) = (required("oidc.issuer"), required("oidc.audience"))
    if let issuer, !Self.isIssuer(issuer) {
      refuse(
        "oidc.issuer",
        "must be an https URL, or an http URL on loopback, without user, query and fragment: the provider's keys "
          + "are fetched from it")
    }
    if value("policy.device_unlock") == "biometric" {
      refuse(
        "oidc.issuer",
        "cannot be set together with policy.device_unlock: biometric, because an ID token does not prove biometry")
    }
    let audiences = Self.names(audience)
    if audience != nil, audiences.isEmpty { refuse("oidc.audience", "has no client id") }
    let skew = SettingKey.duration(value("oidc.clock_skew")) ?? .zero
    if skew > .seconds(900) { refuse("oidc.clock_skew", "must be at most 15m") }
    guard let issuer else { return nil }
    return BackendSettings.Provider(
      issuer: issuer, audiences: audiences, trustedAudiences: Self.names(given("oidc.trusted_audiences")),
      clockSkew: skew, authorityFile: given("oidc.ca_file"))
  }

  /// The names in a list, separated by commas.
  private static func names(_ list: String?) -> [String] {
    list?.split { $0 == "," || $0 == " " }.map(String.init) ?? []
  }

  /// Whether `text` may be an issuer (OpenID Connect Core 1.0, section 2). http is accepted on loopback.
  private static func isIssuer(_ text: String) -> Bool {
    guard let parts = URLComponents(string: text), let host = parts.host, !host.isEmpty,
      ["http", "https"].contains(parts.scheme), parts.user == nil, parts.query == nil, parts.fragment == nil
    else { return false }
    return isTrustworthy(text)
  }

  /// Given values are validated and the defaults are valid, so the values after `??` are never used.
  private var limits: BackendSettings.Limits {
    BackendSettings.Limits(
      messagesPerHour: cap("limits.messages_per_hour") ?? 1,
      messagesPerHourOfAddress: cap("limits.per_ip.messages_per_hour"),
      messagesPerHourOfKey: cap("limits.per_key.messages_per_hour") ?? 1,
      accountsOfKey: Int(value("limits.per_key.accounts")) ?? 1,
      codeRequestsOfAddress: SettingKey.rate(value("limits.per_ip.code_requests")),
      codeRequestsOfKey: rate("limits.per_key.code_requests"), requestsOfKey: rate("limits.per_key.requests"))
  }

  private var shutdown: BackendSettings.Shutdown {
    // Given values are validated, and the defaults are valid.
    BackendSettings.Shutdown(
      unreadyDelay: SettingKey.duration(value("shutdown.unready_delay")) ?? .zero,
      drainTimeout: SettingKey.duration(value("shutdown.drain_timeout")) ?? .zero)
  }

  private func cap(_ path: String) -> Int? { SettingKey.isOff(value(path)) ? nil : Int(value(path)) }

  private func rate(_ path: String) -> BackendSettings.Rate {
    SettingKey.rate(value(path)) ?? BackendSettings.Rate(count: 1, period: .seconds(1))
  }

  private var policy: BackendSettings.Policy {
    BackendSettings.Policy(
      secondFactorFor: value("policy.second_factor_for"),
      // Given values are validated, and the defaults are valid.
      gracePeriod: SettingKey.duration(value("policy.grace_period")) ?? .zero,
      allowsBiometricGate: value("policy.biometric_gate") == "on",
      mostDevices: Int(value("policy.most_devices")) ?? 1, recoveryWait: SettingKey.wait(value("policy.recovery_wait")),
      stepUpScore: cap("policy.step_up_score"), bindsTrustToNetwork: value("policy.trust_networks") == "known",
      deviceUnlock: value("policy.device_unlock"), vouchesForDeviceKeys: value("policy.hardware_keys") == "on")
  }
}
