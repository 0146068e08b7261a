/// Which waiting messages are sent, and when each is sent again. A pure value: times are arguments.
struct WebhookPlan: Sendable {
  /// The pauses after refusals of one message; after the last one it is given up. The sum is about two days.
  static let pausesAfterRefusals: [Duration] = [5, 60, 300, 1800, 7200, 18_000, 36_000, 43_200, 64_800]
    .map { .seconds($0) }
  private static let shortestPause = Duration.seconds(1)
  private static let longestPause = Duration.seconds(300)
  /// The longest `Retry-After` that is respected.
  private static let longestRequestedPause = Duration.seconds(3600)
  /// The most messages that are under way at once.
  static let width = 8

  private struct Refusals {
    var count = 0
    var next: ContinuousClock.Instant
  }

  /// Those that are neither under way nor refused, the oldest first.
  private var queue: ArraySlice<WebhookTicket> = []
  private var refused: [WebhookTicket: Refusals] = [:]
  /// All that are known: in the queue, refused, under way or left over.
  private var known: Set<WebhookTicket> = []
  /// Those that are done with, and whose files could not be removed.
  private var leftovers: Set<WebhookTicket> = []
  /// The pause of the last failure; `nil` while the receiver answers.
  private var pause: Duration?
  private var pausedUntil: ContinuousClock.Instant?

  /// The number of messages that the receiver does not have.
  var count: Int { queue.count + refused.count }

  /// Adds new messages, the oldest first.
  mutating func add(_ tickets: [WebhookTicket]) { queue += tickets.filter { known.insert($0).inserted } }

  /// Takes the messages of the folder, the oldest first, in place of those known so far; none is under way.
  mutating func take(_ folder: [WebhookTicket]) {
    let present = Set(folder)
    refused = refused.filter { present.contains($0.key) }
    leftovers.formIntersection(present)
    queue = folder.filter { refused[$0] == nil && !leftovers.contains($0) }[...]
    known = present
  }

  /// Removes the messages to send now: one as long as it is not known whether the receiver answers again.
  mutating func next(at now: ContinuousClock.Instant) -> [WebhookTicket] {
    if let pausedUntil, now < pausedUntil { return [] }
    let width = pause == nil ? Self.width : 1
    let again = Array(refused.filter { $0.value.next <= now }.keys.sorted().prefix(width))
    let first = queue.prefix(width - again.count)
    queue = queue.dropFirst(first.count)
    return again + first
  }

  /// Records what became of the messages of `next`, all together: a receiver that takes one and not another is paused
  /// all the same. Returns those that are done with.
  ///
  /// - Parameter jitter: 0.75 to 1.25.
  mutating func note(
    _ outcomes: [(ticket: WebhookTicket, outcome: WebhookOutcome)], at now: ContinuousClock.Instant, jitter: Double
  ) -> [WebhookTicket] {
    var (done, waiting): ([WebhookTicket], [WebhookTicket]) = ([], [])
    var requested: Duration?
    for (ticket, outcome) in outcomes {
      switch outcome {
      case .delivered, .gone, .unreadable: done.append(ticket)
      case .refused: if isGivenUp(ticket, at: now, jitter) { done.append(ticket) }
      case .unavailable(_, let retryAfter):
        requested = max(requested ?? .zero, retryAfter ?? .zero)
        if refused[ticket] == nil { waiting.append(ticket) }
      }
    }
    for ticket in done {
      refused[ticket] = nil
      known.remove(ticket)
    }
    if !waiting.isEmpty { queue = waiting.sorted() + queue }
    guard let requested else {
      (pause, pausedUntil) = (nil, nil)
      return done
    }
    let next = min(pause.map { $0 * 2 } ?? Self.shortestPause, Self.longestPause)
    pause = next
    pausedUntil = now + max(next * jitter, min(requested, Self.longestRequestedPause))
    return done
  }

  private mutating func isGivenUp(_ ticket: WebhookTicket, at now: ContinuousClock.Instant, _ jitter: Double) -> Bool {
    var known = refused[ticket] ?? Refusals(next: now)
    guard known.count < Self.pausesAfterRefusals.count else { return true }
    known.next = now + Self.pausesAfterRefusals[known.count] * jitter
    known.count += 1
    refused[ticket] = known
    return false
  }

  /// Keeps a message that is done with from being sent again, although its file stays.
  mutating func leave(_ ticket: WebhookTicket) {
    leftovers.insert(ticket)
    known.insert(ticket)
  }
}
