import ByteCoding
import MFADomain
import Testing

@Suite("The brake on guesses")
struct AttemptLimiterTests {
  private static let start = Timestamp(seconds: 1_767_225_600)

  /// What an attacker gets who guesses as often as the brake lets: the guesses made in `length`.
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

  @Test("X-031 who guesses six digits for 30 days, as often as they may, is right with a chance below 1e-3")
  func attack() {
    let count = guesses(in: .seconds(30 * 86400))
    // A sent code is one of a million; of an authenticator, three steps are open at any time.
    #expect(Double(count) * 3 / 1_000_000 < 1e-3)
    #expect(count > 10)
  }

  @Test("A-232 five failures rest the factor, ten lock it for 15 minutes, and each further one doubles that")
  func escalation() {
    var (limiter, now) = (AttemptLimiter(at: Self.start), Self.start)
    var locks: [Int64] = []
    for _ in 1...20 {
      while let refusal = limiter.refusal(at: now) {
        guard case .rateLimited(let wait) = refusal else {
          guard case .accountLocked(let wait?) = refusal else { return }
          locks.append(wait.components.seconds)
          now = now.advanced(by: wait)
          continue
        }
        now = now.advanced(by: wait)
      }
      limiter.count(at: now)
    }
    #expect(locks.prefix(8) == [900, 1800, 3600, 7200, 14400, 28800, 57600, 86400])
  }

  @Test("A-232 a hundred failures in a row lock for good")
  func hardLock() {
    var (limiter, now) = (AttemptLimiter(at: Self.start), Self.start)
    for _ in 1...100 {
      now = now.advanced(by: .seconds(100_000))
      #expect(limiter.refusal(at: now) == nil)
      limiter.count(at: now)
    }
    #expect(limiter.refusal(at: now.advanced(by: .seconds(10_000_000))) == .accountLocked(retryAfter: nil))
  }

  @Test("A-232 a success forgets the failures")
  func release() {
    var limiter = AttemptLimiter(at: Self.start)
    for _ in 1...4 { limiter.count(at: Self.start) }
    limiter.release(at: Self.start)
    for _ in 1...4 { limiter.count(at: Self.start) }
    #expect(limiter.refusal(at: Self.start) == nil)
  }
}
