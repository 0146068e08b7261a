internal import Locking

/// The places of deliveries that may speak to a service at the same time. Who waits for one gets it in turn.
final class PushPlaces: Sendable {
  private struct State {
    var free: Int
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state: LockedValue<State>

  init(_ count: Int) { state = LockedValue(State(free: count)) }

  /// Takes a place, and waits for one if necessary, also in a task that is cancelled: those that have a place end soon.
  func take() async {
    await withCheckedContinuation { continuation in
      let isFree = state.withLock { state in
        guard state.free == 0 else {
          state.free -= 1
          return true
        }
        state.waiting.append(continuation)
        return false
      }
      if isFree { continuation.resume() }
    }
  }

  /// Gives a place back, to the one that has waited longest.
  func leave() {
    let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
      guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
      state.free += 1
      return nil
    }
    next?.resume()
  }
}
