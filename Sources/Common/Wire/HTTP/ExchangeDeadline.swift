internal import Locking

/// One deadline for a whole exchange: connection, handshake, head and body.
///
/// The limits of HTTP libraries bound the time to the head, or the time between two bytes. A server that sends a byte a
/// second passes both for ever.
public enum ExchangeDeadline {
  /// Returns the result of `body`, or throws `expired` as soon as `limit` is over.
  ///
  /// `body` is then cancelled, and its result is ignored: no caller waits for a body that does not react. A cancelled
  /// caller also cancels `body`, and gets `cancelled` at once.
  ///
  /// - Parameters:
  ///   - limit: The time for the whole exchange.
  ///   - expired: What is thrown when the time is over.
  ///   - cancelled: What is thrown when the caller is cancelled.
  ///   - sleep: Waits for `limit`; throws if it is cancelled.
  /// - Throws: The error of `body`, `expired` or `cancelled`, whichever comes first.
  public static func within<Value: Sendable, Failure: Error>(
    _ limit: Duration, expired: Failure, cancelled: Failure,
    sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) },
    _ body: @escaping @Sendable () async throws(Failure) -> Value
  ) async throws(Failure) -> Value {
    let outcome = Outcome<Value, Failure>()
    let exchange = Task {
      do throws(Failure) {
        outcome.settle(.success(try await body()))
      } catch {
        outcome.settle(.failure(error))
      }
    }
    let timer = Task {
      guard (try? await sleep(limit)) != nil else { return }
      outcome.settle(.failure(expired))
    }
    defer {
      exchange.cancel()
      timer.cancel()
    }
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { outcome.wait($0) }
    } onCancel: {
      outcome.settle(.failure(cancelled))
    }
    return try result.get()
  }

  /// The first result that is known.
  private final class Outcome<Value: Sendable, Failure: Error>: Sendable {
    typealias Waiter = CheckedContinuation<Result<Value, Failure>, Never>

    private let state = LockedValue<(result: Result<Value, Failure>?, waiter: Waiter?)>((nil, nil))

    func settle(_ result: Result<Value, Failure>) {
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
