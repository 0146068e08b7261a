internal import ByteCoding

/// When each waiting message is sent again. A pure value: times are arguments.
struct WebhookPlan: Sendable {
  /// The pauses after refusals of one message; after the last one it is given up. The sum is about two days.
  static let pausesAfterRefusals: [Duration] = [5, 60, 300, 1800, 7200, 18_000, 36_000, 43_200, 64_800]
    .map { .seconds($0) }
  private static let longestRefusalPause = Duration.seconds(86_400)
  private static let shortestPause = Duration.seconds(1)
  private static let longestPause = Duration.seconds(300)
  /// The longest `Retry-After` that is respected.
  private static let longestRequestedPause = Duration.seconds(3600)
  /// The most messages that are under way at once.
  static let width = 8

  private struct Refusals {
    var count = 0
    var next: Timestamp

    /// A time that is further ahead than any pause was set by a clock that has been put back since.
    func isDue(at now: Timestamp) -> Bool { next <= now || next.since(now) > WebhookPlan.longestRefusalPause }
  }

  private var refusals: [WebhookTicket: Refusals] = [:]
  /// The pause of the last failure; `nil` while the receiver answers.
  private var pause: Duration?
  private var pausedUntil: Timestamp?

  /// Whether the receiver takes no message, as far as is known.
  var isPaused: Bool { pause != nil }

  /// The messages to send now, of those that wait: one as long as it is not known whether the receiver answers again.
  mutating func due(of waiting: [WebhookTicket], at now: Timestamp) -> ArraySlice<WebhookTicket> {
    if !refusals.isEmpty {
      let known = Set(waiting)
      refusals = refusals.filter { known.contains($0.key) }
    }
    if let until = pausedUntil, now < until, until.since(now) <= Self.longestRequestedPause { return [] }
    let due = waiting.lazy.filter { [refusals] in refusals[$0].map { $0.isDue(at: now) } ?? true }
    return ArraySlice(due.prefix(isPaused ? 1 : Self.width))
  }

  /// Records what became of an attempt. Returns whether the message is done with.
  ///
  /// - Parameter jitter: 0.75 to 1.25.
  mutating func note(_ outcome: WebhookOutcome, of ticket: WebhookTicket, at now: Timestamp, jitter: Double) -> Bool {
    switch outcome {
    case .delivered:
      (pause, pausedUntil, refusals[ticket]) = (nil, nil, nil)
      return true
    case .unreadable:
      refusals[ticket] = nil
      return true
    case .refused:
      (pause, pausedUntil) = (nil, nil)
      var known = refusals[ticket] ?? Refusals(next: now)
      guard known.count < Self.pausesAfterRefusals.count else {
        refusals[ticket] = nil
        return true
      }
      known.next = now.advanced(by: Self.pausesAfterRefusals[known.count] * jitter)
      known.count += 1
      refusals[ticket] = known
      return false
    case .unavailable(_, let requested):
      // The failures of attempts that began together count once.
      if let until = pausedUntil, now < until { return false }
      let next = min(pause.map { $0 * 2 } ?? Self.shortestPause, Self.longestPause)
      pause = next
      let requested = min(requested ?? .zero, Self.longestRequestedPause)
      pausedUntil = now.advanced(by: max(next * jitter, requested))
      return false
    }
  }
}
