/// Admits one task at a time, in the order of arrival.
///
/// An actor alone does not do this: while one of its methods waits, another one can start.
public actor AsyncMutex {
  private var isTaken = false
  private var waiting: [(ticket: UInt64, continuation: CheckedContinuation<Bool, Never>)] = []
  private var nextTicket: UInt64 = 0

  /// A free lane.
  public init() {}

  /// Waits for the lane. `true`: it is the caller's until `leave()`. `false`: the task was cancelled while waiting.
  public func enter() async -> Bool {
    if Task.isCancelled { return false }
    if !isTaken {
      isTaken = true
      return true
    }
    let ticket = nextTicket
    nextTicket += 1
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        // The task was cancelled before it entered the list: its handler found no entry and does not run again.
        if Task.isCancelled {
          continuation.resume(returning: false)
        } else {
          waiting.append((ticket, continuation))
        }
      }
    } onCancel: {
      Task { await self.giveUp(ticket) }
    }
  }

  /// Hands the lane to the next task in line.
  public func leave() {
    if waiting.isEmpty {
      isTaken = false
    } else {
      waiting.removeFirst().continuation.resume(returning: true)
    }
  }

  private func giveUp(_ ticket: UInt64) {
    guard let index = waiting.firstIndex(where: { $0.ticket == ticket }) else { return }
    waiting.remove(at: index).continuation.resume(returning: false)
  }
}
