internal import Locking

/// Decides whether reads run on the threads that ask for them.
///
/// A read of a page that the system has in memory takes some microseconds, less than a change to another thread. The
/// writer and its checkpoints do not delay it, by SQLite's write-ahead log. But while a disk is slow, a read keeps an
/// event loop from its other connections. So after a read that took long, and while one takes long, further ones use
/// threads of their own: a slow disk delays an event loop by one read in `pause`, and one that does not answer stops the
/// loops that were reading, not all.
struct QuickReads: Sendable {
  /// The time from which a read counts as long.
  private static let longest = Duration.milliseconds(20)
  private static let pause = Duration.seconds(1)

  private struct State {
    var possibleFrom: ContinuousClock.Instant
    /// When the reads that run now began, by their numbers.
    var running: [UInt64: ContinuousClock.Instant] = [:]
    var lastNumber: UInt64 = 0
  }

  private let now: @Sendable () -> ContinuousClock.Instant
  private let state: LockedValue<State>

  /// - Parameter now: reads the clock.
  init(now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
    self.now = now
    state = LockedValue(State(possibleFrom: now()))
  }

  /// Whether a read may run on the thread that asks.
  var arePossible: Bool {
    let now = now()
    return state.withLock { state in
      state.possibleFrom <= now && state.running.values.allSatisfy { now - $0 <= Self.longest }
    }
  }

  /// Runs a read, and measures it.
  func run<Value>(_ read: () throws -> Value) rethrows -> Value {
    let start = now()
    let number = state.withLock { state in
      state.lastNumber += 1
      state.running[state.lastNumber] = start
      return state.lastNumber
    }
    defer {
      let end = now()
      state.withLock { state in
        state.running[number] = nil
        if end - start > Self.longest { state.possibleFrom = end + Self.pause }
      }
    }
    return try read()
  }
}
