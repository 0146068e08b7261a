internal import AttestClient
internal import Commands
internal import Transport
internal import TransportEngine

/// Work that can be done again and again once it has been made ready.
protocol LoadWork: Sendable {
  /// The event that the work reports to scripts when it is ready.
  var news: String { get }
  /// The sockets that stay open until the measurement has ended.
  var sockets: [ClientWebSocket] { get }

  func perform() async -> LoadResult
}

extension LoadWork {
  var sockets: [ClientWebSocket] { [] }
}

/// One run of load: opens connections, works, and reports.
struct LoadRun: Sendable {
  /// How many connections are opened at a time.
  private static let openers = 16

  private let plan: LoadPlan
  private let target: LoadTarget

  init(_ plan: LoadPlan, at target: LoadTarget) {
    self.plan = plan
    self.target = target
  }

  /// Works once, or, with steps, once for each line of input.
  ///
  /// - Throws: The failure of the first result that has one.
  func perform(_ report: (LoadResult) -> Void) async throws(Failure) {
    let work = try await prepare()
    plan.console.say(work.news)
    var failure: Failure?
    repeat {
      guard try await plan.console.mayGoOn() else { break }
      let result = await work.perform()
      report(result)
      failure = failure ?? result.failure
      if result.wasInterrupted { break }
    } while plan.console.isStepped
    withExtendedLifetime(work.sockets) {}
    if let failure { throw failure }
  }

  private func prepare() async throws(Failure) -> any LoadWork {
    switch plan.mode {
    case .pingPong(let limit): return try await exchange(.closedLoop(limit: limit))
    case .rate(let rate): return try await exchange(.fixed(period: 1e9 / rate))
    case .connections:
      let (count, target) = (plan.connections, target)
      return ConnectionWork(
        plan: plan, target: target,
        devices: try await gather(count) { _ throws(Failure) in [try await target.makeDevice()] })
    case .registrations: return RegistrationWork(plan: plan, target: target)
    case .idle:
      let sockets = try await openSockets()
      let driver = IdleDriver()
      try await hand(sockets, to: driver)
      return IdleWork(plan: plan, engine: target.engine, driver: driver, sockets: sockets)
    case .storm(let backsOff, let atOnce):
      let (count, target) = (plan.connections, target)
      let openers = min(count, Self.openers)
      let devices = try await gather(openers) { worker throws(Failure) in
        var devices: [(LoadDevice?, ClientWebSocket)] = []
        for number in stride(from: worker, to: count, by: openers) {
          let device = try await target.makeDevice(number: number)
          do throws(LoadError) {
            devices.append((device, try await target.open(as: device, number: number)))
          } catch {
            throw error.failure
          }
        }
        return devices
      }
      return StormWork(plan, at: target, backsOff: backsOff, atOnce: atOnce, devices)
    case .stall:
      let sockets = try await openSockets()
      let driver = StallDriver(size: max(1, plan.size))
      try await hand(sockets, to: driver)
      return StallWork(plan: plan, engine: target.engine, driver: driver, sockets: sockets)
    }
  }

  private func exchange(_ cadence: MessageDriver.Cadence) async throws(Failure) -> ExchangeWork {
    let sockets = try await openSockets()
    let driver = MessageDriver(plan, cadence: cadence)
    try await hand(sockets, to: driver)
    return ExchangeWork(plan: plan, cadence: cadence, engine: target.engine, driver: driver, sockets: sockets)
  }

  private func openSockets() async throws(Failure) -> [ClientWebSocket] {
    let (count, target) = (plan.connections, target)
    let openers = min(count, Self.openers)
    return try await gather(openers) { worker throws(Failure) in
      let device = try await target.makeDevice()
      var sockets: [ClientWebSocket] = []
      for _ in stride(from: worker, to: count, by: openers) { sockets.append(try await target.open(as: device)) }
      return sockets
    }
  }

  /// Runs `body` in `count` tasks and returns all results.
  private func gather<Value: Sendable>(
    _ count: Int, _ body: @escaping @Sendable (_ worker: Int) async throws(Failure) -> [Value]
  ) async throws(Failure) -> [Value] {
    let results = await inParallel(count) { worker async -> Result<[Value], Failure> in
      do throws(Failure) { return .success(try await body(worker)) } catch { return .failure(error) }
    }
    var values: [Value] = []
    for result in results { values += try result.get() }
    return values
  }

  private func hand(_ sockets: [ClientWebSocket], to driver: any SocketDriver) async throws(Failure) {
    for (number, socket) in sockets.enumerated() {
      do throws(ClientError) {
        try await socket.hand(to: driver, as: number)
      } catch {
        throw Failure(TransportError(error))
      }
    }
  }
}

/// Runs `body` in `count` tasks and returns the results in no particular order.
func inParallel<Value: Sendable>(
  _ count: Int, _ body: @escaping @Sendable (_ worker: Int) async -> Value
) async -> [Value] {
  await withTaskGroup(of: Value.self) { group in
    for worker in 0..<count { group.addTask { await body(worker) } }
    return await group.reduce(into: []) { $0.append($1) }
  }
}
