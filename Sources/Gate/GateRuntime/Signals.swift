internal import Glibc
internal import Locking
internal import ProcessSignals

/// What is asked of a gate that ends its service.
enum Stop: Sendable, Hashable {
  /// To close every session; the reason is for the log.
  case end(String)
  /// To leave new ones to this process, which serves already.
  case replaced(by: Int32)
}

/// Who wants the gate to stop. A request for its end is heard first, or after a child has taken over; a child
/// takes over only if it is the first.
final class StopRequests: Sendable {
  private let stream: AsyncStream<Stop>
  private let continuation: AsyncStream<Stop>.Continuation
  private let isTaken = LockedValue(false)

  init() { (stream, continuation) = AsyncStream.makeStream(of: Stop.self) }

  /// Returns `false` if nothing comes of it, because something else was asked for earlier.
  @discardableResult
  func request(_ stop: Stop) -> Bool {
    isTaken.withLock { isTaken in
      if case .replaced = stop, isTaken { return false }
      isTaken = true
      continuation.yield(stop)
      return true
    }
  }

  /// The next request; those that are not waited for say nothing.
  func next() async -> Stop {
    for await stop in stream { return stop }
    // The stream ends only with the task that waits here.
    return .end("end")
  }
}

/// The signals that a gate obeys, from the making of this value until `stop()`. How long the value lives plays no part.
package struct Signals: Sendable {
  /// Where the signals come from.
  package enum Source: Sendable {
    /// The signals of this process.
    case process
    /// None: a process that runs several gates, such as one of tests, keeps its own.
    case none
  }

  private let source: Source
  /// An element for each SIGHUP; several that come at once are one.
  let reloads: AsyncStream<Void>
  /// An element for each SIGUSR2.
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

  /// From now on SIGTERM and SIGINT end the process. SIGHUP and SIGUSR2 are ignored: there is nothing left to reload or
  /// to upgrade.
  func stop() {
    guard case .process = source else { return }
    ProcessSignals.obey([SIGTERM, SIGINT])
    ProcessSignals.ignore([SIGHUP, SIGUSR2])
  }

  private static let numbers = [SIGTERM, SIGINT, SIGHUP, SIGUSR2]
}
