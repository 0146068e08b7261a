import AttestGate
import Dispatch

@testable import SQLiteStore

/// Blocks a queue of a store, so that calls wait in it.
struct QueueHold: Sendable {
  private let gate = DispatchSemaphore(value: 0)
  private let queue: StoreQueue

  /// Returns once the queue is blocked.
  init(_ queue: StoreQueue) async {
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

  /// Waits until `count` calls are waiting, and unblocks the queue.
  func release(after count: Int) async {
    while queue.countOfWaiting < count, !Task.isCancelled { await Task.yield() }
    gate.signal()
  }
}
