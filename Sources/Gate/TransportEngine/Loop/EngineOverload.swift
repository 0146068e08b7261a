internal import Synchronization

/// Why an engine does not open connections as fast as clients come.
public enum EngineOverload: Sendable, Hashable {
  /// Connections that are not open yet have waited in every turn of a loop, for this long. Open sessions go first.
  case behind(Duration)
  /// A listener accepts no connection for a moment: the process lacks descriptors or memory.
  case acceptPaused
}

extension Engine {
  /// A loop that has been behind for a shorter time has only had many clients at one moment.
  private static let patience: Milliseconds = 1_000

  /// Why clients wait for this engine now; `nil` if it keeps up. Reads what the loops noted last, from any thread.
  public var overload: EngineOverload? {
    if loops.contains(where: { $0.backlog.isPaused }) { return .acceptPaused }
    let longest = loops.reduce(0) { max($0, $1.backlog.behind) }
    return longest < Self.patience ? nil : .behind(.milliseconds(longest))
  }
}

/// How far a loop is behind with connections that are not open yet. The loop writes it, and any thread reads it.
final class OpeningBacklog: Sendable {
  private let milliseconds = Atomic<Milliseconds>(0)
  private let pauses = Atomic(0)

  /// For how long connections have waited in every turn; 0 if none had to in the last one.
  var behind: Milliseconds { milliseconds.load(ordering: .relaxed) }
  /// Whether one of the loop's listeners accepts no connection now.
  var isPaused: Bool { pauses.load(ordering: .relaxed) > 0 }

  func noteBehind(for time: Milliseconds) { milliseconds.store(time, ordering: .relaxed) }
  func notePause(began: Bool) { pauses.wrappingAdd(began ? 1 : -1, ordering: .relaxed) }
}
