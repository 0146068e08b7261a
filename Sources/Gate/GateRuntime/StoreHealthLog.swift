internal import AttestGate
internal import Logging

/// Logs when the store stops working and when it works again.
struct StoreHealthLog: Sendable {
  let store: any GateStore
  let logger: Logger
  /// The health is kept in memory: to look at it asks the store nothing.
  private static let interval = Duration.seconds(1)

  /// Runs until the task is cancelled. A fault of the start is logged by the start.
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
      "store unavailable: new sockets are refused",
      metadata: [
        "store": "\(store.place)", "step": "\(error.step)", "reason": "\(error)", "advice": "\(error.advice)",
      ])
  }
}
