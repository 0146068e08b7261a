internal import Locking

/// Decides whether reads run on the threads that ask for them.
///
/// A read of a page that the system has in memory takes some microseconds, less than a change to another thread. The
/// writer and its checkpoints do not delay it, by SQLite's write-ahead log. But while a disk is slow, a read keeps an
/// event loop from its other connections. So after a read that took long, further ones use threads of their own for a
/// while: a slow disk delays an event loop by one read in `pause`.
struct QuickReads: Sendable {
  /// The time from which a read counts as long.
  private static let longest = Duration.milliseconds(20)
  private static let pause = Duration.seconds(1)

  private let now: @Sendable () -> ContinuousClock.Instant
  private let possibleFrom: LockedValue<ContinuousClock.Instant>

  /// - Parameter now: reads the clock.
  init(now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
    self.now = now
    possibleFrom = LockedValue(now())
  }

  /// Whether a read may run on the thread that asks.
  var arePossible: Bool { possibleFrom.withLock { $0 } <= now() }

  /// Runs a read, and measures it.
  func run<Value>(_ read: () throws -> Value) rethrows -> Value {
    let start = now()
    defer {
      let end = now()
      if end - start > Self.longest { possibleFrom.withLock { $0 = end + Self.pause } }
    }
    return try read()
  }
}
