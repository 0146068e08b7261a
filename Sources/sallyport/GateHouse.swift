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
internal import Settings
internal import Systemd
internal import Transport
internal import TransportEngine

/// A gate that serves: its store, its rules and its engine, put together from settings, and put together anew when those
/// change.
actor GateHouse {
  nonisolated let engine: Engine
  let loader: SettingsLoader
  let startedAt = Timestamp.now()
  nonisolated let activity: ActivityLog
  nonisolated let memory: GateMemory
  let logger: Logger
  /// What serves now.
  var generation: Generation
  /// Whether whoever balances gates is to send nobody here any more.
  nonisolated let isLeaving = Guarded(false)
  /// How the settings that serve now have it, for `/readyz`.
  nonisolated let enforcement: Guarded<GateSettings.AppAttest.Enforcement>
  nonisolated let stops: StopRequests
  private var admin: Engine?
  private var metrics: Engine?
  private let sink: LineSink

  /// What was made from one state of the settings.
  struct Generation {
    let assembly: GateAssembly
    let responder: GateResponder
    /// Of the files that TLS was set up from.
    var certificates: CertificateFiles
    var background: Task<Void, Never>?
  }

  /// Opens the store, reads the certificates, and starts to listen.
  ///
  /// A store that cannot be opened does not stop the start: the gate refuses sockets and says so until it can.
  static func open(_ loader: SettingsLoader) async throws(CommandFailure) -> GateHouse {
    let settings = try RunCommand.load(loader)
    let (logger, sink) = LogOutput.make(settings.log)
    DescriptorLimit.raise()
    CoreDumps.forbid()

    let memory = try GateMemory(settings)
    let assembly = try GateAssembly(settings, memory: memory)
    if let folder = settings.stateFolder { makeStateFolder(folder, logger) }
    announce(settings, with: logger)
    await announce(memory.store, with: logger)
    let generation = Generation(
      assembly: assembly, responder: try assembly.responder(logger: logger),
      certificates: CertificateFiles(of: settings))
    let engine = try start(generation, EngineLog(logger: logger, metrics: memory.metrics))
    let house = GateHouse(engine: engine, loader: loader, memory: memory, generation: generation, logger, sink)
    do throws(CommandFailure) {
      try await house.begin()
    } catch {
      engine.stop()
      throw error
    }
    return house
  }

  private init(
    engine: Engine, loader: SettingsLoader, memory: GateMemory, generation: Generation, _ logger: Logger,
    _ sink: LineSink
  ) {
    self.engine = engine
    self.loader = loader
    self.memory = memory
    activity = ActivityLog(of: memory.metrics)
    self.generation = generation
    enforcement = Guarded(generation.assembly.settings.appAttest.enforcement)
    self.logger = logger
    self.sink = sink
    stops = StopRequests()
  }

  private func begin() throws(CommandFailure) {
    let settings = generation.assembly.settings
    for route in settings.routes {
      do throws(ServerTLS.Fault) {
        try engine.prepare(route.upstream.upstream)
      } catch {
        throw CommandFailure(.configuration, error: "routes: \(error)", hint: "name a PEM file of authorities")
      }
    }
    GateGauges.register(in: memory.metrics.registry, for: self)
    metrics = try MetricsServer.start(settings.metrics, openResources, logger: logger)
    admin = try AdminServer.start(settings.admin, describedResources, logger: logger)
    logger.info("listening", metadata: ["address": "\(engine.address)"])
  }

  /// What operators can ask of the gate.
  var adminResources: [any AdminResource] {
    openResources + [
      StatusResource { await self.status },
      KeyResource(store: memory.store, sessions: memory.sessions, logger: logger),
      SessionResource(memory.sessions, logger: logger),
      LifeResource(
        reload: { [weak self] in await self?.reload(because: "an operator asked for it") ?? .refused("the gate ends") },
        drain: { [stops] in stops.request("drain") }),
    ]
  }

  /// What an operator should read at every start and reload.
  static func announce(_ settings: GateSettings, with logger: Logger) {
    for warning in settings.warnings { logger.warning("\(warning)") }
    switch settings.appAttest.enforcement {
    case .enforce: break
    case .monitor:
      logger.warning(
        "THE GATE ONLY WATCHES: whoever would be refused is let through as nobody",
        metadata: ["setting": "app_attest.enforcement: monitor"])
    case .off:
      logger.warning(
        "THE GATE IS OPEN: everybody is let through, nothing is verified",
        metadata: ["setting": "app_attest.enforcement: off (REQUIRE_APP_AUTH=false)"])
    }
  }

  /// Makes the folder of a store that nobody named. Where that fails, opening the store says what follows.
  private static func makeStateFolder(_ folder: String, _ logger: Logger) {
    do {
      try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      logger.error(
        "the state folder cannot be made: name a place with store.url",
        metadata: ["path": "\(folder)", "reason": "\(error)"])
    }
  }

  private static func announce(_ store: any GateStore, with logger: Logger) async {
    do throws(StoreError) {
      try await store.open()
      for finding in try await store.findings(isThorough: false) {
        logger.warning("\(finding.text)", metadata: ["store": "\(store.place)", "advice": "\(finding.advice)"])
      }
    } catch {
      logger.error(
        "the store cannot be used: new sockets are refused until it can",
        metadata: ["store": "\(store.place)", "step": "\(error.step)", "reason": "\(error)"])
    }
  }

  private static func start(
    _ generation: Generation, _ log: EngineLog
  ) throws(CommandFailure) -> Engine {
    let listen = generation.assembly.settings.listen
    guard let address = SocketAddress(literal: listen.address, port: listen.port) else {
      throw CommandFailure(
        .configuration, error: "listen.address: \(listen.address) is no address",
        hint: "write an IPv4 or IPv6 address, or :: for every one")
    }
    let settings = generation.assembly.settings
    return try serve(at: address, settings, try generation.assembly.tls(), generation.responder, log)
  }

  /// Serves at the sockets that were opened for this process, if there are any, else at `address`.
  private static func serve(
    at address: SocketAddress, _ settings: GateSettings, _ tls: ServerTLS, _ responder: GateResponder, _ log: EngineLog
  ) throws(CommandFailure) -> Engine {
    let loops = settings.listen.loops ?? sysconf(Int32(_SC_NPROCESSORS_ONLN))
    let (limits, proxies) = (settings.limits.engine, settings.listen.proxyProtocol)
    let passed = PassedSockets.descriptors(environment: ProcessInfo.processInfo.environment)
    do throws(Engine.StartFault) {
      guard passed.isEmpty else {
        return try Engine(
          inheriting: passed, loops: loops, tls: tls, responder: responder, limits: limits, proxies: proxies,
          report: { log.write($0) })
      }
      return try Engine(
        listeningAt: address, loops: loops, tls: tls, responder: responder, limits: limits, proxies: proxies,
        report: { log.write($0) })
    } catch {
      throw CommandFailure(
        .cannotBind, error: "cannot listen at \(error)",
        hint: error.isAddressInUse
          ? "another process listens there: stop it, or set listen.port to another one"
          : "see listen.address and listen.port")
    }
  }

  // MARK: Serving

  /// Works until SIGTERM or SIGINT, or until an operator asks for the end; then closes every socket and returns when all
  /// are gone or the time is up. A second signal does not hurry it. SIGHUP reads the configuration anew.
  func serve() async {
    generation.background = background(of: generation.assembly)
    let service = ServiceState(engine: engine)
    service.begin()
    let signals = Signals(stops)
    let listening = Task { await obey(signals, service) }
    let watching = Task { await watchCertificates() }
    let noting = Task { await noteActivity() }
    let reason = await stops.first()
    isLeaving.withLock { $0 = true }
    service.end()
    logger.info("stopping", metadata: ["reason": "\(reason)"])
    watching.cancel()
    noting.cancel()
    let settings = generation.assembly.settings
    // Time for whoever balances gates to notice; sockets are taken on as before.
    try? await Task.sleep(for: settings.unreadyDelay)
    let cut = await engine.drain(timeout: settings.drainTimeout)
    engine.stop()
    // Whoever asked for the end has its answer first.
    await admin?.drain(timeout: .seconds(2))
    admin?.stop()
    metrics?.stop()
    listening.cancel()
    generation.background?.cancel()
    await generation.background?.value
    service.leave()
    await memory.store.close()
    logger.info("stopped", metadata: ["cut_off": "\(cut)"])
    sink.flush()
  }

  private func obey(_ signals: Signals, _ service: ServiceState) async {
    for await _ in signals.reloads {
      service.reloading()
      _ = await reload(because: "SIGHUP")
      service.begin()
    }
  }

  /// What goes on beside serving, until it is cancelled.
  func background(of assembly: GateAssembly) -> Task<Void, Never> {
    let (keeper, changes) = (assembly.keeper(logger: logger), assembly.changeResponse(logger: logger))
    // How often the store is asked for changes when it gives no notice: twice within the time that a revocation has.
    let interval = min((assembly.settings.session.closeOnRevoke ?? .seconds(2)) / 2, .seconds(5))
    return Task { [store = memory.store] in
      await withTaskGroup(of: Void.self) { group in
        group.addTask { await keeper.run() }
        group.addTask { await changes.run(reading: store, every: interval) }
      }
    }
  }
}

extension GateSettings.AppAttest.Enforcement {
  /// For people who look at `/readyz`.
  var meaning: String {
    switch self {
    case .enforce: "enforce"
    case .monitor: "MONITOR: whoever would be refused is let through as nobody"
    case .off: "OFF: everybody is let through, nothing is verified"
    }
  }
}

/// Events of the engine as log lines and metrics.
struct EngineLog: Sendable {
  let logger: Logger
  let metrics: GateMetrics

  func write(_ event: EngineEvent) {
    switch event {
    case .handshakeCompleted(let duration): metrics.handshakeCompleted(in: duration)
    case .handshakeFailed(let address, let reason):
      metrics.handshakeFailed()
      logger.info("TLS handshake failed", metadata: ["client": "\(address.host)", "reason": "\(reason)"])
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
