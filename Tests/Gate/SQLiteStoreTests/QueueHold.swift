import AttestGate
import Dispatch

@testable import SQLiteStore

/// Keeps a lane busy, so that calls gather behind it.
struct QueueHold: Sendable {
  private let gate = DispatchSemaphore(value: 0)
  private let queue: GroupCommitQueue

  /// Returns once the lane is held.
  init(_ queue: GroupCommitQueue) async {
    self.queue = queue
    await withCheckedContinuation { isHeld in
      Task { [gate] in
        try await queue.run { _ in
          isHeld.resume()
          gate.wait()
        }
      }
    }
  }

  /// Waits until `count` calls have gathered, and lets them go.
  func release(behind count: Int) async {
    while queue.countOfWaiting < count { await Task.yield() }
    gate.signal()
  }
}
