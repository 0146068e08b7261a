internal import ByteCoding
internal import Locking

/// The latest time that it can be, whatever the wall clock says: the time that the store knew when it was first
/// asked, a day, and what the process has counted since.
///
/// A clock that runs ahead looks like a long silence, and what is removed because of it is lost. With the day, a gate
/// that rested for a while goes on as before; one that rested for longer removes that much later.
///
/// Use one for a process: another one asks the store again, where the fast clock may have left its time.
public final class ClockUpperBound: Sendable {
  private struct Anchor: Sendable {
    let time: Timestamp
    let at: ContinuousClock.Instant
  }

  static let slack = Duration.seconds(86_400)

  private let uptime: @Sendable () -> ContinuousClock.Instant
  private let anchor = LockedValue<Anchor?>(nil)

  /// - Parameter uptime: a clock that cannot be set.
  public init(uptime: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) { self.uptime = uptime }

  private var isAnchored: Bool { anchor.withLock { $0 != nil } }

  /// `nil` while the store knows of no time.
  func bound(knownTo store: any KeyCatalog) async throws(StoreError) -> Timestamp? {
    if !isAnchored, let known = try await store.latestKnownTime() {
      // Of two that come here at once the first one stays: both are right.
      anchor.withLock { $0 = $0 ?? Anchor(time: known.advanced(by: Self.slack), at: uptime()) }
    }
    return anchor.withLock { anchor in anchor.map { $0.time.advanced(by: uptime() - $0.at) } }
  }
}
