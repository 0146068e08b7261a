import Foundation

/// Runs blocking work on its own thread. The concurrency pool has only one thread for each core, and a test that waits
/// on a plain socket already blocks one.
public struct Aside<Value: Sendable>: Sendable {
  private let outcomes: AsyncStream<Result<Value, any Error>>

  /// Starts the thread immediately. It exits when `body` returns, even if the value is not used.
  public init(_ body: @escaping @Sendable () throws -> Value) {
    let (outcomes, continuation) = AsyncStream.makeStream(of: Result<Value, any Error>.self)
    self.outcomes = outcomes
    Thread.detachNewThread {
      continuation.yield(Result(catching: body))
      continuation.finish()
    }
  }

  /// Waits for `body` and returns its value or throws its error. May be used only once.
  public var value: Value {
    get async throws {
      for await outcome in outcomes { return try outcome.get() }
      throw CancellationError()
    }
  }
}
