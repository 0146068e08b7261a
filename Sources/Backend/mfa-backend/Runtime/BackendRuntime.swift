internal import ByteCoding
internal import Commands
internal import ConfigurationEngine
internal import Logging
internal import MFADelivery
internal import MFADomain
internal import MFAService
internal import ProcessFrame

/// The state of a running backend that a reload replaces.
actor BackendRuntime {
  nonisolated let foundation: BackendFoundation
  nonisolated let live: LiveService
  private let reader: SettingsReader
  private let fileReads = FileReads()
  private let startedAt = Timestamp.now()
  private var settings: BackendSettings
  private var verifier: GateIdentityVerifier
  private var loadedAt = Timestamp.now()
  private var fault: String?
  /// Successful and refused reloads, for metrics.
  private var reloads = (done: 0, refused: 0)
  private var isLeaving = false
  /// Where the backend listens; `nil` before. The kernel may have chosen the port.
  private var boundPlace: ListenPlace?
  /// The reload that runs or ran last. Reloads run one after another.
  private var lastReload: Task<ReloadOutcome, Never>?

  /// Composes the first generation.
  ///
  /// Keys of the gate in a file are read at once, and a fault of the file prevents the start. Keys at a URL are fetched
  /// while the backend serves (`GateKeyWait`): a gate that starts later prevents nothing.
  init(_ reader: SettingsReader, _ settings: BackendSettings, _ foundation: BackendFoundation) async throws {
    self.reader = reader
    self.settings = settings
    self.foundation = foundation
    let verifier = foundation.verifier(settings.gate)
    self.verifier = verifier
    if settings.gate.source.isFile {
      try await verifier.prepare()
    } else if let file = settings.gate.authorityFile {
      try InputFile.require(file, "the gate's root file")
    }
    let (generation, providers) = try await foundation.generation(settings, verifier)
    live = LiveService(generation)
    foundation.apply(settings, providers)
  }

  // MARK: State

  var keyState: GateIdentityVerifier.KeyState { get async { await verifier.keyState } }

  func fetchKeys() async throws(GateKeySource.FetchError) { try await verifier.prepare() }

  /// Records that the backend listens, and returns where.
  func didListen(at port: Int?) -> ListenPlace {
    var place = settings.listen
    if let port, case .tcp(let host, _) = place { place = .tcp(host: host, port: port) }
    boundPlace = place
    return place
  }

  /// Whether the backend listens and no shutdown has begun.
  var isServing: Bool { boundPlace != nil && !isLeaving }

  /// Whether the backend answers. A store that is down does not count, because a restart does not mend it. During a
  /// shutdown it is `true`: the shutdown has a time limit of its own.
  var isAlive: Bool {
    get async {
      guard !isLeaving, let boundPlace else { return true }
      let answers = await SelfProbe.succeeds(at: boundPlace)
      return answers || isLeaving
    }
  }

  var shutdown: BackendSettings.Shutdown { settings.shutdown }

  /// Begins the shutdown: the backend is unready from now on. Returns `false` if it has begun before.
  func leave() -> Bool {
    defer { isLeaving = true }
    return !isLeaving
  }

  /// The conditions of readiness, as last known.
  func checks(_ store: StoreHealth) async -> [ReadinessCheck] {
    let checks = [store.check, await verifier.keyState.check]
    return isLeaving ? checks + [ReadinessCheck("shutdown", ready: false, "the backend is shutting down")] : checks
  }

  func status(_ store: StoreHealth) async -> BackendStatus {
    let checks = await checks(store)
    return BackendStatus(
      version: ProjectVersion.number, ready: checks.allSatisfy(\.ready), checks: checks,
      uptimeSeconds: max(0, Timestamp.now().seconds - startedAt.seconds),
      address: "\(boundPlace ?? settings.listen)",
      sockets: live.openSockets, delivery: delivery, store: settings.database.place,
      configuration: BackendStatus.Configuration(
        file: reader.file, loadedAt: "\(loadedAt.wholeSecond)", fault: fault))
  }

  private var delivery: [BackendStatus.Delivery] {
    foundation.outbox.waiting.map { queue in
      BackendStatus.Delivery(
        kind: queue.kind, provider: queue.kind == "sms" ? settings.smsPlace : settings.mailPlace,
        queued: queue.queued, retrying: queue.retrying, figures: queue.figures)
    }
      + foundation.push.waiting.map { queue in
        BackendStatus.Delivery(
          kind: queue.service.rawValue, provider: settings.pushPlace(queue.service), queued: queue.queued,
          retrying: queue.retrying, fault: queue.fault, figures: queue.figures)
      }
  }

  /// The figures of reloads: how many, whether the last one succeeded, and when the configuration was loaded.
  var reloadFigures: (done: Int, refused: Int, isCurrent: Bool, loadedAt: Timestamp) {
    (reloads.done, reloads.refused, fault == nil, loadedAt)
  }

  // MARK: Reload

  /// Reads the configuration again and uses it for requests that begin from now on. Open sockets stay open.
  ///
  /// The reload is atomic: if any part of the new configuration is invalid, the old one stays in use.
  func reload(because reason: String) async -> ReloadOutcome {
    let before = lastReload
    let turn = Task {
      _ = await before?.value
      return await reloadNow(because: reason)
    }
    lastReload = turn
    return await turn.value
  }

  private func reloadNow(because reason: String) async -> ReloadOutcome {
    let logger = foundation.logger
    do {
      let (waiting, warnings) = try await change()
      fault = nil
      loadedAt = .now()
      reloads.done += 1
      logger.notice("configuration reloaded", metadata: ["reason": "\(reason)"])
      if !waiting.isEmpty {
        logger.warning(
          "changed settings not applied: they need a restart",
          metadata: ["settings": "\(waiting.joined(separator: ", "))"])
      }
      BackendLog.announce(warnings, to: logger)
      return .done(needingRestart: waiting)
    } catch {
      let failure = Failure(of: error)
      fault = failure.report(separator: "\n")
      reloads.refused += 1
      logger.error(
        "configuration reload failed: the old configuration stays in use",
        metadata: [
          "reason": "\(reason)",
          "fault": "\(failure.report(separator: "; "))",
        ])
      return .refused(faults: failure.errors, hint: failure.hint)
    }
  }

  /// Changes to the configuration that is read now, and returns the settings that need a restart.
  private func change() async throws -> (waiting: [String], warnings: [Warning]) {
    // Not here: a file system that hangs would stop the operator's commands and the shutdown with this actor.
    let (read, warnings, keys) = try await fileReads.run(
      within: FileReads.limit, late: Failure.lateFiles(within: FileReads.limit) as any Error
    ) { [reader] in
      let diagnostics = reader.examine()
      guard let read = diagnostics.settings else { throw ConfigurationErrors(faults: diagnostics.faults) }
      return (read, diagnostics.warnings, try read.database.keys())
    }
    let (next, changed) = read.keepingWhatNeedsRestart(of: settings)
    var waiting = changed
    // Keys in memory are new in each process.
    if next.database != .ephemeral, keys != foundation.keys, !waiting.contains("keys_file") {
      waiting.append("keys_file")
    }
    let verifier = try await verifier(next.gate)
    let (generation, providers) = try await foundation.generation(next, verifier)
    foundation.apply(next, providers)
    live.replace(with: generation)
    self.verifier = verifier
    settings = next
    return (waiting, warnings)
  }

  /// The verifier for the gate: one that has read its keys. For an unchanged URL it is the current one, which fetches
  /// keys by itself.
  private func verifier(_ gate: BackendSettings.Gate) async throws -> GateIdentityVerifier {
    guard gate != settings.gate || gate.source.isFile else {
      if let file = gate.authorityFile { try InputFile.require(file, "the gate's root file") }
      return verifier
    }
    let new = foundation.verifier(gate)
    try await new.prepare()
    return new
  }
}

extension BackendStatus.Delivery {
  fileprivate init(
    kind: String, provider: String, queued: Int, retrying: Int, fault: String? = nil, figures: DeliveryFigures
  ) {
    self.init(
      kind: kind, provider: provider, queued: queued, retrying: retrying, fault: fault, sent: figures.sent,
      failed: figures.failed, lastFailure: figures.lastFailure,
      lastFailureAt: figures.lastFailureAt.map { "\($0.wholeSecond)" })
  }
}

extension BackendSettings {
  /// Where SMS go.
  fileprivate var smsPlace: String {
    switch texting {
    case .off: "off"
    case .log: "to the log"
    case .provider(let url, _, _, _): url
    case .template(let request): request.origin
    }
  }

  /// Where e-mail goes.
  fileprivate var mailPlace: String {
    if texting == .log { return "to the log" }
    return mail.map { "\($0.host):\($0.port)" } ?? "off"
  }
}

extension BackendSettings.Database {
  /// The database without a password.
  var place: String {
    guard case .kept(let url, _, _) = self else { return "memory" }
    return DatabaseURL.masked(url)
  }
}
