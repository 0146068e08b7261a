internal import AttestGate
internal import Databases
internal import Locking

/// Receives notifications of other gates (`LISTEN`) on its own connection and thread.
///
/// Where `LISTEN` does not work, as behind a pooler that shares connections, it receives nothing and causes no error.
final class NoticeListener: Sendable {
  private struct State {
    var isStarted = false
    var isClosed = false
    var streams: [Int: AsyncStream<Void>.Continuation] = [:]
    var lastStream = 0
  }

  private let dialer: Dialer
  private let state = LockedValue(State())

  init(dialer: Dialer) { self.dialer = dialer }

  /// Yields for each notification, and after each reconnection, since notifications may have been lost before it.
  func notices() -> AsyncStream<Void> {
    AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
      let (number, starts, isClosed) = state.withLock { state in
        state.lastStream += 1
        state.streams[state.lastStream] = continuation
        defer { state.isStarted = true }
        return (state.lastStream, !state.isStarted, state.isClosed)
      }
      continuation.onTermination = { [self] _ in state.withLock { $0.streams[number] = nil } }
      if isClosed { continuation.finish() }
      if starts, !isClosed, !Worker.start({ self.listen() }) { state.withLock { $0.isStarted = false } }
    }
  }

  /// Yields to every stream.
  func notify() {
    for stream in state.withLock({ Array($0.streams.values) }) { stream.yield() }
  }

  /// Finishes every stream and stops the thread.
  func close() {
    let streams = state.withLock { state in
      state.isClosed = true
      return Array(state.streams.values)
    }
    for stream in streams { stream.finish() }
  }

  private var isClosed: Bool { state.withLock(\.isClosed) }

  // MARK: On the thread

  private func listen() {
    var backoff = Backoff()
    var random = SystemRandomNumberGenerator()
    while !isClosed {
      do throws(StoreError) {
        let connection = try dialer.open()
        _ = try connection.ask(Call("LISTEN \(ChangeStatements.channel)"))
        backoff.reset()
        notify()
        hear(connection)
      } catch {
        // Polling continues to work without notifications.
      }
      Worker.pause(for: backoff.next(using: &random))
    }
  }

  private func hear(_ connection: PostgresConnection) {
    while !isClosed, connection.isUsable() {
      if connection.takeNotifications() { notify() }
      // A short wait, so that `close` takes effect soon.
      _ = connection.waitForInput(within: .milliseconds(500))
    }
  }
}
