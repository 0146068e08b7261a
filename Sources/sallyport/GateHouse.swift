internal import AppAttest
internal import AttestGate
internal import Cryptography
@preconcurrency internal import Dispatch
internal import FoundationEssentials
internal import GateService
internal import Glibc
internal import JSONLog
internal import Logging
internal import Settings
internal import Systemd
internal import Transport
internal import TransportEngine

/// A gate that serves: its store, its rules and its engine, put together from settings.
struct GateHouse {
  let engine: Engine
  private let store: any GateStore
  private let changes: ChangeResponse
  /// How often the store is asked for changes when it gives no notice: twice within the time that a revocation has.
  private let changeInterval: Duration
  private let housekeeping: NonceHousekeeping
  private let logger: Logger
  private let sink: LineSink
  private let drainTimeout: Duration

  /// Opens the store, reads the certificates, and starts to listen.
  ///
  /// A store that cannot be opened does not stop the start: the gate refuses sockets and says so until it can.
  static func open(_ settings: GateSettings) async throws(CommandFailure) -> GateHouse {
    let sink = LineSink(descriptor: STDERR_FILENO)
    let logger = Logger(label: "sallyport") { JSONLineHandler(label: $0, sink: sink) }
    for warning in settings.warnings { logger.warning("\(warning)") }
    DescriptorLimit.raise()

    let assembly = try GateAssembly(settings)
    let store = assembly.store
    if let folder = settings.stateFolder { makeStateFolder(folder, logger) }
    await announce(store, with: logger)
    let responder = GateResponder(
      gate: assembly.gate(), registrar: try assembly.registrar(), challenges: assembly.challenges,
      routes: try assembly.routes(), limits: settings.session.limits,
      sessions: assembly.sessions, stripHeaders: Set(settings.strippedHeaders), logger: logger,
      metrics: assembly.metrics)
    let engine = try start(settings, responder, EngineLog(logger: logger, metrics: assembly.metrics))
    for route in settings.routes {
      do throws(ServerTLS.Fault) {
        try engine.prepare(route.upstream.upstream)
      } catch {
        throw CommandFailure(.configuration, error: "routes: \(error)", hint: "name a PEM file of authorities")
      }
    }
    if settings.appAttest.enforcement == .off {
      logger.warning(
        "THE GATE IS OPEN: everybody is let through, nothing is verified",
        metadata: ["setting": "app_attest.enforcement: off (REQUIRE_APP_AUTH=false)"])
    }
    logger.info("listening", metadata: ["address": "\(engine.address)"])
    return GateHouse(
      engine: engine, store: store, changes: assembly.changeResponse(logger: logger),
      changeInterval: min((settings.session.closeOnRevoke ?? .seconds(2)) / 2, .seconds(5)),
      housekeeping: NonceHousekeeping(registry: store, challenges: assembly.challenges), logger: logger, sink: sink,
      drainTimeout: settings.drainTimeout)
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
    _ settings: GateSettings, _ responder: GateResponder, _ log: EngineLog
  ) throws(CommandFailure) -> Engine {
    guard let address = SocketAddress(literal: settings.listen.address, port: settings.listen.port) else {
      throw CommandFailure(
        .configuration, error: "listen.address: \(settings.listen.address) is no address",
        hint: "write an IPv4 or IPv6 address, or :: for every one")
    }
    let tls: ServerTLS
    do throws(ServerTLS.Fault) {
      tls = try ServerTLS(
        certificateFile: settings.tls.certificateFile, keyFile: settings.tls.keyFile,
        minimumVersion: settings.tls.leastVersion == .v1_2 ? .tls12 : .tls13,
        clientAuthorityFile: settings.debugMTLS?.clientCAFile)
    } catch {
      throw CommandFailure(
        .configuration, error: "tls: \(error)",
        hint: "tls.cert_file is the PEM chain, leaf first; tls.key_file its unencrypted PEM key")
    }
    return try listen(at: address, settings.listen.loops, tls, responder, log)
  }

  /// Serves at the sockets that were opened for this process, if there are any, else at `address`.
  private static func listen(
    at address: SocketAddress, _ loops: Int?, _ tls: ServerTLS, _ responder: GateResponder, _ log: EngineLog
  ) throws(CommandFailure) -> Engine {
    let loops = loops ?? sysconf(Int32(_SC_NPROCESSORS_ONLN))
    let passed = PassedSockets.descriptors(environment: ProcessInfo.processInfo.environment)
    do throws(Engine.StartFault) {
      guard passed.isEmpty else {
        return try Engine(
          inheriting: passed, loops: loops, tls: tls, responder: responder, report: { log.write($0) })
      }
      return try Engine(
        listeningAt: address, loops: loops, tls: tls, responder: responder, report: { log.write($0) })
    } catch {
      throw CommandFailure(
        .cannotBind, error: "cannot listen at \(error)",
        hint: error.isAddressInUse
          ? "another process listens there: stop it, or set listen.port to another one"
          : "see listen.address and listen.port")
    }
  }

  // MARK: Serving

  /// Works until SIGTERM or SIGINT, then closes every socket and returns when all are gone or the time is up.
  func serve() async {
    let cleaning = Task { await keepHouse() }
    let watching = Task { await changes.run(reading: store, every: changeInterval) }
    let service = ServiceState(engine: engine)
    service.begin()
    let signal = await Self.stopSignal()
    service.end()
    logger.info("stopping", metadata: ["signal": "\(signal)"])
    let cut = await engine.drain(timeout: drainTimeout)
    engine.stop()
    cleaning.cancel()
    watching.cancel()
    service.leave()
    await store.close()
    logger.info("stopped", metadata: ["cut_off": "\(cut)"])
    sink.flush()
  }

  private func keepHouse() async {
    while !Task.isCancelled {
      do throws(StoreError) {
        try await housekeeping.run()
      } catch {
        logger.error("spent nonces cannot be forgotten", metadata: ["step": "\(error.step)"])
      }
      try? await Task.sleep(for: .seconds(30))
    }
  }

  private static func stopSignal() async -> String {
    let queue = DispatchQueue(label: "sallyport.signals")
    let names = [SIGTERM: "SIGTERM", SIGINT: "SIGINT"]
    let sources = names.map { number, name in
      signal(number, SIG_IGN)
      return (DispatchSource.makeSignalSource(signal: number, queue: queue), name)
    }
    let stream = AsyncStream<String> { continuation in
      for (source, name) in sources {
        source.setEventHandler { continuation.yield(name) }
        source.resume()
      }
      // Until then the stream holds the sources: a source that nobody holds hears nothing.
      continuation.onTermination = { _ in for (source, _) in sources { source.cancel() } }
    }
    for await name in stream { return name }
    return "end"
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
