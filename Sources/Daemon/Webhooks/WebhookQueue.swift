public import ByteCoding
internal import ConfigurationEngine
internal import Locking
public import Logging
public import Observability

/// Hands messages to a receiver: from memory to a folder, and from the folder to the receiver, again until it takes
/// them.
///
/// Nothing that serves clients waits for it. A message that finds memory or folder full is dropped and counted. One that
/// is in the folder is sent at least once; several are under way at a time, so that their order can change.
public final class WebhookQueue: Sendable {
  /// The most messages that wait for the folder.
  private static let mostInMemory = 4096
  /// How often the folder is looked at without a message of this process's own: another process may write to it.
  private static let interval = Duration.seconds(5)

  private let spool: WebhookSpool
  private let mostWaiting: Int
  private let secretFile: String
  private let receiver: any WebhookReceiver
  private let place: String
  private let logger: Logger
  private let clock: WallClock
  private let sleep: @Sendable (Duration) async throws -> Void
  private let worker = WorkerExecutor(threads: 1)

  private let unwritten = LockedValue<[WebhookMessage]>([])
  /// What this process believes to wait in the folder; read again at each look.
  private let waiting = LockedValue(0)
  private let (arrivals, arrived): (AsyncStream<Void>, AsyncStream<Void>.Continuation)
  private let (looks, look): (AsyncStream<Void>, AsyncStream<Void>.Continuation)
  private let sending = LockedValue<Task<Void, Never>?>(nil)
  private let results: CounterFamily
  private let reported = LockedValue(Reported())

  private struct Reported {
    var isUnavailable = false
    var isDropping = false
  }

  /// - Parameters:
  ///   - mostWaiting: The most messages in the folder.
  ///   - secretFile: See `WebhookSecretFile`. It is read for each attempt, so that new secrets count at once.
  ///   - place: The receiver, for log lines.
  ///   - program: Begins the metrics' names: `PROGRAM_webhooks_total` with the label `result`, and
  ///     `PROGRAM_webhooks_waiting`.
  ///   - sleep: Waits. Tests replace it.
  public init(
    _ spool: WebhookSpool, mostWaiting: Int, secretFile: String, to receiver: any WebhookReceiver,
    at place: String, program: String, registry: MetricsRegistry, logger: Logger, clock: WallClock = .system,
    sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
  ) {
    self.spool = spool
    self.mostWaiting = mostWaiting
    self.secretFile = secretFile
    self.receiver = receiver
    self.place = place
    self.logger = logger
    self.clock = clock
    self.sleep = sleep
    (arrivals, arrived) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    (looks, look) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    results = registry.counters(
      "\(program)_webhooks_total",
      "Messages by what became of them: delivered, given up after refusals of the receiver, or dropped for want of room.",
      labels: ["result"])
    for result in ["delivered", "given_up", "dropped"] { _ = results.counter(result) }
    registry.values("\(program)_webhooks_waiting", "Messages that the receiver does not have yet.") { [waiting] in
      [Sample(Double(waiting.withLock(\.self)))]
    }
  }

  /// Takes a message, without waiting for anything.
  public func add(_ message: WebhookMessage) {
    let hasRoom = unwritten.withLock { messages in
      guard messages.count < Self.mostInMemory else { return false }
      messages.append(message)
      return true
    }
    if hasRoom { arrived.yield() } else { drop("the folder does not keep up") }
  }

  /// Writes and sends until the task is cancelled, and then writes what is left. Must be called once.
  ///
  /// Messages under way at the cancellation are not waited for: whoever sends next sends them again.
  public func run() async {
    sending.withLock { $0 = Task(executorPreference: worker) { await self.send() } }
    let writing = Task(executorPreference: worker) { await self.write() }
    // Neither task is a child: one that waits for a slow receiver must not delay the end of the process.
    await withTaskCancellationHandler {
      await writing.value
    } onCancel: {
      stopSending()
      arrived.finish()
    }
  }

  /// Leaves the folder to another process, such as the new one of an upgrade. Messages are still written.
  public func stopSending() { sending.withLock { $0?.cancel() } }

  // MARK: To the folder

  private func write() async {
    for await _ in arrivals { writeAll() }
    writeAll()
  }

  private func writeAll() {
    while true {
      let messages = unwritten.withLock { messages in
        let taken = messages.prefix(64)
        messages.removeFirst(taken.count)
        return taken
      }
      guard !messages.isEmpty else { return }
      for message in messages { write(message) }
      look.yield()
    }
  }

  private func write(_ message: WebhookMessage) {
    guard message.body.count <= WebhookSpool.largestBody else { return drop("the message is too long") }
    guard waiting.withLock(\.self) < mostWaiting else { return drop("\(mostWaiting) messages wait") }
    do throws(WebhookSpool.Fault) {
      try spool.write(message)
      waiting.withLock { $0 += 1 }
      reported.withLock { $0.isDropping = false }
    } catch {
      drop("\(error)")
    }
  }

  /// Counts a message that is lost, and logs the first of several.
  private func drop(_ reason: String) {
    results.counter("dropped").add()
    let isFirst = reported.withLock { reported in
      defer { reported.isDropping = true }
      return !reported.isDropping
    }
    if isFirst { logger.error("webhook message dropped", metadata: ["receiver": "\(place)", "reason": "\(reason)"]) }
  }

  // MARK: To the receiver

  private func send() async {
    let timer = Task { [sleep, look] in
      while !Task.isCancelled {
        guard (try? await sleep(Self.interval)) != nil else { return }
        look.yield()
      }
    }
    defer { timer.cancel() }
    var lock: WebhookLock?
    var plan = WebhookPlan()
    look.yield()
    for await _ in looks {
      guard !Task.isCancelled else { return }
      do throws(WebhookSpool.Fault) {
        if lock == nil { lock = try spool.lock(at: clock.now()) }
        if let count = try? spool.count() { waiting.withLock { $0 = count } }
        if lock != nil { try await sendDue(by: &plan) }
      } catch {
        report(.unavailable("\(error)", retryAfter: nil))
      }
    }
  }

  /// Sends what is due, as long as something is.
  private func sendDue(by plan: inout WebhookPlan) async throws(WebhookSpool.Fault) {
    while !Task.isCancelled {
      let tickets = try spool.waiting()
      waiting.withLock { $0 = tickets.count }
      let due = plan.due(of: tickets, at: clock.now())
      guard !due.isEmpty else { return }
      for (ticket, outcome) in await attempts(due) {
        let jitter = Double.random(in: 0.75...1.25)
        if plan.note(outcome, of: ticket, at: clock.now(), jitter: jitter) { try finish(ticket, outcome) }
        report(outcome)
      }
    }
  }

  private func attempts(_ tickets: ArraySlice<WebhookTicket>) async -> [(WebhookTicket, WebhookOutcome)] {
    await withTaskGroup(of: (WebhookTicket, WebhookOutcome).self) { group in
      for ticket in tickets { group.addTask { (ticket, await self.attempt(ticket)) } }
      return await group.reduce(into: []) { $0.append($1) }
    }
  }

  private func attempt(_ ticket: WebhookTicket) async -> WebhookOutcome {
    guard let message = spool.message(ticket) else { return .unreadable }
    guard let secrets = (try? FileContent.read(secretFile)).flatMap(WebhookSecretFile.secrets) else {
      return .unavailable("\(secretFile) cannot be read, or has no secrets", retryAfter: nil)
    }
    let fields = WebhookSignature.fields(for: message, secrets: secrets, at: clock.now())
    do throws(WebhookFault) {
      return WebhookOutcome(try await receiver.post(message.body, fields: fields))
    } catch {
      return .unavailable(error.reason, retryAfter: nil)
    }
  }

  private func finish(_ ticket: WebhookTicket, _ outcome: WebhookOutcome) throws(WebhookSpool.Fault) {
    try spool.remove(ticket)
    switch outcome {
    case .refused(let status):
      results.counter("given_up").add()
      logger.error(
        "webhook message given up: the receiver refused it each time",
        metadata: ["receiver": "\(place)", "message": "\(ticket.id)", "status": .number(status)])
    case .unreadable:
      results.counter("dropped").add()
      logger.error(
        "webhook message dropped: its file cannot be read",
        metadata: ["folder": "\(spool.folder)", "file": "\(ticket.name)"])
    case .delivered, .unavailable: results.counter("delivered").add()
    }
  }

  /// Logs where failures begin and end, and each refusal at the level `notice`.
  private func report(_ outcome: WebhookOutcome) {
    switch outcome {
    case .refused(let status):
      logger.notice(
        "webhook message refused: it will be sent again",
        metadata: ["receiver": "\(place)", "status": .number(status)])
    case .unreadable: return
    case .delivered, .unavailable: break
    }
    let reason: String? = if case .unavailable(let reason, _) = outcome { reason } else { nil }
    let changed = reported.withLock { reported in
      defer { reported.isUnavailable = reason != nil }
      return reported.isUnavailable != (reason != nil)
    }
    guard changed else { return }
    if let reason {
      logger.warning(
        "webhook receiver not reached: messages wait", metadata: ["receiver": "\(place)", "reason": "\(reason)"])
    } else {
      logger.notice("webhook receiver takes messages again", metadata: ["receiver": "\(place)"])
    }
  }
}
