internal import Locking
internal import Logging
internal import MFADomain
internal import Metrics

/// What waits for one provider.
final class DeliveryQueue: Sendable {
  private struct Waiting: Sendable {
    let message: OutgoingMessage
    /// When it is of no use any more.
    let end: ContinuousClock.Instant
    /// How long it has to rest if it is not taken now; `nil` before the first rest.
    var rest: Duration?
    /// How often it has rested though it may have been taken.
    var doubts = 0
  }

  /// What may have been taken is better told a few times than not at all, and not all day.
  private static let mostDoubts = 3

  /// What became of a message.
  private enum Outcome: String {
    case sent
    /// The provider refused it for good, or once too often, or too many rest.
    case failed
    /// Its code expired before the message was delivered.
    case expired
    /// Too many messages waited, or no provider is configured.
    case dropped
    /// It still waited when the process ended.
    case lost
  }

  private let kind: String
  private let provider: (any MessageProvider)?
  private let pace: QueuedOutbox.Schedule
  private let logger: Logger
  private let queue: AsyncStream<Waiting>
  private let entrance: AsyncStream<Waiting>.Continuation
  private let tired: AsyncStream<Waiting>
  private let bed: AsyncStream<Waiting>.Continuation
  private let resting = LockedValue(0)

  init(kind: String, provider: (any MessageProvider)?, pace: QueuedOutbox.Schedule, logger: Logger) {
    self.kind = kind
    self.provider = provider
    self.pace = pace
    self.logger = logger
    (queue, entrance) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(pace.capacity))
    (tired, bed) = AsyncStream.makeStream()
  }

  func send(_ message: OutgoingMessage) {
    guard provider != nil else { return tell(.dropped, .error, ["reason": "no provider is configured"]) }
    enter(Waiting(message: message, end: .now + message.lifetime))
  }

  private func enter(_ waiting: Waiting) {
    switch entrance.yield(waiting) {
    case .dropped: tell(.dropped, .error, ["reason": "too many wait"])
    case .terminated: tell(.lost, .warning, ["reason": "stopping"])
    default: break
    }
  }

  /// Takes no further messages; `run` ends with the last one that waits.
  func close() { entrance.finish() }

  /// Delivers what comes until `close`, or until the task is cancelled: what then waits is lost.
  func run() async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await self.watchRests() }
      await deliverAll()
      group.cancelAll()
    }
  }

  /// Lets what was not taken come back after its rest. What rests when the task is cancelled is lost.
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
      try await Task.sleep(for: waiting.rest ?? pace.rest)
      enter(waiting)
    } catch {
      tell(.lost, .warning, ["reason": "stopping"])
    }
  }

  /// Whether `waiting` may rest: it is no code, has not been taken several times perhaps, and there is room.
  private func restAgain(_ waiting: Waiting, isDoubtful: Bool) -> Bool {
    if case .code = waiting.message.content { return false }
    if isDoubtful, waiting.doubts == Self.mostDoubts { return false }
    let isRoom = resting.withLock { count in
      guard count < pace.capacity else { return false }
      count += 1
      return true
    }
    guard isRoom else { return false }
    var waiting = waiting
    if isDoubtful { waiting.doubts += 1 }
    waiting.rest = waiting.rest.map { min($0 * 2, pace.longestRest) } ?? pace.rest
    bed.yield(waiting)
    return true
  }

  private func deliverAll() async {
    await withTaskGroup(of: Void.self) { group in
      var running = 0
      for await waiting in queue {
        if running == max(1, pace.mostAtOnce) {
          await group.next()
          running -= 1
        }
        group.addTask { await self.deliver(waiting) }
        running += 1
      }
    }
  }

  private func deliver(_ waiting: Waiting) async {
    guard let provider else { return }
    var wait = pace.pause
    let attempts = waiting.rest == nil ? max(1, pace.attempts) : 1
    for attempt in 1...attempts {
      guard !Task.isCancelled else { return tell(.lost, .warning, ["reason": "stopping"]) }
      guard .now < waiting.end else { return tell(.expired, .warning, ["attempts": "\(attempt - 1)"]) }
      do throws(DeliveryFailure) {
        try await provider.deliver(waiting.message)
        return tell(.sent, .info, ["attempt": "\(attempt)"])
      } catch {
        let metadata: Logger.Metadata = ["attempt": "\(attempt)", "reason": "\(error.reason)"]
        if !error.isTemporary { return tell(.failed, .error, metadata) }
        if attempt == attempts, !restAgain(waiting, isDoubtful: error.isDoubtful) {
          return tell(.failed, .error, metadata)
        }
        logger.notice("message not taken", metadata: metadata.merging(["kind": "\(kind)"]) { first, _ in first })
        if attempt == attempts { return }
        try? await Task.sleep(for: wait)
        wait *= 2
      }
    }
  }

  /// Logs and counts what became of a message: neither its code nor where it went to.
  private func tell(_ outcome: Outcome, _ level: Logger.Level, _ metadata: Logger.Metadata) {
    logger.log(
      level: level, "message \(outcome.rawValue)", metadata: metadata.merging(["kind": "\(kind)"]) { first, _ in first }
    )
    Counter(label: "mfa_messages_total", dimensions: [("kind", kind), ("outcome", outcome.rawValue)]).increment()
  }
}
