import ByteCoding
import MFADomain
import Testing

@Suite("The attempt limit")
struct AttemptLimiterTests {
  private static let start = Timestamp(seconds: 1_767_225_600)

  /// The number of guesses that the attempt limit allows an attacker in `length`.
  private func guesses(in length: Duration) -> Int {
    var (limiter, now, count) = (AttemptLimiter(at: Self.start), Self.start, 0)
    let end = Self.start.advanced(by: length)
    while now < end {
      switch limiter.refusal(at: now) {
      case nil:
        limiter.count(at: now)
        count += 1
      case .rateLimited(let wait), .accountLocked(let wait?): now = now.advanced(by: wait)
      default: return count
      }
    }
    return count
  }

  @Test("T-56 X-031 an attacker who guesses six digits for 30 days succeeds with a probability below 1e-3")
  func attack() {
    let count = guesses(in: .seconds(30 * 86400))
    // A sent code is one of a million. Three steps of an authenticator are valid at any time.
    #expect(Double(count) * 3 / 1_000_000 < 1e-3)
    #expect(count > 10)
  }

  @Test(
    "A-232 five failures delay the next guess, ten lock the factor for 15 minutes, and each further one doubles that"
  )
  func escalation() throws {
    var (limiter, now) = (AttemptLimiter(at: Self.start), Self.start)
    var locks: [Int64] = []
    for _ in 1...20 {
      while let refusal = limiter.refusal(at: now) {
        let wait: Duration? =
          switch refusal {
          case .rateLimited(let wait): wait
          case .accountLocked(let wait): wait
          default: nil
          }
        if case .accountLocked(let wait?) = refusal { locks.append(wait.components.seconds) }
        now = now.advanced(by: try #require(wait, "\(refusal)"))
      }
      limiter.count(at: now)
    }
    #expect(locks.prefix(8) == [900, 1800, 3600, 7200, 14400, 28800, 57600, 86400])
  }

  @Test("A-232 a hundred failures in a row lock permanently")
  func hardLock() {
    var (limiter, now) = (AttemptLimiter(at: Self.start), Self.start)
    for _ in 1...100 {
      now = now.advanced(by: .seconds(100_000))
      #expect(limiter.refusal(at: now) == nil)
      limiter.count(at: now)
    }
    #expect(limiter.refusal(at: now.advanced(by: .seconds(10_000_000))) == .accountLocked(retryAfter: nil))
  }

  @Test(
    "A-232 after a clock that ran ahead was set back, a limit is that of failures which were made now",
    arguments: [4, 5, 9, 10, 17, 99, 100])
  func clockSetBack(_ failures: Int) {
    let later = Self.start.advanced(by: .seconds(86400))
    var (ahead, right) = (AttemptLimiter(at: later), AttemptLimiter(at: Self.start))
    for _ in 1...failures {
      ahead.count(at: later)
      right.count(at: Self.start)
    }
    #expect(ahead.bounded(to: Self.start) == right)
    // Not by a clock that is right, nor by one that differs as those of two backends may.
    #expect(ahead.bounded(to: later) == nil)
    #expect(right.bounded(to: Self.start.advanced(by: .seconds(-60))) == nil)
  }

  @Test("A-232 a window that a clock ahead of the time has begun ends, although failures followed at the right time")
  func windowAhead() throws {
    var limiter = AttemptLimiter(at: Self.start.advanced(by: .seconds(86400)))
    for _ in 1...5 { limiter.count(at: Self.start) }
    let bounded = try #require(limiter.bounded(to: Self.start))
    #expect(bounded.refusal(at: Self.start) == .rateLimited(retryAfter: AttemptLimiter.window))
    #expect(bounded.refusal(at: Self.start.advanced(by: AttemptLimiter.window)) == nil)
  }

  @Test("A-232 a success resets the failures")
  func release() {
    var limiter = AttemptLimiter(at: Self.start)
    for _ in 1...4 { limiter.count(at: Self.start) }
    limiter.release(at: Self.start)
    for _ in 1...4 { limiter.count(at: Self.start) }
    #expect(limiter.refusal(at: Self.start) == nil)
  }
}
