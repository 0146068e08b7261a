internal import ByteCoding
internal import GateService
internal import Locking
internal import Logging
internal import Preflight
internal import Settings
internal import TransportEngine

extension GateHouse {
  /// Reads the configuration anew and serves by it from then on; open sessions do not notice.
  ///
  /// All or nothing: whatever is wrong with the new one, the old one stays and the log says why. What a running process
  /// cannot change stays as it was and is named. Of several at once, one after the other.
  func reload(because reason: String) async -> ReloadOutcome {
    await inTurn { await $0.reloadNow(because: reason) }
  }

  /// Runs `work` when all that was begun before is done: no two of them tell the loops at once what to serve.
  private func inTurn<Result: Sendable>(
    _ work: @escaping @Sendable (isolated GateHouse) async -> Result
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
    do throws(CommandFailure) {
      var settings = try RunCommand.load(loader)
      // A gate that is started anew would refuse it.
      do throws(StartFault) { try settings.store.judge() } catch { throw CommandFailure(error) }
      let sections = settings.keepWhatNeedsRestart(of: generation.assembly.settings)
      let files = secrets.keys(differingFrom: SecretFiles(of: settings))
      let unchanged = sections + files.filter { file in !sections.contains { file.hasPrefix($0 + ".") } }
      let assembly = try GateAssembly(settings, memory: memory)
      let certificates = CertificateFiles(of: settings)
      let tls = try assembly.tls()
      let next = Generation(
        assembly: assembly, responder: try assembly.responder(logger: logger),
        served: ServedCertificates(tls, from: certificates), certificates: certificates)
      try await changeOver(to: next, tls)
      return .done(needingRestart: unchanged)
    } catch {
      return .refused(error.plainLines)
    }
  }

  private func changeOver(to next: Generation, _ tls: ServerTLS) async throws(CommandFailure) {
    let settings = next.assembly.settings
    // Before it decides anything: what it remembers of the store is never out of date.
    changes.begin(next.assembly.changeResponse(logger: logger))
    do throws(CommandFailure) {
      try await serve(next, tls: tls)
    } catch {
      settle(on: generation)
      throw error
    }
    GateHouse.announce(settings, next.served, with: logger)
    generation.keeping?.cancel()
    generation = next
    generation.keeping = keeping(by: next.assembly)
    settle(on: next)
    enforcement.withLock { $0 = settings.enforcementMeaning }
  }

  private func settle(on generation: Generation) {
    changes.settle(
      on: generation.assembly.changeResponse(logger: logger),
      every: generation.assembly.settings.session.lookInterval)
  }

  /// Has new connections begin with `tls`, and requests be decided by `next`.
  private func serve(_ next: Generation, tls: ServerTLS) async throws(CommandFailure) {
    do throws(ServerTLS.Fault) {
      try await engine.replace(
        responder: next.responder, tls: tls, limits: next.assembly.settings.limits.engine,
        upstreams: next.assembly.settings.routes.map(\.upstream.upstream))
    } catch {
      throw CommandFailure(.configuration, error: "routes: \(error)", hint: "name a PEM file of authorities")
    }
  }

  // MARK: Certificates

  /// Serves renewed certificates: files that have changed are read anew, once they have rested for a round, so that a
  /// certificate is not read together with the key of another one.
  func watchCertificates() async {
    var seen = generation.certificates
    while !Task.isCancelled {
      try? await Task.sleep(for: .seconds(2))
      guard !Task.isCancelled, generation.assembly.settings.tls.reload == .auto else { continue }
      let now = CertificateFiles(of: generation.assembly.settings)
      defer { seen = now }
      if now != generation.certificates, now == seen { await inTurn { await $0.renewCertificates(now) } }
    }
  }

  private func renewCertificates(_ files: CertificateFiles) async {
    // Whatever comes of it: what is broken is not read again until it has changed again.
    generation.certificates = files
    do throws(CommandFailure) {
      let tls = try generation.assembly.tls()
      try await serve(generation, tls: tls)
      generation.served = ServedCertificates(tls, from: files)
      generation.served.warn(logger, at: .now())
      logger.notice("new certificate served", metadata: ["file": "\(generation.assembly.settings.tls.certificateFile)"])
      memory.metrics.renewedCertificates(.done(needingRestart: []))
    } catch {
      logger.error(
        "the changed certificate cannot be used: the old one stays",
        metadata: ["fault": "\(Self.onOneLine(error.plainLines))"])
      memory.metrics.renewedCertificates(.refused(error.plainLines))
    }
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
