internal import Locking
internal import Transport
internal import TransportEngine

/// One run of load: opens what is needed, works, and tells what came of it.
struct LoadRun: Sendable {
  /// How many connections are opened at a time.
  private static let openers = 16
  /// How long the last messages may take to come back when the time is over.
  private static let patience = Duration.seconds(10)

  private let plan: LoadPlan
  private let target: LoadTarget

  init(_ plan: LoadPlan, at target: LoadTarget) {
    self.plan = plan
    self.target = target
  }

  func perform() async throws(Failure) -> LoadResult {
    switch plan.mode {
    case .pingPong(let limit): return try await exchange(.closedLoop(limit: limit))
    case .rate(let rate): return try await exchange(.fixed(period: 1e9 / rate))
    case .connections: return try await churn()
    case .registrations: return await register()
    case .idle: return try await hold()
    case .stall: return try await stall()
    }
  }

  // MARK: Open sockets

  private func exchange(_ pace: MessageDriver.Pace) async throws(Failure) -> LoadResult {
    let sockets = try await openSockets()
    let driver = MessageDriver(plan, pace: pace)
    try await hand(sockets, to: driver)
    await plan.console.step("open \(sockets.count)")
    let engine = target.engine
    let signals = ClosingSignals { Task { await engine.run { driver.stop() } } }
    defer { signals.stop() }
    let progress = LoadProgress(plan) { await engine.run { driver.tally } }
    await run(driver, pace)
    progress.stop()
    let (tally, seconds) = await engine.run { (driver.tally, driver.seconds) }
    return LoadResult(tally, seconds: seconds, holding: sockets)
  }

  private func run(_ driver: MessageDriver, _ pace: MessageDriver.Pace) async {
    let engine = target.engine
    let limit: UInt64 =
      if case .closedLoop(limit: .some) = pace { 86_400_000_000_000 } else { plan.duration.nanoseconds }
    let watchdog = Deadline(after: .nanoseconds(Int64(limit)) + Self.patience) { await engine.run { driver.abandon() } }
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      Task {
        await engine.run { driver.begin(for: limit) { continuation.resume() } }
        guard case .fixed(let period) = pace else { return }
        // Half a period, so that no message waits for a whole one; not more often than the kernel bears.
        let interval = Duration.nanoseconds(Int64(max(period / 2, 50_000)))
        if (try? engine.tick(every: interval, { driver.tick() })) == nil { await engine.run { driver.stop() } }
      }
    }
    watchdog.cancel()
  }

  private func stall() async throws(Failure) -> LoadResult {
    let sockets = try await openSockets()
    let driver = StallDriver(size: max(1, plan.size))
    try await hand(sockets, to: driver)
    await plan.console.step("open \(sockets.count)")
    let engine = target.engine
    let start = ContinuousClock.now
    await engine.run { driver.begin() }
    var taken = -1
    var quiet = 0
    // Stalled: nothing has been taken for a second.
    while quiet < 4, start.duration(to: .now) < plan.duration.duration {
      try? await Task.sleep(for: .milliseconds(250))
      let now = await engine.run { driver.tally.count }
      quiet = now == taken ? quiet + 1 : 0
      taken = now
    }
    let tally = await engine.run {
      driver.stop()
      return driver.tally
    }
    return LoadResult(tally, seconds: seconds(since: start), holding: sockets)
  }

  private func hold() async throws(Failure) -> LoadResult {
    let sockets = try await openSockets()
    await plan.console.step("open \(sockets.count)")
    let start = ContinuousClock.now
    let signals = ClosingSignals {}
    defer { signals.stop() }
    // With steps it is the script that says how long.
    if !plan.console.isStepped {
      let progress = LoadProgress(plan) { LoadTally() }
      defer { progress.stop() }
      while start.duration(to: .now) < plan.duration.duration && !signals.wereReceived {
        try? await Task.sleep(for: .milliseconds(100))
      }
    }
    return LoadResult(LoadTally(), seconds: seconds(since: start), holding: sockets)
  }

  private func openSockets() async throws(Failure) -> [ClientWebSocket] {
    let openers = min(plan.connections, Self.openers)
    let results = await inParallel(openers) { worker async -> Result<[ClientWebSocket], Failure> in
      await Result { () async throws(Failure) in
        let device = try await target.makeDevice()
        var sockets: [ClientWebSocket] = []
        for _ in stride(from: worker, to: plan.connections, by: openers) {
          sockets.append(try await target.open(as: device))
        }
        return sockets
      }
    }
    var sockets: [ClientWebSocket] = []
    for result in results { sockets += try result.get() }
    return sockets
  }

  private func hand(_ sockets: [ClientWebSocket], to driver: any SocketDriver) async throws(Failure) {
    for (number, socket) in sockets.enumerated() {
      do throws(ClientFault) {
        try await socket.hand(to: driver, as: number)
      } catch {
        throw Failure(.unavailable, "\(error)")
      }
    }
  }

  // MARK: Connections that come and go

  private func churn() async throws(Failure) -> LoadResult {
    let devices = await inParallel(plan.connections) { _ in
      await Result { () async throws(Failure) in try await target.makeDevice() }
    }
    var ready: [LoadDevice?] = []
    for device in devices { ready.append(try device.get()) }
    let known = ready
    return await again { [target] worker throws(Failure) in
      let socket = try await target.open(as: known[worker])
      return {
        await socket.close()
        while case .message? = try? await socket.receive() {}
      }
    }
  }

  private func register() async -> LoadResult {
    await again { [target] _ throws(Failure) in
      _ = try await target.makeDevice()
      return {}
    }
  }

  /// Has each worker do `body`, which is measured, and what that gives, which is not, until the time is over.
  private func again(
    _ body: @escaping @Sendable (_ worker: Int) async throws(Failure) -> @Sendable () async -> Void
  ) async -> LoadResult {
    await plan.console.step("ready")
    let tally = Guarded(LoadTally())
    let signals = ClosingSignals {}
    defer { signals.stop() }
    let progress = LoadProgress(plan) { tally.withLock { $0 } }
    let start = ContinuousClock.now
    let end = start + plan.duration.duration
    _ = await inParallel(plan.connections) { worker in
      while .now < end && !signals.wereReceived {
        let began = monotonicNanoseconds()
        do throws(Failure) {
          let finish = try await body(worker)
          let took = monotonicNanoseconds() - began
          tally.withLock {
            $0.count += 1
            $0.latency.record(took)
          }
          await finish()
        } catch {
          tally.withLock { $0.lose(error) }
          // A server that refuses everything is not to be asked without pause.
          try? await Task.sleep(for: .milliseconds(10))
        }
      }
    }
    progress.stop()
    return LoadResult(tally.withLock { $0 }, seconds: seconds(since: start))
  }

  private func seconds(since start: ContinuousClock.Instant) -> Double {
    let (seconds, attoseconds) = start.duration(to: .now).components
    return Double(seconds) + Double(attoseconds) / 1e18
  }
}

/// What `body` gives to each of `count` tasks, in no order.
private func inParallel<Value: Sendable>(
  _ count: Int, _ body: @escaping @Sendable (_ worker: Int) async -> Value
) async -> [Value] {
  await withTaskGroup(of: Value.self) { group in
    for worker in 0..<count { group.addTask { await body(worker) } }
    return await group.reduce(into: []) { $0.append($1) }
  }
}

extension Result where Failure: Sendable {
  fileprivate init(_ body: () async throws(Failure) -> Success) async {
    do throws(Failure) { self = .success(try await body()) } catch { self = .failure(error) }
  }
}
