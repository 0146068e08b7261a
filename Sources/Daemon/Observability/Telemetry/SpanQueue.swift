internal import Locking

/// The spans that wait for their export. Adding never waits: spans that find the queue full are dropped and counted.
public final class SpanQueue: Sendable {
  private struct State {
    var spans: [Span] = []
    var dropped: UInt64 = 0
  }

  private let capacity: Int
  private let state = LockedValue(State())

  public init(capacity: Int = 4096) { self.capacity = capacity }

  /// Adds the spans of one request, all or none.
  public func add(_ spans: [Span]) {
    state.withLock { state in
      if state.spans.count + spans.count <= capacity {
        state.spans += spans
      } else {
        state.dropped += UInt64(spans.count)
      }
    }
  }

  /// Removes and returns the oldest spans, at most `count`.
  public func take(_ count: Int) -> [Span] {
    state.withLock { state in
      let taken = Array(state.spans.prefix(count))
      state.spans.removeFirst(taken.count)
      return taken
    }
  }

  /// The number of spans that were dropped since the start because the queue was full.
  public var dropped: UInt64 { state.withLock(\.dropped) }
}
