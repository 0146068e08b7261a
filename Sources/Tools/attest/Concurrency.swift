internal import Glibc
internal import Locking
internal import ProcessSignals
internal import Transport

/// SIGINT and SIGTERM as a wish to end in order, until `stop()`. How long the value lives plays no part.
struct ClosingSignals: Sendable {
  private typealias State = (received: Bool, waiting: [CheckedContinuation<Void, Never>])

  private let state = LockedValue<State>((received: false, waiting: []))

  /// Calls `body` at each signal, on its own queue, instead of terminating the process.
  ///
  /// - Parameter once: Whether only the first signal is handled, and the next one terminates the process.
  init(once: Bool = false, _ body: @escaping @Sendable () -> Void) {
    ProcessSignals.hear(Self.numbers) { [state] _ in
      Self.note(in: state)
      if once { ProcessSignals.obey(Self.numbers) }
      body()
    }
  }

  var wereReceived: Bool { state.withLock { $0.received } }

  /// Returns at the first signal.
  func received() async {
    await withCheckedContinuation { continuation in
      let isOver = state.withLock { state in
        if !state.received { state.waiting.append(continuation) }
        return state.received
      }
      if isOver { continuation.resume() }
    }
  }

  /// Has the effect of a signal on those who wait for one.
  func end() { Self.note(in: state) }

  /// Restores the default action: both signals terminate the process.
  func stop() { ProcessSignals.obey(Self.numbers) }

  private static let numbers = [SIGINT, SIGTERM]

  private static func note(in state: LockedValue<State>) {
    let waiting = state.withLock { state in
      state.received = true
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }
}

/// Does something unless it is cancelled in time.
final class Deadline: Sendable {
  private let passed = LockedValue(false)
  private let task = LockedValue<Task<Void, Never>?>(nil)

  init(after duration: Duration, _ body: @escaping @Sendable () async -> Void) {
    let task = Task { [passed] in
      guard (try? await Task.sleep(for: duration)) != nil else { return }
      passed.withLock { $0 = true }
      await body()
    }
    self.task.withLock { $0 = task }
  }

  var hasPassed: Bool { passed.withLock { $0 } }
  func cancel() { task.withLock { $0?.cancel() } }
}

/// A value that several threads set and read.
final class Shared<Value: Sendable>: Sendable {
  private let value: LockedValue<Value>

  init(_ value: Value) { self.value = LockedValue(value) }
  func get() -> Value { value.withLock { $0 } }
  func set(_ value: Value) { self.value.withLock { $0 = value } }

  /// Sets the value and returns the old one.
  func exchange(_ value: Value) -> Value {
    self.value.withLock { current in
      defer { current = value }
      return current
    }
  }
}
