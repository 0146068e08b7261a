import ACME
import ByteCoding
import Foundation
import Testing

@Suite("When a certificate is renewed")
struct RenewalPlanTests {
  private let start = Timestamp(seconds: 1_800_000_000)
  private let day = Duration.seconds(86_400)

  private func certificate(days: Double = 90, jitter: Double = 0) -> RenewalPlan.Validity {
    .init(notBefore: start, notAfter: start.advanced(by: day * days), jitter: jitter)
  }

  @Test("Without a certificate one is ordered at once")
  func first() {
    #expect(RenewalPlan().action(at: start, for: nil, offersInformation: true) == .order)
  }

  @Test(
    "A certificate is renewed shortly before two thirds of its lifetime, or before half of it if it is short",
    arguments: [(0.1, 0.5), (6, 0.5), (9.9, 0.5), (10, 0.667), (45, 0.667), (90, 0.667), (398, 0.667)]
      as [(Double, Double)],
    [0, 0.5, 1])
  func moment(lifetime: (days: Double, part: Double), jitter: Double) {
    let days = lifetime.days
    let (plan, certificate) = (RenewalPlan(), certificate(days: days, jitter: jitter))
    let due = plan.renewal(of: certificate)
    let part = due.since(start) / (day * days)
    #expect(part <= lifetime.part + 0.0001 && part >= lifetime.part - 0.051)
    let before = due.advanced(by: .seconds(-1))
    #expect(plan.action(at: before, for: certificate, offersInformation: false) == .wait(until: due))
    #expect(plan.action(at: due, for: certificate, offersInformation: false) == .order)
  }

  @Test("A server that recommends a time is asked first, and again later; its window decides")
  func information() {
    var (plan, certificate) = (RenewalPlan(), certificate(jitter: 0.5))
    #expect(plan.action(at: start, for: certificate, offersInformation: true) == .askForRenewalInformation)
    let window = RenewalWindow(start: start.advanced(by: day * 10), end: start.advanced(by: day * 12))
    plan.learned(window, at: start, again: nil)
    let due = start.advanced(by: day * 11)
    #expect(plan.renewal(of: certificate) == due)
    let again = start.advanced(by: .seconds(6 * 3600))
    #expect(plan.action(at: start, for: certificate, offersInformation: true) == .wait(until: again))
    #expect(plan.action(at: again, for: certificate, offersInformation: true) == .askForRenewalInformation)
    plan.learned(window, at: due, again: nil)
    #expect(plan.action(at: due, for: certificate, offersInformation: true) == .order)
    // A window in the past: at once.
    plan.learned(RenewalWindow(start: start, end: start.advanced(by: .seconds(1))), at: due, again: nil)
    #expect(plan.action(at: due, for: certificate, offersInformation: true) == .order)
  }

  @Test("The server's wish when to be asked again is kept between a minute and a day")
  func clamped() {
    var plan = RenewalPlan()
    let window = RenewalWindow(start: start.advanced(by: day * 60), end: start.advanced(by: day * 61))
    for (wish, kept) in [(-5.0, 60.0), (0, 60), (3600, 3600), (864_000, 86_400)] {
      plan.learned(window, at: start, again: start.advanced(by: .seconds(wish)))
      #expect(plan.nextQuestion == start.advanced(by: .seconds(kept)))
    }
    plan.learnedNothing(at: start, again: nil)
    #expect(plan.window == window)
  }

  @Test("Failures are retried after growing delays, at most six hours")
  func backoff() {
    var plan = RenewalPlan()
    var delays: [Double] = []
    for _ in 0..<14 {
      plan.failed(.bindingRequired, at: start, .standard, random: 0.5)
      let next = plan.notBefore ?? start
      delays.append(next.since(start) / .seconds(1))
      #expect(plan.action(at: start, for: nil, offersInformation: false) == .wait(until: next))
      #expect(plan.action(at: next, for: nil, offersInformation: false) == .order)
    }
    #expect(Array(delays.prefix(4)) == [60, 180, 540, 1620] && delays.last == 21_600)
    // Let's Encrypt allows five failed validations of a name in an hour, also if the delays are the shortest.
    #expect(delays.prefix(5).reduce(0) { $0 + 0.75 * $1 } > 3600)
    #expect(plan.failures == 14 && plan.lastFailure?.code == "externalAccountRequired")
    // Gates that failed together do not come back together.
    var other = RenewalPlan()
    other.failed(.bindingRequired, at: start, .standard, random: 0)
    #expect(other.notBefore == start.advanced(by: .seconds(45)))
  }

  @Test("A rate limit is respected even if the certificate is due")
  func rateLimit() {
    var plan = RenewalPlan()
    let until = start.advanced(by: day * 2)
    plan.failed(.rateLimited(Problem(), until: until), at: start, .standard, random: 0.5)
    let certificate = RenewalPlan.Validity(notBefore: start, notAfter: start.advanced(by: .seconds(10)), jitter: 0)
    guard case .wait(let next) = plan.action(at: start.advanced(by: day), for: certificate, offersInformation: false)
    else {
      Issue.record("ordered during the rate limit")
      return
    }
    #expect(next >= until)
  }

  @Test("After a success nothing is ordered for a tenth of the lifetime, at most a day, whatever the certificate says")
  func pause() {
    var plan = RenewalPlan()
    plan.failed(.bindingRequired, at: start, .standard, random: 0)
    let hour = 3600
    for (lifetime, pause) in [(2160 * hour, 24 * hour), (100 * hour, 10 * hour), (hour, hour / 10)] {
      let expired = RenewalPlan.Validity(
        notBefore: start.advanced(by: .seconds(-hour - lifetime)), notAfter: start.advanced(by: .seconds(-hour)),
        jitter: 0)
      plan.obtained(expired, at: start)
      #expect(plan.failures == 0 && plan.lastFailure == nil)
      let next = start.advanced(by: .seconds(pause))
      #expect(plan.action(at: start, for: expired, offersInformation: false) == .wait(until: next))
      // The failure that is reported because of the period does not shorten it.
      plan.failed(.clock(notBefore: start, notAfter: start), at: start, .standard, random: 0)
      #expect(plan.action(at: start, for: expired, offersInformation: false) == .wait(until: next))
      #expect(plan.action(at: next, for: expired, offersInformation: false) == .order)
    }
  }

  @Test("A plan that was written while the clock was years ahead does not delay the renewal")
  func clockSetBack() {
    var plan = RenewalPlan()
    let wrong = start.advanced(by: day * 1000)
    plan.obtained(certificate(), at: wrong)
    plan.learnedNothing(at: wrong, again: nil)
    let certificate = certificate()
    let due = plan.renewal(of: certificate)
    #expect(plan.action(at: due, for: certificate, offersInformation: false) == .order)
    #expect(plan.action(at: start, for: certificate, offersInformation: true) == .askForRenewalInformation)
    plan.failed(.bindingRequired, at: wrong, .standard, random: 0)
    #expect(plan.action(at: start, for: nil, offersInformation: false) == .order)
  }

  @Test("A window of the server cannot postpone a renewal until the certificate ends")
  func lateWindow() {
    var plan = RenewalPlan()
    plan.learned(
      RenewalWindow(start: start.advanced(by: day * 89), end: start.advanced(by: day * 365)), at: start, again: nil)
    #expect(plan.renewal(of: certificate(jitter: 0.5)) == start.advanced(by: day * 81))
  }

  @Test("A plan is stored and read as it was; a damaged one is refused")
  func stored() throws {
    var plan = RenewalPlan()
    plan.learned(
      RenewalWindow(start: start, end: start.advanced(by: day), explanation: "https://example.com/why"), at: start,
      again: nil)
    plan.failed(.noChallenge(name: "a", .dns, offered: ["http-01"]), at: start, .standard, random: 0.5)
    let data = try JSONEncoder().encode(plan)
    #expect(try JSONDecoder().decode(RenewalPlan.self, from: data) == plan)
    #expect(throws: (any Error).self) { try JSONDecoder().decode(RenewalPlan.self, from: Data("{}".utf8)) }
  }

  @Test("A damaged count of failures does not stop the next failure", arguments: [Int.max, Int.min, -1])
  func damagedCount(failures: Int) throws {
    var plan = try JSONDecoder().decode(RenewalPlan.self, from: Data(#"{"failures":\#(failures)}"#.utf8))
    plan.failed(.bindingRequired, at: start, .standard, random: 0.5)
    #expect(plan.failures > 0 && (plan.notBefore ?? start) > start)
  }

  @Test("An attempt that its process does not survive is not repeated at once")
  func begun() {
    var plan = RenewalPlan()
    plan.began(at: start, .standard, random: 0.5)
    let next = start.advanced(by: .seconds(60))
    #expect(plan.action(at: start, for: nil, offersInformation: false) == .wait(until: next))
    #expect(plan.action(at: next, for: nil, offersInformation: false) == .order)
    plan.began(at: next, .standard, random: 0.5)
    #expect(plan.notBefore == next.advanced(by: .seconds(180)))
  }
}
