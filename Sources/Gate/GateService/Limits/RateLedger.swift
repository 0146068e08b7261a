internal import Locking

/// The usage of each rate limit by each owner. It lives as long as the process, so that a reload resets no limit.
///
/// Uses 1 MiB for each configured rate limit, however many owners there are.
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

  /// Counts one event of `owner`. Returns `nil` if it is allowed, otherwise the time until the next one is.
  func take(_ limit: RateLimit, of owner: some Hashable, _ rate: Rate) -> Duration? {
    // Swift seeds its hashes for each process, so a client cannot choose an owner that collides with another.
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
