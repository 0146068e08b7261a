internal import AttestGate
internal import ByteCoding
internal import Cryptography
internal import GateService
internal import Locking
internal import Settings
internal import TransportEngine

extension GateServer {
  /// What anyone may know of the gate who can ask for it.
  nonisolated var openResources: [any AdminResource] {
    [
      HealthResource(readiness),
      MetricsResource(memory.metrics.registry),
    ]
  }

  /// What operators can ask of the gate, and the description of it.
  var describedResources: [any AdminResource] {
    let resources = adminResources
    let asksForToken = generation.composition.settings.admin?.tokenFile != nil
    return resources + [OpenAPIResource(describing: resources, version: Version.text, asksForToken: asksForToken)]
  }

  /// What has to be there for new sessions to be let in.
  nonisolated var readiness: [ReadinessCheck] {
    [
      .store(memory.store),
      ReadinessCheck("listener") { [isLeaving] in
        isLeaving.withLock(\.self) ? .unready("the gate is about to stop") : .ready("ok")
      },
      ReadinessCheck("enforcement") { [enforcement] in .ready(enforcement.withLock(\.self)) },
      // Those that are served stay good, so that this alone takes no gate out of service.
      ReadinessCheck("certificates") { [metrics = memory.metrics] in
        metrics.reloadState.certificateFault == nil
          ? .ready("ok") : .ready("WARNING: changed files cannot be used, the old certificates are served: see status")
      },
    ]
  }

  /// Notes what is counted, until it is cancelled.
  func noteActivity() async {
    while !Task.isCancelled {
      try? await Task.sleep(for: ActivityLog.interval)
      activity.note()
    }
  }

  /// The most sessions that the status lists.
  private static let mostListed = 25

  /// How the gate is now.
  var status: GateStatus {
    get async {
      let (traffic, now) = (await engine.traffic(), Timestamp.now())
      let checks = readiness.map(\.state)
      let (activity, refusals) = activity.report()
      return GateStatus(
        version: Version.text, ready: checks.allSatisfy(\.ready), checks: checks,
        enforcement: generation.composition.settings.appAttest.enforcement.rawValue, address: "\(engine.address)",
        startedAt: Timestamp(seconds: startedAt.seconds).description,
        uptimeSeconds: now.since(startedAt).components.seconds,
        sessions: .init(
          open: traffic.sessions, connections: traffic.connections,
          newest: memory.sessions.newest(Self.mostListed).map { SessionDescription($0, at: now) }),
        traffic: .init(bytesFromClients: traffic.bytesFromClients, bytesFromUpstreams: traffic.bytesFromUpstreams),
        activity: activity, refusals: refusals, certificates: await certificateStates(at: now),
        certificateFault: memory.metrics.reloadState.certificateFault, store: storeState,
        configuration: configurationState)
    }
  }

  private func certificateStates(at now: Timestamp) async -> [GateStatus.CertificateState] {
    let (served, settings) = (generation.served, generation.composition.settings)
    // Files that cannot be read in time are not those that are served.
    let files = try? await fileReads.run(within: .seconds(1)) { () throws(SallyportError) in
      CertificateFiles(of: settings)
    }
    let replaced = (files ?? .unreadable).names(differingFrom: served.files)
    return served.certificates.map { name, certificate in
      GateStatus.CertificateState(
        name: name, subject: certificate.subject, endsAt: certificate.notAfter.description,
        secondsLeft: certificate.notAfter.since(now).components.seconds, isFileServed: !replaced.contains(name))
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
      fault: state.fault)
  }
}
