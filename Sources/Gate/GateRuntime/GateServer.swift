internal import AppAttest
internal import AttestGate
internal import ByteCoding
package import Commands
internal import ConfigurationEngine
internal import Cryptography
internal import FoundationEssentials
internal import GateService
internal import Glibc
internal import Locking
internal import Logging
internal import Observability
internal import ProcessFrame
package import Settings
internal import Transport
internal import TransportEngine

/// A running gate: its store, verification rules and engine. It is built from the settings, and rebuilt when they are
/// reloaded.
package actor GateServer {
  nonisolated let engine: Engine
  let loader: SettingsLoader
  let startedAt = Timestamp.now()
  nonisolated let activity: ActivityLog
  nonisolated let memory: SharedState
  let logger: Logger
  /// The settings and services in use.
  var generation: Generation {
    didSet { certificates.withLock { $0 = generation.served } }
  }
  /// What reloads have changed since the start, the newest first, at most `SettingChange.most`.
  var settingChanges: [SettingChange] = []
  /// The contents of the files that are read only at start.
  nonisolated let secrets: SecretFiles
  nonisolated let life = LockedValue(Life.serving)
  /// The certificates in use, for `/readyz`; always those of `generation`.
  nonisolated let certificates: LockedValue<ServedCertificates>
  /// The active enforcement mode, as text for `/readyz`.
  nonisolated let enforcement: LockedValue<String>
  nonisolated let stops: StopRequests
  /// Installs signal handlers before readiness is reported, so that a SIGHUP sent right after start cannot kill the
  /// process.
  nonisolated let signals: Signals
  nonisolated let changes: ChangeFollower
  /// The time until ACME is prepared again after a failure. A test shortens it.
  nonisolated let keeperPause = LockedValue(Duration.seconds(60))
  /// Reads files after the start, off the actor.
  nonisolated let fileReads = FileReads()
  /// The end of the queue of reloads; the next reload waits for it.
  var lastTurn: Task<Void, Never>?
  var side = SideListeners()
  let sink: LineSink
  /// The executable that a graceful upgrade starts.
  nonisolated let program: ExecutableLocator
  /// Whether this process was started by a graceful upgrade.
  let isUpgradeChild: Bool
  /// The old processes of graceful upgrades, which end when this process does.
  nonisolated let lingering: LingeringProcesses

  /// What the public listener uses.
  var tls: ServerTLS

  /// What the gate does. An upgrade that failed leads back to `serving`; nothing leads back from `leaving`.
  enum Life: Sendable {
    case serving
    /// A new process is being started, or has not reported its result yet.
    case upgrading(UpgradeChild?)
    /// No new connection is wanted: `/readyz` reports the gate as not ready.
    case leaving
  }

  /// Everything that is built from one version of the settings.
  struct Generation: Sendable {
    let composition: GateComposition
    let responder: GateResponder
    /// The certificates that TLS uses.
    var served: ServedCertificates
    /// The certificate files at the last attempt to load them, successful or not.
    var certificates: CertificateFiles
    /// The digests of the files that `tls.acme` names. A keeper reads them once.
    let acmeFiles: ACMEFiles
    /// What runs in the background; `nil` before the gate serves.
    var services: BackgroundServices?
    /// Obtains certificates; `nil` if they come from files.
    var certificateTask: Task<Void, Never>?
  }

  /// Opens the store, reads the certificates and starts to listen.
  ///
  /// If the store cannot be opened, the gate still starts: it refuses sessions until the store is available. In a
  /// graceful upgrade the new process fails to start instead, because the old process still serves.
  ///
  /// - Parameter inherited: the sockets that this process inherited. The old process, if there is one, is informed
  ///   of success or failure.
  /// - Throws: `Failure` if the configuration, a certificate or a listening address cannot be used.
  package static func open(
    _ loader: SettingsLoader, _ inherited: InheritedSockets = .ofThisProcess, signals: Signals.Source = .process
  ) async throws(Failure) -> GateServer {
    // A reader of the log or an old process that has exited must be an error of a write, not the end of this process.
    if case .process = signals { signal(SIGPIPE, SIG_IGN) }
    do throws(Failure) {
      let server = try await make(loader, inherited, signals)
      inherited.parent?.reportReady()
      await server.startAccepting()
      return server
    } catch {
      inherited.parent?.tell(failure: error.report(separator: "\n"))
      throw error
    }
  }

  /// Performs every step that can fail. The listeners do not accept connections yet.
  private static func make(
    _ loader: SettingsLoader, _ inherited: InheritedSockets, _ signals: Signals.Source
  ) async throws(Failure) -> GateServer {
    let program = ExecutableLocator(searchPath: ProcessInfo.processInfo.environment["PATH"])
    let settings = try loader.settings()
    let (logger, sink) = LogOutput.make(settings.log)
    do throws(Failure) {
      return try await make(loader, settings, inherited, signals, program, logger, sink)
    } catch {
      // The caller does not flush the log, and its last lines explain the failure.
      sink.flush()
      throw error
    }
  }

  private static func make(
    _ loader: SettingsLoader, _ settings: GateSettings, _ inherited: InheritedSockets, _ signals: Signals.Source,
    _ program: ExecutableLocator, _ logger: Logger, _ sink: LineSink
  ) async throws(Failure) -> GateServer {
    DescriptorLimit.raise()
    CoreDumps.forbid()

    let secrets = SecretFiles(of: settings)
    if let folder = settings.stateFolder { makeStateFolder(folder, logger) }
    let memory = try SharedState(settings, logger: logger)
    let composition = try GateComposition(settings, memory: memory)
    let files = CertificateFiles(of: settings)
    if settings.stateFolder == nil { try settings.store.requireFolder() }
    let fault = await announce(memory.store, with: logger)
    await loadManagedCertificate(settings, memory, logger)
    await prepareStatusList(by: composition, memory, logger)
    let tls = try composition.tls()
    let served = ServedCertificates(tls, from: files)
    announce(settings, served, with: logger)
    if let fault, inherited.parent != nil {
      throw Failure(
        .unavailable, "the store at \(memory.store.place) cannot be used: \(fault)",
        hint: "\(fault.advice); the old process continues to serve")
    }
    let generation = Generation(
      composition: composition, responder: try composition.responder(logger: logger), served: served,
      certificates: files, acmeFiles: ACMEFiles(of: settings))
    let engine = try start(
      generation, tls, inherited, memory.processors, EngineLog(logger: logger, metrics: memory.metrics))
    let server = GateServer(
      engine: engine, tls: tls, loader: loader, memory: memory, generation: generation, program: program,
      secrets: secrets, isUpgradeChild: inherited.parent != nil, lingering: inherited.lingering, signals, logger, sink)
    do throws(Failure) {
      try await server.begin(inherited)
    } catch {
      engine.stop()
      server.signals.stop()
      throw error
    }
    return server
  }

  /// The settings that serve now.
  package var settings: GateSettings { generation.composition.settings }

  /// The port of the public listener.
  package nonisolated var port: UInt16 { engine.address.port }

  private init(
    engine: Engine, tls: ServerTLS, loader: SettingsLoader, memory: SharedState, generation: Generation,
    program: ExecutableLocator, secrets: SecretFiles, isUpgradeChild: Bool, lingering: LingeringProcesses,
    _ signals: Signals.Source,
    _ logger: Logger, _ sink: LineSink
  ) {
    self.engine = engine
    self.tls = tls
    self.loader = loader
    self.memory = memory
    activity = ActivityLog(of: memory.metrics, sessions: memory.sessions)
    self.generation = generation
    certificates = LockedValue(generation.served)
    self.secrets = secrets
    self.program = program
    self.isUpgradeChild = isUpgradeChild
    self.lingering = lingering
    enforcement = LockedValue(generation.composition.settings.enforcementMeaning)
    self.logger = logger
    self.sink = sink
    let stops = StopRequests()
    self.stops = stops
    self.signals = Signals(stops, from: signals)
    changes = ChangeFollower(
      memory.store, sessions: memory.sessions, response: generation.composition.changeResponse(logger: logger),
      every: generation.composition.settings.session.lookInterval)
  }

  static let upstreamTLSHint =
    "correct upstream_tls of the route: ca_file is a PEM file of CA certificates; cert_file and key_file belong together"

  private func begin(_ inherited: InheritedSockets) throws(Failure) {
    let settings = generation.composition.settings
    for upstream in settings.routes.flatMap(\.upstreams) {
      do throws(ServerTLS.SetupError) {
        try engine.prepare(upstream.transport)
      } catch {
        throw Failure(
          .configuration, "routes: \(error)", hint: Self.upstreamTLSHint)
      }
    }
    generation.responder.begin()
    GateGauges.register(in: memory.metrics.registry, for: self)
    side.metrics = try MetricsServer.start(settings.metrics, openResources, inherited, logger: logger)
    side.admin = try AdminServer.start(settings.admin, describedResources, inherited, logger: logger)
    side.challenges = try ChallengeServer.start(settings, memory.managed, inherited, logger: logger)
    inherited.closeRest()
    logger.info("listening", metadata: summary(of: settings))
    // A socket unit may have another port than the default, which says nothing.
    if inherited.parent != nil, settings.isSet("listen.port"), settings.listen.port != 0,
      settings.listen.port != engine.address.port
    {
      logger.warning(
        "listening port unchanged: a new port needs a restart",
        metadata: ["setting": "listen.port", "port": .number(engine.address.port)])
    }
  }

  /// The values that identify the gate in its log.
  private func summary(of settings: GateSettings) -> Logger.Metadata {
    [
      "address": "\(engine.address)", "version": "\(Version.text)", "configuration": "\(loader.file ?? "none")",
      "apps": "\(settings.appAttest.names.joined(separator: " "))",
      "enforcement": "\(settings.appAttest.enforcement.rawValue)",
      "routes": "\(settings.routes.map(\.path).joined(separator: " "))", "store": "\(memory.store.place)",
    ]
  }

  private func startAccepting() {
    for engine in side.engines + [engine] { engine.startAccepting() }
  }

  /// The endpoints of the admin server.
  var adminResources: [any AdminResource] {
    openResources + [
      StatusResource { await self.status },
      KeyResource(store: memory.store, sessions: memory.sessions, announce: memory.announce, logger: logger),
      DecisionResource(store: memory.store),
      SessionResource(memory.sessions, logger: logger),
      UpstreamResource(memory.metrics.upstreamHealth, logger: logger),
      RefusalResource(memory.metrics.refusalLog),
      ActivityResource(activity),
      ConfigurationResource { [weak self] in
        await self?.configurationListing ?? ConfigurationListing(settings: [], changes: nil)
      },
      LifeResource(
        reload: { [weak self] asker in
          await self?.reload(because: Self.request(of: asker)) ?? .refused("the gate is shutting down")
        },
        upgrade: { [weak self] asker in
          await self?.upgrade(because: Self.request(of: asker)) ?? .refused("the gate is shutting down")
        },
        drain: { [stops] asker in stops.request(.end("drain " + Self.request(of: asker))) }),
    ]
  }

  /// The reason of an operator's request for the log, with the process that asked.
  private static func request(of asker: PeerProcess?) -> String {
    guard let asker else { return "requested by an operator" }
    return "requested by an operator (uid \(asker.user), process \(asker.id))"
  }

  /// Logs the warnings that an operator should read at every start and reload.
  static func announce(_ settings: GateSettings, _ served: ServedCertificates, with logger: Logger) {
    for warning in settings.warnings { logger.warning("\(warning)") }
    served.warn(logger, at: .now())
    switch settings.appAttest.enforcement {
    case .enforce: break
    case .monitor:
      logger.warning(
        "MONITOR MODE: clients that fail verification are admitted anonymously",
        metadata: ["setting": "app_attest.enforcement: monitor"])
    case .off:
      logger.warning(
        "ENFORCEMENT OFF: all clients are admitted without verification",
        metadata: ["setting": "app_attest.enforcement: off (REQUIRE_APP_AUTH=false)"])
    }
  }

  /// Creates the default state folder. A failure is only logged here: opening the store then fails and reports the
  /// error.
  private static func makeStateFolder(_ folder: String, _ logger: Logger) {
    do {
      try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      logger.error(
        "state folder not created: set store.url to a writable path",
        metadata: ["path": "\(folder)", "reason": "\(Self.reason(error))"])
    }
  }

  /// The system's error text. Foundation's own description of the error does not help an operator.
  private static func reason(_ error: any Error) -> String {
    guard let system = (error as? CocoaError)?.underlying as? POSIXError else { return "\(error)" }
    return String(cString: strerror(system.code.rawValue))
  }

  /// Opens the store and logs its findings. Returns the error if the store cannot be opened.
  private static func announce(_ store: any GateStore, with logger: Logger) async -> StoreError? {
    do throws(StoreError) {
      try await store.open()
      for finding in try await store.findings(isThorough: false) {
        logger.warning("\(finding.text)", metadata: ["store": "\(store.place)", "advice": "\(finding.advice)"])
      }
      return nil
    } catch {
      logger.error(
        "store not opened: new sessions are refused until it is available",
        metadata: [
          "store": "\(store.place)", "step": "\(error.step)", "reason": "\(error)", "advice": "\(error.advice)",
        ])
      return error
    }
  }

  /// Begins or ends the check of revoked Android certificates, and reads the list if that needs no network.
  static func prepareStatusList(by composition: GateComposition, _ memory: SharedState, _ logger: Logger) async {
    let list = composition.settings.appAttest.statusList
    memory.revoked.configure(
      maximumAge: list?.maximumAge, source: (list?.place).map { StatusListSource($0).text })
    await composition.statusListRefresh(logger: logger)?.prepare()
  }
}

extension GateSettings.Session {
  /// The polling interval for stores that send no change notifications. Two polls fit into the time allowed to close
  /// the sessions of a revoked key.
  var lookInterval: Duration { min((closeOnRevoke ?? .seconds(2)) / 2, .seconds(5)) }
}

extension GateSettings.AppAttest {
  /// The names of all apps, of both platforms.
  var names: [String] { apps.map { "\($0.teamID).\($0.bundleID)" } + androidApps.map(\.package) }
}

extension GateSettings {
  /// The enforcement mode for `/readyz`, with a warning if debug builds are admitted next to a production app.
  var enforcementMeaning: String {
    let enforcement =
      switch appAttest.enforcement {
      case .enforce: "enforce"
      case .monitor: "MONITOR: clients that fail verification are admitted anonymously"
      case .off: "OFF: all clients are admitted without verification"
      }
    guard debugMTLS != nil, appAttest.hasProductionApp else {
      return enforcement
    }
    return "\(enforcement); WARNING: client certificates admit debug builds, and an app has environment production"
  }
}
