internal import Locking

/// Notifies the parts of this process about changes to the store. Other processes poll the list of changes.
final class ChangeNotifier: Sendable {
  private struct State {
    var isClosed = false
    var streams: [Int: AsyncStream<Void>.Continuation] = [:]
    var lastStream = 0
  }

  private let state = LockedValue(State())

  func notices() -> AsyncStream<Void> {
    AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
      let (number, isClosed) = state.withLock { state in
        state.lastStream += 1
        state.streams[state.lastStream] = continuation
        return (state.lastStream, state.isClosed)
      }
      continuation.onTermination = { [self] _ in state.withLock { $0.streams[number] = nil } }
      if isClosed { continuation.finish() }
    }
  }

  func notify() {
    for stream in state.withLock({ Array($0.streams.values) }) { stream.yield() }
  }

  func close() {
    let streams = state.withLock { state in
      state.isClosed = true
      return Array(state.streams.values)
    }
    for stream in streams { stream.finish() }
  }
}
