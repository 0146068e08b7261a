internal import GateService
internal import Locking

extension GateHouse {
  /// What anyone may know of the gate who can ask for it.
  nonisolated var openResources: [any AdminResource] {
    [
      HealthResource(readiness),
      MetricsResource(memory.metrics.registry),
    ]
  }

  /// What has to be there for new sessions to be let in.
  nonisolated var readiness: [ReadinessCheck] {
    [
      .store(memory.store),
      ReadinessCheck("listener") { [isLeaving] in
        isLeaving.withLock(\.self) ? .unready("the gate is about to stop") : .ready("ok")
      },
    ]
  }
}
