import Foundation

/// Work that blocks, on a thread of its own: the pool has no more threads than the machine has cores, and a test that
/// waits on a plain socket holds one of them already.
public struct Aside<Value: Sendable>: Sendable {
  private let outcomes: AsyncStream<Result<Value, any Error>>

  /// Begins at once. The thread ends with `body`, whether or not anybody asks for the value.
  public init(_ body: @escaping @Sendable () throws -> Value) {
    let (outcomes, continuation) = AsyncStream.makeStream(of: Result<Value, any Error>.self)
    self.outcomes = outcomes
    Thread.detachNewThread {
      continuation.yield(Result(catching: body))
      continuation.finish()
    }
  }

  /// What `body` returned or threw; it can be asked for once.
  public var value: Value {
    get async throws {
      for await outcome in outcomes { return try outcome.get() }
      throw CancellationError()
    }
  }
}
