public import AttestGate
public import ByteCoding
internal import Wire
internal import Locking
public import Observability
internal import Transport

/// The metrics of the gate. No label contains client input: no key, address or path.
public final class GateMetrics: Sendable {
  public let registry: MetricsRegistry
  /// The results of the attempts to reach upstreams.
  public let upstreamHealth: UpstreamHealth
  /// The last refusals.
  public let refusalLog: RefusalLog
  /// The decisions about keys that wait to be stored.
  public let decisions: DecisionQueue

  private let challenges: Counter
  private let registrations: CounterFamily
  private let admissions: CounterFamily
  private let tokens: CounterFamily
  private let refusals: CounterFamily
  private let verifications: HistogramFamily
  private let storeCalls: HistogramFamily
  private let upstreams: HistogramFamily
  private let upstreamFailures: CounterFamily
  private let upstreamAttempts: CounterFamily
  private let handshakes: Histogram
  private let failedHandshakes: Counter
  private let pauses: Counter
  private let refusedConnections: CounterFamily
  private let reloads: CounterFamily
  private let lastReload = LockedValue(ReloadState(lastSuccess: .now()))
  /// Created in advance, since each connection increments them. They are few, so that a search costs less than a hash.
  private let admitted: [WordCounter]
  private let ended: [WordCounter]
  private let works: [Stopwatch.Work: Histogram]
  /// Those of the routes that are served, by path.
  private let served = LockedValue<[String: RouteMetrics]>([:])

  private struct WordCounter: Sendable {
    let word: String
    let counter: Counter
  }

  private struct RouteMetrics: Sendable {
    let handshakes: Histogram
    let failures: Counter
    /// In the order of `UpstreamResult.allCases`.
    let attempts: [Counter]
  }

  /// - Parameter connectionRefusals: The codes with which the engine refuses connections.
  public init(
    registry: MetricsRegistry = MetricsRegistry(), connectionRefusals: [String] = [], clock: WallClock = .system
  ) {
    self.registry = registry
    upstreamHealth = UpstreamHealth(clock: clock)
    refusalLog = RefusalLog(clock: clock)
    decisions = DecisionQueue(
      dropped: registry.counters(
        "sallyport_decisions_dropped_total", "Decisions about keys that were not stored for the console."
      ).counter())
    challenges = registry.counters("sallyport_challenges_total", "Issued nonces.").counter()
    registrations = registry.counters(
      "sallyport_registrations_total", "Answered registration requests.", labels: ["result", "code"])
    admissions = registry.counters(
      "sallyport_admissions_total", "Decided admission requests.", labels: ["result", "method", "code"])
    tokens = registry.counters("sallyport_tokens_total", "Answered token requests.", labels: ["result", "code"])
    refusals = registry.counters(
      "sallyport_refusals_total", "Refused requests of any kind.", labels: ["code", "status"])
    let closes = registry.counters(
      "sallyport_session_closes_total", "Closed sessions, by the side that closed them.", labels: ["end"])
    verifications = registry.histograms(
      "sallyport_verification_duration_seconds", "Duration of CPU-bound verification.", labels: ["kind"])
    storeCalls = registry.histograms(
      "sallyport_store_duration_seconds", "Time until the result of a store call is durable.", labels: ["operation"])
    upstreams = registry.histograms(
      "sallyport_upstream_handshake_duration_seconds", "Time from admission to the upstream's 101.", labels: ["route"])
    upstreamFailures = registry.counters(
      "sallyport_upstream_failures_total", "Admitted requests and sessions whose upstream was unavailable.",
      labels: ["route"])
    upstreamAttempts = registry.counters(
      "sallyport_upstream_attempts_total", "Attempts to reach the upstream for admitted requests.",
      labels: ["route", "result"])
    handshakes = registry.histograms(
      "sallyport_tls_handshake_duration_seconds", "Time from accepting a connection to the end of its TLS handshake."
    ).histogram()
    failedHandshakes = registry.counters(
      "sallyport_tls_handshake_failures_total", "Failed TLS handshakes."
    ).counter()
    pauses = registry.counters(
      "sallyport_accept_pauses_total", "Pauses in accepting connections, for lack of descriptors or memory."
    ).counter()
    refusedConnections = registry.counters(
      "sallyport_connections_refused_total", "Connections closed before TLS.", labels: ["code"])
    reloads = registry.counters(
      "sallyport_reloads_total", "Attempts to reload the configuration or a changed certificate.",
      labels: ["result"])
    let (admissions, verifications, storeCalls) = (admissions, verifications, storeCalls)
    admitted = Principal.methods.map { WordCounter(word: $0, counter: admissions.counter("admitted", $0, "")) }
    ended = SessionSummary.End.words.map { WordCounter(word: $0, counter: closes.counter($0)) }
    works = Dictionary(
      uniqueKeysWithValues: Stopwatch.Work.allCases.map { work in
        switch work {
        case .assertion, .attestation: (work, verifications.histogram(work.rawValue))
        case .admit, .register, .lookup: (work, storeCalls.histogram(work.rawValue))
        }
      })
    registerReloadState()
    registerUpstreamHealth()
    registerServers()
    createCounters(connectionRefusals: connectionRefusals)
  }

  /// Creates the counters of all label values, so that each is exported from the start with 0: `rate()` and
  /// `increase()` do not see the first event of a counter that appears with it.
  private func createCounters(connectionRefusals: [String]) {
    for result in ["registered", "repeated"] { _ = registrations.counter(result, "") }
    _ = tokens.counter("issued", "")
    for code in GateRefusalCode.allCases {
      _ = tokens.counter("refused", code.rawValue)
      _ = registrations.counter("refused", code.rawValue)
      _ = admissions.counter("refused", "", code.rawValue)
      _ = admissions.counter("would_refuse", "none", code.rawValue)
      _ = refusals.counter(code.rawValue, String(code.definition.status))
    }
    for result in ["done", "refused"] { _ = reloads.counter(result) }
    for code in connectionRefusals + [Self.unused] { _ = refusedConnections.counter(code) }
  }

  /// Creates the counters of `routes`, and shows the health of their upstreams.
  func serve(_ routes: [Route]) {
    upstreamHealth.serve(routes)
    let metrics = Dictionary(uniqueKeysWithValues: routes.map { ($0.path, makeMetrics(of: $0.path)) })
    served.withLock { $0 = metrics }
  }

  private func makeMetrics(of route: String) -> RouteMetrics {
    RouteMetrics(
      handshakes: upstreams.histogram(route), failures: upstreamFailures.counter(route),
      attempts: UpstreamResult.allCases.map { upstreamAttempts.counter(route, $0.rawValue) })
  }

  /// A session may be older than the routes that are served now.
  private func metrics(of route: String) -> RouteMetrics {
    served.withLock { $0[route] } ?? makeMetrics(of: route)
  }

  private func registerUpstreamHealth() {
    registry.values(
      "sallyport_upstream_failing",
      "1 if the last attempt to reach the upstream failed, or at least half of the last 16, else 0.", labels: ["route"]
    ) {
      [upstreamHealth] in upstreamHealth.records.map { Sample($0.health.isFailing ? 1 : 0, $0.route) }
    }
    registry.values(
      "sallyport_upstream_last_success_timestamp_seconds",
      "Unix time of the last attempt that reached the upstream; absent before the first.", labels: ["route"]
    ) {
      [upstreamHealth] in
      upstreamHealth.records.compactMap { record in
        record.health.lastSuccess.map { Sample(Double($0.seconds), record.route) }
      }
    }
    registry.values(
      "sallyport_upstream_last_failure_timestamp_seconds",
      "Unix time of the last failed attempt to reach the upstream; absent before the first.", labels: ["route"]
    ) {
      [upstreamHealth] in
      upstreamHealth.records.compactMap { record in
        record.health.lastFailure.map { Sample(Double($0.at.seconds), record.route) }
      }
    }
  }

  private func registerServers() {
    registry.values(
      "sallyport_upstream_sessions", "Open sessions and requests of each server of a route with several.",
      labels: ["route", "upstream"]
    ) {
      [upstreamHealth] in
      upstreamHealth.servers.flatMap { route, servers in
        servers.map { Sample(Double($0.sessions ?? 0), route, $0.upstream) }
      }
    }
    registry.values(
      "sallyport_upstream_available",
      "1 if the server of a route with several gets new sessions, 0 if it rests after a failure or is drained.",
      labels: ["route", "upstream"]
    ) {
      [upstreamHealth] in
      upstreamHealth.servers.flatMap { route, servers in
        servers.map { Sample($0.condition == .available ? 1 : 0, route, $0.upstream) }
      }
    }
  }

  private func registerReloadState() {
    registry.values(
      "sallyport_config_last_reload_successful",
      "1 if the last reloads of the configuration and of changed certificates succeeded, else 0."
    ) {
      [lastReload] in [Sample(lastReload.withLock(\.isCurrent) ? 1 : 0)]
    }
    registry.values(
      "sallyport_config_last_reload_success_timestamp_seconds",
      "Unix time of the last successful load of the configuration."
    ) {
      [lastReload] in [Sample(Double(lastReload.withLock(\.lastSuccess).seconds))]
    }
  }

  /// Counts a reload of the configuration and all files that it names, successful or not.
  public func reloaded(_ outcome: ReloadOutcome) {
    count(outcome)
    switch outcome {
    case .done: lastReload.withLock { $0 = ReloadState(lastSuccess: .now()) }
    case .refused(let reason): lastReload.withLock { $0.fault = reason }
    }
  }

  /// Counts a reload of changed certificates, successful or not. A refused configuration stays refused.
  public func renewedCertificates(_ outcome: ReloadOutcome) {
    count(outcome)
    switch outcome {
    case .done: lastReload.withLock { $0.certificateFault = nil }
    case .refused(let reason): lastReload.withLock { $0.certificateFault = reason }
    }
  }

  private func count(_ outcome: ReloadOutcome) {
    if case .done = outcome { reloads.counter("done").add() } else { reloads.counter("refused").add() }
  }

  /// The results of the last reloads of the configuration and of changed certificates.
  public var reloadState: ReloadState { lastReload.withLock(\.self) }

  /// Measures the admission rules and the registrar.
  public var stopwatch: Stopwatch {
    Stopwatch { [works] work, duration in works[work]?.observe(duration) }
  }

  /// Measures the same, and adds the steps to the spans of the current request.
  public var tracingStopwatch: Stopwatch {
    Stopwatch { [works] work, duration in
      works[work]?.observe(duration)
      RequestTrace.current?.worked(work, for: duration)
    }
  }

  func issuedChallenge() { challenges.add() }

  func registered(isRepetition: Bool) { registrations.counter(isRepetition ? "repeated" : "registered", "").add() }
  func refusedRegistration(_ code: String) { registrations.counter("refused", code).add() }

  func admitted(by method: String) { admitted.first { $0.word == method }?.counter.add() }
  /// Counts a client that monitor mode admitted although the rules refused it with `code`.
  func wouldRefuse(_ code: String) { admissions.counter("would_refuse", "none", code).add() }
  func refusedAdmission(_ code: String) { admissions.counter("refused", "", code).add() }

  func issuedToken() { tokens.counter("issued", "").add() }
  func refusedToken(_ code: String) { tokens.counter("refused", code).add() }

  func refused(_ code: String, status: Int) { refusals.counter(code, String(status)).add() }

  func opened(on route: String, after duration: Duration) {
    let metrics = metrics(of: route)
    metrics.handshakes.observe(duration)
    attempted(.connected, on: route, metrics)
  }
  /// Counts an attempt that reached the upstream.
  func upstreamAnswered(on route: String) { attempted(.connected, on: route, metrics(of: route)) }
  /// Counts an opening handshake that the upstream answered with a status other than 101.
  func upstreamAnswered(_ refusal: UpstreamError, on route: String) {
    guard let result = UpstreamResult(refusal) else { return }
    attempted(result, detail: refusal.detail, on: route, metrics(of: route))
  }
  /// Counts an attempt without an answer that can be passed on.
  func upstreamFailed(_ fault: UpstreamError, on route: String) {
    guard let result = UpstreamResult(fault) else { return }
    let metrics = metrics(of: route)
    metrics.failures.add()
    attempted(result, detail: fault.detail, on: route, metrics)
  }
  /// Counts an attempt after which another server of the route is tried.
  func passedOver(_ fault: UpstreamError, on route: String) {
    guard let result = UpstreamResult(fault) else { return }
    metrics(of: route).attempts[result.index].add()
  }
  private func attempted(
    _ result: UpstreamResult, detail: String? = nil, on route: String, _ metrics: RouteMetrics
  ) {
    metrics.attempts[result.index].add()
    upstreamHealth.note(result, detail: detail, on: route)
  }
  func closed(_ end: String) { ended.first { $0.word == end }?.counter.add() }

  /// Records the duration of a TLS handshake. The engine calls this method and the ones below.
  public func handshakeCompleted(in duration: Duration) { handshakes.observe(duration) }
  public func handshakeFailed() { failedHandshakes.add() }
  public func acceptPaused() { pauses.add() }
  public func refusedConnection(_ code: String) { refusedConnections.counter(code).add() }
  /// Counts a connection that the client closed before it sent a byte.
  public func closedUnusedConnection() { refusedConnections.counter(Self.unused).add() }
  private static let unused = "unused"
}

extension GateMetrics {
  /// The numbers of token requests since the start.
  public var tokenCounts: (issued: UInt64, refused: UInt64) {
    tokens.values.reduce(into: (0, 0)) { counts, entry in
      if entry.labels.first == "issued" { counts.issued &+= entry.value } else { counts.refused &+= entry.value }
    }
  }

  /// The totals from which the status page computes rates.
  public var activityCounts: ActivityCounts {
    var counts = ActivityCounts()
    counts.admitted = admitted.reduce(0) { $0 &+ $1.counter.value }
    for (labels, value) in registrations.values where labels.first == "registered" { counts.registered &+= value }
    for (labels, value) in refusals.values where labels.count == 2 && value > 0 {
      counts.refusals[.init(code: labels[0], status: labels[1])] = value
    }
    return counts
  }
}

/// The results of the last reloads of the configuration and of certificates.
public struct ReloadState: Sendable, Hashable {
  /// The time of the last successful load of the configuration.
  public let lastSuccess: Timestamp
  /// Why the last reload of the configuration failed; `nil` if it succeeded.
  public var fault: String?
  /// Why changed certificates cannot be used; `nil` if they are in use or none has changed.
  public var certificateFault: String?

  /// Whether the active configuration and certificates are those in the files.
  public var isCurrent: Bool { fault == nil && certificateFault == nil }
}
