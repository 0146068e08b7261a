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

  /// Runs `body` and stops waiting for it after `limit`.
  ///
  /// `body` then continues: a call of the store that has begun may still take effect.
  ///
  /// - Throws: `MFAStoreError.late` after `limit`; otherwise the error of `body`.
  public static func within<Value: Sendable>(
    _ limit: Duration, _ body: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    let deadline = ContinuousClock.now + limit
    return try await withCheckedThrowingContinuation { continuation in
      let waiting = LockedValue<CheckedContinuation<Value, any Error>?>(continuation)
      let answer = { @Sendable (result: Result<Value, any Error>) in
        let first = waiting.withLock { waiting in
          defer { waiting = nil }
          return waiting
        }
        first?.resume(with: result)
      }
      let timer = Task {
        try? await Task.sleep(until: deadline, clock: .continuous)
        answer(.failure(MFAStoreError.late))
      }
      Task {
        do {
          let value = try await $current.withValue(deadline) { try await body() }
          answer(.success(value))
        } catch {
          answer(.failure(error))
        }
        timer.cancel()
      }
    }
  }
}
