import Locking

/// A value on which tasks can wait, such as the exit of a process or the lines that it has written.
public final class Watched<Value: Sendable>: Sendable {
  private struct Waiter: Sendable {
    /// Resumes the waiting task if the value satisfies it, and returns whether it does.
    let check: @Sendable (Value) -> Bool
    /// Resumes the waiting task with `WaitedTooLong`.
    let giveUp: @Sendable (Value) -> Void
  }

  private struct State {
    var value: Value
    var waiters: [Int: Waiter] = [:]
    var lastWaiter = 0
  }

  private let state: LockedValue<State>

  public init(_ value: Value) { state = LockedValue(State(value: value)) }

  public var value: Value { state.withLock(\.value) }

  public func update(_ change: (inout Value) -> Void) {
    state.withLock { state in
      change(&state.value)
      let value = state.value
      state.waiters = state.waiters.filter { !$0.value.check(value) }
    }
  }

  /// Waits until `result` returns a value other than `nil`, and returns that value.
  ///
  /// - Parameter limit: When a failing test gives up. It does not delay a passing one. From five seconds on it is only
  ///   that, and a busy machine gets two minutes; shorter limits are exact.
  /// - Throws: `WaitedTooLong` after `limit`.
  public func wait<Result: Sendable>(
    for purpose: String, within limit: Duration = .seconds(30), _ result: @escaping @Sendable (Value) -> Result?
  ) async throws -> Result {
    let limit = limit < .seconds(5) ? limit : max(limit, .seconds(120))
    return try await withCheckedThrowingContinuation { continuation in
      let waiter = Waiter(
        check: { value in
          guard let result = result(value) else { return false }
          continuation.resume(returning: result)
          return true
        },
        giveUp: { value in
          continuation.resume(throwing: WaitedTooLong(purpose: purpose, limit: limit, last: String(describing: value)))
        })
      guard let id = register(waiter) else { return }
      Task {
        try? await Task.sleep(for: limit)
        self.expire(id)
      }
    }
  }

  /// Registers `waiter` and returns its ID; `nil` if it was already resumed.
  private func register(_ waiter: Waiter) -> Int? {
    state.withLock { state in
      if waiter.check(state.value) { return nil }
      state.lastWaiter += 1
      state.waiters[state.lastWaiter] = waiter
      return state.lastWaiter
    }
  }

  private func expire(_ id: Int) {
    state.withLock { state in
      if let waiter = state.waiters.removeValue(forKey: id) { waiter.giveUp(state.value) }
    }
  }
}

public struct WaitedTooLong: Error, CustomStringConvertible {
  let purpose: String
  let limit: Duration
  let last: String

  public var description: String { "waited \(limit) for \(purpose); last seen: \(last)" }
}
