/// Which waiting messages are sent, and when each is sent again. A pure value: times are arguments.
struct WebhookPlan: Sendable {
  /// The pauses after refusals of one message; after the last one it is given up. The sum is about two days.
  static let pausesAfterRefusals: [Duration] = [5, 60, 300, 1800, 7200, 18_000, 36_000, 43_200, 64_800]
    .map { .seconds($0) }
  /// The refusals of one message after which it is given up: the first one, and one after each pause.
  static let mostRefusals = pausesAfterRefusals.count + 1
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

  /// Those that are neither under way nor refused, as `isBefore` orders them.
  private var queue: ArraySlice<WebhookTicket> = []
  private var refused: [WebhookTicket: Refusals] = [:]
  /// How often the receiver was unavailable when it was asked to take a message; no entry for a message that was not
  /// asked about.
  private var failures: [WebhookTicket: Int] = [:]
  /// When a message at which the receiver failed is asked about again at the earliest, also if it takes others.
  private var heldUntil: [WebhookTicket: ContinuousClock.Instant] = [:]
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
  mutating func add(_ tickets: [WebhookTicket]) {
    queue += tickets.filter { known.insert($0).inserted }
    order()
  }

  /// Takes the messages of the folder, the oldest first, in place of those known so far; none is under way.
  mutating func take(_ folder: [WebhookTicket]) {
    let present = Set(folder)
    refused = refused.filter { present.contains($0.key) }
    failures = failures.filter { present.contains($0.key) }
    heldUntil = heldUntil.filter { present.contains($0.key) }
    leftovers.formIntersection(present)
    queue = folder.filter { refused[$0] == nil && !leftovers.contains($0) }[...]
    known = present
    order()
  }

  /// Removes the messages to send now: one as long as it is not known whether the receiver answers again.
  ///
  /// A receiver may fail at one message and accept others. So messages take turns at asking, and after the pause those
  /// that failed come last: no message keeps the others back.
  mutating func next(at now: ContinuousClock.Instant) -> [WebhookTicket] {
    if let pausedUntil, now < pausedUntil { return [] }
    let width = pause == nil ? Self.width : 1
    let isDue = { [heldUntil] (ticket: WebhookTicket) in heldUntil[ticket].map { $0 <= now } ?? true }
    let again = refused.filter { $0.value.next <= now && isDue($0.key) }.keys
    let first = queue.lazy.filter(isDue).prefix(width)
    let chosen = (Array(again) + first).sorted { isBefore($0, $1) }.prefix(width)
    let taken = Set(chosen)
    queue = queue.filter { !taken.contains($0) }[...]
    return Array(chosen)
  }

  /// The order of attempts: by the number of failures, then refused messages that are due, then the oldest.
  private func isBefore(_ first: WebhookTicket, _ second: WebhookTicket) -> Bool {
    let (some, others) = (failures[first] ?? 0, failures[second] ?? 0)
    guard some == others else { return some < others }
    let isRefused = refused[first] != nil
    guard isRefused == (refused[second] != nil) else { return isRefused }
    return first < second
  }

  private mutating func order() {
    // Without failures, the queue is in the order in which messages came.
    guard !failures.isEmpty else { return }
    queue = queue.sorted { isBefore($0, $1) }[...]
  }

  /// Records what became of the messages of `next`, all together: a receiver that takes one and not another is paused
  /// nevertheless. Returns those that are done with.
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
      case .refused, .inaccessible: if isGivenUp(ticket, at: now, jitter) { done.append(ticket) }
      case .unavailable(_, let retryAfter):
        requested = max(requested ?? .zero, retryAfter ?? .zero)
        failures[ticket, default: 0] += 1
        let own = Self.shortestPause * Double(1 << min((failures[ticket] ?? 1) - 1, 9))
        heldUntil[ticket] = now + min(own, Self.longestPause) * jitter
        if refused[ticket] == nil { waiting.append(ticket) }
      }
    }
    for ticket in done {
      refused[ticket] = nil
      failures[ticket] = nil
      heldUntil[ticket] = nil
      known.remove(ticket)
    }
    if !waiting.isEmpty {
      queue = waiting + queue
      order()
    }
    guard let requested else {
      // A message that was not sent says nothing about the receiver.
      if outcomes.contains(where: { $0.outcome.isAnswer }) { (pause, pausedUntil) = (nil, nil) }
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
