internal import Databases
internal import Dispatch
internal import Locking

/// A bounded queue of calls for one consumer thread.
final class CallQueue<Element: Sendable>: Sendable {
  enum Taken {
    case some([Element])
    /// The deadline has passed.
    case none
    /// The queue is empty and closed.
    case closed
  }

  private struct State {
    var waiting: [Element] = []
    var isAsleep = false
    var isClosed = false
  }

  private let bound: Int
  private let state = LockedValue(State())
  private let alarm = DispatchSemaphore(value: 0)

  /// - Parameter bound: The maximum number of waiting elements.
  init(bound: Int) { self.bound = bound }

  var countOfWaiting: Int { state.withLock { $0.waiting.count } }

  enum Offer { case taken, full, closed }

  func offer(_ element: Element) -> Offer {
    let (offer, wakes) = state.withLock { state -> (Offer, Bool) in
      if state.isClosed { return (.closed, false) }
      if state.waiting.count >= bound { return (.full, false) }
      state.waiting.append(element)
      defer { state.isAsleep = false }
      return (.taken, state.isAsleep)
    }
    if wakes { alarm.signal() }
    return offer
  }

  /// Removes and returns the oldest elements, at most `count`. If there are none, waits until `deadline` (`nil`:
  /// without limit).
  ///
  /// Only one thread may call it.
  func take(atMost count: Int, until deadline: ContinuousClock.Instant?) -> Taken {
    while true {
      if let taken = takeNow(atMost: count) { return taken }
      guard let deadline else {
        alarm.wait()
        continue
      }
      let left = ContinuousClock.now.duration(to: deadline)
      if left <= .zero { return .none }
      let nanoseconds = left.components.seconds * 1_000_000_000 + left.components.attoseconds / 1_000_000_000
      _ = alarm.wait(timeout: .now() + .nanoseconds(Int(nanoseconds)))
    }
  }

  private func takeNow(atMost count: Int) -> Taken? {
    state.withLock { state in
      if state.waiting.isEmpty {
        if state.isClosed { return .closed }
        state.isAsleep = true
        return nil
      }
      defer { state.waiting.removeFirst(min(count, state.waiting.count)) }
      return .some(Array(state.waiting.prefix(count)))
    }
  }

  /// Refuses new elements. Waiting elements are still delivered.
  func close() {
    let wakes = state.withLock { state in
      state.isClosed = true
      defer { state.isAsleep = false }
      return state.isAsleep
    }
    if wakes { alarm.signal() }
  }
}
