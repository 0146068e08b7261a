internal import AttestGate
internal import ByteCoding
internal import Logging
internal import Observability

/// Performs store maintenance in the background, off the event loops.
struct MaintenanceService: Sendable {
  let store: any GateStore
  let maintenance: StoreMaintenance
  let identityKeys: IdentityKeyRotation
  let risk: RiskFigures
  let apps: [RiskApp]
  let logger: Logger

  /// Runs until the task is cancelled.
  func run() async {
    var reminder: DailyReminder?
    while !Task.isCancelled {
      do throws(StoreError) {
        if let report = try await maintenance.run() { log(report) }
      } catch {
        logger.error(
          "store maintenance failed: it will be retried",
          metadata: ["step": "\(error.step)", "reason": "\(error)", "advice": "\(error.advice)"])
      }
      await tendIdentityKeys()
      warnOfClock(&reminder, at: .now())
      await countRisks()
      await Rest.about(.seconds(30))
    }
  }

  /// Runs on every gate. The store lets only one of them create a new key.
  private func tendIdentityKeys() async {
    do throws(StoreError) {
      if try await identityKeys.run() { logger.notice("identity signing key published") }
    } catch {
      logger.error("identity signing keys unavailable", metadata: ["step": "\(error.step)"])
    }
  }

  /// Logs once a day which keys are not rotated because a clock that was far ahead has dated them.
  ///
  /// - Parameter reminder: `nil` while there is no such key.
  func warnOfClock(_ reminder: inout DailyReminder?, at now: Timestamp) {
    let (challenge, identity) = (maintenance.keyOfClockAhead, identityKeys.keyOfClockAhead)
    guard challenge != nil || identity != nil else {
      reminder = nil
      return
    }
    guard reminder?.isDue(at: now) ?? true else { return }
    if reminder == nil { reminder = DailyReminder(last: now) }
    if let challenge {
      logger.warning(
        "challenge key not rotated: a clock that was ahead has made it",
        metadata: ["made_at": "\(challenge)", "advice": "set the clocks of all gates, then run sallyport store rotate"])
    }
    if let identity {
      logger.warning(
        "identity signing key not rotated: a clock that was ahead has made it",
        metadata: [
          "signs_from": "\(identity)",
          "advice": "set the clocks of all gates, then run sallyport store rotate --identity",
        ])
    }
  }

  /// Runs on every gate, for its metrics and its status.
  private func countRisks() async {
    do throws(StoreError) {
      try await risk.refresh(for: apps)
    } catch {
      logger.warning("keys not counted by risk", metadata: ["step": "\(error.step)"])
    }
  }

  private func log(_ report: StoreMaintenance.Report) {
    switch report.ring {
    case .rotated: logger.notice("challenge key rotated: nonces of the old key stay valid until they expire")
    case .pruned(let count): logger.info("expired challenge keys removed", metadata: ["keys": .number(count)])
    case nil: break
    }
    if report.removedKeys > 0 {
      logger.notice("unused keys removed", metadata: ["keys": .number(report.removedKeys)])
    }
  }
}

enum Rest {
  /// Sleeps for `duration` plus or minus up to a quarter, so that gates that started together do not stay in step.
  static func about(_ duration: Duration) async {
    try? await Task.sleep(for: duration * Double.random(in: 0.75...1.25))
  }
}
