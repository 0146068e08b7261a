internal import ByteCoding
internal import Locking

/// How late it can be at most, whatever the clock on the wall says: what the store knew when it was first asked, a day,
/// and what the process has counted since.
///
/// A clock that runs ahead cannot be told from a long silence by looking at it, and what is removed because of it is gone.
/// The day lets a gate that rested for a while go on as before; one that rested for longer removes that much later.
///
/// One for a process: whoever makes another one asks the store anew, which may have come under the clock that is ahead.
public final class LatestTime: Sendable {
  private struct Anchor: Sendable {
    let time: Timestamp
    let at: ContinuousClock.Instant
  }

  static let slack = Duration.seconds(86_400)

  private let uptime: @Sendable () -> ContinuousClock.Instant
  private let anchor = Guarded<Anchor?>(nil)

  /// - Parameter uptime: a clock that nobody sets.
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
