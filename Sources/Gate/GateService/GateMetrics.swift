public import AttestGate
public import ByteCoding
internal import Locking
public import Prometheus

/// What the gate counts. No label holds what a client sent: no key, no address, no path.
public final class GateMetrics: Sendable {
  public let registry: MetricsRegistry

  private let challenges: Counter
  private let registrations: CounterFamily
  private let admissions: CounterFamily
  private let refusals: CounterFamily
  private let closes: CounterFamily
  private let verifications: HistogramFamily
  private let storeCalls: HistogramFamily
  private let upstreams: HistogramFamily
  private let upstreamFailures: CounterFamily
  private let handshakes: Histogram
  private let failedHandshakes: Counter
  private let pauses: Counter
  private let refusedConnections: CounterFamily
  private let reloads: CounterFamily
  private let lastReload = LockedValue(ReloadState(lastSuccess: .now()))
  /// At hand, since they are counted for each connection.
  private let admitted: [String: Counter]
  private let works: [Stopwatch.Work: Histogram]

  public init(registry: MetricsRegistry = MetricsRegistry()) {
    self.registry = registry
    challenges = registry.counters("sallyport_challenges_total", "Nonces that were issued.").counter()
    registrations = registry.counters(
      "sallyport_registrations_total", "Answered requests to register a key.", labels: ["result", "code"])
    admissions = registry.counters(
      "sallyport_admissions_total", "Decided requests to be let in.", labels: ["result", "method", "code"])
    refusals = registry.counters(
      "sallyport_refusals_total", "Requests of any kind that were refused.", labels: ["code", "status"])
    closes = registry.counters(
      "sallyport_session_closes_total", "Sessions that are over, by who ended them.", labels: ["end"])
    verifications = registry.histograms(
      "sallyport_verification_duration_seconds", "CPU-bound verification.", labels: ["kind"])
    storeCalls = registry.histograms(
      "sallyport_store_duration_seconds", "Calls of the store, until their result is durable.", labels: ["operation"])
    upstreams = registry.histograms(
      "sallyport_upstream_handshake_duration_seconds", "From the admission to the upstream's 101.", labels: ["route"])
    upstreamFailures = registry.counters(
      "sallyport_upstream_failures_total", "Admitted requests and sessions whose upstream could not be used.",
      labels: ["route"])
    handshakes = registry.histograms(
      "sallyport_tls_handshake_duration_seconds", "From the accepted connection to the end of its TLS handshake."
    ).histogram()
    failedHandshakes = registry.counters(
      "sallyport_tls_handshake_failures_total", "TLS handshakes that did not succeed."
    ).counter()
    pauses = registry.counters(
      "sallyport_accept_pauses_total", "Times that connections could not be accepted for want of descriptors or memory."
    ).counter()
    refusedConnections = registry.counters(
      "sallyport_connections_refused_total", "Connections that were closed before TLS.", labels: ["code"])
    reloads = registry.counters(
      "sallyport_reloads_total", "Attempts to reload the configuration or a changed certificate.",
      labels: ["result"])
    let (admissions, verifications, storeCalls) = (admissions, verifications, storeCalls)
    admitted = Dictionary(
      uniqueKeysWithValues: Principal.methods.map { ($0, admissions.counter("admitted", $0, "")) })
    works = Dictionary(
      uniqueKeysWithValues: Stopwatch.Work.allCases.map { work in
        switch work {
        case .assertion, .attestation: (work, verifications.histogram(work.rawValue))
        case .admit, .register, .lookup: (work, storeCalls.histogram(work.rawValue))
        }
      })
    registerReloadState()
  }

  private func registerReloadState() {
    registry.values(
      "sallyport_config_last_reload_successful",
      "Whether what was last read of the configuration, and of changed certificates, is what is served."
    ) {
      [lastReload] in [Sample(lastReload.withLock(\.isCurrent) ? 1 : 0)]
    }
    registry.values(
      "sallyport_config_last_reload_success_timestamp_seconds", "When the configuration was last read with success."
    ) {
      [lastReload] in [Sample(Double(lastReload.withLock(\.lastSuccess).seconds))]
    }
  }

  /// Counts a reload of the configuration with all the files that it names, or an attempt.
  public func reloaded(_ outcome: ReloadOutcome) {
    count(outcome)
    switch outcome {
    case .done: lastReload.withLock { $0 = ReloadState(lastSuccess: .now()) }
    case .refused(let reason): lastReload.withLock { $0.fault = reason }
    }
  }

  /// Counts a reload of changed certificates, or an attempt. A configuration that was refused stays refused.
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

  /// How the last attempts to read the configuration and changed certificates ended.
  public var reloadState: ReloadState { lastReload.withLock(\.self) }

  /// For the rules and the registrar.
  public var stopwatch: Stopwatch {
    Stopwatch { [works] work, duration in works[work]?.observe(duration) }
  }

  func issuedChallenge() { challenges.add() }

  func registered(isRepetition: Bool) { registrations.counter(isRepetition ? "repeated" : "registered", "").add() }
  func refusedRegistration(_ code: String) { registrations.counter("refused", code).add() }

  func admitted(by method: String) { admitted[method]?.add() }
  /// Let in by a gate that watches, against `code`.
  func wouldRefuse(_ code: String) { admissions.counter("would_refuse", "none", code).add() }
  func refusedAdmission(_ code: String) { admissions.counter("refused", "", code).add() }

  func refused(_ code: String, status: Int) { refusals.counter(code, String(status)).add() }

  func opened(on route: String, after duration: Duration) { upstreams.histogram(route).observe(duration) }
  func upstreamFailed(on route: String) { upstreamFailures.counter(route).add() }
  func closed(_ end: String) { closes.counter(end).add() }

  /// To be told of by the engine.
  public func handshakeCompleted(in duration: Duration) { handshakes.observe(duration) }
  public func handshakeFailed() { failedHandshakes.add() }
  public func acceptPaused() { pauses.add() }
  public func refusedConnection(_ code: String) { refusedConnections.counter(code).add() }
}

extension GateMetrics {
  /// What the status page makes rates of.
  public var activityCounts: ActivityCounts {
    var counts = ActivityCounts()
    counts.admitted = admitted.values.reduce(0) { $0 &+ $1.value }
    for (labels, value) in registrations.values where labels.first == "registered" { counts.registered &+= value }
    for (labels, value) in refusals.values where labels.count == 2 {
      counts.refusals[.init(code: labels[0], status: labels[1])] = value
    }
    return counts
  }
}

/// How attempts to read the configuration or a certificate ended.
public struct ReloadState: Sendable, Hashable {
  /// Of the configuration.
  public let lastSuccess: Timestamp
  /// Why the last attempt to read the configuration failed; `nil` if it did not.
  public var fault: String?
  /// Why the certificates that have changed since cannot be served; `nil` if they are, or if none has.
  public var certificateFault: String?

  public var isCurrent: Bool { fault == nil && certificateFault == nil }
}
