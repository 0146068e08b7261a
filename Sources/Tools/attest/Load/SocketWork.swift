internal import Commands
internal import Transport
internal import TransportEngine

/// Messages over open sockets.
struct ExchangeWork: LoadWork {
  /// The time for the last messages to come back after the end of the run or a signal.
  private static let patience = Duration.seconds(10)

  let plan: LoadPlan
  let cadence: MessageDriver.Cadence
  let engine: ClientEngine
  let driver: MessageDriver
  let sockets: [ClientWebSocket]

  var news: String { "open \(sockets.count)" }

  func perform() async -> LoadResult {
    let (engine, driver) = (engine, driver)
    let hasStopped = Shared(false)
    // The first signal stops sending and waits for messages in progress. The second one gives them up, and so does
    // the timeout.
    let signals = ClosingSignals {
      let isFirst = hasStopped.exchange(true) == false
      Task {
        guard isFirst else { return await engine.run { driver.abandon() } }
        await engine.run { driver.stop() }
        try? await Task.sleep(for: Self.patience)
        await engine.run { driver.abandon() }
      }
    }
    defer { signals.stop() }
    let progress = LoadProgress(plan) { await engine.run { driver.tally } }
    let watchdog = Deadline(after: .nanoseconds(Int64(limit)) + Self.patience) { await engine.run { driver.abandon() } }
    await exchange()
    watchdog.cancel()
    progress.stop()
    let (tally, seconds) = await engine.run { (driver.tally, driver.seconds) }
    return LoadResult(tally, seconds: seconds, wasInterrupted: signals.wereReceived)
  }

  /// Nanoseconds; a number of messages is given a day.
  private var limit: UInt64 {
    if case .closedLoop(limit: .some) = cadence { return LoadDuration(seconds: 86400).nanoseconds }
    return plan.duration.nanoseconds
  }

  private func exchange() async {
    let (engine, driver, limit) = (engine, driver, limit)
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      Task {
        await engine.run { driver.begin(for: limit) { continuation.resume() } }
        guard case .fixed(let period) = cadence else { return }
        // Half a period, so that no message waits for a whole one; not more often than the kernel bears.
        let interval = Duration.nanoseconds(Int64(max(period / 2, 50_000)))
        do throws(ClientError) {
          try engine.tick(every: interval) { driver.tick() }
        } catch {
          let failure = Failure(.unavailable, "cannot send at a rate: \(error)")
          await engine.run { driver.abandon(because: failure) }
        }
      }
    }
  }
}

/// Open sockets without traffic.
struct IdleWork: LoadWork {
  let plan: LoadPlan
  let engine: ClientEngine
  let driver: IdleDriver
  let sockets: [ClientWebSocket]

  var news: String { "open \(sockets.count)" }

  /// The result counts all sockets that were lost since they were opened.
  func perform() async -> LoadResult {
    let (engine, driver) = (engine, driver)
    let start = monotonicNanoseconds()
    let signals = ClosingSignals {}
    defer { signals.stop() }
    // With steps the script determines the duration.
    if !plan.console.isStepped {
      let progress = LoadProgress(plan) { await engine.run { driver.tally } }
      defer { progress.stop() }
      while monotonicNanoseconds() - start < plan.duration.nanoseconds && !signals.wereReceived {
        try? await Task.sleep(for: .milliseconds(100))
      }
    }
    let tally = await engine.run { driver.tally }
    return LoadResult(tally, seconds: seconds(since: start), wasInterrupted: signals.wereReceived)
  }
}

/// Sockets that send until no more bytes are accepted, and read nothing.
struct StallWork: LoadWork {
  let plan: LoadPlan
  let engine: ClientEngine
  let driver: StallDriver
  let sockets: [ClientWebSocket]

  var news: String { "open \(sockets.count)" }

  /// Returns when no byte was accepted for a second, or when the time is over. The sockets stay open.
  func perform() async -> LoadResult {
    let driver = driver
    let start = monotonicNanoseconds()
    let signals = ClosingSignals {}
    defer { signals.stop() }
    await engine.run { driver.begin() }
    var taken = -1
    var quiet = 0
    while quiet < 4, !signals.wereReceived, monotonicNanoseconds() - start < plan.duration.nanoseconds {
      try? await Task.sleep(for: .milliseconds(250))
      let now = await engine.run { driver.tally.count }
      quiet = now == taken ? quiet + 1 : 0
      taken = now
    }
    let tally = await engine.run {
      driver.stop()
      return driver.tally
    }
    return LoadResult(tally, seconds: seconds(since: start), wasInterrupted: signals.wereReceived)
  }
}

/// Since `start` of `monotonicNanoseconds`.
func seconds(since start: UInt64) -> Double { Double(monotonicNanoseconds() - start) / 1e9 }
