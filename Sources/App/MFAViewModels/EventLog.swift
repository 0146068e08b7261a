public import ByteCoding
internal import Locking

/// One line of an `EventLog`. No key, code or token is part of it.
public struct LogEntry: Sendable, Hashable, Identifiable {
  /// Where something happened.
  public enum Source: String, Sendable, Hashable, CaseIterable {
    /// The user or the app.
    case app
    /// The app and the phone: keys and prompts.
    case phone
    /// The app and the server, through the gate.
    case server
  }

  /// How it ended.
  public enum Outcome: String, Sendable, Hashable, CaseIterable {
    /// It is done.
    case success
    /// It failed, or was declined.
    case failure
  }

  /// Counts from 1 over the life of the log.
  public let id: Int
  /// The time of the end. Never earlier than that of the line before.
  public let time: Timestamp
  /// Where it happened.
  public let source: Source
  /// How it ended.
  public let outcome: Outcome
  /// What happened: for `.server` the name of the operation.
  public let title: String
  /// More about it: for a failure, the name and number of the error and its text.
  public let detail: String
}

/// The last events of an app, in the order in which they ended. Calls from several tasks are safe.
public final class EventLog: Sendable {
  private struct State {
    var entries: [LogEntry] = []
    var lastID = 0
    var lastTime: Timestamp?
    var observers: [Int: AsyncStream<LogEntry>.Continuation] = [:]
    var lastObserver = 0
  }

  /// The number of lines that are kept.
  public let capacity: Int
  private let now: @Sendable () -> Timestamp
  private let state = LockedValue(State())

  /// Creates an empty log.
  ///
  /// - Parameters:
  ///   - capacity: The number of lines that are kept; the oldest ones are dropped.
  ///   - now: The time of the device's clock.
  public init(capacity: Int = 1000, now: @escaping @Sendable () -> Timestamp) {
    self.capacity = max(1, capacity)
    self.now = now
  }

  deinit { state.withLock { for stream in $0.observers.values { stream.finish() } } }

  /// The lines that are kept, oldest first.
  public var entries: [LogEntry] { state.withLock { Array($0.entries.suffix(capacity)) } }

  /// Appends a line.
  public func add(_ source: LogEntry.Source, _ title: String, _ outcome: LogEntry.Outcome, _ detail: String = "") {
    let time = now()
    state.withLock { state in
      state.lastID += 1
      let time = max(time, state.lastTime ?? time)
      state.lastTime = time
      let entry = LogEntry(
        id: state.lastID, time: time, source: source, outcome: outcome, title: title, detail: detail)
      // In pieces, so that a full log is not moved for each line.
      if state.entries.count >= 2 * capacity { state.entries.removeFirst(state.entries.count - capacity + 1) }
      state.entries.append(entry)
      for observer in state.observers.values { observer.yield(entry) }
    }
  }

  /// The lines that are kept, and all further ones. The stream ends when the log is released.
  public func updates() -> AsyncStream<LogEntry> {
    let (stream, observer) = AsyncStream.makeStream(of: LogEntry.self)
    let id = state.withLock { state in
      for entry in state.entries.suffix(capacity) { observer.yield(entry) }
      state.lastObserver += 1
      state.observers[state.lastObserver] = observer
      return state.lastObserver
    }
    observer.onTermination = { [weak self] _ in self?.state.withLock { $0.observers[id] = nil } }
    return stream
  }

  /// Removes all lines.
  public func clear() { state.withLock { $0.entries = [] } }
}
