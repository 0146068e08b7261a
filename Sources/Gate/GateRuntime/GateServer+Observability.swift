internal import ACME
internal import AndroidKeyAttestation
internal import AttestGate
internal import ByteCoding
internal import Commands
internal import ConfigurationEngine
internal import Cryptography
internal import GateService
internal import Glibc
internal import Locking
internal import Settings
internal import TransportEngine

extension GateServer {
  /// The endpoints that need no authentication.
  nonisolated var openResources: [any AdminResource] {
    [
      HealthResource(readiness, upstreams: memory.metrics.upstreamHealth),
      MetricsResource(memory.metrics.registry),
    ]
  }

  /// The endpoints of the admin server, with their OpenAPI description.
  var describedResources: [any AdminResource] {
    let resources = adminResources
    let asksForToken = generation.composition.settings.admin?.tokenFile != nil
    return resources + [OpenAPIResource(describing: resources, version: Version.text, asksForToken: asksForToken)]
  }

  /// The conditions that must be met before the gate accepts new sessions.
  nonisolated var readiness: [ReadinessCheck] {
    [
      .store(memory.store),
      ReadinessCheck("listener") { [life] in
        if case .leaving = life.withLock(\.self) { .unready("the gate is shutting down") } else { .ready("ok") }
      },
      // Not unready: the other gates probably have as many clients, and a balancer without targets refuses all of them.
      ReadinessCheck("load", applies: { [engine] in engine.overload != nil }) { [engine] in
        engine.overload.map { .warning("WARNING: overloaded: \($0.text)") } ?? .ready("ok")
      },
      ReadinessCheck("enforcement") { [enforcement] in
        let meaning = enforcement.withLock(\.self)
        return meaning == GateSettings.AppAttest.Enforcement.enforce.rawValue ? .ready(meaning) : .warning(meaning)
      },
      // A certificate that ends does not make the gate unready: another gate probably serves the same one.
      ReadinessCheck("certificates") { [metrics = memory.metrics, certificates, managed = memory.managed] in
        if let wait = managed.wait { return .unready(wait) }
        if metrics.reloadState.certificateFault != nil {
          return .warning("WARNING: changed certificate files cannot be loaded, old ones in use: see status")
        }
        guard let notice = certificates.withLock(\.self).notice(at: .now()) else { return .ready("ok") }
        return .warning("WARNING: \(notice): renew it")
      },
      // A missing or old list does not make the gate unready: registered keys are admitted as before, and the other
      // gates read the same source.
      ReadinessCheck("status list", applies: { [revoked = memory.revoked] in revoked.configured != nil }) {
        [revoked = memory.revoked, metrics = memory.android] in
        guard let list = GateStatus.StatusList(revoked, fault: metrics.fault, at: .now()) else {
          return .ready("not configured")
        }
        guard list.usable else { return .warning("WARNING: \(list.text): no Android key is registered") }
        return list.fault == nil ? .ready(list.text) : .warning("WARNING: \(list.text), not read since: see the log")
      },
      // Admissions go on with the metrics that are known.
      ReadinessCheck(
        "receipts", applies: { [receipts = memory.receipts] in receipts.status(at: .now())?.stopped == true }
      ) { [receipts = memory.receipts] in
        guard let state = receipts.status(at: .now()), state.stopped else { return .ready("ok") }
        return .warning("WARNING: receipts are not exchanged: \(state.fault ?? "see the log")")
      },
      // Open sessions and admissions go on, and other gates of the same machine have the same clock.
      ReadinessCheck("clock", applies: { [witness = memory.witness] in witness.fault != nil }) {
        [witness = memory.witness] in
        guard let fault = witness.fault else { return .ready("ok") }
        return .warning(
          "WARNING: \(fault.text), as a registration at \(fault.seenAt.wholeSecond) shows: registrations are refused "
            + "as clock_wrong: set the clock (timedatectl)")
      },
    ]
  }

  /// Records activity samples until the task is cancelled.
  func noteActivity() async {
    var bursts = memory.webhooks.map { RefusalBursts(threshold: $0.refusalsPerMinute) }
    while !Task.isCancelled {
      try? await Task.sleep(for: ActivityLog.interval)
      activity.note()
      for event in bursts?.note(memory.metrics.activityCounts) ?? [] { memory.announce(event) }
    }
  }

  /// The number of sessions that the status lists.
  private static let mostListed = 25

  /// The current state of the gate.
  var status: GateStatus {
    get async {
      let (traffic, now) = (await engine.traffic(), Timestamp.now())
      let checks = ReadinessCheck.states(of: readiness)
      let (activity, refusals) = activity.report()
      return GateStatus(
        version: Version.text, ready: checks.allSatisfy(\.ready), checks: checks,
        enforcement: Gate.Enforcement(generation.composition.settings.appAttest.enforcement),
        address: "\(engine.address)",
        startedAt: Timestamp(seconds: startedAt.seconds).description,
        uptimeSeconds: now.since(startedAt).components.seconds,
        sessions: .init(
          open: traffic.sessions, connections: traffic.connections,
          newest: memory.sessions.newest(Self.mostListed).map { SessionDescription($0, at: now) }),
        loops: loops, keyExchange: KeyExchange.groups, tokens: tokens,
        statusList: GateStatus.StatusList(memory.revoked, fault: memory.android.fault, at: now),
        receiptExchange: memory.receipts.status(at: now),
        risk: memory.risk.states(of: RiskApp.all(in: generation.composition.settings.appAttest)),
        traffic: .init(bytesFromClients: traffic.bytesFromClients, bytesFromUpstreams: traffic.bytesFromUpstreams),
        activity: activity, refusals: refusals, upstreams: memory.metrics.upstreamHealth.states,
        certificates: await certificateStates(at: now),
        certificateFault: memory.metrics.reloadState.certificateFault, store: storeState,
        configuration: configurationState, process: getpid())
    }
  }

  /// The settings in use and their changes, with masked secrets.
  var configurationListing: ConfigurationListing {
    ConfigurationListing(settings: Self.descriptions(of: generation.composition.settings), changes: settingChanges)
  }

  /// Remembers which settings the reload from `old` to the ones in use has changed.
  func noteChanges(from old: GateSettings) {
    let changes = SettingChange.changes(
      from: Self.descriptions(of: old), to: Self.descriptions(of: generation.composition.settings),
      at: Timestamp(seconds: Timestamp.now().seconds).description)
    settingChanges = Array((changes + settingChanges).prefix(SettingChange.most))
  }

  private static func descriptions(of settings: GateSettings) -> [SettingDescription] {
    settings.effective.map { SettingDescription(key: $0.key, value: $0.text, source: $0.origin.label) }
  }

  private var tokens: GateStatus.Tokens? {
    guard let settings = generation.composition.settings.tokens else { return nil }
    let (issued, refused) = memory.metrics.tokenCounts
    return .init(
      audiences: settings.audiences, lifetimeSeconds: settings.lifetime.components.seconds, issued: issued,
      refused: refused)
  }

  private var loops: GateStatus.Loops {
    if let chosen = generation.composition.settings.listen.loops { return .init(count: chosen, reason: "listen.loops") }
    return .init(count: memory.processors.count, reason: memory.processors.reason)
  }

  private func certificateStates(at now: Timestamp) async -> [GateStatus.CertificateState] {
    let (served, settings) = (generation.served, generation.composition.settings)
    // Files that cannot be read in time count as changed.
    let files = try? await fileReads.run(within: .seconds(1)) { () throws(Failure) in
      CertificateFiles(of: settings)
    }
    let replaced = (files ?? .unreadable).names(differingFrom: served.files)
    let managed = memory.managed.status
    return served.certificates.map { name, certificate in
      var state = GateStatus.CertificateState(
        name: name, subject: certificate.subject, endsAt: certificate.notAfter.description,
        secondsLeft: certificate.notAfter.since(now).components.seconds, isFileServed: !replaced.contains(name),
        endsSoon: CertificateNotice.endsSoon(certificate, at: now))
      if certificate == managed?.certificate?.leaf { state.renewal = managed.map(CertificateRenewal.init) }
      return state
    }
  }

  private var storeState: GateStatus.Store {
    let check = ReadinessCheck.store(memory.store).state
    return GateStatus.Store(place: memory.store.place, healthy: check.ready, detail: check.detail)
  }

  private var configurationState: GateStatus.Configuration {
    let state = memory.metrics.reloadState
    return GateStatus.Configuration(
      current: state.fault == nil, loadedAt: Timestamp(seconds: state.lastSuccess.seconds).description,
      fault: state.fault, file: loader.file)
  }
}

extension EngineOverload {
  /// The state in one sentence, for operators.
  fileprivate var text: String {
    switch self {
    case .behind(let time):
      "new connections have waited for \(time.components.seconds) seconds: open sessions go first; start another gate"
    case .acceptPaused: "no connection is accepted, for lack of descriptors or memory: see the log"
    }
  }
}

extension GateStatus.StatusList {
  /// Describes the list in use; `nil` if none is configured.
  fileprivate init?(_ revoked: RevokedCertificates, fault: String?, at now: Timestamp) {
    guard let (source, maximumAge, current) = revoked.configured else { return nil }
    let age = current.map { now.since($0.currentAt) }
    self.init(
      source: source ?? "", entries: current?.list.count, currentAt: current?.currentAt.wholeSecond.description,
      ageSeconds: age.map { max(0, $0.components.seconds) }, maximumAgeSeconds: maximumAge.components.seconds,
      usable: age.map { $0 <= maximumAge } ?? false, fault: fault)
  }
}

extension CertificateRenewal {
  fileprivate init(_ status: CertificateStatus) {
    self.init(
      obtainedAt: status.obtainedAt?.wholeSecond.description, nextAt: status.nextAttempt?.wholeSecond.description,
      fault: status.lastFailure?.text)
  }
}
