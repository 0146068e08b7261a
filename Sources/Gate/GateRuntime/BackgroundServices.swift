internal import GateService
internal import Logging

/// What runs in the background under one version of the settings, until it is cancelled.
///
/// Orders of certificates are not part of it: one in progress outlasts a reload.
struct BackgroundServices: Sendable {
  /// Store maintenance. It goes on while the gate shuts down.
  private let maintenance: Task<Void, Never>
  /// Reads the list of revoked Android certificates; `nil` if none is configured and no earlier one has to end.
  private let statusList: Task<Void, Never>?
  /// Exchanges receipts with Apple; `nil` if no app wants it and no earlier exchange has to end.
  private let receipts: Task<Void, Never>?
  /// Asks upstreams for their health; `nil` if no route wants it.
  private let upstreams: Task<Void, Never>?
  /// Stores decisions about keys; `nil` if none are kept. It goes on while the gate shuts down.
  private let decisions: Task<Void, Never>?

  /// Starts the services of `composition`.
  ///
  /// - Parameter previous: The services of earlier settings, which are cancelled. Where two would write one cache or
  ///   report to one monitor, the earlier one ends first.
  init(_ composition: GateComposition, after previous: BackgroundServices? = nil, logger: Logger) {
    previous?.cancel()
    let maintenance = composition.maintenance(logger: logger)
    self.maintenance = Task { await maintenance.run() }
    if let refresh = composition.statusListRefresh(logger: logger) {
      statusList = Task { [last = previous?.statusList] in
        await last?.value
        await refresh.run()
      }
    } else {
      // It stays known until it has ended: a later one waits for it.
      statusList = previous?.statusList
    }
    if let exchange = composition.receiptExchange {
      receipts = Task { [last = previous?.receipts] in
        await last?.value
        await exchange.run()
      }
    } else {
      receipts = previous?.receipts
    }
    upstreams = composition.upstreamChecks(logger: logger).map { checks in Task { await checks.run() } }
    if let writer = composition.decisionWriter(logger: logger) {
      decisions = Task { [last = previous?.decisions] in
        await last?.value
        await writer.run()
      }
    } else {
      composition.memory.metrics.decisions.close()
      decisions = previous?.decisions
    }
  }

  func cancel() {
    leave()
    maintenance.cancel()
    decisions?.cancel()
  }

  /// Cancels all but the services of the store. What an exchange under way brings is stored, or asked for again.
  func leave() {
    for task in [statusList, receipts, upstreams] { task?.cancel() }
  }

  /// Cancels all but the storing of decisions: this process still answers on open connections, and a new one has the rest.
  func handOver() {
    leave()
    maintenance.cancel()
  }

  /// Cancels the services of the store, and returns when they have ended. The last decisions are stored then.
  func endMaintenance() async {
    maintenance.cancel()
    decisions?.cancel()
    await maintenance.value
    await decisions?.value
  }
}
