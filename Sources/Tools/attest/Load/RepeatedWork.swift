internal import Commands
internal import Locking
internal import TransportEngine

/// Connections that are opened, upgraded and closed, by as many workers as the plan has connections.
struct ConnectionWork: LoadWork {
  let plan: LoadPlan
  let target: LoadTarget
  /// One for each worker, since the assertions of a device have to be used one after another.
  let devices: [LoadDevice?]

  let news = "ready"

  func perform() async -> LoadResult {
    let (target, devices) = (target, devices)
    return await plan.again { worker throws(Failure) in
      let socket = try await target.open(as: devices[worker])
      return {
        await socket.close()
        while case .message? = try? await socket.receive() {}
      }
    }
  }
}

/// Devices that are made and registered.
struct RegistrationWork: LoadWork {
  let plan: LoadPlan
  let target: LoadTarget

  let news = "ready"

  func perform() async -> LoadResult {
    let target = target
    return await plan.again { _ throws(Failure) in
      _ = try await target.makeDevice()
      return {}
    }
  }
}

extension LoadPlan {
  /// Runs `body` in each worker until the time is over. The time of `body` is measured; the time of the function that
  /// it returns is not.
  fileprivate func again(
    _ body: @escaping @Sendable (_ worker: Int) async throws(Failure) -> @Sendable () async -> Void
  ) async -> LoadResult {
    let tally = LockedValue(LoadTally())
    // The first signal waits for a server that does not answer; the second one terminates the process.
    let signals = ClosingSignals(once: true) {}
    defer { signals.stop() }
    let progress = LoadProgress(self) { tally.withLock { $0 } }
    let start = monotonicNanoseconds()
    let end = start + duration.nanoseconds
    _ = await inParallel(connections) { worker in
      while monotonicNanoseconds() < end && !signals.wereReceived {
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
          // A server that refuses everything must not be asked without pauses.
          try? await Task.sleep(for: .milliseconds(10))
        }
      }
    }
    progress.stop()
    return LoadResult(tally.withLock { $0 }, seconds: seconds(since: start), wasInterrupted: signals.wereReceived)
  }
}
