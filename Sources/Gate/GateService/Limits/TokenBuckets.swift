/// Token buckets for any number of owners, in a table of fixed size.
///
/// A bucket is the time at which it will be full again (the generic cell rate algorithm, ITU-T I.371 section 1.B). So
/// it needs no timer to fill, and a full bucket needs no entry. If a set of entries is full, the bucket that is
/// closest to full is evicted, and its owner gets back at most the tokens it had used. A flood of owners therefore
/// uses no memory and locks out no client. It only makes the table forget usage, the smallest first.
struct TokenBuckets {
  /// Nanoseconds of a monotonic clock.
  typealias Instant = UInt64

  private struct Bucket {
    var owner: UInt64 = 0
    var fullAt: Instant = 0
  }

  /// The number of entries that an owner's bucket may use.
  private static let waysPerSet = 8
  private let sets: Int
  private var buckets: [Bucket]

  /// - Parameter capacity: The number of buckets, rounded up to whole sets of 8. Each uses 16 bytes.
  init(capacity: Int) {
    sets = max(1, (capacity + Self.waysPerSet - 1) / Self.waysPerSet)
    buckets = Array(repeating: Bucket(), count: sets * Self.waysPerSet)
  }

  /// Takes a token from `owner`'s bucket.
  ///
  /// - Parameters:
  ///   - owner: A hash that clients cannot choose. Owners with the same hash share a bucket.
  ///   - rate: The current rate, which may differ between calls.
  /// - Returns: `nil` if a token was taken, otherwise the time until one is available.
  mutating func take(of owner: UInt64, _ rate: Rate, at now: Instant) -> Duration? {
    let (span, token) = rate.nanoseconds
    let place = place(of: owner)
    let bucket = buckets[place]
    // If the rate was slower before, the stored time is limited to that of an empty bucket.
    let fullAt = bucket.owner == owner ? min(max(bucket.fullAt, now), now + span) : now
    let next = fullAt + token
    guard next <= now + span else {
      buckets[place] = Bucket(owner: owner, fullAt: fullAt)
      return .nanoseconds(Int64(clamping: next - now - span))
    }
    buckets[place] = Bucket(owner: owner, fullAt: next)
    return nil
  }

  /// Returns the index of `owner`'s bucket, or of the entry that it may replace.
  private func place(of owner: UInt64) -> Int {
    let start = Int(owner % UInt64(sets)) * Self.waysPerSet
    var fullest = start
    for place in start..<start + Self.waysPerSet {
      if buckets[place].owner == owner { return place }
      if buckets[place].fullAt < buckets[fullest].fullAt { fullest = place }
    }
    return fullest
  }
}

extension Rate {
  /// The time to fill an empty bucket, and the time for one token.
  ///
  /// Rounding down never allows one token too many: `count` is small compared with `span`.
  fileprivate var nanoseconds: (span: UInt64, token: UInt64) {
    let (seconds, attoseconds) = span.components
    let span = UInt64(clamping: seconds) * 1_000_000_000 + UInt64(clamping: attoseconds / 1_000_000_000)
    return (span, span / UInt64(count))
  }
}
