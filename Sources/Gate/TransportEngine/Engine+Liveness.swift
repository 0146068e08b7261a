extension Engine {
  /// Returns `true` once every loop has come round to a new job, `false` if one has ended. It waits as long as the busiest
  /// of them needs: for ever, if one is stuck.
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
