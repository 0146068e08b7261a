/// What each of many owners has used of a rate: token buckets in a table of fixed size.
///
/// A bucket is the instant at which it will be full again (the generic cell rate algorithm, ITU-T I.371 section 1.B).
/// So it fills by itself, and a full one needs no place. There is no timer and no sweep. Where a set of places is
/// full, the bucket that is nearest to being full is evicted: its owner gains at most what it had used. A flood of
/// owners therefore costs no memory and locks no client out; the table forgets, the least used buckets first.
struct TokenBuckets {
  /// Nanoseconds of a clock that does not go back.
  typealias Instant = UInt64

  private struct Bucket {
    var owner: UInt64 = 0
    var fullAt: Instant = 0
  }

  /// Places that an owner's bucket may be at.
  private static let waysPerSet = 8
  private let sets: Int
  private var buckets: [Bucket]

  /// - Parameter capacity: how many buckets there are; rounded up to whole sets of 8. 16 bytes each.
  init(capacity: Int) {
    sets = max(1, (capacity + Self.waysPerSet - 1) / Self.waysPerSet)
    buckets = Array(repeating: Bucket(), count: sets * Self.waysPerSet)
  }

  /// Takes a token of `owner`'s bucket.
  ///
  /// - Parameters:
  ///   - owner: a hash that clients cannot choose. Owners of the same hash share a bucket.
  ///   - rate: may be another one each time.
  /// - Returns: `nil`, or how long it takes until there is a token; then none was taken.
  mutating func take(of owner: UInt64, _ rate: Rate, at now: Instant) -> Duration? {
    let (span, token) = rate.nanoseconds
    let place = place(of: owner)
    let bucket = buckets[place]
    // A debt of a slower rate than the one that counts now is no greater than an empty bucket.
    let fullAt = bucket.owner == owner ? min(max(bucket.fullAt, now), now + span) : now
    let next = fullAt + token
    guard next <= now + span else {
      buckets[place] = Bucket(owner: owner, fullAt: fullAt)
      return .nanoseconds(Int64(clamping: next - now - span))
    }
    buckets[place] = Bucket(owner: owner, fullAt: next)
    return nil
  }

  /// Where `owner`'s bucket is, or else where it can be.
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
  /// The time to fill an empty bucket, and that for one token.
  ///
  /// Rounded down, the tokens of a full bucket fit its time, and one more does not: `count` is small beside `span`.
  fileprivate var nanoseconds: (span: UInt64, token: UInt64) {
    let (seconds, attoseconds) = span.components
    let span = UInt64(clamping: seconds) * 1_000_000_000 + UInt64(clamping: attoseconds / 1_000_000_000)
    return (span, span / UInt64(count))
  }
}
