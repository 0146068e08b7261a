internal import AttestClient
internal import Commands
internal import Wire
internal import Locking
internal import Transport
internal import TransportEngine

/// Many devices that lose their sockets at one moment and come back at once, as after the restart of a network.
struct StormWork: LoadWork {
  let plan: LoadPlan
  let target: LoadTarget
  /// Whether a device that fails pauses as the client library does, and not only a moment.
  let backsOff: Bool
  private let turns: Turns
  let devices: [LoadDevice?]
  /// The sockets that the devices lose when the storm begins.
  private let open: LockedValue<[ClientWebSocket]>

  init(
    _ plan: LoadPlan, at target: LoadTarget, backsOff: Bool, atOnce: Int, _ devices: [(LoadDevice?, ClientWebSocket)]
  ) {
    (self.plan, self.target, self.backsOff) = (plan, target, backsOff)
    turns = Turns(atOnce)
    self.devices = devices.map(\.0)
    open = LockedValue(devices.map(\.1))
  }

  var news: String { "open \(devices.count)" }
  var sockets: [ClientWebSocket] { open.withLock(\.self) }

  func perform() async -> LoadResult {
    let tally = LockedValue(LoadTally())
    let signals = ClosingSignals(once: true) {}
    defer { signals.stop() }
    // Releasing a socket closes its connection without a Close frame.
    open.withLock { $0 = [] }
    let progress = LoadProgress(plan) { tally.withLock { $0 } }
    let start = monotonicNanoseconds()
    let end = start + plan.duration.nanoseconds
    let returned = await inParallel(devices.count) { number -> ClientWebSocket? in
      var reconnection = Reconnection()
      while monotonicNanoseconds() < end, !signals.wereReceived {
        do throws(LoadError) {
          let socket = try await turns.during { () async throws(LoadError) in
            try await target.open(as: devices[number], number: number)
          }
          let took = monotonicNanoseconds() - start
          tally.withLock {
            $0.count += 1
            $0.latency.record(took)
          }
          return socket
        } catch {
          tally.withLock { $0.attemptsFailed += 1 }
          let pause = backsOff ? reconnection.pause(after: .retryLater, retryAfter: error.retryAfter) : nil
          // A gate may ask for a longer pause than the run lasts.
          let rest = end - min(end, monotonicNanoseconds())
          try? await Task.sleep(for: min(pause ?? .milliseconds(10), .nanoseconds(Int64(rest))))
        }
      }
      tally.withLock { $0.lose(Failure(.unavailable, "a device was not back in time")) }
      return nil
    }
    progress.stop()
    let seconds = seconds(since: start)
    open.withLock { $0 = returned.compactMap(\.self) }
    return LoadResult(tally.withLock { $0 }, seconds: seconds, wasInterrupted: signals.wereReceived)
  }
}

/// Lets so many callers work at the same time, in the order in which they ask.
private actor Turns {
  private var free: Int
  private var waiting: [CheckedContinuation<Void, Never>] = []
  /// The position of the next caller in `waiting`.
  private var next = 0

  init(_ count: Int) { free = count }

  nonisolated func during<Value: Sendable>(
    _ body: () async throws(LoadError) -> Value
  ) async throws(LoadError) -> Value {
    await take()
    do throws(LoadError) {
      let value = try await body()
      await pass()
      return value
    } catch {
      await pass()
      throw error
    }
  }

  private func take() async {
    guard free == 0 else {
      free -= 1
      return
    }
    await withCheckedContinuation { waiting.append($0) }
  }

  /// Gives the turn to the next caller.
  private func pass() {
    guard next < waiting.count else {
      free += 1
      return
    }
    waiting[next].resume()
    next += 1
    if next == waiting.count { (waiting, next) = ([], 0) }
  }
}
