internal import FoundationEssentials
internal import Glibc
internal import Systemd
internal import TransportEngine

/// What the system's service manager is told of a gate, if it asks: that it is ready, alive, and stopping.
struct ServiceState {
  private let socket: NotifySocket?
  private let watching: Task<Void, Never>?

  /// - Parameter engine: has to come round for the gate to count as alive.
  init(engine: Engine, environment: [String: String] = ProcessInfo.processInfo.environment) {
    socket = NotifySocket(environment: environment)
    let watchdog = socket.flatMap { Watchdog(environment: environment, socket: $0) }
    watching = watchdog.map { watchdog in Task { await watchdog.run { await engine.turnAround() } } }
  }

  /// The gate listens.
  func begin() { socket?.send(.ready, .status("serving")) }

  /// The gate reloads its configuration; `begin` follows.
  func reloading() {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    socket?.send(.reloading(at: UInt64(time.tv_sec) * 1_000_000 + UInt64(time.tv_nsec) / 1000))
  }

  /// The gate closes its sockets, and is given its time for that: signs of life go on meanwhile.
  func end() { socket?.send(.stopping, .status("closing its sockets")) }

  /// The process `id` is the service from now on, and speaks for itself: what this one says is not heard any more.
  func handOver(to id: Int32) {
    watching?.cancel()
    socket?.send(.mainProcess(id), .ready, .status("serving"))
  }

  /// The gate is about to be gone.
  func leave() { watching?.cancel() }
}
