internal import ConfigurationEngine
internal import MFADomain

extension SettingsBuilder {
  /// The settings, or `nil` if any value is faulty.
  mutating func settings() -> BackendSettings? {
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

  /// Warns of a value of `key` that has no effect because `other` is missing. The default has none either, but stands in
  /// the example that users copy.
  mutating func warnOfUnused<Value, Other>(_ key: Key<Value>, without other: Key<Other>) {
    guard let entry = entries.values[path(key)], entry.text != key.definition.standard else { return }
    warn(path(key), "has no effect without \(path(other).text)")
  }

  /// The database, or `nil` if a value is faulty.
  mutating func database(needsKeys: Bool) -> BackendSettings.Database? {
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
      warnOfUnused(Keys.smsURL, without: Keys.smsAccount)
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
