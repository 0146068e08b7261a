public import ByteCoding
internal import Locking

/// An upper bound of the current time that does not depend on the wall clock: the time that the store knew when it
/// was first asked, plus one day, plus the uptime since then.
///
/// A clock that runs ahead looks like a long idle period, and a wrongly removed key is lost. Because of the extra
/// day, a gate that was stopped for less than a day behaves as before. After a longer stop, removals start later by
/// the rest of that time.
///
/// Use one instance per process: a new instance asks the store again, which may by then hold times from the wrong
/// clock.
public final class ClockUpperBound: Sendable {
  private struct Anchor: Sendable {
    let time: Timestamp
    let at: ContinuousClock.Instant
  }

  static let slack = Duration.seconds(86_400)

  private let uptime: @Sendable () -> ContinuousClock.Instant
  private let anchor = LockedValue<Anchor?>(nil)

  /// - Parameter uptime: A monotonic clock.
  public init(uptime: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) { self.uptime = uptime }

  private var isAnchored: Bool { anchor.withLock { $0 != nil } }

  /// Returns the bound; `nil` while the store knows no time.
  public func bound(knownTo store: any KeyCatalog) async throws(StoreError) -> Timestamp? {
    if !isAnchored, let known = try await store.latestKnownTime() {
      // If two calls race, the first value stays; both are valid.
      anchor.withLock { $0 = $0 ?? Anchor(time: known.advanced(by: Self.slack), at: uptime()) }
    }
    return anchor.withLock { anchor in anchor.map { $0.time.advanced(by: uptime() - $0.at) } }
  }
}
