import Dispatch
import Locking

/// Blocks the calling thread until `body` returns, and returns its result.
///
/// An asynchronous `main` would end the main thread, which valgrind 3.19 does not survive.
func awaited<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) throws -> Value {
  let isDone = DispatchSemaphore(value: 0)
  let result = LockedValue<Result<Value, any Error>?>(nil)
  Task.detached {
    let outcome: Result<Value, any Error>
    do { outcome = .success(try await body()) } catch { outcome = .failure(error) }
    result.withLock { $0 = outcome }
    isDone.signal()
  }
  isDone.wait()
  guard let outcome = result.withLock({ $0 }) else { preconditionFailure("signaled before the result was set") }
  return try outcome.get()
}
