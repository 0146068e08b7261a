public import ByteCoding
internal import Locking

/// Whether a store answers, as its last calls tell.
public enum StoreHealth: Sendable, Hashable {
  /// Nothing has been asked yet.
  case untried
  case healthy
  /// Calls have failed since that instant, most recently for that reason.
  case failing(since: Timestamp, StoreError)
}

/// Keeps account of how a store's calls end. A store has several parts, such as its writes and its reads, and is as
/// well as its sickest one.
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

  /// What is known now. Of several parts that fail, the one that fails longest is told.
  public var health: StoreHealth {
    state.withLock { state in
      guard let oldest = state.failures.values.min(by: { $0.since < $1.since }) else {
        return state.isTried ? .healthy : .untried
      }
      return .failing(since: oldest.since, oldest.error)
    }
  }

  /// Notes how a call of `part` ended: `nil` is success. A store that has too much to do, or was shut, is not ill.
  public func note(_ error: StoreError?, of part: String) {
    if error == .overloaded || error == .closed { return }
    let now = clock.now()
    state.withLock { state in
      state.isTried = true
      guard let error else {
        // Nearly every call: nothing to write.
        if !state.failures.isEmpty { state.failures[part] = nil }
        return
      }
      state.failures[part, default: Failure(since: now, error: error)].error = error
    }
  }
}
