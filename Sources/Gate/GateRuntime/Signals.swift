internal import Glibc
internal import Locking
internal import ProcessFrame
internal import ProcessSignals

/// The new process of a graceful upgrade, after it has reported that it serves.
protocol NewProcess: Sendable {
  /// The process id.
  var id: Int32 { get }
  /// Makes it a child of process 1, so that a service manager hears of its end.
  func release()
  /// Waits until it, or one that has replaced it, asks this process to end; `false` if no such process runs any more.
  func isAskedToEnd() async -> Bool
}

extension UpgradeChild: NewProcess {}

/// A request to stop serving.
enum Stop: Sendable {
  /// Closes every session. The string is the reason for the log.
  case end(String)
  /// Leaves new sessions to this process, which already serves.
  case replaced(by: any NewProcess)
}

/// Receives stop requests. A shutdown request always counts, also after a completed upgrade. An upgrade counts only
/// if no earlier request was made.
final class StopRequests: Sendable {
  private let stream: AsyncStream<Stop>
  private let continuation: AsyncStream<Stop>.Continuation
  private let isTaken = LockedValue(false)

  init() { (stream, continuation) = AsyncStream.makeStream(of: Stop.self) }

  /// Submits a request. Returns `false` if an earlier request prevents it.
  @discardableResult
  func request(_ stop: Stop) -> Bool {
    isTaken.withLock { isTaken in
      if case .replaced = stop, isTaken { return false }
      isTaken = true
      continuation.yield(stop)
      return true
    }
  }

  /// Waits for the next request. Requests that are never awaited have no effect.
  func next() async -> Stop {
    for await stop in stream { return stop }
    // The stream finishes only when the waiting task is cancelled.
    return .end("end")
  }
}

/// The gate's signal handlers, installed from initialization until `stop()`. The value's lifetime has no effect on
/// them.
package struct Signals: Sendable {
  /// Where the signals come from.
  package enum Source: Sendable {
    /// The signals of this process.
    case process
    /// None: a process that runs several gates, such as one of tests, keeps its own.
    case none
  }

  private let source: Source
  /// Emits an element for each SIGHUP. Several signals in a row count as one.
  let reloads: AsyncStream<Void>
  /// Emits an element for each SIGUSR2.
  let upgrades: AsyncStream<Void>

  /// - Parameter stops: receives SIGTERM and SIGINT.
  init(_ stops: StopRequests, from source: Source) {
    self.source = source
    let (reloads, reload) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let (upgrades, upgrade) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    (self.reloads, self.upgrades) = (reloads, upgrades)
    guard case .process = source else { return }
    ProcessSignals.hear(Self.numbers) { number in
      switch number {
      case SIGTERM: stops.request(.end("SIGTERM"))
      case SIGINT: stops.request(.end("SIGINT"))
      case SIGHUP: reload.yield()
      default: upgrade.yield()
      }
    }
  }

  /// Restores the default action of SIGTERM and SIGINT, and ignores SIGHUP and SIGUSR2, which no longer have a
  /// purpose.
  func stop() {
    guard case .process = source else { return }
    ProcessSignals.obey([SIGTERM, SIGINT])
    ProcessSignals.ignore([SIGHUP, SIGUSR2])
  }

  private static let numbers = [SIGTERM, SIGINT, SIGHUP, SIGUSR2]
}
