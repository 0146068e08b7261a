public import ByteCoding
internal import Locking
public import Logging

/// Hands messages to a receiver: from memory to a folder, and from the folder to the receiver, again until it takes
/// them.
///
/// Nothing that serves clients waits for it. A message that finds memory or folder full is dropped and counted. One that
/// is in the folder is sent at least once; several are under way at a time, so that their order can change.
public final class WebhookQueue: Sendable {
  /// The most messages that wait for the folder.
  private static let mostInMemory = 4096
  /// How often pauses are looked at.
  private static let interval = Duration.seconds(1)
  /// At how many of these looks the folder is read: another process may write to it.
  private static let looksOfFolder = 5

  private let spool: WebhookSpool
  private let mostWaiting: Int
  private let secretFile: String
  private let secrets: @Sendable (_ file: String) -> [[UInt8]]?
  private let receiver: any WebhookReceiver
  private let place: String
  private let logger: Logger
  private let clock: WallClock
  private let instant: @Sendable () -> ContinuousClock.Instant
  private let sleep: @Sendable (Duration) async throws -> Void
  private let worker = WorkerExecutor(threads: 1)

  private let unwritten = LockedValue<[WebhookMessage]>([])
  /// What this process has written since the sender looked.
  private let written = LockedValue<[WebhookTicket]>([])
  /// How many messages the sender knows, so that the folder is not counted for each one that is written.
  private let planned = LockedValue(0)
  private let (arrivals, arrived): (AsyncStream<Void>, AsyncStream<Void>.Continuation)
  private let (looks, look): (AsyncStream<Void>, AsyncStream<Void>.Continuation)
  private let ticks = LockedValue(0)
  private let sending = LockedValue<Task<Void, Never>?>(nil)
  /// Whether the folder was left to another process, which takes messages out of it.
  private let isLeft = LockedValue(false)
  private let results: CounterFamily
  private let reported = LockedValue(Reported())

  private struct Reported {
    var isUnavailable = false
    var isDropping = false
    var isFolderFaulty = false
    var isInDoubt = false
  }

  /// - Parameters:
  ///   - mostWaiting: The most messages in the folder.
  ///   - secretFile: It is read for each attempt, so that new secrets count at once.
  ///   - secrets: Returns the secrets of the file, or `nil` if it has none: see `WebhookSecretFile`.
  ///   - place: The receiver, for log lines.
  ///   - program: Begins the metrics' names: `PROGRAM_webhooks_total` with the label `result`, and
  ///     `PROGRAM_webhooks_waiting`.
  ///   - instant: The time by which pauses are measured, which no one can set.
  ///   - sleep: Waits. Tests replace both.
  public init(
    _ spool: WebhookSpool, mostWaiting: Int, secretFile: String,
    secrets: @escaping @Sendable (_ file: String) -> [[UInt8]]?,
    to receiver: any WebhookReceiver,
    at place: String, program: String, registry: MetricsRegistry, logger: Logger, clock: WallClock = .system,
    instant: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
    sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
  ) {
    self.spool = spool
    self.mostWaiting = mostWaiting
    self.secretFile = secretFile
    self.secrets = secrets
    self.receiver = receiver
    self.place = place
    self.logger = logger
    self.clock = clock
    self.instant = instant
    self.sleep = sleep
    (arrivals, arrived) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    (looks, look) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    results = registry.counters(
      "\(program)_webhooks_total",
      "Messages by what became of them: delivered, given up after \(WebhookPlan.mostRefusals) refusals or failed reads, "
        + "or dropped for want of room.",
      labels: ["result"])
    for result in ["delivered", "given_up", "dropped"] { _ = results.counter(result) }
    registry.values("\(program)_webhooks_waiting", "Messages that the receiver does not have yet.") {
      [planned, written] in
      [Sample(Double(planned.withLock(\.self) + written.withLock(\.count)))]
    }
  }

  /// The messages in the folder, as far as this process knows.
  private var waiting: Int { planned.withLock(\.self) + written.withLock(\.count) }

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
  /// Messages under way at the cancellation are not waited for: the next sender sends them again.
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
  public func stopSending() {
    isLeft.withLock { $0 = true }
    sending.withLock { $0?.cancel() }
  }

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
      if isLeft.withLock(\.self) { countFolder() }
      for message in messages { write(message) }
      look.yield()
    }
  }

  /// Counts what waits, where no sender of this process does it. After a fault, the previous count stays.
  private func countFolder() {
    guard let count = try? spool.waiting().count else { return }
    written.withLock { $0 = [] }
    planned.withLock { $0 = count }
  }

  private func write(_ message: WebhookMessage) {
    guard message.body.count <= WebhookSpool.largestBody else { return drop("the message is too long") }
    guard waiting < mostWaiting else { return drop("\(mostWaiting) messages wait") }
    do throws(WebhookSpool.Fault) {
      let (ticket, doubt) = try spool.write(message)
      if let ticket { written.withLock { $0.append(ticket) } }
      reported.withLock { $0.isDropping = false }
      report(doubt: doubt)
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

  /// Logs the first of several messages that are in the folder, and whose names a power failure can lose.
  private func report(doubt: WebhookSpool.Fault?) {
    let isFirst = reported.withLock { reported in
      defer { reported.isInDoubt = doubt != nil }
      return doubt != nil && !reported.isInDoubt
    }
    guard isFirst, let doubt else { return }
    logger.warning(
      "webhook message written: a power failure can lose it",
      metadata: ["receiver": "\(place)", "reason": "\(doubt)"])
  }

  // MARK: To the receiver

  private func send() async {
    let timer = Task { [sleep, look, ticks] in
      while !Task.isCancelled {
        guard (try? await sleep(Self.interval)) != nil else { return }
        ticks.withLock { $0 += 1 }
        look.yield()
      }
    }
    defer { timer.cancel() }
    var lock: WebhookLock?
    var plan = WebhookPlan()
    ticks.withLock { $0 = Self.looksOfFolder }
    look.yield()
    for await _ in looks {
      guard !Task.isCancelled else { return }
      do throws(WebhookSpool.Fault) {
        if lock == nil { lock = try spool.lock(at: clock.now()) }
        try lookAtFolder(&plan)
        if lock != nil { await sendDue(by: &plan) }
        report(folder: nil)
      } catch {
        report(folder: error)
      }
      planned.withLock { $0 = plan.count }
    }
  }

  /// Takes what this process has written, and now and then all that is in the folder.
  private func lookAtFolder(_ plan: inout WebhookPlan) throws(WebhookSpool.Fault) {
    let new = written.withLock { written in
      defer { written = [] }
      return written
    }
    let isDue = ticks.withLock { ticks in
      guard ticks >= Self.looksOfFolder else { return false }
      ticks = 0
      return true
    }
    if isDue { plan.take(try spool.waiting()) } else { plan.add(new) }
  }

  /// Sends what is due, as long as something is.
  private func sendDue(by plan: inout WebhookPlan) async {
    while !Task.isCancelled {
      let due = plan.next(at: instant())
      guard !due.isEmpty else { return }
      let outcomes = await attempts(due)
      // What was under way at the end is sent again by the next sender.
      guard !Task.isCancelled || outcomes.contains(where: { $0.outcome == .delivered }) else { return }
      let done = Set(plan.note(outcomes, at: instant(), jitter: Double.random(in: 0.75...1.25)))
      for (ticket, outcome) in outcomes { finish(ticket, outcome, isDone: done.contains(ticket), &plan) }
      report(outcomes)
      planned.withLock { $0 = plan.count }
    }
  }

  private func attempts(_ tickets: [WebhookTicket]) async -> [(ticket: WebhookTicket, outcome: WebhookOutcome)] {
    await withTaskGroup(of: (WebhookTicket, WebhookOutcome).self) { group in
      for ticket in tickets { group.addTask { (ticket, await self.attempt(ticket)) } }
      return await group.reduce(into: []) { $0.append(($1.0, $1.1)) }
    }
  }

  private func attempt(_ ticket: WebhookTicket) async -> WebhookOutcome {
    let message: WebhookMessage
    do throws(WebhookSpool.Fault) {
      switch try spool.content(of: ticket) {
      case .message(let content): message = content
      case .gone: return .gone
      case .foreign: return .unreadable
      }
    } catch {
      return .inaccessible("\(error)")
    }
    guard let secrets = secrets(secretFile) else {
      return .unavailable("\(secretFile) cannot be read, or has no secrets", retryAfter: nil)
    }
    let fields = WebhookSignature.fields(for: message, secrets: secrets, at: clock.now())
    do throws(WebhookFault) {
      return WebhookOutcome(try await receiver.post(message.body, fields: fields))
    } catch {
      return .unavailable(error.reason, retryAfter: nil)
    }
  }

  /// Counts and logs what became of a message, and removes the file of one that is done with.
  private func finish(_ ticket: WebhookTicket, _ outcome: WebhookOutcome, isDone: Bool, _ plan: inout WebhookPlan) {
    switch outcome {
    case .refused(let status) where isDone:
      results.counter("given_up").add()
      logger.error(
        "webhook message given up: the receiver refused it each time",
        metadata: ["receiver": "\(place)", "message": "\(ticket.id)", "status": .number(status)])
    case .refused(let status):
      logger.notice(
        "webhook message refused: it will be sent again",
        metadata: ["receiver": "\(place)", "message": "\(ticket.id)", "status": .number(status)])
    case .inaccessible(let reason) where isDone:
      results.counter("given_up").add()
      logger.error(
        "webhook message given up: its file could not be read each time",
        metadata: ["message": "\(ticket.id)", "reason": "\(reason)"])
    case .inaccessible(let reason):
      logger.warning(
        "webhook message cannot be read: it will be read again",
        metadata: ["message": "\(ticket.id)", "reason": "\(reason)"])
    case .unreadable:
      results.counter("dropped").add()
      logger.error(
        "webhook message dropped: it is not one of this program",
        metadata: ["folder": "\(spool.folder)", "file": "\(ticket.name)"])
    case .delivered: results.counter("delivered").add()
    case .gone, .unavailable: break
    }
    guard isDone else { return }
    do throws(WebhookSpool.Fault) { try spool.remove(ticket) } catch {
      plan.leave(ticket)
      logger.error(
        "webhook message is done with, and its file cannot be removed", metadata: ["reason": "\(error)"])
    }
  }

  /// Logs where failures of the receiver begin and end.
  private func report(_ outcomes: [(ticket: WebhookTicket, outcome: WebhookOutcome)]) {
    let failure = outcomes.lazy.compactMap { ticket, outcome -> (ticket: WebhookTicket, reason: String)? in
      if case .unavailable(let reason, _) = outcome { (ticket, reason) } else { nil }
    }.first
    guard failure != nil || outcomes.contains(where: { $0.outcome.isAnswer }) else { return }
    let changed = reported.withLock { reported in
      defer { reported.isUnavailable = failure != nil }
      return reported.isUnavailable != (failure != nil)
    }
    guard changed else { return }
    if let failure {
      // A receiver may fail at one message alone, which this line then names.
      logger.warning(
        "webhook receiver takes no messages: they wait",
        metadata: ["receiver": "\(place)", "message": "\(failure.ticket.id)", "reason": "\(failure.reason)"])
    } else {
      logger.notice("webhook receiver takes messages again", metadata: ["receiver": "\(place)"])
    }
  }

  /// Logs where faults of the folder begin and end.
  private func report(folder fault: WebhookSpool.Fault?) {
    let changed = reported.withLock { reported in
      defer { reported.isFolderFaulty = fault != nil }
      return reported.isFolderFaulty != (fault != nil)
    }
    guard changed else { return }
    if let fault {
      logger.error("webhook folder cannot be used", metadata: ["reason": "\(fault)"])
    } else {
      logger.notice("webhook folder can be used again", metadata: ["folder": "\(spool.folder)"])
    }
  }
}
