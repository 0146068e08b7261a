extension Engine {
  /// Runs an empty job on every loop and returns `true` when all have run it; `false` if a loop has stopped.
  ///
  /// Waits as long as the busiest loop needs, and never returns while a loop is stuck.
  public func turnAround() async -> Bool {
    for loop in loops {
      let isRunning = await withCheckedContinuation { continuation in
        let isAccepted = loop.execute { _ in continuation.resume(returning: true) }
        if !isAccepted { continuation.resume(returning: false) }
      }
      guard isRunning else { return false }
    }
    return true
  }
}
