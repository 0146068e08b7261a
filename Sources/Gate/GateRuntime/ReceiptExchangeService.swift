internal import AttestGate
internal import ByteCoding
internal import Locking

/// Exchanges receipts with Apple in the background, on a thread of its own.
struct ReceiptExchangeService: Sendable {
  /// The most exchanges of a second. One gate of a store exchanges at a time, so this is the rate of a whole fleet.
  static let exchangesPerSecond = 5

  private let worker: ExchangeWorker
  private let monitor: ReceiptExchangeMonitor
  /// Verifying receipts is work that admissions, revocations and probes do not wait for.
  private let executor = WorkerExecutor(threads: 1)

  init(
    _ apps: [ExchangeApp], storage: any RiskStorage, transport: any ExchangeTransport, judge: AnswerJudge,
    monitor: ReceiptExchangeMonitor, latestTime: @escaping @Sendable () async throws(StoreError) -> Timestamp?
  ) {
    worker = ExchangeWorker(
      apps: apps, storage: storage, exchange: ReceiptExchanger(transport: transport, judge: judge),
      interval: .seconds(1) / Self.exchangesPerSecond, clock: MachineClock(), observer: monitor,
      latestTime: latestTime)
    self.monitor = monitor
  }

  /// Runs until the task is cancelled. An exchange under way ends first, within `DataServiceClient.patience`.
  func run() async {
    let pauses = monitor.began().requested(at: MachineClock().uptime)
    let last = await withTaskGroup(of: ExchangePauses.self) { group in
      group.addTask(executorPreference: executor) { await worker.run(from: pauses) }
      return await group.next()
    }
    monitor.ended(with: last ?? ExchangePauses())
  }
}

/// The clocks of the machine.
private struct MachineClock: ExchangeClock {
  /// The same for every worker, so that one can go on with the pauses of another.
  private static let start = ContinuousClock.now

  var now: Timestamp { .now() }
  var uptime: Duration { ContinuousClock.now - Self.start }
  func sleep(for duration: Duration) async { try? await Task.sleep(for: duration) }
}
