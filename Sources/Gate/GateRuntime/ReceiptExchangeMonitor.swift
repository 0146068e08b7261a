internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import GateService
internal import Locking
internal import Logging
internal import Observability

/// Logs, counts and describes the exchange of receipts with Apple. It survives reloads.
///
/// Single exchanges are logged at debug level, changes of state once each.
struct ReceiptExchangeMonitor: ExchangeObserver {
  private struct State {
    var isRunning = false
    var renewed: UInt64 = 0
    var failed: UInt64 = 0
    var lastRenewal: Timestamp?
    /// Since when receipts have been due without a break.
    var backlogSince: ContinuousClock.Instant?
    /// The developer keys that Apple refuses, with their texts.
    var stopped: [DeveloperKey.Name: String] = [:]
    var failing: [ExchangePauses.Destination: String] = [:]
    /// The pauses of the last worker.
    var pauses = ExchangePauses()
  }

  private let state = LockedValue(State())
  private let exchanges: CounterFamily
  let logger: Logger

  init(registry: MetricsRegistry, logger: Logger) {
    self.logger = logger
    exchanges = registry.counters(
      "sallyport_receipt_exchanges_total", "Exchanges of receipts with Apple, by their result.", labels: ["result"])
    for result in ExchangeResult.allCases { exchanges.counter(result.rawValue).add(0) }
    registry.values(
      "sallyport_receipt_exchange_backlog_seconds",
      "How long receipts have been due on the gate that exchanges them, without a break; absent if none is due."
    ) { [state] in
      state.withLock { state in
        state.backlogSince.map { [Sample((ContinuousClock.now - $0) / .seconds(1))] } ?? []
      }
    }
    registry.values(
      "sallyport_receipt_exchange_stopped",
      "Developer keys whose authorization Apple refuses (401): their exchanges are stopped."
    ) { [state] in [Sample(Double(state.withLock(\.stopped.count)))] }
  }

  /// Notes the begin of a worker, which knows nothing about earlier failures.
  ///
  /// - Returns: The pauses of the last worker.
  func began() -> ExchangePauses {
    state.withLock {
      $0.isRunning = true
      ($0.stopped, $0.failing, $0.backlogSince) = ([:], [:], nil)
      return $0.pauses
    }
  }

  func ended(with pauses: ExchangePauses) {
    state.withLock {
      $0.isRunning = false
      ($0.stopped, $0.failing, $0.backlogSince) = ([:], [:], nil)
      $0.pauses = pauses
    }
  }

  /// The state for `status`; `nil` if no receipts are exchanged.
  func status(at now: Timestamp) -> GateStatus.ReceiptExchange? {
    state.withLock { state in
      guard state.isRunning else { return nil }
      let fault = state.stopped.values.min() ?? state.failing.values.min()
      return .init(
        renewed: state.renewed, failed: state.failed, lastRenewalAt: state.lastRenewal?.wholeSecond.description,
        secondsSinceRenewal: state.lastRenewal.map { max(0, now.since($0).components.seconds) },
        stopped: !state.stopped.isEmpty, fault: fault)
    }
  }

  // MARK: ExchangeObserver

  func exchanged(_ due: DueReceipt, _ judgement: Judgement, isStored: Bool) {
    exchanges.counter(judgement.code).add()
    var metadata: Logger.Metadata = [
      "key": "\(KeyHash(of: due.key.keyID).short)", "app": "\(due.key.appID.text)", "result": "\(judgement.code)",
      "stored": "\(isStored)",
    ]
    switch judgement {
    case .renewed(let renewed):
      metadata["metric"] = .number(renewed.risk.metric)
      state.withLock {
        $0.renewed += 1
        $0.lastRenewal = .now()
      }
    case .unusable(let fault):
      metadata["fault"] = "\(fault.code)"
      metadata["reason"] = "\(fault)"
      state.withLock { $0.failed += 1 }
    case .damaged(let rejection): metadata["reason"] = "\(rejection)"
    case .busy(let status, _):
      metadata["status"] = .number(status)
      state.withLock { $0.failed += 1 }
    case .refused, .unauthorized: state.withLock { $0.failed += 1 }
    case .notYet, .noData, .expired: break
    }
    logger.debug("receipt exchanged", metadata: metadata)
    switch judgement {
    case .refused:
      logger.info("receipt refused by Apple as malformed: not sent again for a month", metadata: metadata)
    case .damaged: logger.info("stored receipt damaged: not sent", metadata: metadata)
    case .unusable(let fault) where fault.code != "no_answer":
      logger.info("answer to a receipt refused", metadata: metadata)
    case .renewed, .notYet, .unauthorized, .noData, .busy, .unusable, .expired: break
    }
  }

  func changed(_ change: ExchangePauses.Change) {
    switch change {
    case .stopped(let key, let wait, let clockAhead):
      let clock = clockAhead.map(Self.clock) ?? nil
      let text = "Apple refuses the key \(key.keyID) of team \(key.teamID) (401)"
      state.withLock { $0.stopped[key] = text }
      var metadata = Self.metadata(key)
      metadata["next_attempt_seconds"] = .number(wait.components.seconds)
      if let clock { metadata["clock"] = "\(clock)" }
      metadata["hint"] =
        "compare key_id and key_file with the key in the developer account, which needs DeviceCheck, and the clock"
      logger.error("receipt exchange stopped: Apple refuses the authorization", metadata: metadata)
    case .resumed(let key):
      state.withLock { $0.stopped[key] = nil }
      logger.notice("receipt exchange resumed", metadata: Self.metadata(key))
    case .failing(let destination, let reason):
      let environment = destination.environment.rawValue
      state.withLock { $0.failing[destination] = "the \(environment) service fails: \(reason)" }
      logger.warning(
        "receipt exchange fails: it will be retried",
        metadata: Self.metadata(destination.key).merging(["environment": "\(environment)", "reason": "\(reason)"]) {
          $1
        })
    case .recovered(let destination):
      state.withLock { $0.failing[destination] = nil }
      logger.notice(
        "receipt exchange works again",
        metadata: Self.metadata(destination.key).merging(["environment": "\(destination.environment.rawValue)"]) { $1 })
    }
  }

  func backlog(_ isThere: Bool) {
    state.withLock { $0.backlogSince = isThere ? $0.backlogSince ?? .now : nil }
  }

  func storeFailed(_ error: StoreError?) {
    if let error {
      logger.error("receipt exchange waits for the store", metadata: ["step": "\(error.step)", "reason": "\(error)"])
    } else {
      logger.notice("receipt exchange has the store again")
    }
  }

  private static func metadata(_ key: DeveloperKey.Name) -> Logger.Metadata {
    ["team": "\(key.teamID)", "key_id": "\(key.keyID)"]
  }

  /// Describes a clock that is off by more than a minute, which is a reason for a 401.
  private static func clock(_ ahead: Duration) -> String? {
    let seconds = ahead.components.seconds
    guard seconds.magnitude > 60 else { return nil }
    return "the gate's clock is \(seconds.magnitude) seconds \(seconds < 0 ? "behind" : "ahead of") Apple's"
  }
}
