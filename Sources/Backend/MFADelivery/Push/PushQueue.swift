internal import ByteCoding
internal import Locking
internal import Logging
internal import MFADomain
internal import Metrics
internal import Observability

/// The push notifications that wait for one service, and their delivery: each until it is accepted, refused, or of no
/// use any more.
final class PushQueue: Sendable {
  /// The final result of a notification.
  enum Outcome: String, CaseIterable {
    case sent
    /// The service refused it.
    case failed
    /// Its time was over before the service accepted it.
    case expired
    /// The queue was full, or the service is not configured or refuses the credentials.
    case dropped
    /// It was still waiting when the process stopped.
    case lost
    /// The service does not know the address.
    case unregistered
  }

  private struct State {
    var provider: (any PushProvider)?
    var circuit: PushCircuit
    /// Counts the providers: what an earlier one was told says nothing of the service now.
    var generation = 0
    /// The address that the service last throttled. Only a second one shows that all are.
    var throttled: [UInt8]?
    var queued = 0
    var retrying = 0

    /// The service has accepted a notification.
    mutating func judged() {
      throttled = nil
      circuit.succeed()
    }

    /// Returns whom a failure concerns, and what it says of the credentials.
    mutating func judged(_ failure: PushFailure, of address: PushAddress) -> PushFailure {
      switch failure.kind {
      case .throttled(let after):
        let isOfService = throttled.map { $0 != address.tokenHash } ?? false
        throttled = address.tokenHash
        if !isOfService { circuit.succeed() }
        return PushFailure(.temporary(after: after, isOfService: isOfService), failure.reason)
      case .unregistered, .temporary(_, isOfService: false): circuit.succeed()
      case .temporary, .configuration, .refused: break
      }
      return failure
    }
  }

  let service: PushAddress.Service
  private let schedule: PushDelivery.Schedule
  private let clock: WallClock
  private let logger: Logger
  private let forget: PushDelivery.Forgetting
  private let state: LockedValue<State>
  private let queue: AsyncStream<PushNotification>
  private let entrance: AsyncStream<PushNotification>.Continuation
  private let places: PushPlaces
  private let tally = DeliveryTally()

  init(
    _ service: PushAddress.Service, schedule: PushDelivery.Schedule, clock: WallClock, logger: Logger,
    forget: @escaping PushDelivery.Forgetting
  ) {
    self.service = service
    self.schedule = schedule
    self.clock = clock
    self.logger = logger
    self.forget = forget
    state = LockedValue(State(provider: nil, circuit: schedule.circuit))
    places = PushPlaces(max(1, schedule.mostAtOnce))
    (queue, entrance) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(schedule.capacity))
  }

  /// Delivers from now on, also waiting notifications, through `provider`. A service that was stopped is asked again.
  func replaceProvider(_ provider: (any PushProvider)?) {
    state.withLock { state in
      state.provider = provider
      state.generation += 1
      state.throttled = nil
      state.circuit = schedule.circuit
    }
  }

  var waiting: PushDelivery.Waiting {
    state.withLock {
      PushDelivery.Waiting(
        service: service, queued: $0.queued, retrying: $0.retrying, fault: $0.provider == nil ? nil : $0.circuit.fault,
        figures: tally.figures)
    }
  }

  func send(_ notification: PushNotification) {
    guard state.withLock({ $0.provider != nil }) else {
      return finish(.dropped, .error, ["reason": "the push service is not configured"])
    }
    state.withLock { $0.queued += 1 }
    switch entrance.yield(notification) {
    case .dropped: leave(.dropped, .error, "queue full")
    case .terminated: leave(.lost, .warning, "stopping")
    default: break
    }
  }

  private func leave(_ outcome: Outcome, _ level: Logger.Level, _ reason: String) {
    state.withLock { $0.queued -= 1 }
    finish(outcome, level, ["reason": "\(reason)"])
  }

  /// Refuses further notifications; `run` returns after the last waiting one.
  func close() { entrance.finish() }

  /// Delivers notifications until `close`. If the task is cancelled, the waiting ones are lost.
  func run() async {
    await withTaskGroup(of: Void.self) { group in
      var running = 0
      for await notification in queue {
        state.withLock { $0.queued -= 1 }
        if running == max(1, schedule.mostAtOnce) + schedule.capacity {
          await group.next()
          running -= 1
        }
        // So that those that wait for another attempt are as many as can wait for their first one.
        await places.take()
        group.addTask {
          await self.deliver(notification)
          self.places.leave()
        }
        running += 1
      }
    }
  }

  // MARK: Delivery

  /// Delivers a notification. Its caller has taken a place, which it gives back only while it waits.
  private func deliver(_ notification: PushNotification) async {
    var (attempt, refusals, pause) = (0, 0, schedule.pause)
    let end = min(notification.expiresAt, clock.now().advanced(by: schedule.longestDelivery))
    while true {
      guard !Task.isCancelled else { return finish(.lost, .warning, ["reason": "stopping"]) }
      guard clock.now() < end else {
        return finish(.expired, .warning, ["attempts": .number(attempt)])
      }
      let (provider, generation, admission) = state.withLock {
        ($0.provider, $0.generation, $0.circuit.admission(at: .now))
      }
      // A reload may have turned the service off.
      guard let provider else { return finish(.dropped, .error, ["reason": "the push service is not configured"]) }
      switch admission {
      case .open: break
      case .paused(let opening):
        await wait(until: opening, atMost: end)
        continue
      case .stopped: return finish(.dropped, .warning, ["reason": "the push service refuses the credentials"])
      }
      attempt += 1
      do throws(PushFailure) {
        try await provider.deliver(notification)
        change(generation) { $0.judged() }
        return finish(.sent, .info, ["attempt": .number(attempt)])
      } catch {
        let failure = change(generation) { $0.judged(error, of: notification.address) } ?? error
        if failure.isOfAddress { refusals += 1 }
        let isLast = refusals >= schedule.attemptsOfAddress
        guard let after = await note(failure, of: notification, generation, attempt, isLast: isLast) else { return }
        await wait(until: .now + max(after, pause * Double.random(in: 0.75...1.25)), atMost: end)
        pause = min(pause * 2, schedule.longestPause)
      }
    }
  }

  /// Changes the state by a result of the provider of this generation. `nil`, and no change, if that is an earlier one.
  @discardableResult
  private func change<Value>(_ generation: Int, _ body: (inout State) -> Value) -> Value? {
    state.withLock { $0.generation == generation ? body(&$0) : nil }
  }

  /// Records a failure, and returns the least wait before another attempt; `nil` if there is none.
  ///
  /// - Parameter isLast: whether the service has refused the address for a time too often.
  private func note(
    _ failure: PushFailure, of notification: PushNotification, _ generation: Int, _ attempt: Int, isLast: Bool
  ) async -> Duration? {
    let metadata: Logger.Metadata = ["attempt": .number(attempt), "reason": "\(failure.reason)"]
    let marked = metadata.merging(["kind": "\(service.rawValue)"]) { first, _ in first }
    switch failure.kind {
    case .unregistered(let since):
      // Not later than now: the app may have registered it again by the time that a service names.
      await forget(notification.address, min(since ?? clock.now(), clock.now()))
      finish(.unregistered, .info, metadata)
      return nil
    case .refused:
      finish(.failed, .error, metadata)
      return nil
    case .configuration:
      let isOfProvider: Void? = change(generation) { $0.circuit.refuse(failure.reason, at: .now) }
      // A reload may have mended it.
      guard isOfProvider != nil else { return .zero }
      logger.error("push service stopped", metadata: marked)
      finish(.failed, .error, metadata)
      return nil
    case .temporary where isLast:
      finish(.failed, .error, metadata)
      return nil
    case .temporary(let after, let isOfService):
      if isOfService {
        change(generation) { $0.circuit.fail(at: .now, requested: after, jitter: .random(in: 0.75...1.25)) }
      }
      logger.notice("delivery attempt failed", metadata: marked)
      return after ?? .zero
    case .throttled(let after):
      // Judged before; only of an earlier provider.
      return after ?? .zero
    }
  }

  /// Waits until `instant`, and not beyond `end`. Others have the place meanwhile.
  private func wait(until instant: ContinuousClock.Instant, atMost end: Timestamp) async {
    let rest = end.since(clock.now())
    state.withLock { $0.retrying += 1 }
    places.leave()
    try? await Task.sleep(until: min(instant, .now + max(rest, .zero)), clock: .continuous)
    await places.take()
    state.withLock { $0.retrying -= 1 }
  }

  /// Logs and counts the result of a notification. The log contains neither the token nor the account.
  private func finish(_ outcome: Outcome, _ level: Logger.Level, _ metadata: Logger.Metadata) {
    logger.log(
      level: level, "message \(outcome.rawValue)",
      metadata: metadata.merging(["kind": "\(service.rawValue)"]) { first, _ in first })
    tally.count(sent: outcome == .sent, outcome.rawValue, metadata, at: clock.now())
    Counter(label: "mfa_messages_total", dimensions: [("kind", service.rawValue), ("outcome", outcome.rawValue)])
      .increment()
  }
}
