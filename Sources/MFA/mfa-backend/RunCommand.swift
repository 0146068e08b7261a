internal import ArgumentParser
internal import ByteCoding
internal import Foundation
internal import Glibc
internal import JSONLog
internal import Logging
internal import MFADelivery
internal import MFADomain
internal import MFAMetrics
internal import MFAService
internal import MFASettings
internal import MFAStore
internal import MFATokens
internal import Metrics
internal import ProcessSignals
internal import ServiceLifecycle
internal import UnixSignals

/// Serves until SIGTERM or SIGINT.
struct RunCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run",
    abstract: "Serves until SIGTERM or SIGINT.",
    discussion: """
      SIGHUP is ignored: settings cannot be reloaded. Restart the backend to change them.

      Flags override variables (MFA_BACKEND_LISTEN, MFA_BACKEND_GATE__JWKS), and variables override the file.

      Examples:

        mfa-backend run -c /etc/mfa/mfa.yaml

        mfa-backend run --database sqlite:///var/lib/mfa/mfa.db --keys /etc/mfa/keys.json \
      --gate-jwks https://gate:6200/.well-known/sallyport/jwks.json --gate-issuer https://gate:6200 --audience mfa
      """)

  @OptionGroup var database: DatabaseOptions

  @Option(help: "Where to listen: ADDRESS:PORT on loopback, or unix:/path.")
  var listen: String?

  @Option(name: .customLong("gate-jwks"), help: "The gate's keys: a file, an https URL, or an http URL on loopback.")
  var gateKeys: String?

  @Option(name: .customLong("gate-ca"), help: "PEM file with the roots that verify the gate's URL.")
  var gateAuthority: String?

  @Option(name: .customLong("gate-issuer"), help: "The issuer of the gate's identities.")
  var gateIssuer: String?

  @Option(help: "The audience of the gate's identities.")
  var audience: String?

  @Option(name: .customLong("metrics"), help: "Address of /metrics: ADDRESS:PORT on loopback.")
  var metrics: String?

  @Option(help: "The lowest level that is logged: debug, info, notice, warning or error.")
  var logLevel: String?

  @Flag(name: .customLong("log-sql"), help: "Log SQL statements at debug, without values.")
  var logsStatements = false

  @OptionGroup var delivery: DeliveryOptions

  @OptionGroup var webAuthn: WebAuthnOptions

  @OptionGroup var provider: ProviderOptions

  @OptionGroup var limits: LimitOptions

  private var flags: [SettingFlag] {
    [
      SettingFlag("--listen", "listen", listen), SettingFlag("--gate-jwks", "gate.jwks", gateKeys),
      SettingFlag("--gate-ca", "gate.ca_file", gateAuthority), SettingFlag("--gate-issuer", "gate.issuer", gateIssuer),
      SettingFlag("--audience", "gate.audience", audience), SettingFlag("--metrics", "metrics.listen", metrics),
      SettingFlag("--log-level", "log.level", logLevel),
      SettingFlag("--log-sql", "log.sql", logsStatements ? "on" : nil),
    ].compactMap(\.self) + delivery.flags + webAuthn.flags + provider.flags + limits.flags
  }

  func run() async throws {
    try await CommandError.telling(serve)
  }

  private func serve() async throws {
    let settings = try database.reader(with: flags).read()
    let sink = LineSink(descriptor: 2)
    defer { sink.flush() }
    var logger = Logger(label: "mfa-backend") { JSONLineHandler(label: $0, sink: sink) }
    logger.logLevel = Logger.Level(rawValue: settings.logLevel) ?? .info
    // SIGHUP has been ignored since before main (CEarlySignals). From here on, each one is logged.
    ProcessSignals.hear([SIGHUP]) { [logger] _ in
      logger.notice("signal ignored", metadata: ["signal": "SIGHUP", "hint": "restart to apply new settings"])
    }
    try await Self.serve(settings, logger)
  }

  /// The time that requests have to finish after SIGTERM. It is below the ten seconds that container tools wait.
  private static let stopPatience = Duration.seconds(8)

  private static func serve(_ settings: BackendSettings, _ logger: Logger) async throws {
    for place in [settings.listen, settings.metrics].compactMap(\.self) where place.isAnswered {
      throw CommandError(
        .cannotListen, "cannot serve: another process listens at \(place)", hint: "stop it, or choose another address")
    }
    let exposition = MetricsExposition()
    // Metrics must be set up before the first count.
    if settings.metrics != nil { MetricsSystem.bootstrap(exposition) }
    let store = try settings.database.open(logger: settings.logsStatements ? logger : nil)
    let vault = try await Vault.open(in: store, with: try settings.database.keys(), entropy: .system)
    if let began = vault.historyBegan, settings.database != .ephemeral {
      // Expected at the first start of a new database or a new version. At any other start, it means that the key was
      // removed.
      logger.warning(
        "history key created", metadata: ["entry": "\(began)", "key": "\(vault.historyKeys.newest)"])
    }
    let gate = GateIdentityVerifier(
      source: GateKeySource(settings.gate.keys, authority: settings.gate.authorityFile), issuer: settings.gate.issuer,
      audience: settings.gate.audience, store: store, logger: logger)
    try await gate.prepare()
    let tokens = try await AccessTokens(vault: vault, issuer: "mfa-backend", audience: settings.gate.audience)
    let (outbox, carriers) = try settings.outbox(logger)
    var policy = Policy(settings)
    try await policy.datePolicy(in: store, at: WallClock.system.now())
    let context = DomainContext(
      store: store, vault: vault, outbox: outbox, tokens: tokens, policy: policy,
      provider: try settings.provider?.tokens())
    let server = MFAServer(
      context: context, registry: OperationRegistry(context, logger: logger, rateLimits: RateLimits(settings.limits)),
      callers: CallerReader(gate: gate, tokens: tokens, clock: .system, entropy: .system, logger: logger),
      tokens: tokens, address: MFAServer.Address(settings.listen), logger: logger,
      didBind: { port in logger.info("listening", metadata: ["port": "\(port ?? 0)"]) })
    var services = carriers
    // Services stop in reverse order, so the server stops first and the last head covers all its entries.
    services.append(HistoryHeadService(heads: HistoryHeads(store, vault.historyKeys), logger: logger))
    services.append(MaintenanceJob(maintenance: RecordMaintenance(context), logger: logger))
    services.append(server)
    if let place = settings.metrics {
      let address = MFAServer.Address(place)
      services.append(MetricsServer(address: address, logger: logger) { await exposition.text() })
    }
    var configuration = ServiceGroupConfiguration(
      services: services, gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
    configuration.maximumGracefulShutdownDuration = stopPatience
    do {
      try await ServiceGroup(configuration: configuration).run()
    } catch is CancellationError {
      logger.warning("requests aborted at shutdown")
    } catch {
      throw CommandError(notServing: error, settings)
    }
  }
}

extension CommandError {
  /// The error that stopped a service; in practice a failure to listen.
  fileprivate init(notServing error: any Error, _ settings: BackendSettings) {
    // NIO writes `bind(descriptor:ptr:bytes:): Address already in use) (errno: 98)`, with one parenthesis too many.
    let text = "\(error)".replacingOccurrences(of: ") (errno:", with: " (errno:")
    let reason = text.hasPrefix("bind(") ? text.split(separator: ": ").dropFirst().joined(separator: ": ") : text
    let places = [settings.listen, settings.metrics].compactMap(\.self).map { "\($0)" }.joined(separator: " and ")
    self.init(
      .cannotListen, "cannot serve: \(reason)", hint: "see which process listens at \(places), or choose another")
  }
}

extension MFAServer.Address {
  init(_ place: ListenPlace) {
    switch place {
    case .tcp(let host, let port): self = .tcp(host: host, port: port)
    case .unix(let path): self = .unix(path: path)
    }
  }
}

extension Policy {
  init(_ settings: BackendSettings) {
    self.init()
    domain = settings.domain
    issuer = settings.issuer
    secondFactorPolicy = SecondFactorPolicy(rawValue: settings.policy.secondFactorFor) ?? .everyone
    gracePeriod = settings.policy.gracePeriod
    allowsBiometricGate = settings.policy.allowsBiometricGate
    mostDevices = settings.policy.mostDevices
    relyingParty = settings.webAuthn.map(RelyingParty.init)
    recoveryWait = settings.policy.recoveryWait
    stepUpScore = settings.policy.stepUpScore
    bindsTrustToNetwork = settings.policy.bindsTrustToNetwork
    deviceUnlock = Unlock(rawValue: settings.policy.deviceUnlock) ?? .biometric
    vouchesForDeviceKeys = settings.policy.vouchesForDeviceKeys
    mostAccountsOfInstance = settings.limits.accountsOfKey
    mostMessages = settings.limits.messagesPerHour
    mostMessagesOfAddress = settings.limits.messagesPerHourOfAddress
    mostMessagesOfInstance = settings.limits.messagesPerHourOfKey
  }
}
