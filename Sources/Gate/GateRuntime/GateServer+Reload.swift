internal import ByteCoding
internal import GateService
internal import Locking
internal import Logging
internal import Preflight
internal import Settings
internal import TransportEngine

extension GateServer {
  /// Reloads the configuration and serves by it from then on; open sessions do not notice.
  ///
  /// All or nothing: if the new one has a fault, the old one stays and the log says why. Settings that a running
  /// process cannot change stay and are named. Concurrent calls run one after another.
  func reload(because reason: String) async -> ReloadOutcome {
    await inTurn { await $0.reloadNow(because: reason) }
  }

  /// Runs `work` when all that was begun before is done: no two of them tell the loops at once what to serve.
  private func inTurn<Result: Sendable>(
    _ work: @escaping @Sendable (isolated GateServer) async -> Result
  ) async -> Result {
    let before = lastTurn
    let turn = Task {
      await before?.value
      return await work(self)
    }
    lastTurn = Task { _ = await turn.value }
    return await turn.value
  }

  private func reloadNow(because reason: String) async -> ReloadOutcome {
    let outcome = await tryReload()
    switch outcome {
    case .done(let unchanged):
      logger.notice("configuration reloaded", metadata: ["reason": "\(reason)"])
      if !unchanged.isEmpty {
        logger.warning(
          "these settings need a restart", metadata: ["settings": "\(unchanged.joined(separator: ", "))"])
      }
    case .refused(let fault):
      logger.error(
        "configuration not reloaded: the old one stays",
        metadata: ["reason": "\(reason)", "fault": "\(Self.onOneLine(fault))"])
    }
    memory.metrics.reloaded(outcome)
    return outcome
  }

  private static func onOneLine(_ lines: String) -> String {
    lines.split(whereSeparator: \.isNewline).joined(separator: "; ")
  }

  private func tryReload() async -> ReloadOutcome {
    let current = generation.composition.settings
    do throws(SallyportError) {
      let prepared = try await fileReads.run { [loader, secrets, memory, logger] () throws(SallyportError) in
        try Prepared(loader, beside: current, secrets, memory, logger)
      }
      try await changeOver(to: prepared.generation, prepared.tls)
      return .done(needingRestart: prepared.unchanged)
    } catch {
      return .refused(error.plainLines)
    }
  }

  /// What a configuration that was read again makes. Its files are read here and nowhere later.
  private struct Prepared: Sendable {
    let generation: Generation
    let tls: ServerTLS
    /// The settings that need a restart.
    let unchanged: [String]

    init(
      _ loader: SettingsLoader, beside current: GateSettings, _ secrets: SecretFiles, _ memory: SharedState,
      _ logger: Logger
    ) throws(SallyportError) {
      var settings = try loader.settings()
      // A new start would refuse it.
      do throws(StartFault) { try settings.store.judge() } catch { throw SallyportError(error) }
      let sections = settings.keepWhatNeedsRestart(of: current)
      let files = secrets.keys(differingFrom: SecretFiles(of: settings))
      unchanged = sections + files.filter { file in !sections.contains { file.hasPrefix($0 + ".") } }
      let composition = try GateComposition(settings, memory: memory)
      let certificates = CertificateFiles(of: settings)
      tls = try composition.tls()
      generation = Generation(
        composition: composition, responder: try composition.responder(logger: logger),
        served: ServedCertificates(tls, from: certificates), certificates: certificates)
    }
  }

  private func changeOver(to next: Generation, _ tls: ServerTLS) async throws(SallyportError) {
    let settings = next.composition.settings
    // Before it decides anything: what it remembers of the store is never out of date.
    changes.begin(next.composition.changeResponse(logger: logger))
    do throws(SallyportError) {
      try await serve(next, tls: tls)
    } catch {
      settle(on: generation)
      throw error
    }
    GateServer.announce(settings, next.served, with: logger)
    generation.maintenanceTask?.cancel()
    generation = next
    generation.maintenanceTask = maintenanceTask(by: next.composition)
    settle(on: next)
    enforcement.withLock { $0 = settings.enforcementMeaning }
  }

  private func settle(on generation: Generation) {
    changes.settle(
      on: generation.composition.changeResponse(logger: logger),
      every: generation.composition.settings.session.lookInterval)
  }

  /// Has new connections begin with `tls`, and requests be decided by `next`.
  private func serve(_ next: Generation, tls: ServerTLS) async throws(SallyportError) {
    do throws(ServerTLS.Fault) {
      try await engine.replace(
        responder: next.responder, tls: tls, limits: next.composition.settings.limits.engine,
        upstreams: next.composition.settings.routes.map(\.upstream.upstream))
    } catch {
      throw SallyportError(.configuration, error: "routes: \(error)", hint: "name a PEM file of authorities")
    }
  }

  // MARK: Certificates

  /// Serves renewed certificates: changed files are read again once they have not changed for a round, so that a
  /// certificate is not read together with the key of another one.
  func watchCertificates() async {
    var seen = generation.certificates
    while !Task.isCancelled {
      try? await Task.sleep(for: .seconds(2))
      let settings = generation.composition.settings
      guard !Task.isCancelled, settings.tls.reload == .auto else { continue }
      do throws(SallyportError) {
        let now = try await fileReads.run { () throws(SallyportError) in CertificateFiles(of: settings) }
        defer { seen = now }
        guard settings.tls == generation.composition.settings.tls else { continue }
        if now != generation.certificates, now == seen { await inTurn { await $0.renewCertificates(now) } }
      } catch {
        // Logged once; files that can be read again are renewed then.
        if seen != .unreadable { await inTurn { $0.keepCertificates(.unreadable, error) } }
        seen = .unreadable
      }
    }
  }

  private func renewCertificates(_ files: CertificateFiles) async {
    let composition = generation.composition
    do throws(SallyportError) {
      let tls = try await fileReads.run { () throws(SallyportError) in try composition.tls() }
      generation.certificates = files
      try await serve(generation, tls: tls)
      generation.served = ServedCertificates(tls, from: files)
      generation.served.warn(logger, at: .now())
      logger.notice(
        "new certificate served", metadata: ["file": "\(generation.composition.settings.tls.certificateFile)"])
      memory.metrics.renewedCertificates(.done(needingRestart: []))
    } catch {
      keepCertificates(files, error)
    }
  }

  /// Goes on with the certificates that are served. Files that cannot be used are not read again until they change.
  private func keepCertificates(_ files: CertificateFiles, _ failure: SallyportError) {
    generation.certificates = files
    logger.error(
      "the changed certificate cannot be used: the old one stays",
      metadata: ["fault": "\(Self.onOneLine(failure.plainLines))"])
    memory.metrics.renewedCertificates(.refused(failure.plainLines))
  }
}

extension GateSettings {
  /// Sets back to `old` what a running process cannot change, and names the keys that differed.
  fileprivate mutating func keepWhatNeedsRestart(of old: GateSettings) -> [String] {
    var changed: [String] = []
    if listen != old.listen { changed.append("listen") }
    if store != old.store || mostWaitingForStore != old.mostWaitingForStore { changed.append("store") }
    if admin != old.admin { changed.append("admin") }
    if metrics != old.metrics { changed.append("metrics") }
    if log != old.log { changed.append("log") }
    (listen, store, mostWaitingForStore, admin) = (old.listen, old.store, old.mostWaitingForStore, old.admin)
    (metrics, log) = (old.metrics, old.log)
    return changed
  }
}
