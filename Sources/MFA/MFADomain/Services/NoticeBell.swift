public import Foundation
internal import Locking

/// Tells the open sockets of a user that there is something new to read.
public final class NoticeBell: Sendable {
  private struct Listeners {
    var next = 0
    var byUser: [UUID: [Int: @Sendable () -> Void]] = [:]
  }

  private let listeners = Guarded(Listeners())

  public init() {}

  /// Calls `ring` after each change that concerns the user, until `leave` is called with the number that this gives.
  /// `ring` must not wait.
  public func listen(to userID: UUID, _ ring: @escaping @Sendable () -> Void) -> Int {
    listeners.withLock { listeners in
      listeners.next += 1
      listeners.byUser[userID, default: [:]][listeners.next] = ring
      return listeners.next
    }
  }

  public func leave(_ userID: UUID, _ number: Int) {
    listeners.withLock { listeners in
      listeners.byUser[userID]?[number] = nil
      if listeners.byUser[userID]?.isEmpty == true { listeners.byUser[userID] = nil }
    }
  }

  public func ring(for userID: UUID) {
    let all = listeners.withLock { Array(($0.byUser[userID] ?? [:]).values) }
    for ring in all { ring() }
  }
}
