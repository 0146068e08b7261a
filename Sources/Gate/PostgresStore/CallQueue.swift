internal import Dispatch
internal import Locking
internal import Postgres

/// Calls on their way to the one thread that serves them.
final class CallQueue<Element: Sendable>: Sendable {
  enum Taken {
    case some([Element])
    /// The time was up first.
    case none
    /// Nothing is left, and nothing more will come.
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

  /// - Parameter bound: how many may wait.
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

  /// Takes the oldest, at most `count`; waits for one until `deadline` if there is none (`nil`: for ever).
  ///
  /// For one thread alone.
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

  /// Lets nothing more in. What waits is still handed out.
  func close() {
    let wakes = state.withLock { state in
      state.isClosed = true
      defer { state.isAsleep = false }
      return state.isAsleep
    }
    if wakes { alarm.signal() }
  }
}
