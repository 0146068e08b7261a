internal import AttestGate
internal import Logging
internal import Observability

/// Reports this gate as a live member of the cluster, and learns the number of members. There is one instance per
/// process: a gate that counted twice after a reload would halve its own limits.
struct Heartbeat: Sendable {
  let store: any GateStore
  /// Receives the number of gates that share the store.
  let gates: NodeCount
  let logger: Logger
  private let number = GateNumber.random()
  /// How long a gate that stops reporting still counts.
  private static let life = Duration.seconds(20)

  init(store: any GateStore, gates: NodeCount, logger: Logger) {
    self.store = store
    self.gates = gates
    self.logger = logger
  }

  /// Runs until the task is cancelled, and then removes the gate from the members.
  func run() async {
    var live = LiveGates()
    while !Task.isCancelled {
      // Store failures are logged elsewhere. The last count stays in use.
      if let count = try? await store.report(number, life: Self.life) {
        let before = live.count
        live.see(count, at: .now)
        gates.set(live.count)
        if live.count != before {
          logger.info(
            "cluster membership changed", metadata: ["gates": .number(live.count), "before": .number(before)])
        }
      }
      await Rest.about(.seconds(5))
    }
    try? await store.leave(number)
  }
}
