internal import AttestClient
internal import Locking

/// The end of the time that a call may take.
enum CallDeadline {
  /// Returns the result of `body`, or throws when `limit` is over: `body` is then cancelled, and its result ignored.
  ///
  /// A cancelled caller cancels `body` and waits for it no longer.
  static func within<Value: Sendable>(
    _ limit: Duration, _ body: @escaping @Sendable () async throws(NetworkError) -> Value
  ) async throws(NetworkError) -> Value {
    let outcome = Outcome<Value>()
    let call = Task {
      do throws(NetworkError) {
        outcome.settle(.success(try await body()))
      } catch {
        outcome.settle(.failure(error))
      }
    }
    let timer = Task {
      guard (try? await Task.sleep(for: limit)) != nil else { return }
      outcome.settle(.failure(.gate(.transport(.lost("no answer within \(limit)")))))
    }
    defer {
      call.cancel()
      timer.cancel()
    }
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { outcome.wait($0) }
    } onCancel: {
      outcome.settle(.failure(.gate(.cancelled)))
    }
    return try result.get()
  }

  /// The first result that is known.
  private final class Outcome<Value: Sendable>: Sendable {
    typealias Waiter = CheckedContinuation<Result<Value, NetworkError>, Never>

    private let state = LockedValue<(result: Result<Value, NetworkError>?, waiter: Waiter?)>((nil, nil))

    func settle(_ result: Result<Value, NetworkError>) {
      let waiter = state.withLock { state -> Waiter? in
        guard state.result == nil else { return nil }
        state.result = result
        defer { state.waiter = nil }
        return state.waiter
      }
      waiter?.resume(returning: result)
    }

    func wait(_ waiter: Waiter) {
      let result = state.withLock { state in
        if state.result == nil { state.waiter = waiter }
        return state.result
      }
      if let result { waiter.resume(returning: result) }
    }
  }
}
