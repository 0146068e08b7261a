internal import Locking

/// The time until which a task can use the store's answer.
///
/// Requests that change nothing have a deadline. Their clients do not care whether such a request was executed, so
/// they can be asked to retry while the call still waits for a lock or a server. Requests with effects have none: a
/// client without an answer does not know whether they were executed.
public enum StoreDeadline {
  /// The deadline of the task's calls; `nil` for none. A store does not begin a call whose deadline has passed, and
  /// throws `MFAStoreError.late` for it.
  @TaskLocal public static var current: ContinuousClock.Instant?

  /// Whether a call with this deadline is of no use any more.
  public static func hasPassed(_ deadline: ContinuousClock.Instant?) -> Bool {
    deadline.map { $0 <= .now } ?? false
  }

  /// Runs `body` with a deadline for its calls of the store: `limit` from now.
  ///
  /// - Throws: the error of `body`.
  public static func within<Value>(
    _ limit: Duration, _ body: () async throws -> Value
  ) async throws -> Value {
    try await $current.withValue(.now + limit) { try await body() }
  }

  /// Begins a call of the store by `start`, and waits for its answer until the task's deadline. For stores.
  ///
  /// After the deadline, a call that has begun continues, and may still take effect.
  ///
  /// - Throws: the error of the answer; `MFAStoreError.late` after the deadline.
  public static func answer<Value: Sendable>(
    _ start: (_ answer: @escaping @Sendable (Result<Value, any Error>) -> Void) -> Void
  ) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      guard let deadline = current else { return start { continuation.resume(with: $0) } }
      let call = CallsWithDeadline.shared.add(until: deadline) { continuation.resume(throwing: MFAStoreError.late) }
      start { result in
        if CallsWithDeadline.shared.remove(call) { continuation.resume(with: result) }
      }
    }
  }
}

/// The calls that wait for an answer and have a deadline.
///
/// One task watches all of them: a task and a timer for each would cost more than the call.
private final class CallsWithDeadline: Sendable {
  private struct State {
    var waiting: [UInt64: (deadline: ContinuousClock.Instant, giveUp: @Sendable () -> Void)] = [:]
    var lastNumber: UInt64 = 0
    var isWatched = false
  }

  static let shared = CallsWithDeadline()

  /// How long after its deadline a call may be given up.
  private static let interval = Duration.milliseconds(20)

  private let state = LockedValue(State())

  /// Adds a call, and returns its number. `giveUp` is called after the deadline, unless the call was removed before.
  func add(until deadline: ContinuousClock.Instant, _ giveUp: @escaping @Sendable () -> Void) -> UInt64 {
    let (number, starts) = state.withLock { state in
      state.lastNumber += 1
      state.waiting[state.lastNumber] = (deadline, giveUp)
      defer { state.isWatched = true }
      return (state.lastNumber, !state.isWatched)
    }
    // Detached, because it serves other callers too, and must not keep the task locals of this one.
    if starts { Task.detached { await self.watch() } }
    return number
  }

  /// Removes a call, and returns whether it was still waiting.
  func remove(_ number: UInt64) -> Bool { state.withLock { $0.waiting.removeValue(forKey: number) } != nil }

  private func watch() async {
    repeat { try? await Task.sleep(for: Self.interval) } while giveUpLate()
  }

  /// Gives up the calls whose deadline has passed, and returns whether others wait.
  private func giveUpLate() -> Bool {
    let (late, isWatched) = state.withLock { state in
      let late = state.waiting.filter { StoreDeadline.hasPassed($0.value.deadline) }
      for number in late.keys { state.waiting[number] = nil }
      state.isWatched = !state.waiting.isEmpty
      return (late, state.isWatched)
    }
    for call in late.values { call.giveUp() }
    return isWatched
  }
}
