internal import FoundationEssentials
internal import Glibc
internal import ProcessFrame
internal import TransportEngine

/// Reports readiness, liveness and shutdown to systemd, if the gate runs under it.
struct ServiceState {
  private let socket: NotifySocket?
  private let watching: Task<Void, Never>?

  /// - Parameters:
  ///   - engine: must respond for the gate to count as alive.
  ///   - isUpgradeChild: whether the old process of an upgrade reports this one first.
  init(
    engine: Engine, isUpgradeChild: Bool, environment: [String: String] = ProcessInfo.processInfo.environment
  ) {
    socket = NotifySocket(environment: environment)
    let watchdog = socket.flatMap { Watchdog(environment: environment, socket: $0) }
    watching = watchdog.map { watchdog in
      Task { await watchdog.run(startsLater: isUpgradeChild) { await engine.turnAround() } }
    }
  }

  /// Reports that the gate serves.
  func begin() { socket?.send(.ready, .status("serving")) }

  /// Reports a reload in progress. A call of `begin` must follow.
  func reloading() {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    socket?.send(.reloading(at: UInt64(time.tv_sec) * 1_000_000 + UInt64(time.tv_nsec) / 1000))
  }

  /// Reports that the gate is shutting down. Watchdog messages continue meanwhile.
  func end() { socket?.send(.stopping, .status("closing its sockets")) }

  /// Reports `id` as the main process, with its first watchdog message: systemd counts from the last one of this process,
  /// and would not wait for the new one's next. systemd ignores later messages of this process.
  func handOver(to id: Int32) {
    watching?.cancel()
    socket?.send(.mainProcess(id), .ready, .watchdog, .status("serving"))
  }

  /// Stops the watchdog messages, just before the process exits.
  func leave() { watching?.cancel() }
}
