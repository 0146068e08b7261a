public import Foundation
internal import Locking

/// Notifies the open sockets of a user that there is something new to read.
public final class NotificationHub: Sendable {
  private struct Listeners {
    var next = 0
    var byUser: [UUID: [Int: @Sendable () -> Void]] = [:]
  }

  private let listeners = LockedValue(Listeners())

  public init() {}

  /// Calls `notify` after each change that concerns the user, until `leave` is called with the returned number.
  ///
  /// `notify` runs on the thread of the operation and must not block.
  public func listen(to userID: UUID, _ notify: @escaping @Sendable () -> Void) -> Int {
    listeners.withLock { listeners in
      listeners.next += 1
      listeners.byUser[userID, default: [:]][listeners.next] = notify
      return listeners.next
    }
  }

  /// Removes the listener with this number.
  public func leave(_ userID: UUID, _ number: Int) {
    listeners.withLock { listeners in
      listeners.byUser[userID]?[number] = nil
      if listeners.byUser[userID]?.isEmpty == true { listeners.byUser[userID] = nil }
    }
  }

  /// Calls all listeners of the user. Services call it through `UnitOfWork`, after the commit.
  public func notify(for userID: UUID) {
    let all = listeners.withLock { Array(($0.byUser[userID] ?? [:]).values) }
    for notify in all { notify() }
  }
}
