internal import AttestGate
internal import Logging

/// Logs when the store becomes unavailable and when it recovers.
struct StoreHealthLog: Sendable {
  let store: any GateStore
  let logger: Logger
  /// How often the health is read. The value is in memory, so reading it does not call the store.
  private static let interval = Duration.seconds(1)

  /// Runs until the task is cancelled. The gate's start logs its own store error, so that state counts as reported.
  func run() async {
    var reported = error
    while !Task.isCancelled {
      try? await Task.sleep(for: Self.interval)
      let current = error
      guard current?.step != reported?.step else { continue }
      report(current)
      reported = current
    }
  }

  private var error: StoreError? {
    guard case .failing(_, let error) = store.health else { return nil }
    return error
  }

  private func report(_ error: StoreError?) {
    guard let error else {
      return logger.notice("store available again", metadata: ["store": "\(store.place)"])
    }
    logger.error(
      "store unavailable: new sessions are refused",
      metadata: [
        "store": "\(store.place)", "step": "\(error.step)", "reason": "\(error)", "advice": "\(error.advice)",
      ])
  }
}
