internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Cryptography
internal import FoundationEssentials
internal import GateService
internal import Glibc
internal import JSONLog
internal import Locking
internal import Logging
package import Settings
internal import GracefulUpgrade
internal import Transport
internal import TransportEngine

/// A running gate: its store, its rules and its engine, built from settings and rebuilt when those change.
package actor GateServer {
  nonisolated let engine: Engine
  let loader: SettingsLoader
  let startedAt = Timestamp.now()
  nonisolated let activity: ActivityLog
  nonisolated let memory: SharedState
  let logger: Logger
  /// What serves now.
  var generation: Generation
  /// What stood in the files that are read at the start alone.
  nonisolated let secrets: SecretFiles
  /// Whether load balancers should send no more clients here.
  nonisolated let isLeaving = LockedValue(false)
  /// Who the settings that serve now let in, for `/readyz`.
  nonisolated let enforcement: LockedValue<String>
  nonisolated let stops: StopRequests
  /// Installs signal handlers before readiness is reported, so that a SIGHUP sent right after start cannot kill the
  /// process.
  nonisolated let signals: Signals
  nonisolated let changes: ChangeFollower
  /// Reads files after the start, off the actor.
  nonisolated let fileReads = FileReads()
  /// The end of the last reload that was begun.
  var lastTurn: Task<Void, Never>?
  var admin: Engine?
  var metrics: Engine?
  let sink: LineSink
  /// What is to be started when this gate is upgraded.
  nonisolated let program: ExecutableLocator
  /// Whether it has taken another gate's place.
  let isUpgradeChild: Bool
  var isUpgrading = false
  /// A process that may be about to take over.
  var candidate: UpgradeChild?

  /// What was made from one state of the settings.
  struct Generation: Sendable {
    let composition: GateComposition
    let responder: GateResponder
    /// What TLS was set up from.
    var served: ServedCertificates
    /// The files as they were when they were last read, whatever came of it.
    var certificates: CertificateFiles
    /// Keeps the store clean, by the plan of these settings.
    var maintenanceTask: Task<Void, Never>?
  }

  /// Opens the store, reads the certificates, and starts to listen.
  ///
  /// A store that cannot be opened does not stop the start: the gate refuses sockets and reports it until the store
  /// works. During a graceful upgrade it does stop the start, since the old process serves.
  ///
  /// - Parameter inheritance: what this process inherited; the old process is told how the start went.
  package static func open(
    _ loader: SettingsLoader, _ inheritance: InheritedSockets = .ofThisProcess, signals: Signals.Source = .process
  ) async throws(SallyportError) -> GateServer {
    do throws(SallyportError) {
      let server = try await make(loader, inheritance, signals)
      inheritance.parent?.tellReady()
      await server.startAccepting()
      return server
    } catch {
      inheritance.parent?.tell(failure: error.plainLines)
      throw error
    }
  }

  /// Does all that can fail. No connection is accepted yet.
  private static func make(
    _ loader: SettingsLoader, _ inheritance: InheritedSockets, _ signals: Signals.Source
  ) async throws(SallyportError) -> GateServer {
    let program = ExecutableLocator(searchPath: ProcessInfo.processInfo.environment["PATH"])
    let settings = try loader.settings()
    let (logger, sink) = LogOutput.make(settings.log)
    do throws(SallyportError) {
      return try await make(loader, settings, inheritance, signals, program, logger, sink)
    } catch {
      // The log has the reasons, and only this writes them.
      sink.flush()
      throw error
    }
  }

  private static func make(
    _ loader: SettingsLoader, _ settings: GateSettings, _ inheritance: InheritedSockets, _ signals: Signals.Source,
    _ program: ExecutableLocator, _ logger: Logger, _ sink: LineSink
  ) async throws(SallyportError) -> GateServer {
    DescriptorLimit.raise()
    CoreDumps.forbid()

    let secrets = SecretFiles(of: settings)
    let memory = try SharedState(settings)
    let composition = try GateComposition(settings, memory: memory)
    let files = CertificateFiles(of: settings)
    let tls = try composition.tls()
    let served = ServedCertificates(tls, from: files)
    if let folder = settings.stateFolder { makeStateFolder(folder, logger) }
    announce(settings, served, with: logger)
    let fault = await announce(memory.store, with: logger)
    if let fault, inheritance.parent != nil {
      throw SallyportError(
        .unavailable, error: "the store at \(memory.store.place) cannot be used: \(fault)",
        hint: "\(fault.advice); the gate before serves on")
    }
    let generation = Generation(
      composition: composition, responder: try composition.responder(logger: logger), served: served,
      certificates: files)
    let engine = try start(generation, tls, inheritance, EngineLog(logger: logger, metrics: memory.metrics))
    let server = GateServer(
      engine: engine, loader: loader, memory: memory, generation: generation, program: program,
      secrets: secrets, isUpgradeChild: inheritance.parent != nil, signals, logger, sink)
    do throws(SallyportError) {
      try await server.begin(inheritance)
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
    engine: Engine, loader: SettingsLoader, memory: SharedState, generation: Generation, program: ExecutableLocator,
    secrets: SecretFiles, isUpgradeChild: Bool, _ signals: Signals.Source, _ logger: Logger, _ sink: LineSink
  ) {
    self.engine = engine
    self.loader = loader
    self.memory = memory
    activity = ActivityLog(of: memory.metrics)
    self.generation = generation
    self.secrets = secrets
    self.program = program
    self.isUpgradeChild = isUpgradeChild
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

  private func begin(_ inheritance: InheritedSockets) throws(SallyportError) {
    let settings = generation.composition.settings
    for route in settings.routes {
      do throws(ServerTLS.Fault) {
        try engine.prepare(route.upstream.upstream)
      } catch {
        throw SallyportError(.configuration, error: "routes: \(error)", hint: "name a PEM file of authorities")
      }
    }
    GateGauges.register(in: memory.metrics.registry, for: self)
    metrics = try MetricsServer.start(settings.metrics, openResources, inheritance, logger: logger)
    admin = try AdminServer.start(settings.admin, describedResources, inheritance, logger: logger)
    inheritance.closeRest()
    logger.info("listening", metadata: summary(of: settings))
    if inheritance.parent != nil, settings.listen.port != 0, settings.listen.port != engine.address.port {
      logger.warning(
        "the port of the gate before is kept: another one needs a restart",
        metadata: ["setting": "listen.port", "port": "\(engine.address.port)"])
    }
  }

  /// What an operator who reads the log needs to know which gate this is.
  private func summary(of settings: GateSettings) -> Logger.Metadata {
    [
      "address": "\(engine.address)", "version": "\(Version.text)", "configuration": "\(loader.file ?? "none")",
      "apps": "\(settings.appAttest.apps.map { "\($0.teamID).\($0.bundleID)" }.joined(separator: " "))",
      "enforcement": "\(settings.appAttest.enforcement.rawValue)",
      "routes": "\(settings.routes.map(\.path).joined(separator: " "))", "store": "\(memory.store.place)",
    ]
  }

  private func startAccepting() {
    for engine in [metrics, admin, engine] { engine?.startAccepting() }
  }

  /// What operators can ask of the gate.
  var adminResources: [any AdminResource] {
    openResources + [
      StatusResource { await self.status },
      KeyResource(store: memory.store, sessions: memory.sessions, logger: logger),
      SessionResource(memory.sessions, logger: logger),
      LifeResource(
        reload: { [weak self] in await self?.reload(because: "an operator asked for it") ?? .refused("the gate ends") },
        upgrade: { [weak self] in await self?.upgrade(because: "an operator asked for it") ?? .refused("the gate ends")
        },
        drain: { [stops] in stops.request(.end("drain")) }),
    ]
  }

  /// What an operator should read at every start and reload.
  static func announce(_ settings: GateSettings, _ served: ServedCertificates, with logger: Logger) {
    for warning in settings.warnings { logger.warning("\(warning)") }
    served.warn(logger, at: .now())
    switch settings.appAttest.enforcement {
    case .enforce: break
    case .monitor:
      logger.warning(
        "monitor mode: a client that would be refused is admitted anonymously",
        metadata: ["setting": "app_attest.enforcement: monitor"])
    case .off:
      logger.warning(
        "enforcement off: every client is admitted, nothing is verified",
        metadata: ["setting": "app_attest.enforcement: off (REQUIRE_APP_AUTH=false)"])
    }
  }

  /// Creates the folder of a store without a configured place. If that fails, opening the store reports it.
  private static func makeStateFolder(_ folder: String, _ logger: Logger) {
    do {
      try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      logger.error(
        "the state folder cannot be made: name a place with store.url",
        metadata: ["path": "\(folder)", "reason": "\(Self.reason(error))"])
    }
  }

  /// What the system says behind an error of Foundation's, whose own text is of no use to people.
  private static func reason(_ error: any Error) -> String {
    guard let system = (error as? CocoaError)?.underlying as? POSIXError else { return "\(error)" }
    return String(cString: strerror(system.code.rawValue))
  }

  /// What keeps the store from being used, if anything does.
  private static func announce(_ store: any GateStore, with logger: Logger) async -> StoreError? {
    do throws(StoreError) {
      try await store.open()
      for finding in try await store.findings(isThorough: false) {
        logger.warning("\(finding.text)", metadata: ["store": "\(store.place)", "advice": "\(finding.advice)"])
      }
      return nil
    } catch {
      logger.error(
        "the store cannot be used: new sockets are refused until it can",
        metadata: [
          "store": "\(store.place)", "step": "\(error.step)", "reason": "\(error)", "advice": "\(error.advice)",
        ])
      return error
    }
  }

  /// Keeps the store clean by the settings of `composition`, until it is cancelled.
  func maintenanceTask(by composition: GateComposition) -> Task<Void, Never> {
    let maintenance = composition.maintenance(logger: logger)
    return Task { await maintenance.run() }
  }
}

extension GateSettings.Session {
  /// How often the store is asked for changes when it gives no notice: twice within the time that a revocation has.
  var lookInterval: Duration { min((closeOnRevoke ?? .seconds(2)) / 2, .seconds(5)) }
}

extension GateSettings {
  /// For people who look at `/readyz`: what is let in beside genuine instances of the apps.
  var enforcementMeaning: String {
    let enforcement =
      switch appAttest.enforcement {
      case .enforce: "enforce"
      case .monitor: "MONITOR MODE: a client that would be refused is admitted anonymously"
      case .off: "OFF: every client is admitted, nothing is verified"
      }
    guard debugMTLS != nil, appAttest.apps.contains(where: { $0.environments.contains(.production) }) else {
      return enforcement
    }
    return "\(enforcement); WARNING: client certificates let debug builds in beside an app with environment production"
  }
}

/// Events of the engine as log lines and metrics.
struct EngineLog: Sendable {
  let logger: Logger
  let metrics: GateMetrics

  func write(_ event: EngineEvent) {
    switch event {
    case .handshakeCompleted(let duration): metrics.handshakeCompleted(in: duration)
    case .handshakeFailed(let address, let reason, let commonName):
      metrics.handshakeFailed()
      var metadata: Logger.Metadata = ["client": "\(address.host)", "reason": "\(reason)"]
      if let commonName { metadata["common_name"] = "\(commonName)" }
      logger.info("TLS handshake failed", metadata: metadata)
    case .acceptPaused(let reason):
      metrics.acceptPaused()
      logger.error("no further connections for a moment", metadata: ["reason": "\(reason)"])
    case .connectionRefused(let refusal, let address, let detail):
      metrics.refusedConnection(refusal.rawValue)
      var metadata: Logger.Metadata = ["client": "\(address.host)", "code": "\(refusal.rawValue)"]
      if let detail { metadata["detail"] = "\(detail)" }
      logger.info("connection refused", metadata: metadata)
    }
  }
}

/// The number of sockets that the process may hold.
enum DescriptorLimit {
  /// Takes all that the system allows: each session has two.
  static func raise() {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard getrlimit(resource, &limit) == 0, limit.rlim_cur < limit.rlim_max else { return }
    limit.rlim_cur = limit.rlim_max
    setrlimit(resource, &limit)
  }
}
