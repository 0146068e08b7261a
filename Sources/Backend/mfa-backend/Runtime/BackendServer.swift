internal import ByteCoding
internal import Commands
internal import ConfigurationEngine
internal import Foundation
internal import Glibc
internal import HTTPClientTransport
internal import Logging
internal import MFADomain
internal import MFAService
internal import Metrics
internal import Observability
internal import ProcessFrame
internal import ProcessSignals
internal import ServiceLifecycle

/// Runs the backend's services from start to shutdown.
struct BackendServer {
  private let reader: SettingsReader
  private let log: BackendLog
  private let logger: Logger
  private let stops: AsyncStream<String>
  private let stop: AsyncStream<String>.Continuation
  private let hangups: AsyncStream<Void>

  /// Hears SIGHUP from now on, so that one that arrives during the start is obeyed after it.
  init(_ reader: SettingsReader, log: BackendLog) {
    self.reader = reader
    self.log = log
    logger = log.logger()
    let (stops, stop) = AsyncStream.makeStream(of: String.self)
    let (hangups, hangup) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    (self.stops, self.stop, self.hangups) = (stops, stop, hangups)
    ProcessSignals.hear([SIGHUP]) { _ in hangup.yield() }
  }

  /// Serves until SIGTERM, SIGINT or an operator's request.
  ///
  /// - Parameter warnings: Those of `settings`, for the log.
  func serve(_ settings: BackendSettings, warnings: [Warning]) async throws {
    let passed = try PassedListener(at: settings.listen, environment: ProcessInfo.processInfo.environment)
    try Self.refuseTakenPlaces(settings, passed)
    log.setLevel(settings.logLevel)
    let exposition = MetricsExposition()
    // Metrics must be set up before the first count.
    if settings.metrics != nil || settings.admin != nil { MetricsSystem.bootstrap(exposition) }
    let foundation = try await BackendFoundation.open(settings, log: log)
    let runtime = try await BackendRuntime(reader, settings, foundation)
    let health = StoreHealth(foundation.store, logger: logger)
    BackendGauges(runtime: runtime, health: health).register(in: exposition)
    let operations = BackendOperations(
      checks: { await runtime.checks(health) }, status: { await runtime.status(health) },
      metrics: { await exposition.text() }, reload: { await runtime.reload(because: "operator") },
      drain: { [stop] in stop.yield("operator") })
    var configuration = ServiceGroupConfiguration(
      services: services(settings, passed, runtime, health, operations), logger: logger)
    configuration.maximumGracefulShutdownDuration = settings.shutdown.drainTimeout
    let group = ServiceGroup(configuration: configuration)
    // Until here the default action ends the process: a migration or a database that hangs must not delay it.
    ProcessSignals.hear([SIGTERM, SIGINT]) { [stop] number in stop.yield(number == SIGTERM ? "SIGTERM" : "SIGINT") }
    let notify = NotifySocket(environment: ProcessInfo.processInfo.environment)
    let tasks = [
      Task { await obeyStops(runtime, group, notify) }, Task { await obeyHangups(runtime, notify) },
      Task { await watch(runtime, notify) },
    ]
    defer { for task in tasks { task.cancel() } }
    BackendLog.announce(warnings, to: logger)
    do {
      try await group.run()
    } catch is CancellationError {
      logger.warning("requests aborted at shutdown")
    } catch {
      throw Failure(notServing: error, settings)
    }
    logger.info("stopped")
  }

  /// Services stop in reverse order. The server stops first, so that the last head covers all its entries; the
  /// operators' listeners stop last, so that status and readiness are answered during a shutdown.
  private func services(
    _ settings: BackendSettings, _ passed: PassedListener?, _ runtime: BackendRuntime, _ health: StoreHealth,
    _ operations: BackendOperations
  ) -> [any Service] {
    let foundation = runtime.foundation
    var services: [any Service] = []
    if let admin = settings.admin {
      services.append(
        AdminServer(
          AdminRouter(
            operations, surface: .operators, accounts: AccountResource(runtime.live, logger: logger)),
          path: admin.path, logger: logger))
    }
    if let place = settings.metrics {
      services.append(
        MetricsServer(
          AdminRouter(operations, surface: .monitoring), address: MFAServer.Address(place), logger: logger))
    }
    services += [
      foundation.outbox, foundation.push, foundation.exporter,
      HistoryHeadService(heads: HistoryHeads(foundation.store, foundation.vault.historyKeys), logger: logger),
      MaintenanceJob(live: runtime.live, logger: logger), health, GateKeyWait(runtime: runtime, logger: logger),
      MFAServer(
        runtime.live, address: MFAServer.Address(settings.listen), passed: passed?.descriptor, logger: logger,
        didBind: { [logger] port in
          let place = await runtime.didListen(at: port)
          var metadata: Logger.Metadata = ["address": "\(place)"]
          if let port { metadata["port"] = .number(port) }
          logger.info("listening", metadata: metadata)
          NotifySocket(environment: ProcessInfo.processInfo.environment)?.send(.ready, .status("serving"))
        }),
    ]
    return services
  }

  private static func refuseTakenPlaces(
    _ settings: BackendSettings, _ passed: PassedListener?
  ) throws(Failure) {
    let places = [passed == nil ? settings.listen : nil, settings.metrics, settings.admin.map { .unix(path: $0.path) }]
      .compactMap(\.self)
    for place in places where place.isAnswered {
      throw Failure(
        .cannotBind, "cannot serve: another process listens at \(place)", hint: "stop it, or choose another address")
    }
  }

  /// Shuts down at the first request: unready first, then no new connection, and 1001 for every socket.
  private func obeyStops(_ runtime: BackendRuntime, _ group: ServiceGroup, _ notify: NotifySocket?) async {
    for await reason in stops {
      guard await runtime.leave() else { continue }
      logger.info("stopping", metadata: ["reason": "\(reason)"])
      notify?.send(.stopping, .status("closing its sockets"))
      try? await Task.sleep(for: await runtime.shutdown.unreadyDelay)
      await group.triggerGracefulShutdown()
    }
  }

  private func obeyHangups(_ runtime: BackendRuntime, _ notify: NotifySocket?) async {
    for await _ in hangups {
      // systemd must not hear READY=1 before the backend listens, nor after STOPPING=1.
      let wasServing = await runtime.isServing
      if wasServing {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        notify?.send(.reloading(at: UInt64(time.tv_sec) * 1_000_000 + UInt64(time.tv_nsec) / 1000))
      }
      _ = await runtime.reload(because: "SIGHUP")
      if wasServing, await runtime.isServing { notify?.send(.ready, .status("serving")) }
    }
  }

  /// Reports to systemd that the backend is alive, if systemd asks for it.
  private func watch(_ runtime: BackendRuntime, _ notify: NotifySocket?) async {
    guard let notify, let watchdog = Watchdog(environment: ProcessInfo.processInfo.environment, socket: notify) else {
      return
    }
    await watchdog.run { [logger] in
      let isAlive = await runtime.isAlive
      if !isAlive { logger.error("backend does not answer itself") }
      return isAlive
    }
  }
}

extension Failure {
  /// The error that stopped a service; in practice a failure to listen.
  fileprivate init(notServing error: any Error, _ settings: BackendSettings) {
    let reason =
      (error as? AdminServer.ListenError).map { "admin.listen: \($0)" } ?? ConnectionFault.reason(of: error)
    let places = [settings.listen, settings.metrics].compactMap(\.self).map { "\($0)" }.joined(separator: " and ")
    self.init(
      .cannotBind, "cannot serve: \(reason)",
      hint: error is AdminServer.ListenError
        ? "name a socket in an existing folder that this user can write to"
        : "see which process listens at \(places), or choose another")
  }
}
