internal import AttestGate
internal import GateService
internal import JSONLog
internal import Locking
internal import Logging
internal import Settings
internal import GracefulUpgrade
internal import Transport
internal import TransportEngine

extension GateServer {
  /// Serves until SIGTERM or SIGINT, until an operator requests the end, or until another process has taken over;
  /// then returns when every socket is closed or the time is over. A second signal does not hurry it. SIGHUP reloads
  /// the configuration, SIGUSR2 starts a graceful upgrade.
  ///
  /// - Parameter announce: reports to the starter of the gate that it serves.
  package func serve(announce: () -> Void = {}) async {
    generation.maintenanceTask = maintenanceTask(by: generation.composition)
    let following = Task { [changes] in await changes.run() }
    let heartbeat = heartbeat()
    let service = ServiceState(engine: engine)
    // Otherwise the gate before speaks for this one: it is the service until it says that this one is.
    if !isUpgradeChild { service.begin() }
    announce()
    let tasks = [
      Task { await obeyReloads(service) }, Task { await obeyUpgrades() },
      Task { await watchCertificates() }, Task { await noteActivity() },
      Task { [memory, logger] in await StoreHealthLog(store: memory.store, logger: logger).run() },
    ]
    let stop = await stops.next()
    isLeaving.withLock { $0 = true }
    for task in tasks { task.cancel() }
    let cut =
      switch stop {
      case .end(let reason): await end(reason, service)
      case .replaced(let id): await handOver(to: id, service, leaving: heartbeat)
      }
    // Each session that is cut off has its line in the log.
    await engine.end()
    // The caller that requested the end gets its answer first.
    await admin?.drain(timeout: .seconds(2))
    admin?.stop()
    metrics?.stop()
    generation.maintenanceTask?.cancel()
    for task in [heartbeat, following] { task.cancel() }
    await generation.maintenanceTask?.value
    for task in [heartbeat, following] { await task.value }
    service.leave()
    await memory.store.close()
    logger.info("stopped", metadata: ["cut_off": "\(cut)"])
    sink.flush()
    signals.stop()
  }

  /// Says to the other gates of the store that this one takes sessions on, until it is cancelled.
  private func heartbeat() -> Task<Void, Never> {
    let heartbeat = Heartbeat(store: memory.store, gates: memory.gates, logger: logger)
    return Task { await heartbeat.run() }
  }

  private func obeyReloads(_ service: ServiceState) async {
    for await _ in signals.reloads {
      service.reloading()
      _ = await reload(because: "SIGHUP")
      service.begin()
    }
  }

  private func obeyUpgrades() async {
    for await _ in signals.upgrades { _ = await upgrade(because: "SIGUSR2") }
  }

  /// Closes every session. Returns how many had to be cut off.
  private func end(_ reason: String, _ service: ServiceState) async -> Int {
    // One that is not ready yet would find itself alone.
    candidate?.end()
    service.end()
    logger.info("stopping", metadata: ["reason": "\(reason)"])
    let settings = generation.composition.settings
    // Time for load balancers to notice; connections are accepted as before.
    try? await Task.sleep(for: settings.unreadyDelay)
    return await engine.drain(timeout: settings.drainTimeout)
  }

  /// Leaves new connections to the process `id`, and lets sessions continue until they end, the time is over, or a
  /// signal asks this process to stop. Returns how many sessions were cut off.
  ///
  /// The other process maintains the store and takes its part of the limits for all gates. This one still closes the
  /// sessions of revoked keys.
  private func handOver(to id: Int32, _ service: ServiceState, leaving heartbeat: Task<Void, Never>) async -> Int {
    for engine in [engine, metrics, admin].compactMap(\.self) {
      await engine.shareSockets()
      await engine.stopListening()
    }
    service.handOver(to: id)
    let settings = generation.composition.settings
    let sessions = await engine.traffic().sessions
    logger.notice(
      "another process serves on: open sessions go on here",
      metadata: ["process": "\(id)", "sessions": "\(sessions)", "at_most": "\(settings.linger)"])
    heartbeat.cancel()
    generation.maintenanceTask?.cancel()
    let request = await requestWhileLeaving(for: settings.linger)
    if let request { logger.info("stopping", metadata: ["reason": "\(request)"]) }
    return await engine.drain(
      request == nil ? .serviceRestart : .goingAway,
      reason: request == nil ? "the gate was upgraded" : "the gate is shutting down", timeout: settings.drainTimeout)
  }

  /// Waits until no client is connected, or for `limit`. Returns what asked for the end meanwhile.
  private func requestWhileLeaving(for limit: Duration) async -> String? {
    await withTaskGroup(of: String?.self) { group in
      group.addTask { [engine] in
        let deadline = ContinuousClock.now + limit
        while !Task.isCancelled, .now < deadline, await engine.traffic().connections > 0 {
          try? await Task.sleep(for: min(.milliseconds(250), ContinuousClock.now.duration(to: deadline)))
        }
        return nil
      }
      group.addTask { [stops] in
        guard case .end(let reason) = await stops.next() else { return nil }
        return reason
      }
      let first = await group.next()
      group.cancelAll()
      return first ?? nil
    }
  }
}
