internal import AttestGate
internal import ByteCoding
internal import Commands
internal import GateService
internal import Locking
internal import Logging
internal import Observability
internal import Settings
internal import TransportEngine

/// State that lives as long as the process and survives reloads.
struct SharedState: Sendable {
  let store: any GateStore
  let identityKeys: IdentityKeys
  let sessions = LiveSessions()
  let metrics = GateMetrics(connectionRefusals: ConnectionRefusal.allCases.map(\.rawValue))
  let rates = RateLedger()
  let gates = NodeCount()
  let latest = ClockUpperBound()
  /// Whether registrations show that this machine's clock is wrong.
  let witness: ClockWitness
  /// `nil` without `telemetry.otlp`.
  let telemetry: TelemetryExporter?
  /// `nil` without `webhooks.url`.
  let webhooks: GateWebhooks?
  let announce: EventAnnouncer
  let managed: ManagedCertificates
  let revoked = RevokedCertificates(maximumAge: nil)
  let android: AndroidMetrics
  let receipts: ReceiptExchangeMonitor
  let risk: RiskFigures
  /// Fixed at the start, like the event loops.
  let processors = ProcessorAllowance.current
  /// Run what unknown senders ask for, each kind on threads of its own, so that neither delays the other. One processor
  /// is left if there are several.
  let registrations: WorkerExecutor
  let tokens: WorkerExecutor

  init(_ settings: GateSettings, logger: Logger) throws(Failure) {
    if let settings = settings.telemetry {
      telemetry = try TelemetryExporter(settings, registry: metrics.registry, logger: logger)
    } else {
      telemetry = nil
    }
    if let settings = settings.webhooks {
      webhooks = try GateWebhooks(settings, registry: metrics.registry, logger: logger)
    } else {
      webhooks = nil
    }
    announce = webhooks?.announcer ?? .silent
    (registrations, tokens) = (
      WorkerExecutor(threads: processors.count - 1), WorkerExecutor(threads: processors.count - 1)
    )
    do throws(StartError) { try settings.store.judge() } catch { throw Failure(error) }
    store = try settings.store.makeStore(mostWaiting: settings.mostWaitingForStore)
    identityKeys = IdentityKeys(storage: store)
    managed = ManagedCertificates(metrics: metrics)
    receipts = ReceiptExchangeMonitor(registry: metrics.registry, logger: logger)
    android = AndroidMetrics(registry: metrics.registry, revoked: revoked)
    risk = RiskFigures(store: store, registry: metrics.registry)
    witness = ClockWitness { Self.note($0, logger) }
  }

  private static func note(_ fault: ClockWitness.Fault?, _ logger: Logger) {
    guard let fault else {
      logger.notice("clock in time again: registrations are accepted")
      return
    }
    logger.error(
      "clock wrong: registrations are refused as clock_wrong",
      metadata: [
        "ahead_seconds": .number(fault.ahead.components.seconds), "reason": "\(fault.text)",
        "hint": "set the clock (timedatectl)",
      ])
  }
}

extension SharedState {
  /// Measures the steps of decisions.
  var stopwatch: Stopwatch { telemetry == nil ? metrics.stopwatch : metrics.tracingStopwatch }
}
