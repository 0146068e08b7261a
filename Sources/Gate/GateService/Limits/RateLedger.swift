internal import Locking

/// What each owner has used of each rate. It lives as long as the process, so a reload resets nothing.
///
/// It takes 1 MiB for each limited rate, whatever the number of owners.
public final class RateLedger: Sendable {
  private static let capacity = 1 << 16
  private let start: ContinuousClock.Instant
  private let now: @Sendable () -> ContinuousClock.Instant
  private let accounts: [RateLimit: LockedValue<TokenBuckets?>]

  public init(now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
    self.now = now
    start = now()
    accounts = Dictionary(uniqueKeysWithValues: RateLimit.allCases.map { ($0, LockedValue(nil)) })
  }

  /// Takes one of `owner`'s turns; `nil`, or how long to wait for the next one.
  func take(_ limit: RateLimit, of owner: some Hashable, _ rate: Rate) -> Duration? {
    // Swift's hashes are seeded for each process, so a client cannot find owners that share a place.
    let owner = UInt64(truncatingIfNeeded: owner.hashValue)
    let instant = nanoseconds(of: now())
    return accounts[limit]?.withLock { buckets in
      if buckets == nil { buckets = TokenBuckets(capacity: Self.capacity) }
      return buckets?.take(of: owner, rate, at: instant)
    }
  }

  private func nanoseconds(of instant: ContinuousClock.Instant) -> UInt64 {
    let (seconds, attoseconds) = start.duration(to: instant).components
    return UInt64(clamping: seconds) * 1_000_000_000 + UInt64(clamping: attoseconds / 1_000_000_000)
  }
}
