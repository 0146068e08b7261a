public import AppAttest
public import AttestGate
public import ByteCoding

/// An app whose receipts are exchanged.
public struct ExchangeApp: Sendable {
  public let app: AppID
  public let key: DeveloperKey
  /// The environments from which keys of the app are registered.
  public let environments: Set<AttestEnvironment>

  public init(app: AppID, key: DeveloperKey, environments: Set<AttestEnvironment>) {
    (self.app, self.key, self.environments) = (app, key, environments)
  }
}

/// The time for a worker.
public protocol ExchangeClock: Sendable {
  /// The time of day, by which receipts are due.
  var now: Timestamp { get }
  /// A time that never jumps, for pauses and the rate.
  var uptime: Duration { get }
  /// Returns after `duration`, or at once when the task is cancelled.
  func sleep(for duration: Duration) async
}

/// Hears what a worker does, for logs, metrics and status.
public protocol ExchangeObserver: Sendable {
  /// - Parameter isStored: Whether the row still was the one that was read, and the result is stored.
  func exchanged(_ due: DueReceipt, _ judgement: Judgement, isStored: Bool)
  func changed(_ change: ExchangePauses.Change)
  /// Whether receipts are due and not yet exchanged.
  func backlog(_ isThere: Bool)
  /// The store failed, or, with `nil`, works again.
  func storeFailed(_ error: StoreError?)
}

/// Exchanges the receipts that are due, one at a time and at a bounded rate, while no other gate of the store does.
///
/// It keeps no state that must survive: a receipt is due until its result is stored, so a worker that is killed at any
/// moment repeats one exchange at most, and skips none. The same is true of a worker that loses its connection to the
/// store, whose round then ends.
public struct ExchangeWorker: Sendable {
  /// The receipts that are read at once. They have at most 16 KiB each.
  public static let batch = 32
  /// The wait until the next look for due receipts.
  static let idle = Duration.seconds(15)
  /// That wait has at most 16 minutes after failures of the store.
  private static let mostDoublings = 6
  /// The longest time for which a receipt is put off because its host is paused, and the wait until an expired receipt
  /// is looked at again if the clock may be ahead.
  private static let putOff = (host: Duration.seconds(3600), clock: Duration.seconds(86_400))

  private let apps: [AppID: ExchangeApp]
  private let storage: any RiskStorage
  private let exchange: any ReceiptExchange
  private let interval: Duration
  private let clock: any ExchangeClock
  private let observer: any ExchangeObserver
  private let random: @Sendable () -> Double
  private let latestTime: @Sendable () async throws(StoreError) -> Timestamp?

  /// - Parameters:
  ///   - interval: The least time from the begin of an exchange to the begin of the next one.
  ///   - latestTime: A time that has not passed yet, whatever `clock` says; `nil` if none is known. A receipt that has
  ///     expired by a later clock is looked at again after it, since a clock that is ahead must not end the exchanges of
  ///     a key.
  ///   - random: Returns numbers from 0 to 1.
  public init(
    apps: [ExchangeApp], storage: any RiskStorage, exchange: any ReceiptExchange, interval: Duration,
    clock: any ExchangeClock, observer: any ExchangeObserver,
    random: @escaping @Sendable () -> Double = { .random(in: 0...1) },
    latestTime: @escaping @Sendable () async throws(StoreError) -> Timestamp? = { nil }
  ) {
    self.apps = Dictionary(apps.map { ($0.app, $0) }) { first, _ in first }
    (self.storage, self.exchange, self.interval) = (storage, exchange, interval)
    (self.clock, self.observer, self.random) = (clock, observer, random)
    self.latestTime = latestTime
  }

  /// Works until the task is cancelled.
  public func run() async { _ = await run(from: ExchangePauses()) }

  /// Works until the task is cancelled, at first with the pauses of an earlier worker whose clock had the same `uptime`.
  ///
  /// - Returns: The pauses at the end.
  public func run(from pauses: ExchangePauses) async -> ExchangePauses {
    var state = State(pauses: pauses)
    while !Task.isCancelled {
      do throws(StoreError) {
        if !openApps(state).isEmpty, try await storage.beginExchange() {
          let ending: StoreError?
          do throws(StoreError) {
            try await round(&state)
            ending = nil
          } catch {
            ending = error
          }
          // In any case, so that another gate can begin.
          try await storage.endExchange()
          if let ending { throw ending }
        }
        if state.storeFailures > 0 { observer.storeFailed(nil) }
        state.storeFailures = 0
      } catch {
        if state.storeFailures == 0, !Task.isCancelled { observer.storeFailed(error) }
        state.storeFailures = min(state.storeFailures + 1, Self.mostDoublings)
      }
      if Task.isCancelled { break }
      await clock.sleep(for: rest(state))
    }
    return state.pauses
  }

  /// The time until the next round: `idle`, about, or until the first pause ends if every app is paused. A store that
  /// fails doubles it: the answers to what was sent meanwhile would be lost.
  private func rest(_ state: State) -> Duration {
    let idle = Self.idle * (0.75 + 0.5 * random()) * (1 << state.storeFailures)
    guard openApps(state).isEmpty else { return idle }
    let ends = apps.values.flatMap { app in
      app.environments.compactMap { state.pauses.end(of: .init(app.key.name, $0), at: clock.uptime) }
    }
    return min(idle, max(.milliseconds(50), (ends.min() ?? clock.uptime) - clock.uptime))
  }

  private struct State {
    var pauses: ExchangePauses
    var nextStart = Duration.zero
    var storeFailures = 0
  }

  /// What became of a due receipt.
  private enum Step {
    /// It was asked about or put off.
    case worked
    /// It stays due.
    case skipped
    /// The round has ended with its connection to the store. Another gate may exchange the receipt.
    case lostRound
  }

  /// Exchanges until nothing is due.
  private func round(_ state: inout State) async throws(StoreError) {
    while !Task.isCancelled {
      let open = openApps(state)
      guard !open.isEmpty else { return }
      let batch = try await storage.dueReceipts(of: open, at: clock.now, limit: Self.batch)
      observer.backlog(!batch.isEmpty)
      guard !batch.isEmpty else { return }
      var hasProgress = false
      for due in batch {
        guard !Task.isCancelled else { return }
        switch try await work(on: due, &state) {
        case .worked: hasProgress = true
        case .skipped: break
        case .lostRound: return
        }
      }
      // A store that returns the same receipts again must not keep a processor busy.
      guard hasProgress else { return }
    }
  }

  /// The apps that have a destination that may be asked now.
  private func openApps(_ state: State) -> [AppID] {
    apps.values.filter { app in
      app.environments.contains { environment in
        state.pauses.end(of: .init(app.key.name, environment), at: clock.uptime) == nil
      }
    }.map(\.app)
  }

  private func work(on due: DueReceipt, _ state: inout State) async throws(StoreError) -> Step {
    guard let app = apps[due.key.appID] else { return .skipped }
    let destination = ExchangePauses.Destination(app.key.name, due.key.environment)
    if let end = state.pauses.end(of: destination, at: clock.uptime) {
      // The receipts of a host that fails must not keep those of another host from being read. If the whole app is
      // paused, they are not read again before the end of the pause, and stay due.
      guard openApps(state).contains(app.app), await waitForTurn(&state) else { return .skipped }
      let wait = end - clock.uptime + Self.putOff.host * random()
      let settlement = ReceiptSettlement(next: clock.now.advanced(by: wait), failures: due.failures)
      return try await storage.settle(due, as: settlement) ? .worked : .skipped
    }
    guard await waitForTurn(&state) else { return .skipped }
    // Right before the request: what another gate exchanges meanwhile is at most the receipt of this one request.
    guard try await storage.holdsExchange() else { return .lostRound }
    let outcome = await exchange.exchange(due, with: app.key, at: clock.now)
    // A stop may have ended the exchange early. The receipt stays due.
    if Task.isCancelled, case .unusable = outcome.judgement { return .skipped }
    for change in state.pauses.note(outcome.judgement, of: destination, at: clock.uptime, random: random()) {
      observer.changed(change)
    }
    var settlement = ExchangeSchedule.settlement(
      after: outcome.judgement, of: due, receipt: outcome.expiration.map { (outcome.notBefore, $0) }, at: clock.now,
      random: random())
    if case .expired = outcome.judgement, let latest = try await latestTime(), latest < clock.now {
      settlement = ReceiptSettlement(next: latest.advanced(by: Self.putOff.clock), failures: due.failures)
    }
    let isStored = if let settlement { try await storage.settle(due, as: settlement) } else { false }
    observer.exchanged(due, outcome.judgement, isStored: isStored)
    return .worked
  }

  /// Waits until the rate allows the next exchange; returns `false` if the task is cancelled.
  private func waitForTurn(_ state: inout State) async -> Bool {
    let pause = state.nextStart - clock.uptime
    if pause > .zero { await clock.sleep(for: pause) }
    guard !Task.isCancelled else { return false }
    state.nextStart = clock.uptime + interval
    return true
  }
}
