import AttestGate
import Dispatch

@testable import SQLiteStore

/// Keeps a lane busy, so that calls gather behind it.
struct LaneHold: Sendable {
  private let gate = DispatchSemaphore(value: 0)
  private let lane: BatchLane

  /// Returns once the lane is held.
  init(_ lane: BatchLane) async {
    self.lane = lane
    await withCheckedContinuation { isHeld in
      Task { [gate] in
        try await lane.run { _ in
          isHeld.resume()
          gate.wait()
        }
      }
    }
  }

  /// Waits until `count` calls have gathered, and lets them go.
  func release(behind count: Int) async {
    while lane.countOfWaiting < count { await Task.yield() }
    gate.signal()
  }
}
