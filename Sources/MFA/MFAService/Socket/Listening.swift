internal import Foundation
internal import Locking
internal import MFADomain

/// A socket's place at the bell of the user whose session is attached to it.
final class Listening: Sendable {
  private let bell: NoticeBell
  private let ring: @Sendable () -> Void
  private let place = Guarded<(userID: UUID, number: Int)?>(nil)

  init(bell: NoticeBell, _ ring: @escaping @Sendable () -> Void) {
    self.bell = bell
    self.ring = ring
  }

  /// Subscribes to `userID` instead of the previous user; notifies at once of what is there already.
  func listen(to userID: UUID) {
    let number = bell.listen(to: userID, ring)
    let old = place.withLock { place in
      defer { place = (userID, number) }
      return place
    }
    if let old { bell.leave(old.userID, old.number) }
    ring()
  }

  func leave() {
    let old = place.withLock { place in
      defer { place = nil }
      return place
    }
    if let old { bell.leave(old.userID, old.number) }
  }
}
