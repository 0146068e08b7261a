internal import AttestGate
internal import Logging

/// Tells the gates that share a store that this one lives, and learns how many they are. One in a process: a gate that
/// took new settings and counted as a second one would halve its own limits.
struct Heartbeat: Sendable {
  let store: any GateStore
  /// Told how many gates share the store.
  let gates: NodeCount
  let logger: Logger
  private let number = GateNumber.random()
  /// How long a gate counts that says nothing.
  private static let life = Duration.seconds(20)

  init(store: any GateStore, gates: NodeCount, logger: Logger) {
    self.store = store
    self.gates = gates
    self.logger = logger
  }

  /// Works until the task is cancelled, and takes the gate off the list then.
  func run() async {
    var live = LiveGates()
    while !Task.isCancelled {
      // A store that cannot be had says so elsewhere; the last count stays.
      if let count = try? await store.report(number, life: Self.life) {
        let before = live.count
        live.see(count, at: .now)
        gates.set(live.count)
        if live.count != before {
          logger.info("gates that share the store", metadata: ["gates": "\(live.count)", "before": "\(before)"])
        }
      }
      await Rest.about(.seconds(5))
    }
    try? await store.leave(number)
  }
}
