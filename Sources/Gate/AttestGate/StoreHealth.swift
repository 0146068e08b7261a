public import ByteCoding
internal import Locking

/// The health of a store according to its most recent calls.
public enum StoreHealth: Sendable, Hashable {
  /// No call has been made yet.
  case untried
  case healthy
  /// Calls have failed since this instant; the error is the most recent one.
  case failing(since: Timestamp, StoreError)
}

/// Tracks the results of store calls. A store has several parts, such as writes and reads; it is healthy only if all
/// of them are.
public final class StoreHealthRecord: Sendable {
  private struct Failure {
    let since: Timestamp
    var error: StoreError
  }

  private struct State {
    var isTried = false
    var failures: [String: Failure] = [:]
  }

  private let clock: WallClock
  private let state = LockedValue(State())

  public init(clock: WallClock = .system) { self.clock = clock }

  /// The current health. If several parts fail, returns the one that has been failing longest.
  public var health: StoreHealth {
    state.withLock { state in
      guard let oldest = state.failures.values.min(by: { $0.since < $1.since }) else {
        return state.isTried ? .healthy : .untried
      }
      return .failing(since: oldest.since, oldest.error)
    }
  }

  /// Records the result of a call to `part`; `nil` means success. An overloaded or closed store does not count as
  /// failing.
  public func note(_ error: StoreError?, of part: String) {
    if error == .overloaded || error == .closed { return }
    let now = clock.now()
    state.withLock { state in
      state.isTried = true
      guard let error else {
        // The usual case: nothing to update.
        if !state.failures.isEmpty { state.failures[part] = nil }
        return
      }
      state.failures[part, default: Failure(since: now, error: error)].error = error
    }
  }
}
