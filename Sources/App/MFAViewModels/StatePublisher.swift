internal import Locking

/// Publishes the states of a view model to any number of streams.
final class StatePublisher<State: Sendable>: Sendable {
  private struct Observers {
    var streams: [Int: AsyncStream<State>.Continuation] = [:]
    var last = 0
  }

  private let observers = LockedValue(Observers())

  deinit { observers.withLock { for stream in $0.streams.values { stream.finish() } } }

  /// A stream of `state` and of all states that are published from now on.
  func states(beginningWith state: State) -> AsyncStream<State> {
    let (stream, continuation) = AsyncStream.makeStream(of: State.self)
    continuation.yield(state)
    let id = observers.withLock { observers in
      observers.last += 1
      observers.streams[observers.last] = continuation
      return observers.last
    }
    continuation.onTermination = { [weak self] _ in self?.observers.withLock { $0.streams[id] = nil } }
    return stream
  }

  func publish(_ state: State) {
    for stream in observers.withLock({ Array($0.streams.values) }) { stream.yield(state) }
  }
}
