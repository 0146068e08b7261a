import Testing

@testable import GateService

@Suite("Token buckets")
struct TokenBucketTests {
  private static let second: TokenBuckets.Instant = 1_000_000_000

  @Test(
    "A full bucket gives all its tokens immediately, reports the wait, and gives one more token after it",
    arguments: [(1, 1), (2, 1), (3, 60), (7, 60), (60, 60), (10_000, 1), (10_000, 86_400), (1, 86_400)])
  func exactly(count: Int, seconds: Int) throws {
    let rate = try #require(Rate(count, every: .seconds(seconds)))
    var buckets = TokenBuckets(capacity: 8)
    var now = 5 * Self.second
    for _ in 0..<count { #expect(buckets.take(of: 1, rate, at: now) == nil) }
    let refusal = buckets.take(of: 1, rate, at: now)
    let wait = try #require(refusal)
    // A refusal takes no token, so the wait does not grow.
    #expect(buckets.take(of: 1, rate, at: now) == wait)
    #expect(wait > .zero && wait <= .seconds(seconds) / count)
    let nanoseconds = TokenBuckets.Instant(wait / .nanoseconds(1))
    #expect(buckets.take(of: 1, rate, at: now + nanoseconds - 1) == .nanoseconds(1))
    now += nanoseconds
    #expect(buckets.take(of: 1, rate, at: now) == nil)
    #expect(buckets.take(of: 1, rate, at: now) != nil)
  }

  @Test("A bucket is full after its full time, and never exceeds its size")
  func rest() throws {
    let rate = try #require(Rate(5, every: .seconds(10)))
    var buckets = TokenBuckets(capacity: 8)
    for now in [0, 10, 1000].map({ $0 * Self.second }) {
      for _ in 0..<5 { #expect(buckets.take(of: 9, rate, at: now) == nil) }
      #expect(buckets.take(of: 9, rate, at: now) == .seconds(2))
    }
  }

  @Test("Owners have separate buckets")
  func owners() throws {
    let rate = try #require(Rate(1, every: .seconds(10)))
    var buckets = TokenBuckets(capacity: 64)
    for owner in 0..<8 as Range<UInt64> { #expect(buckets.take(of: owner, rate, at: 0) == nil) }
    for owner in 0..<8 as Range<UInt64> { #expect(buckets.take(of: owner, rate, at: 0) == .seconds(10)) }
  }

  @Test("If the table is full, the fullest bucket is dropped and no owner is refused")
  func flood() throws {
    let rate = try #require(Rate(10, every: .seconds(10)))
    var buckets = TokenBuckets(capacity: 8)
    for _ in 0..<10 { #expect(buckets.take(of: 1, rate, at: 0) == nil) }
    for owner in 2..<100_000 as Range<UInt64> { #expect(buckets.take(of: owner, rate, at: 0) == nil) }
    // The emptiest bucket was not dropped.
    #expect(buckets.take(of: 1, rate, at: 0) == .seconds(1))
  }

  @Test("A wait of an old rate is no longer than the time of the new rate")
  func changedRate() throws {
    let slow = try #require(Rate(1, every: .seconds(3600)))
    let fast = try #require(Rate(2, every: .seconds(2)))
    var buckets = TokenBuckets(capacity: 8)
    #expect(buckets.take(of: 1, slow, at: 0) == nil)
    #expect(buckets.take(of: 1, fast, at: 0) == .seconds(1))
    #expect(buckets.take(of: 1, fast, at: Self.second) == nil)
  }

  @Test(
    "Several gates share a rate, and each gate may do at least one request",
    arguments: [(1, 10), (3, 4), (4, 3), (20, 1)])
  func share(gates: Int, count: Int) throws {
    let rate = try #require(Rate(10, every: .seconds(60)))
    #expect(rate.share(ofOneIn: gates).count == count)
    #expect(rate.share(ofOneIn: gates).span == rate.span)
  }

  @Test("A rate outside its bounds is invalid", arguments: [(0, 60), (-1, 60), (10_001, 60), (1, 0), (1, 86_401)])
  func bounds(count: Int, seconds: Int) { #expect(Rate(count, every: .seconds(seconds)) == nil) }
}
