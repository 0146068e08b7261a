internal import ByteCoding
internal import Commands
internal import ConfigurationEngine
internal import GateService
internal import Locking
internal import Logging
internal import Settings
internal import TransportEngine

extension GateServer {
  /// Reloads the configuration. Open sessions stay, except those of client certificates that are no longer accepted.
  ///
  /// The reload is atomic: if any part of the new configuration is invalid, the old configuration stays active and
  /// the log gives the reason. Settings that need a restart keep their old values, and the outcome names them.
  /// Concurrent reloads run one after the other.
  func reload(because reason: String) async -> ReloadOutcome {
    await inTurn { await $0.reloadNow(because: reason) }
  }

  /// Runs `work` after all earlier work, so that two reloads never replace the engine's settings at the same time.
  func inTurn<Result: Sendable>(
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
    let outcome: ReloadOutcome
    do throws(Failure) {
      let unchanged = try await change()
      logger.notice("configuration reloaded", metadata: ["reason": "\(reason)"])
      if !unchanged.isEmpty {
        logger.warning(
          "changed settings not applied: they need a restart",
          metadata: ["settings": "\(unchanged.joined(separator: ", "))"])
      }
      outcome = .done(needingRestart: unchanged)
    } catch {
      logger.error(
        "configuration reload failed: the old configuration stays active",
        metadata: ["reason": "\(reason)", "fault": "\(error.report(separator: "; "))"])
      outcome = .refused(error.report(separator: "\n"))
      await adoptRevocations()
    }
    memory.metrics.reloaded(outcome)
    return outcome
  }

  /// Changes to the configuration that is read now, and returns the settings that need a restart.
  private func change() async throws(Failure) -> [String] {
    try requireStay()
    let current = generation.composition.settings
    let prepared = try await fileReads.run { [loader, secrets, memory, logger] () throws(Failure) in
      try Prepared(loader, beside: current, secrets, memory, logger)
    }
    let listener = try challengeServer(for: prepared.generation.composition.settings)
    do throws(Failure) {
      try await changeOver(to: prepared.generation, prepared.tls)
    } catch {
      if listener?.engine !== side.challenges?.engine { listener?.engine.stop() }
      throw error
    }
    await use(listener)
    return prepared.unchanged
  }

  /// The generation built from a reloaded configuration. All its files are read here.
  private struct Prepared: Sendable {
    let generation: Generation
    let tls: ServerTLS
    /// The settings that need a restart.
    let unchanged: [String]

    init(
      _ loader: SettingsLoader, beside current: GateSettings, _ secrets: SecretFiles, _ memory: SharedState,
      _ logger: Logger
    ) throws(Failure) {
      var settings = try loader.settings()
      // A fresh start would refuse this store too.
      do throws(StartError) { try settings.store.judge() } catch { throw Failure(error) }
      let sections = settings.keepWhatNeedsRestart(of: current)
      let files = secrets.keys(differingFrom: SecretFiles(of: settings))
      unchanged = sections + files.filter { file in !sections.contains { file.hasPrefix($0 + ".") } }
      let composition = try GateComposition(settings, memory: memory)
      let certificates = CertificateFiles(of: settings)
      // From certificate files to ACME: the old certificate is served until the first new one arrives.
      if settings.tls.acme != nil, let files = current.tls.files.first, let material = CertificateMaterial(files) {
        memory.managed.standIn(material)
      }
      tls = try composition.tls()
      generation = Generation(
        composition: composition, responder: try composition.responder(logger: logger),
        served: ServedCertificates(tls, from: certificates), certificates: certificates,
        acmeFiles: ACMEFiles(of: settings))
    }
  }

  /// A process that leaves must not begin services that the new one has: maintenance, orders of certificates, listeners.
  private func requireStay() throws(Failure) {
    guard case .leaving = life.withLock(\.self) else { return }
    throw Failure(.unavailable, "the gate is shutting down", hint: "after an upgrade, reload the new process")
  }

  private func changeOver(to next: Generation, _ tls: ServerTLS) async throws(Failure) {
    let settings = next.composition.settings
    await GateServer.prepareStatusList(by: next.composition, memory, logger)
    // Before the new rules decide anything, so that their cache of the store never misses a change.
    changes.begin(next.composition.changeResponse(logger: logger))
    do throws(Failure) {
      try requireStay()
      try await serve(next, tls: tls)
      // An upgrade may have completed meanwhile. Nothing below waits before the services have begun.
      try requireStay()
    } catch {
      settle(on: generation)
      await GateServer.prepareStatusList(by: generation.composition, memory, logger)
      throw error
    }
    GateServer.announce(settings, next.served, with: logger)
    let old = generation
    generation = next
    noteChanges(from: old.composition.settings)
    next.responder.begin()
    generation.services = BackgroundServices(next.composition, after: old.services, logger: logger)
    memory.managed.configure(settings)
    // An order in progress is not interrupted by a change of other settings.
    if old.certificateTask != nil, old.composition.settings.tls.acme == settings.tls.acme,
      old.acmeFiles == next.acmeFiles, memory.managed.isPrepared
    {
      generation.certificateTask = old.certificateTask
    } else {
      old.certificateTask?.cancel()
      generation.certificateTask = certificateTask(by: next.composition, after: old.certificateTask)
    }
    settle(on: next)
    enforcement.withLock { $0 = settings.enforcementMeaning }
  }

  private func settle(on generation: Generation) {
    changes.settle(
      on: generation.composition.changeResponse(logger: logger),
      every: generation.composition.settings.session.lookInterval)
  }

  /// Uses `tls` for new connections, and `next` to decide on requests. Closes the sockets of client certificates that
  /// they do not accept.
  func serve(_ next: Generation, tls: ServerTLS) async throws(Failure) {
    do throws(ServerTLS.SetupError) {
      try await engine.replace(
        responder: next.responder, tls: tls, limits: next.composition.settings.engineLimits,
        upstreams: next.composition.settings.routes.flatMap(\.upstreams).map(\.transport))
    } catch {
      throw Failure(.configuration, "routes: \(error)", hint: Self.upstreamTLSHint)
    }
    self.tls = tls
    next.composition.closeRefusedCertificates(under: tls, logger: logger)
  }

  // MARK: Certificates

  /// Repeats the warnings of certificates that end soon once a day, until the task is cancelled. The start and each
  /// reload warn too.
  func remindOfCertificates() async {
    var reminder = DailyReminder(last: startedAt)
    while !Task.isCancelled {
      // Short, since a machine that was suspended should not be a day late.
      try? await Task.sleep(for: .seconds(600))
      let now = Timestamp.now()
      if !Task.isCancelled, reminder.isDue(at: now) { generation.served.warn(logger, at: now) }
    }
  }

  /// Reloads certificate files that have changed. A file is read once it has stayed unchanged for one polling
  /// interval, so that a certificate is not loaded with the key of another one.
  func watchCertificates() async {
    var seen = generation.certificates
    var nextTry = ContinuousClock.now
    while !Task.isCancelled {
      try? await Task.sleep(for: .seconds(2))
      let settings = generation.composition.settings
      guard !Task.isCancelled, settings.tls.reload == .auto else { continue }
      do throws(Failure) {
        let now = try await fileReads.run { () throws(Failure) in CertificateFiles(of: settings) }
        defer { seen = now }
        guard settings.tls == generation.composition.settings.tls else { continue }
        let isDue = now != generation.certificates || (hasFailedToRenew && nextTry <= .now)
        guard isDue, now == seen else { continue }
        nextTry = .now + Self.renewalPause
        await inTurn { await $0.renewCertificates(now) }
      } catch {
        // Logged once. The files are loaded when they can be read again.
        if seen != .unreadable { await inTurn { $0.keepCertificates(.unreadable, error) } }
        seen = .unreadable
      }
    }
  }

  /// Loads the files. What has failed for another reason than these files, such as half a CA of an upstream, may succeed
  /// later although they stay the same: the watch tries again.
  private func renewCertificates(_ files: CertificateFiles) async {
    let composition = generation.composition
    let isRepeated = files == generation.certificates
    do throws(Failure) {
      let tls = try await fileReads.run { () throws(Failure) in try composition.tls() }
      generation.certificates = files
      try await serve(generation, tls: tls)
      generation.served = ServedCertificates(tls, from: files)
      generation.served.warn(logger, at: .now())
      logger.notice(
        "certificate reloaded",
        metadata: ["file": "\(composition.settings.tls.files.first?.certificateFile ?? "debug_mtls.client_ca_file")"])
      memory.metrics.renewedCertificates(.done(needingRestart: []))
    } catch {
      keepCertificates(files, error)
      if !isRepeated { await adoptRevocations() }
    }
  }

  /// Lets a new list of revoked client certificates count although other files of the listener cannot be loaded.
  private func adoptRevocations() async {
    guard let file = generation.composition.settings.debugMTLS?.revocationListFile else { return }
    let tls = tls
    do throws(Failure) {
      try await fileReads.run { () throws(Failure) in
        do throws(ServerTLS.SetupError) {
          try tls.adopt(revocationListFile: file)
        } catch {
          throw Failure(.configuration, "debug_mtls.crl_file: \(error)")
        }
      }
      generation.composition.closeRefusedCertificates(under: tls, logger: logger)
      logger.notice("list of revoked client certificates read alone", metadata: ["file": "\(file)"])
    } catch {
      logger.error(
        "list of revoked client certificates not read: the old one counts",
        metadata: ["fault": "\(error.report(separator: "; "))"])
    }
  }

  /// Keeps the current certificates, and logs a failure that is not the last one again.
  private func keepCertificates(_ files: CertificateFiles, _ failure: Failure) {
    generation.certificates = files
    let report = failure.report(separator: "\n")
    if memory.metrics.reloadState.certificateFault != report {
      logger.error(
        "certificate reload failed: the old certificate stays active",
        metadata: ["fault": "\(failure.report(separator: "; "))"])
    }
    memory.metrics.renewedCertificates(.refused(report))
  }

  private var hasFailedToRenew: Bool { memory.metrics.reloadState.certificateFault != nil }

  /// The time between attempts to load certificate files that have not changed.
  private static let renewalPause = Duration.seconds(60)
}

extension GateSettings {
  /// Restores the values of `old` for settings that a running process cannot change. Returns the sections that
  /// differed.
  fileprivate mutating func keepWhatNeedsRestart(of old: GateSettings) -> [String] {
    var changed: [String] = []
    if listen != old.listen { changed.append("listen") }
    if store != old.store || mostWaitingForStore != old.mostWaitingForStore { changed.append("store") }
    if admin != old.admin { changed.append("admin") }
    if metrics != old.metrics { changed.append("metrics") }
    if log != old.log { changed.append("log") }
    if telemetry != old.telemetry { changed.append("telemetry") }
    if webhooks != old.webhooks { changed.append("webhooks") }
    (listen, store, mostWaitingForStore, admin) = (old.listen, old.store, old.mostWaitingForStore, old.admin)
    (metrics, log, telemetry, webhooks) = (old.metrics, old.log, old.telemetry, old.webhooks)
    let kept = old.effective.filter { Self.needsRestart($0.key) }
    // In the order of the documents.
    effective = effective.compactMap { value in
      Self.needsRestart(value.key) ? kept.first { $0.key == value.key } : value
    }
    let lost = kept.filter { value in !effective.contains { $0.key == value.key } }
    effective += lost
    return changed
  }

  /// Whether a running process keeps the setting `key` as it was.
  private static func needsRestart(_ key: String) -> Bool {
    let sections = ["listen.", "metrics.", "log.", "telemetry.", "webhooks."]
    return sections.contains { key.utf8.starts(with: $0.utf8) }
      || ["store.url", "store.password_file", "store.max_waiting", "admin.listen", "admin.group", "admin.token_file"]
        .contains(key)
  }
}

extension CertificateMaterial {
  /// Reads the files; `nil` if one of them cannot be read.
  fileprivate init?(_ files: GateSettings.TLS.Files) {
    guard let chain = try? FileContent.read(files.certificateFile), let key = try? FileContent.read(files.keyFile)
    else { return nil }
    self.init(chainPEM: String(decoding: chain, as: UTF8.self), keyPEM: String(decoding: key, as: UTF8.self))
  }
}
