public import ConfigurationEngine
public import Foundation
internal import MFADomain

/// Reads the backend's configuration. Flags override the environment, which overrides `.env`, which overrides the
/// file, which overrides the defaults.
///
/// Reports all faults together. Its only side effect is to read the file and `.env`.
public struct SettingsReader: Sendable {
  private let layers: SettingsLayers

  /// The environment variable that names the configuration file. It is not a setting.
  static let fileVariable = "MFA_BACKEND_CONFIG"

  /// Creates a reader.
  ///
  /// - Parameters:
  ///   - file: The path of the YAML file; `nil` for none.
  ///   - workingDirectory: The folder of `.env`, and the base of relative paths in flags and variables.
  public init(
    file: String?, environment: [String: String], flags: [FlagSetting],
    workingDirectory: String = FileManager.default.currentDirectoryPath
  ) {
    layers = SettingsLayers(
      file: file, flags: flags, environment: environment, workingDirectory: workingDirectory)
  }

  /// The path of the file; `nil` for none.
  public var file: String? { layers.file }

  /// Reads the settings of the server.
  ///
  /// - Throws: `ConfigurationErrors` with all faults.
  public func read() throws(ConfigurationErrors) -> BackendSettings {
    let diagnostics = examine()
    guard let settings = diagnostics.settings else { throw ConfigurationErrors(faults: diagnostics.faults) }
    return settings
  }

  /// Reads the settings of the server with everything that a check shows. Never throws: faults are part of the result.
  public func examine() -> ConfigurationDiagnostics<BackendSettings> {
    let (reading, builder) = readLayers()
    var assembly = builder
    let settings = assembly.settings()
    let faults = assembly.faults(besides: reading.dotenvFaults).map(\.hinted)
    let effective = assembly.effectiveValues()
    let own = (settings?.warnings ?? []).map { key, text in
      Warning(effective.first { $0.key == key }?.origin ?? .standard, key, text)
    }
    return ConfigurationDiagnostics(
      settings: faults.isEmpty ? settings : nil, faults: faults, warnings: reading.warnings + own, effective: effective)
  }

  /// Reads the database settings only, for commands that need nothing else. Other required settings may be missing.
  ///
  /// - Parameter needsKeys: Whether `keys_file` is required.
  /// - Throws: `ConfigurationErrors` with all faults.
  public func readDatabase(needsKeys: Bool = true) throws(ConfigurationErrors) -> BackendSettings.Database {
    let (reading, builder) = readLayers()
    var assembly = builder
    let database = assembly.database(needsKeys: needsKeys)
    let faults = assembly.faults(besides: reading.dotenvFaults).map(\.hinted)
    guard faults.isEmpty, let database else { throw ConfigurationErrors(faults: faults) }
    return database
  }

  /// Reads the operators' socket only. Faults of other settings are ignored: `reload` must reach the backend, which
  /// reports them.
  ///
  /// - Throws: `ConfigurationErrors`, also if the socket is not set.
  public func readAdmin() throws(ConfigurationErrors) -> BackendSettings.AdminSocket {
    let (reading, builder) = readLayers()
    var assembly = builder
    let admin = assembly.required(Keys.adminListen)
    let faults = assembly.faults(besides: reading.dotenvFaults, of: [Keys.adminListen.definition.pattern])
    guard faults.isEmpty, let admin else { throw ConfigurationErrors(faults: faults) }
    return admin
  }

  /// Whether the operators' socket is set. Faults of other settings are ignored.
  ///
  /// - Throws: `ConfigurationErrors` if the file cannot be read or is not YAML.
  public func namesAdmin() throws(ConfigurationErrors) -> Bool {
    let (reading, builder) = readLayers()
    let faults = builder.faults(besides: reading.dotenvFaults, of: [Keys.adminListen.definition.pattern])
    guard faults.isEmpty else { throw ConfigurationErrors(faults: faults) }
    return builder.isGiven(Keys.adminListen)
  }

  /// Reads only the settings for `console --serve`. Faults of other settings are ignored.
  ///
  /// - Returns: `nil` if the console is off.
  /// - Throws: `ConfigurationErrors` with the faults of these settings.
  public func readConsole() throws(ConfigurationErrors) -> ConsolePlaces? {
    let (reading, builder) = readLayers()
    var assembly = builder
    let console = assembly.console(hasAdminServer: assembly.isGiven(Keys.adminListen))
    let (admin, logLevel) = (assembly.value(Keys.adminListen), assembly.value(Keys.logLevel))
    let sections = ["admin", Keys.logLevel.definition.pattern]
    let faults = assembly.faults(besides: reading.dotenvFaults, of: sections).map(\.hinted)
    guard faults.isEmpty, let logLevel else { throw ConfigurationErrors(faults: faults) }
    guard let console, let admin else { return nil }
    return ConsolePlaces(console: console, admin: admin, logLevel: logLevel)
  }

  private func readLayers() -> (reading: SettingsLayers.Reading, builder: SettingsBuilder) {
    var reading = layers.read(.backend, fileNamedBy: Self.fileVariable)
    reading.entries.addCredentials(of: .backend, environment: layers.environment)
    return (reading, SettingsBuilder(reading.entries, .backend))
  }
}

/// The settings for the console over TLS.
public struct ConsolePlaces: Sendable, Hashable {
  public let console: ConsoleSettings
  public let admin: BackendSettings.AdminSocket
  public let logLevel: String
}

extension BackendSettings {
  /// What is allowed and should be known, by key.
  fileprivate var warnings: [(key: String, text: String)] {
    var warnings: [(String, String)] = []
    if texting == .log {
      warnings.append(("sms.sink", "codes are written to the log: a reader of the log can sign in"))
    }
    if database == .ephemeral { warnings.append(("database", "all data is lost when the backend exits")) }
    if audit.syslog?.isExposed == true {
      warnings.append(
        ("audit.syslog", "names of accounts cross the network unencrypted: use tls, or a receiver on this machine"))
    }
    if gate.authorityFile != nil, !gate.keys.lowercased().hasPrefix("https://") {
      warnings.append(("gate.ca_file", "has no effect: gate.jwks is no https URL, so no certificate is verified"))
    }
    if admin == nil {
      warnings.append(("admin.listen", "not set: status, reload and drain cannot reach the backend"))
    }
    return warnings
  }
}

extension ConfigurationError {
  /// The fault with a hint where to look, if it has none.
  fileprivate var hinted: ConfigurationError {
    let general =
      switch origin {
      case .dotenv(_, let variable) where key == nil || key == variable:
        "correct .env in the current folder, or start the program in another one"
      case _ where key == nil: "correct the file, or name another one with -c"
      default: "mfa-backend check --reference lists every key with its values"
      }
    return ConfigurationError(origin, key, reason, suggestion: suggestion, hint: hint ?? general)
  }
}

extension ConfigurationSearch {
  /// The search for the backend's configuration: `MFA_BACKEND_CONFIG`, otherwise `/etc/mfa/mfa.yaml`.
  public static func ofBackend(_ environment: [String: String]) -> ConfigurationSearch {
    ConfigurationSearch(
      variable: SettingsReader.fileVariable, standard: "/etc/mfa/mfa.yaml", environment: environment)
  }
}

extension SettingsBuilder {
  /// The settings, or `nil` if any value is faulty.
  fileprivate mutating func settings() -> BackendSettings? {
    _ = value(Keys.version)
    let database = database(needsKeys: true)
    let gate = gate()
    let texting = texting()
    let mail = mail()
    let push = push()
    let webAuthn = webAuthn()
    let provider = provider()
    let audit = auditExports()
    let console = console(hasAdminServer: isGiven(Keys.adminListen))
    refuseSharedPlaces(console)
    guard let listen = value(Keys.listen), let database, let gate, let texting, let push, let policy = policy(),
      let limits = limits(), let audit, let shutdown = shutdown(), let domain = value(Keys.domain),
      let issuer = value(Keys.issuer), let logLevel = value(Keys.logLevel),
      let logsStatements = value(Keys.logsStatements)
    else { return nil }
    return BackendSettings(
      listen: listen, database: database, gate: gate, texting: texting, mail: mail, push: push,
      templates: value(Keys.templates), domain: domain, issuer: issuer, webAuthn: webAuthn, provider: provider,
      policy: policy, limits: limits,
      audit: audit, admin: value(Keys.adminListen), console: console,
      metrics: value(Keys.metricsListen), shutdown: shutdown, logLevel: logLevel, logsStatements: logsStatements)
  }

  /// Refuses listeners that share a place: the second one could not start, or would remove the socket of the first.
  private mutating func refuseSharedPlaces(_ console: ConsoleSettings?) {
    let places: [(key: SettingPath, place: ListenPlace?)] = [
      (path(Keys.listen), value(Keys.listen)),
      (path(Keys.adminListen), value(Keys.adminListen).map { .unix(path: $0.path) }),
      (path(ConsoleKeys.listen), console.map { .tcp(host: $0.listen.address, port: Int($0.listen.port)) }),
      (path(Keys.metricsListen), value(Keys.metricsListen)),
    ]
    var taken: [(key: SettingPath, place: ListenPlace)] = []
    for (key, place) in places {
      guard let place else { continue }
      // Port 0 selects a different free port each time.
      if case .tcp(_, 0) = place { continue }
      if let other = taken.first(where: { $0.place.meets(place) }) {
        refuse(key, "\(place) is used by \(other.key.text): two listeners cannot share it")
      } else {
        taken.append((key, place))
      }
    }
  }

  /// Whether a layer gives a value for `key`, even a faulty one.
  func isGiven<Value>(_ key: Key<Value>) -> Bool {
    entries.values[path(key)] != nil || entries.faulty.contains(path(key))
  }

  fileprivate mutating func database(needsKeys: Bool) -> BackendSettings.Database? {
    guard let url = required(Keys.database) else { return nil }
    if url == "ephemeral" { return .ephemeral }
    let password = passwordFile(for: url)
    guard needsKeys else { return .kept(url: url, keysFile: "", passwordFile: password) }
    return required(Keys.keysFile).map { .kept(url: url, keysFile: $0, passwordFile: password) }
  }

  /// The password file of the database at `url`.
  ///
  /// A password is never sent to another database than the one that it was set for: where a flag or a variable names
  /// another database than the file, the password file of the file does not apply, nor does a credential.
  private mutating func passwordFile(for url: String) -> String? {
    guard let password = entries.values[path(Keys.databasePassword)],
      let database = entries.values[path(Keys.database)],
      max(password.origin.layer, .file) >= database.origin.layer
    else { return nil }
    guard !url.hasPrefix("sqlite:") else {
      refuse(path(Keys.databasePassword), "has no effect for a SQLite database, which has no password")
      return nil
    }
    return password.text
  }

  private mutating func gate() -> BackendSettings.Gate? {
    let (keys, issuer) = (required(Keys.gateKeys), required(Keys.gateIssuer))
    guard let audience = required(Keys.gateAudience), let keys, let issuer else { return nil }
    return BackendSettings.Gate(
      keys: keys, authorityFile: value(Keys.gateCA), issuer: issuer, audience: audience)
  }

  private mutating func texting() -> BackendSettings.Texting? {
    let isLogged = value(Keys.smsSink) != nil
    if isGiven(Keys.smsRequest) || isGiven(Keys.smsBody) || isGiven(Keys.smsEscape) || isGiven(Keys.smsRequestToken)
      || isGiven(Keys.smsCA) || !elements(Keys.smsHeaders).isEmpty
    {
      return textRequest(isLogged: isLogged)
    }
    guard isGiven(Keys.smsAccount) || isGiven(Keys.smsToken) || isGiven(Keys.smsSender) else {
      return isLogged ? .log : .off
    }
    if isLogged { refuse(path(Keys.smsSink), "cannot be set together with sms.account") }
    let (account, token) = (required(Keys.smsAccount), required(Keys.smsToken))
    guard let sender = required(Keys.smsSender), let account, let token, let url = value(Keys.smsURL) else {
      return nil
    }
    return .provider(url: url, account: account, tokenFile: token, sender: sender)
  }

  private mutating func textRequest(isLogged: Bool) -> BackendSettings.Texting? {
    if isLogged { refuse(path(Keys.smsSink), "cannot be set together with sms.http") }
    for key in [Keys.smsAccount, Keys.smsToken] where isGiven(key) {
      refuse(path(key), "cannot be set together with sms.http, which is for another API than Twilio's")
    }
    let headers = elements(Keys.smsHeaders)
    guard let url = required(Keys.smsRequest), let method = value(Keys.smsMethod), let status = value(Keys.smsStatus)
    else { return nil }
    return .template(
      BackendSettings.TextRequest(
        method: method, url: url, headers: headers, body: value(Keys.smsBody), escape: value(Keys.smsEscape),
        status: status, tokenFile: value(Keys.smsRequestToken), authorityFile: value(Keys.smsCA),
        sender: value(Keys.smsSender)))
  }

  private mutating func mail() -> BackendSettings.Mail? {
    let isSecret = [isGiven(Keys.mailPassword), isGiven(Keys.mailToken)]
    let isOther = [isGiven(Keys.mailServer), isGiven(Keys.mailSender), isGiven(Keys.mailUser), isGiven(Keys.mailCA)]
    guard isSecret.contains(true) || isOther.contains(true) || isGiven(Keys.mailTLS) || isGiven(Keys.mailGreeting)
    else { return nil }
    if value(Keys.smsSink) != nil {
      refuse(
        path(Keys.smsSink), "cannot be set together with a mail server: it writes e-mail to the log too")
    }
    let (server, sender) = (required(Keys.mailServer), required(Keys.mailSender))
    if isGiven(Keys.mailUser) != isSecret.contains(true) {
      refuse(path(Keys.mailUser), "must be set together with email.password_file or email.token_file")
    }
    if isSecret == [true, true] {
      refuse(path(Keys.mailToken), "cannot be set together with email.password_file")
    }
    guard let server, let sender else { return nil }
    return BackendSettings.Mail(
      host: server.host, port: server.port, authorityFile: value(Keys.mailCA), user: value(Keys.mailUser),
      passwordFile: value(Keys.mailPassword), tokenFile: value(Keys.mailToken),
      beginsWithTLS: value(Keys.mailTLS).map { $0 == "implicit" } ?? (server.port == 465),
      greeting: value(Keys.mailGreeting), sender: sender)
  }

  private mutating func webAuthn() -> BackendSettings.WebAuthn? {
    let given = value(Keys.origins)
    guard let party = given == nil ? value(Keys.relyingParty) : required(Keys.relyingParty) else { return nil }
    let origins = given ?? ["https://\(party)"]
    for origin in origins {
      if let plain = WebOrigin.withoutDefaultPort(origin) {
        refuse(path(Keys.origins), "\(origin): browsers leave out the default port", suggestion: plain)
        continue
      }
      guard !WebOrigin.isAllowed(origin, for: party) else { continue }
      refuse(
        path(Keys.origins),
        "\(origin): must be https://HOST or https://HOST:PORT, where HOST is \(party) or a subdomain of it, "
          + "or android:apk-key-hash:HASH")
    }
    return value(Keys.userVerification).map {
      BackendSettings.WebAuthn(relyingParty: party, origins: origins, userVerification: $0)
    }
  }

  private mutating func provider() -> BackendSettings.Provider? {
    guard
      isGiven(Keys.provider) || isGiven(Keys.providerAudience) || isGiven(Keys.trustedAudiences)
        || isGiven(Keys.providerCA)
    else { return nil }
    let issuer = required(Keys.provider)
    let audiences = required(Keys.providerAudience)
    if value(Keys.deviceUnlock) == "biometric" {
      refuse(
        path(Keys.provider),
        "cannot be set together with policy.device_unlock: biometric, because an ID token does not prove biometry")
    }
    guard let issuer, let audiences, let skew = value(Keys.clockSkew) else { return nil }
    return BackendSettings.Provider(
      issuer: issuer, audiences: audiences, trustedAudiences: value(Keys.trustedAudiences) ?? [],
      clockSkew: skew, authorityFile: value(Keys.providerCA))
  }

  private func limits() -> BackendSettings.Limits? {
    guard let messages = value(Keys.messages), let messagesOfAddress = value(Keys.messagesOfAddress),
      let messagesOfKey = value(Keys.messagesOfKey), let accounts = value(Keys.accountsOfKey),
      let codesOfAddress = value(Keys.codeRequestsOfAddress), let codesOfKey = value(Keys.codeRequestsOfKey),
      let requests = value(Keys.requestsOfKey)
    else { return nil }
    return BackendSettings.Limits(
      messagesPerHour: messages, messagesPerHourOfAddress: messagesOfAddress, messagesPerHourOfKey: messagesOfKey,
      accountsOfKey: accounts, codeRequestsOfAddress: codesOfAddress, codeRequestsOfKey: codesOfKey,
      requestsOfKey: requests)
  }

  private mutating func auditExports() -> BackendSettings.AuditExports? {
    let syslog = value(Keys.auditSyslog)
    if isGiven(Keys.auditCA) {
      if case .server(.tls, _, _)? = syslog {
      } else {
        refuse(path(Keys.auditCA), "has effect for audit.syslog: tls://HOST:PORT only")
      }
    }
    guard let size = value(Keys.auditFileSize), let kept = value(Keys.auditFilesKept),
      let facility = value(Keys.auditFacility)
    else { return nil }
    return BackendSettings.AuditExports(
      file: value(Keys.auditFile), largestFile: size, keptFiles: kept, syslog: syslog, facility: facility,
      authorityFile: value(Keys.auditCA), webhook: webhook())
  }

  private mutating func webhook() -> BackendSettings.Webhook? {
    let events = elements(Keys.webhookEvents)
    warnOfEmptyList(Keys.webhookEvents, meaning: "all events")
    guard let url = value(Keys.webhookURL) else {
      let reason = "has no effect without webhooks.url"
      for key in [Keys.webhookSecret, Keys.webhookCA] where isGiven(key) { refuse(path(key), reason) }
      if !events.isEmpty { refuse(path(Keys.webhookEvents, 0).parent, reason) }
      return nil
    }
    guard let secretFile = value(Keys.webhookSecret) else {
      refuse(path(Keys.webhookSecret), "missing", hint: WebhookSecretFile.hint)
      return nil
    }
    return BackendSettings.Webhook(
      url: url, secretFile: secretFile, authorityFile: value(Keys.webhookCA), events: Set(events))
  }

  private func shutdown() -> BackendSettings.Shutdown? {
    guard let delay = value(Keys.unreadyDelay), let drain = value(Keys.drainTimeout) else { return nil }
    return BackendSettings.Shutdown(unreadyDelay: delay, drainTimeout: drain)
  }

  private func policy() -> BackendSettings.Policy? {
    guard let secondFactorFor = value(Keys.secondFactorFor), let grace = value(Keys.gracePeriod),
      let allowsGate = value(Keys.biometricGate), let mostDevices = value(Keys.mostDevices),
      let recoveryWait = value(Keys.recoveryWait), let stepUpScore = value(Keys.stepUpScore),
      let networks = value(Keys.trustNetworks), let unlock = value(Keys.deviceUnlock),
      let vouches = value(Keys.hardwareKeys)
    else { return nil }
    return BackendSettings.Policy(
      secondFactorFor: secondFactorFor, gracePeriod: grace, allowsBiometricGate: allowsGate,
      mostDevices: mostDevices, recoveryWait: recoveryWait, stepUpScore: stepUpScore,
      bindsTrustToNetwork: networks == "known", deviceUnlock: unlock, vouchesForDeviceKeys: vouches)
  }
}
