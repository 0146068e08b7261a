internal import AttestGate
internal import GateService
internal import Locking
internal import Logging
internal import Observability
internal import ProcessFrame
internal import Settings
internal import Transport
internal import TransportEngine

extension GateServer {
  /// Serves until SIGTERM, SIGINT, an operator's drain request or a completed upgrade. Then waits until every session
  /// is closed or the timeout has passed.
  ///
  /// A second signal does not shorten the shutdown. SIGHUP reloads the configuration; SIGUSR2 starts a graceful
  /// upgrade.
  ///
  /// - Parameter announce: called when the gate serves.
  package func serve(announce: () -> Void = {}) async {
    generation.services = BackgroundServices(
      generation.composition, after: generation.services, logger: logger)
    generation.certificateTask = certificateTask(by: generation.composition)
    let following = Task { [changes] in await changes.run() }
    let heartbeat = heartbeat()
    let service = ServiceState(engine: engine, isUpgradeChild: isUpgradeChild)
    // During an upgrade the old process is still the service's main process; it reports the new one to the service
    // manager.
    if !isUpgradeChild { service.begin() }
    announce()
    let tasks = [
      Task { await obeyReloads(service) }, Task { await obeyUpgrades() },
      Task { await watchCertificates() }, Task { await remindOfCertificates() }, Task { await noteActivity() },
      Task { [memory, logger] in await StoreHealthLog(store: memory.store, logger: logger).run() },
    ]
    let exporting = memory.telemetry.map { telemetry in Task { await telemetry.run() } }
    let sending = memory.webhooks.map { webhooks in Task { await webhooks.run() } }
    let stop = await stops.next()
    let earlier = life.withLock { life in
      defer { life = .leaving }
      return life
    }
    for task in tasks { task.cancel() }
    generation.certificateTask?.cancel()
    generation.services?.leave()
    let cut =
      switch stop {
      case .end(let reason): await end(reason, service, earlier)
      case .replaced(let process): await handOver(to: process, service, leaving: heartbeat)
      }
    // Each session that is cut off writes a log line first.
    await engine.end()
    // The operator that requested the shutdown receives the answer first.
    await side.admin?.drain(timeout: .seconds(2))
    for engine in side.engines { engine.stop() }
    for task in [heartbeat, following] { task.cancel() }
    await generation.services?.endMaintenance()
    for task in [heartbeat, following] { await task.value }
    service.leave()
    // Last, so that the spans and counts of the shutdown are exported too.
    exporting?.cancel()
    sending?.cancel()
    await exporting?.value
    await sending?.value
    await memory.store.close()
    logger.info("stopped", metadata: ["cut_off": .number(cut)])
    sink.flush()
    signals.stop()
  }

  /// Reports this gate as a live member of the cluster until the task is cancelled.
  private func heartbeat() -> Task<Void, Never> {
    let heartbeat = Heartbeat(store: memory.store, gates: memory.gates, logger: logger)
    return Task { await heartbeat.run() }
  }

  private func obeyReloads(_ service: ServiceState) async {
    for await _ in signals.reloads {
      service.reloading()
      _ = await reload(because: "SIGHUP")
      if case .leaving = life.withLock(\.self) { continue }
      service.begin()
    }
  }

  private func obeyUpgrades() async {
    for await _ in signals.upgrades { _ = await upgrade(because: "SIGUSR2") }
  }

  /// Closes every session. Returns the number of sessions that had to be cut off.
  private func end(_ reason: String, _ service: ServiceState, _ earlier: Life) async -> Int {
    // A new process that is not ready yet would be left alone.
    if case .upgrading(let child?) = earlier { child.end() }
    // Operators and service managers reach this process alone.
    lingering.end()
    service.end()
    logger.info("stopping", metadata: ["reason": "\(reason)"])
    let settings = generation.composition.settings
    // Gives load balancers time to notice; the gate still accepts connections.
    try? await Task.sleep(for: settings.unreadyDelay)
    return await engine.drain(timeout: settings.drainTimeout)
  }

  /// Hands over to `process`. The sessions of this process continue until they close, `linger` has passed, or an
  /// operator requests the shutdown of this process or of the new one. Returns the number of sessions that had to be
  /// cut off.
  ///
  /// The new process performs store maintenance and counts towards the cluster-wide limits. This process still closes
  /// the sessions of revoked keys. It would not hear that a reload of the new process refuses a client certificate, so
  /// the sessions of certificates end now.
  private func handOver(
    to process: any NewProcess, _ service: ServiceState, leaving heartbeat: Task<Void, Never>
  ) async -> Int {
    for engine in [engine] + side.engines {
      await engine.shareSockets()
      await engine.stopListening()
    }
    // First: systemd waits for the end of a main process only if it is its own child when it hears of it.
    process.release()
    service.handOver(to: process.id)
    memory.webhooks?.handOver()
    let requests = Task { [stops] in
      if await process.isAskedToEnd() { stops.request(.end("shutdown of the new process")) }
    }
    defer { requests.cancel() }
    let settings = generation.composition.settings
    memory.sessions.closeCertificates(.serviceRestart, reason: "the gate was upgraded")
    let sessions = await engine.traffic().sessions
    logger.notice(
      "new process took over: open sessions continue in this process",
      metadata: [
        "process": .number(process.id), "sessions": .number(sessions),
        "linger_seconds": .number(settings.linger.components.seconds),
      ])
    heartbeat.cancel()
    generation.services?.handOver()
    let request = await requestWhileLeaving(for: settings.linger)
    if let request { logger.info("stopping", metadata: ["reason": "\(request)"]) }
    return await engine.drain(
      request == nil ? .serviceRestart : .goingAway,
      reason: request == nil ? "the gate was upgraded" : "the gate is shutting down", timeout: settings.drainTimeout)
  }

  /// Waits until no connection is open, or for `limit`. Returns the reason of a shutdown request that arrives
  /// earlier, or `nil`.
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
