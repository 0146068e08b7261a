internal import Foundation
internal import Locking
internal import MFADomain

/// The subscription of a socket to the notifications of the user whose session is attached to it.
final class NoticeSubscription: Sendable {
  private let hub: NotificationHub
  private let notify: @Sendable () -> Void
  private let place = LockedValue<(userID: UUID, number: Int)?>(nil)

  init(hub: NotificationHub, _ notify: @escaping @Sendable () -> Void) {
    self.hub = hub
    self.notify = notify
  }

  /// Subscribes to `userID` and cancels the previous subscription. Rings immediately, for changes that are already
  /// there.
  func listen(to userID: UUID) {
    let number = hub.listen(to: userID, notify)
    let old = place.withLock { place in
      defer { place = (userID, number) }
      return place
    }
    if let old { hub.leave(old.userID, old.number) }
    notify()
  }

  func leave() {
    let old = place.withLock { place in
      defer { place = nil }
      return place
    }
    if let old { hub.leave(old.userID, old.number) }
  }
}
