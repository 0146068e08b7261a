internal import ByteCoding
internal import Locking
internal import Logging
internal import MFADomain
internal import Metrics
internal import Observability

/// The messages that wait for one provider, and their delivery.
final class DeliveryQueue: Sendable {
  private struct Waiting: Sendable {
    let message: OutgoingMessage
    /// The time after which the message is useless.
    let end: ContinuousClock.Instant
    /// The delay before the last delayed retry; `nil` if there was none yet.
    var rest: Duration?
    /// The number of delayed retries of a message that the provider may already have accepted.
    var doubts = 0
  }

  /// The maximum of `doubts`. A few duplicates are better than a lost message.
  private static let mostDoubts = 3

  /// The final result of a message.
  private enum Outcome: String {
    case sent
    /// The provider refused it permanently, the last attempt failed, or too many messages await a retry.
    case failed
    /// Its code expired before the provider accepted it.
    case expired
    /// The queue was full, or no provider is configured.
    case dropped
    /// It was still waiting when the process stopped.
    case lost
  }

  private let kind: String
  /// A message is delivered by the provider that is set when its attempt begins.
  private let provider: LockedValue<(any MessageProvider)?>
  private let schedule: QueuedOutbox.Schedule
  private let logger: Logger
  private let queue: AsyncStream<Waiting>
  private let entrance: AsyncStream<Waiting>.Continuation
  private let tired: AsyncStream<Waiting>
  private let bed: AsyncStream<Waiting>.Continuation
  private let resting = LockedValue(0)
  private let queued = LockedValue(0)
  private let tally = DeliveryTally()

  init(kind: String, provider: (any MessageProvider)?, schedule: QueuedOutbox.Schedule, logger: Logger) {
    self.kind = kind
    self.provider = LockedValue(provider)
    self.schedule = schedule
    self.logger = logger
    (queue, entrance) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(schedule.capacity))
    (tired, bed) = AsyncStream.makeStream()
  }

  /// Delivers from now on, also waiting messages, through `provider`.
  func replaceProvider(_ provider: (any MessageProvider)?) { self.provider.withLock { $0 = provider } }

  /// The messages that wait for their first attempt, and those that wait for another one.
  var waiting: (queued: Int, retrying: Int) { (queued.withLock { $0 }, resting.withLock { $0 }) }

  /// The results since the start.
  var figures: DeliveryFigures { tally.figures }

  func send(_ message: OutgoingMessage) {
    guard provider.withLock({ $0 != nil }) else {
      return tell(.dropped, .error, ["reason": "no provider is configured"])
    }
    enter(Waiting(message: message, end: .now + message.lifetime))
  }

  private func enter(_ waiting: Waiting) {
    queued.withLock { $0 += 1 }
    switch entrance.yield(waiting) {
    case .dropped: leave(.dropped, .error, "queue full")
    case .terminated: leave(.lost, .warning, "stopping")
    default: break
    }
  }

  private func leave(_ outcome: Outcome, _ level: Logger.Level, _ reason: Logger.MetadataValue) {
    queued.withLock { $0 -= 1 }
    tell(outcome, level, ["reason": reason])
  }

  /// Refuses further messages; `run` returns after the last waiting message.
  func close() { entrance.finish() }

  /// Delivers messages until `close`. If the task is cancelled, the waiting messages are lost.
  func run() async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await self.watchRests() }
      await deliverAll()
      group.cancelAll()
    }
  }

  /// Returns undelivered messages to the queue after their delay. Delayed messages are lost if the task is cancelled.
  private func watchRests() async {
    await withDiscardingTaskGroup { group in
      for await waiting in tired {
        group.addTask { await self.rest(waiting) }
      }
      group.cancelAll()
    }
  }

  private func rest(_ waiting: Waiting) async {
    defer { resting.withLock { $0 -= 1 } }
    do {
      try await Task.sleep(for: waiting.rest ?? schedule.rest)
      enter(waiting)
    } catch {
      tell(.lost, .warning, ["reason": "stopping"])
    }
  }

  /// Schedules a delayed retry and returns whether there is one. Codes are not retried, nor are messages after too
  /// many doubtful attempts or when too many messages wait.
  private func restAgain(_ waiting: Waiting, isDoubtful: Bool) -> Bool {
    if case .code = waiting.message.content { return false }
    if isDoubtful, waiting.doubts == Self.mostDoubts { return false }
    let isRoom = resting.withLock { count in
      guard count < schedule.capacity else { return false }
      count += 1
      return true
    }
    guard isRoom else { return false }
    var waiting = waiting
    if isDoubtful { waiting.doubts += 1 }
    waiting.rest = waiting.rest.map { min($0 * 2, schedule.longestRest) } ?? schedule.rest
    bed.yield(waiting)
    return true
  }

  private func deliverAll() async {
    await withTaskGroup(of: Void.self) { group in
      var running = 0
      for await waiting in queue {
        queued.withLock { $0 -= 1 }
        if running == max(1, schedule.mostAtOnce) {
          await group.next()
          running -= 1
        }
        group.addTask { await self.deliver(waiting) }
        running += 1
      }
    }
  }

  private func deliver(_ waiting: Waiting) async {
    // A reload may have turned delivery off.
    guard let provider = provider.withLock({ $0 }) else {
      return tell(.dropped, .error, ["reason": "no provider is configured"])
    }
    var wait = schedule.pause
    let attempts = waiting.rest == nil ? max(1, schedule.attempts) : 1
    for attempt in 1...attempts {
      guard !Task.isCancelled else { return tell(.lost, .warning, ["reason": "stopping"]) }
      guard .now < waiting.end else { return tell(.expired, .warning, ["attempts": .number(attempt - 1)]) }
      do throws(DeliveryFailure) {
        try await provider.deliver(waiting.message)
        return tell(.sent, .info, ["attempt": .number(attempt)])
      } catch {
        let metadata: Logger.Metadata = ["attempt": .number(attempt), "reason": "\(error.reason)"]
        if !error.isTemporary { return tell(.failed, .error, metadata) }
        if attempt == attempts, !restAgain(waiting, isDoubtful: error.isDoubtful) {
          return tell(.failed, .error, metadata)
        }
        logger.notice("delivery attempt failed", metadata: metadata.merging(["kind": "\(kind)"]) { first, _ in first })
        if attempt == attempts { return }
        try? await Task.sleep(for: wait)
        wait *= 2
      }
    }
  }

  /// Logs and counts the result of a message. The log contains neither the code nor the recipient.
  private func tell(_ outcome: Outcome, _ level: Logger.Level, _ metadata: Logger.Metadata) {
    logger.log(
      level: level, "message \(outcome.rawValue)", metadata: metadata.merging(["kind": "\(kind)"]) { first, _ in first }
    )
    tally.count(sent: outcome == .sent, outcome.rawValue, metadata, at: .now())
    Counter(label: "mfa_messages_total", dimensions: [("kind", kind), ("outcome", outcome.rawValue)]).increment()
  }
}
