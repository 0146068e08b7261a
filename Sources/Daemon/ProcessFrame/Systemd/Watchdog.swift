internal import Glibc

/// Reports to systemd, twice in the time that it waits, that the service is alive (`WatchdogSec=`).
public struct Watchdog: Sendable {
  /// The time without a notification after which systemd restarts the service.
  public let timeout: Duration
  private let socket: NotifySocket

  /// `nil` unless `$WATCHDOG_USEC` is set, for this process.
  public init?(environment: [String: String], socket: NotifySocket) {
    guard let text = environment["WATCHDOG_USEC"], let microseconds = Int64(text), microseconds > 0 else { return nil }
    if let id = environment["WATCHDOG_PID"], id != String(getpid()) { return nil }
    timeout = .microseconds(microseconds)
    self.socket = socket
  }

  /// Notifies systemd twice in each `timeout`, as long as `isAlive` returns `true`, until the task is cancelled.
  ///
  /// - Parameters:
  ///   - startsLater: Whether the first notification waits for half of `timeout`. systemd refuses those of a process that
  ///     is not the main process yet.
  ///   - isAlive: Exercises all parts that the service needs. While it has not returned, or if it returns `false`,
  ///     nothing is sent.
  public func run(
    clock: some Clock<Duration> = ContinuousClock(), startsLater: Bool = false, isAlive: @Sendable () async -> Bool
  ) async {
    if startsLater { try? await clock.sleep(for: timeout / 2) }
    while !Task.isCancelled {
      if await isAlive() { socket.send(.watchdog) }
      try? await clock.sleep(for: timeout / 2)
    }
  }
}
