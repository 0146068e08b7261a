internal import ConfigurationEngine
internal import Transport

extension SettingsBuilder {
  private static let certificateHint =
    "set tls: { cert_file: …, key_file: … }, or tls: { acme: { domains: [NAME] } }; `sallyport dev` makes a test certificate"

  /// The settings, or `nil` if any value is faulty.
  mutating func settings(warnings earlier: [Warning]) -> GateSettings? {
    _ = value(Keys.version)
    let listen = listen()
    let tls = tls()
    let apps = apps()
    let androidApps = androidApps()
    let debugMTLS = debugMTLS(with: productionApp(among: apps, androidApps))
    let appAttest = appAttest(apps: apps, androidApps: androidApps)
    let routes = routes()
    let session = session()
    let store = store()
    let limits = limits()
    let identity = identity()
    let tokens = tokens(
      besides: routes, for: apps.map { "\($0.teamID).\($0.bundleID)" } + androidApps.map(\.package))
    let admin = admin()
    let console = console(hasAdminServer: admin != nil || entries.isFaulty(path(Keys.adminListen)))
    let telemetry = telemetry()
    let webhooks = webhooks(beside: store)
    refuseSharedAddresses(listen, admin, console, value(Keys.metricsListen), tls?.acme?.httpListen)
    guard let listen, let tls, let appAttest, let session, let store, let limits, let identity, let log = log(),
      let mostWaitingForStore = value(Keys.mostWaitingForStore), let pruneUnusedAfter = pruneUnusedAfter(session),
      let decisions = decisions(), let unreadyDelay = value(Keys.unreadyDelay),
      let drainTimeout = value(Keys.drainTimeout),
      let linger = value(Keys.linger)
    else { return nil }
    return GateSettings(
      listen: listen, tls: tls, debugMTLS: debugMTLS, appAttest: appAttest, routes: routes, session: session,
      store: store, mostWaitingForStore: mostWaitingForStore, pruneUnusedAfter: pruneUnusedAfter, decisions: decisions,
      stateFolder: stateFolder(of: store), limits: limits, identity: identity, tokens: tokens, admin: admin,
      console: console,
      metrics: value(Keys.metricsListen), telemetry: telemetry, webhooks: webhooks, log: log,
      unreadyDelay: unreadyDelay,
      drainTimeout: drainTimeout, linger: linger,
      warnings: earlier + warnings,
      effective: effectiveValues())
  }

  private func stateFolder(of store: GateSettings.Store) -> String? {
    guard let entry = entries.values[path(Keys.store)],
      entry.origin == .standard || entry.text == entries.computedDefaults[path(Keys.store)]
    else { return nil }
    return switch store {
    case .sqlite(let path): FilePath.folder(of: path)
    case .postgres: nil
    }
  }

  /// A session counts as one use of its key, when it starts. So the limit must exceed the session's maximum age.
  private mutating func pruneUnusedAfter(_ session: GateSettings.Session?) -> Duration?? {
    guard let longest = value(Keys.pruneUnusedAfter) else { return nil }
    if let longest, let session, session.limits.maxAge.map({ longest <= $0 }) ?? true {
      refuse(
        path(Keys.pruneUnusedAfter),
        "must be longer than session.max_age; otherwise an open session could lose its key")
    }
    return longest
  }

  private func decisions() -> GateSettings.Decisions?? {
    guard let keep = value(Keys.keepDecisions), let mostOfKey = value(Keys.mostDecisionsOfKey),
      let most = value(Keys.mostDecisions)
    else { return nil }
    return .some(keep.map { GateSettings.Decisions(keep: $0, mostOfKey: mostOfKey, most: most) })
  }

  mutating func store() -> GateSettings.Store? {
    check(.anything, Keys.storePassword)
    warnIfPublic(Keys.storePassword)
    let passwordFile = value(Keys.storePassword)
    switch value(Keys.store) {
    case .sqlite(let path):
      if passwordFile != nil {
        refuse(self.path(Keys.storePassword), "has no effect for a SQLite store, which has no password")
      }
      return .sqlite(path: path)
    case .postgres(let url): return .postgres(url, passwordFile: passwordFile)
    case nil: return nil
    }
  }

  private mutating func listen() -> GateSettings.Listen? {
    let proxies = proxies()
    guard let address = value(Keys.address), let port = value(Keys.port), let loops = value(Keys.loops),
      let maxHead = value(Keys.maxRequestHead)
    else { return nil }
    return GateSettings.Listen(
      address: address, port: port, loops: loops, proxies: proxies, trustedProxies: elements(Keys.trustedProxies),
      maxHead: maxHead, trustsForwardedFor: trustsForwardedFor())
  }

  private mutating func tls() -> GateSettings.TLS? {
    let files = [path(Keys.certificate), path(Keys.privateKey), SettingPath.root["tls"]["certificates"]].first {
      entries.values[$0] != nil || entries.containers[$0] != nil
    }
    let acme = acme(besides: files)
    let source = givesACME ? acme.map(GateSettings.TLS.Source.acme) : certificateFiles()
    guard let source, let least = value(Keys.leastVersion), let reload = value(Keys.certificateReload) else {
      return nil
    }
    return GateSettings.TLS(source: source, leastVersion: least, reload: reload)
  }

  private mutating func certificateFiles() -> GateSettings.TLS.Source? {
    let certificate = required(Keys.certificate, hint: Self.certificateHint)
    let key = required(Keys.privateKey, hint: Self.certificateHint)
    check(.certificates, Keys.certificate)
    checkSecretKeys(.privateKey, Keys.privateKey)
    let further = furtherCertificates()
    guard let certificate, let key else { return nil }
    return .files(.init(certificateFile: certificate, keyFile: key), further: further)
  }

  private mutating func furtherCertificates() -> [GateSettings.TLS.Files] {
    var further: [GateSettings.TLS.Files] = []
    for index in elementIndices(of: SettingPath.root["tls"]["certificates"]) {
      let certificate = required(Keys.furtherCertificate, index)
      let key = required(Keys.furtherKey, index)
      check(.certificates, Keys.furtherCertificate, index)
      checkSecretKeys(.privateKey, Keys.furtherKey, index)
      if let certificate, let key { further.append(.init(certificateFile: certificate, keyFile: key)) }
    }
    return further
  }

  private mutating func debugMTLS(with productionApp: String?) -> GateSettings.DebugMTLS? {
    let subjects = elements(Keys.allowedSubjects)
    warnOfEmptyList(Keys.allowedSubjects, meaning: "every subject")
    guard let file = value(Keys.clientCA) else {
      guard !entries.isFaulty(path(Keys.clientCA)) else { return nil }
      let reason = "has no effect without debug_mtls.client_ca_file"
      if !subjects.isEmpty { refuse(path(Keys.allowedSubjects).parent, reason) }
      if value(Keys.partialChain) == true { refuse(path(Keys.partialChain), reason) }
      if value(Keys.revocationLists) != nil { refuse(path(Keys.revocationLists), reason) }
      return nil
    }
    check(.certificates, Keys.clientCA)
    check(.revocationLists, Keys.revocationLists)
    if let productionApp {
      let text = "client certificates admit debug builds, and \(productionApp) has environment production"
      if value(Keys.forbidWithProduction) == true {
        refuse(path(Keys.clientCA), "\(text); debug_mtls.forbid_with_production forbids this")
      } else {
        warn(path(Keys.clientCA), text)
      }
    }
    return GateSettings.DebugMTLS(
      clientCAFile: file, acceptsPartialChains: value(Keys.partialChain) == true,
      revocationListFile: value(Keys.revocationLists), allowedSubjects: subjects)
  }

  private mutating func identity() -> GateSettings.Identity? {
    let strippedHeaders = strippedHeaders()
    let keptHeaders = keptHeaders(besides: strippedHeaders)
    guard let issuer = value(Keys.issuer), let audience = value(Keys.audience),
      let keyLife = value(Keys.identityKeyLife), let keyOverlap = value(Keys.identityKeyOverlap)
    else { return nil }
    return GateSettings.Identity(
      issuer: issuer, audience: audience, keyLife: keyLife, keyOverlap: keyOverlap, strippedHeaders: strippedHeaders,
      keptHeaders: keptHeaders)
  }

  private mutating func strippedHeaders() -> [String] {
    let stripped = elements(Keys.strippedHeaders)
    let list = path(Keys.strippedHeaders, 0).parent
    for (index, name) in stripped.enumerated() where ReservedHeaders.requires(name) {
      refuse(list[index], "\(name) cannot be removed: without it, a request to the upstream is not valid")
    }
    return stripped
  }

  /// A field of the gate's own cannot be kept: a client could set it.
  private mutating func keptHeaders(besides strippedHeaders: [String]) -> [String] {
    let kept = elements(Keys.keptHeaders)
    let list = path(Keys.keptHeaders, 0).parent
    let stripped = Set(strippedHeaders.map { $0.lowercased() })
    for (index, name) in kept.enumerated() {
      if ReservedHeaders.contains(name) {
        refuse(list[index], "\(name) is set or used by the gate, so that a client's is always removed")
      } else if stripped.contains(name.lowercased()) {
        refuse(list[index], "\(name) is in identity.strip_headers")
      }
    }
    return kept
  }

  private mutating func session() -> GateSettings.Session? {
    guard let maxAge = value(Keys.maxAge), let idle = value(Keys.idleTimeout), let ping = value(Keys.ping),
      let maxMessage = value(Keys.maxMessage), let closeOnRevoke = value(Keys.closeOnRevoke)
    else { return nil }
    if let idle, let ping, ping >= idle {
      let given = entries.values[path(Keys.ping)] == nil ? path(Keys.idleTimeout) : path(Keys.ping)
      refuse(
        given, "session.ping must be shorter than session.idle_timeout; otherwise sessions close before the first ping")
    }
    return GateSettings.Session(
      limits: SessionLimits(maxAge: maxAge, idleTimeout: idle, pingInterval: ping, maxMessage: maxMessage),
      closeOnRevoke: closeOnRevoke)
  }
}
