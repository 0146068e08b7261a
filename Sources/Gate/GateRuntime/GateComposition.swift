internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Commands
internal import ConfigurationEngine
internal import Cryptography
internal import GateService
internal import Logging
internal import Observability
internal import Settings
internal import Transport
internal import TransportEngine

/// The services of a gate, built from its settings and rebuilt when those change.
struct GateComposition: Sendable {
  let settings: GateSettings
  let challenges: Challenges
  let memory: SharedState
  private let assertions: AssertionRule
  private let apps: AllowedApps
  /// Exchanges receipts with Apple; `nil` if no app wants it.
  let receiptExchange: ReceiptExchangeService?

  private var store: any GateStore { memory.store }
  private var sessions: LiveSessions { memory.sessions }
  private var metrics: GateMetrics { memory.metrics }

  init(_ settings: GateSettings, memory: SharedState) throws(Failure) {
    self.settings = settings
    self.memory = memory
    let store = memory.store
    guard
      let apps = AllowedApps(
        settings.appAttest.apps.compactMap(AppPolicy.init), android: try Self.androidPolicies(settings.appAttest),
        androidRisks: Self.androidRisks(settings.appAttest),
        androidEnvironment: settings.appAttest.trust.androidRootFile == nil ? .production : .development)
    else {
      throw Self.impossible("app_attest.apps")
    }
    self.apps = apps
    receiptExchange = try Self.receiptExchange(settings, memory)
    if let file = settings.appAttest.challengeKeysFile {
      challenges = Challenges(ring: try Self.ring(in: file), life: settings.appAttest.challengeTTL)
    } else {
      challenges = Challenges(storage: store, life: settings.appAttest.challengeTTL)
    }
    guard let window = CounterWindow(settings.appAttest.counterWindow) else {
      throw Self.impossible("app_attest.counter_window")
    }
    do throws(CryptographyError) {
      assertions = try AssertionRule(
        apps: apps, challenges: challenges, registry: store, window: window, stopwatch: memory.stopwatch)
    } catch {
      throw Failure(
        .internalError, "OpenSSL cannot generate a key: \(error)", hint: "check the system's OpenSSL installation")
    }
  }

  /// Handles requests under these settings.
  func responder(logger: Logger) throws(Failure) -> GateResponder {
    GateResponder(
      gate: gate(), registrar: try registrar(), challenges: challenges, identities: identities,
      tokens: try tokens(),
      routes: try routes(), limits: settings.session.limits, sessions: sessions,
      limiter: limiter,
      trustedProxies: settings.listen.forwardAuthProxies,
      forwardedClients: settings.listen.forwardedClients, stripHeaders: Set(settings.identity.strippedHeaders),
      keepHeaders: Set(settings.identity.keptHeaders),
      logger: logger, metrics: metrics, tracer: try tracer(), registrations: memory.registrations,
      announce: memory.announce)
  }

  /// The certificates and the TLS settings of the public listener.
  func tls() throws(Failure) -> ServerTLS {
    do throws(StartError) {
      return try ListenerFiles(of: settings).load(memory.managed.material, challenges: memory.managed.challenges)
    } catch {
      throw Failure(error)
    }
  }

  private func gate() -> Gate {
    var rules: [any AdmissionRule] = [assertions]
    if let certificateRule { rules.append(certificateRule) }
    return Gate(rules: rules, enforcement: Gate.Enforcement(settings.appAttest.enforcement))
  }

  private var certificateRule: ClientCertificateRule? {
    settings.debugMTLS.map { ClientCertificateRule(allowedSubjects: Set($0.allowedSubjects)) }
  }

  /// Closes the sessions of client certificates that these settings and the listener `tls` do not accept, unless
  /// sessions outlast the right to them.
  func closeRefusedCertificates(under tls: ServerTLS, logger: Logger) {
    guard settings.session.closeOnRevoke != nil else { return }
    let count = sessions.closeCertificates { [rule = certificateRule, tls] certificate in
      rule?.accepts(certificate) == true
        && tls.accepts(
          authorities: certificate.authorities, links: certificate.links, issuers: certificate.issuers, at: .now())
    }
    if count > 0 { logger.notice("sessions of refused certificates closed", metadata: ["sessions": .number(count)]) }
  }

  /// Reacts to changes that other gates and operators make in the store.
  func changeResponse(logger: Logger) -> ChangeResponse {
    ChangeResponse(
      registry: store, challenges: challenges, identityKeys: memory.identityKeys, sessions: sessions,
      closesSessions: settings.session.closeOnRevoke != nil,
      forget: { [assertions] keyID in
        if let keyID { assertions.forget(keyID) } else { assertions.forgetAll() }
      },
      logger: logger)
  }

  /// Signs identity assertions with the issuer and audience of the settings.
  private var identities: IdentityIssuer {
    IdentityIssuer(
      issuer: settings.identity.issuer, audience: settings.identity.audience, keys: memory.identityKeys)
  }

  /// Answers token requests; `nil` without audiences.
  private func tokens() throws(Failure) -> TokenEndpoint? {
    guard let tokens = settings.tokens else { return nil }
    let issuer = TokenIssuer(
      issuer: settings.identity.issuer, audiences: Set(tokens.audiences), life: tokens.lifetime,
      keys: memory.identityKeys)
    guard
      let endpoint = TokenEndpoint(
        gate: gate(), issuer: issuer, attester: attester(tokens.clients), challenges: challenges, url: tokens.url,
        limiter: limiter,
        trustedProxies: settings.listen.forwardAuthProxies, executor: memory.tokens)
    else { throw Self.impossible("tokens.url") }
    return endpoint
  }

  private func attester(_ clients: [GateSettings.Tokens.Client]) -> ClientAttester {
    ClientAttester(
      issuer: settings.identity.issuer,
      clients: clients.map { client in
        .init(
          id: client.id, apps: Set(client.apps), life: client.lifetime,
          claims: Dictionary(client.claims.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first }))
      },
      keys: memory.identityKeys)
  }

  private var limiter: RequestLimiter {
    RequestLimiter(settings.limits.requests, ledger: memory.rates, gates: memory.gates)
  }

  /// The store maintenance service.
  func maintenance(logger: Logger) -> MaintenanceService {
    MaintenanceService(
      store: store,
      maintenance: StoreMaintenance(
        store: store, challenges: challenges,
        plan: .init(
          rotation: settings.appAttest.challengeKeyRotation, longestUnused: settings.pruneUnusedAfter,
          decisions: decisionRetention),
        latest: memory.latest),
      identityKeys: IdentityKeyRotation(
        keys: memory.identityKeys, every: settings.identity.keyLife, overlap: settings.identity.keyOverlap),
      risk: memory.risk, apps: RiskApp.all(in: settings.appAttest), logger: logger)
  }

  private func tracer() throws(Failure) -> Tracer? {
    guard let telemetry = memory.telemetry, let settings = settings.telemetry else { return nil }
    guard let sampler = Sampler(ratio: settings.sample) else { throw Self.impossible("telemetry.sample") }
    let database = if case .postgres = self.settings.store { "postgresql" } else { "sqlite" }
    return Tracer(sampler: sampler, queue: telemetry.queue, database: database)
  }

  private func registrar() throws(Failure) -> Registrar {
    let trust = settings.appAttest.trust
    let verifier = AttestationVerifier(
      apps: apps.environments,
      attestationRoots: try Self.roots(
        in: trust.attestationRootFile, for: "app_attest.trust.attestation_root_file",
        otherwise: AppleRoots.appAttestation),
      receiptRoots: try Self.receiptRoots(of: settings))
    // Leaves one processor for admissions if there are several.
    let limiter = VerificationLimiter(width: memory.processors.count - 1)
    return Registrar(
      apps: apps, verifier: verifier,
      android: AndroidVerification(
        roots: try Self.androidRoots(in: trust.androidRootFile), revocations: memory.revoked,
        report: { [memory] revocation in
          StatusListRefresh.report(revocation, memory.android, memory.announce, memory.receipts.logger)
        }),
      challenges: challenges, registry: store, limiter: limiter, witness: memory.witness,
      enforcement: attestationKeyEnforcement, stopwatch: memory.stopwatch)
  }

  /// Reads the list of revoked Android certificates; `nil` if none is configured.
  func statusListRefresh(logger: Logger) -> StatusListRefresh? {
    guard let list = settings.appAttest.statusList else { return nil }
    let cache: StatusListCache? =
      if case .url(let url, _) = list.place { StatusListCache(settings, store, url: url) } else { nil }
    return StatusListRefresh(
      source: StatusListSource(list.place), refreshInterval: list.refresh, revoked: memory.revoked, store: store,
      cache: cache, metrics: memory.android, announce: memory.announce, logger: logger)
  }

  /// Asks the servers of routes for their health; `nil` if no route wants it.
  func upstreamChecks(logger: Logger) -> UpstreamChecks? {
    UpstreamChecks(settings.routes, health: metrics.upstreamHealth, logger: logger)
  }

  private func routes() throws(Failure) -> RouteTable {
    let routes = settings.routes.compactMap {
      GateService.Route(
        path: $0.path, upstreams: $0.upstreams.map(\.transport), isByDevice: $0.balance == .device,
        rewrite: RequestRewrite(path: $0.rewrite, host: $0.host), forwarding: $0.forward == .all ? .all : .upgrades,
        audience: $0.audience, subprotocol: $0.subprotocol, hasHealthCheck: $0.health != nil, maxHead: $0.maxHead,
        maxResponseHead: $0.maxResponseHead,
        origins: AllowedOrigins($0.origins),
        carriers: Set($0.carriers.map { $0 == .query ? .query : .subprotocol }))
    }
    guard routes.count == settings.routes.count, let table = RouteTable(routes) else {
      throw Self.impossible("routes")
    }
    return table
  }

  /// The settings were validated, so a value that cannot be used is a bug. The error names the key.
  private static func impossible(_ key: String) -> Failure {
    Failure(
      .internalError, "\(key): accepted by validation, but cannot be used", hint: "report this configuration as a bug"
    )
  }

  private static func ring(in file: String) throws(Failure) -> ChallengeKeyRing {
    let hint = "one key per line: a number from 0 to 255 and 64 hex digits (openssl rand -hex 32)"
    let bytes: [UInt8]
    do throws(FileContentError) {
      bytes = try FileContent.read(file)
    } catch {
      throw Failure(
        .configuration, "app_attest.challenge_keys_file: cannot read \(file): \(error.reason)", hint: hint)
    }
    do throws(ChallengeKeyRing.FileError) {
      return try ChallengeKeyRing(text: String(decoding: bytes, as: UTF8.self))
    } catch {
      throw Failure(.configuration, "app_attest.challenge_keys_file: \(file): \(error)", hint: hint)
    }
  }

  /// The roots of receipts.
  static func receiptRoots(of settings: GateSettings) throws(Failure) -> [Certificate] {
    try roots(
      in: settings.appAttest.trust.receiptRootFile, for: "app_attest.trust.receipt_root_file",
      otherwise: AppleRoots.appleRootG3)
  }

  /// - Parameter key: The setting that names `file`, for the error.
  private static func roots(
    in file: String?, for key: String, otherwise: Certificate
  ) throws(Failure) -> [Certificate] {
    guard let file else { return [otherwise] }
    do throws(StartError) {
      let bytes = try SettingFile.content(of: file, for: key)
      do throws(CryptographyError) {
        return try Certificate.certificates(pem: String(decoding: bytes, as: UTF8.self))
      } catch {
        throw StartError(key, "\(file): \(error)", hint: "set it to a PEM file of certificates")
      }
    } catch {
      throw Failure(error)
    }
  }
}

extension Gate.Enforcement {
  init(_ setting: GateSettings.AppAttest.Enforcement) {
    switch setting {
    case .enforce: self = .enforce
    case .monitor: self = .monitor
    case .off: self = .off
    }
  }
}

extension AllowedOrigins {
  fileprivate init(_ origins: [GateSettings.Origin]) {
    self.init(
      origins.compactMap { if case .exact(let origin) = $0 { origin } else { nil } },
      anyWithAssertion: origins.contains(.anyWithAssertion))
  }
}
