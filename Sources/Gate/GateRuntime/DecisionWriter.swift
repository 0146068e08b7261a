internal import AttestGate
internal import GateService
internal import Logging
internal import Settings

extension GateComposition {
  /// Stores decisions about keys; `nil` if none are kept.
  func decisionWriter(logger: Logger) -> DecisionWriter? {
    settings.decisions.map {
      DecisionWriter(store: memory.store, queue: memory.metrics.decisions, mostOfKey: $0.mostOfKey, logger: logger)
    }
  }

  /// Which decisions maintenance leaves in the store.
  var decisionRetention: DecisionRetention {
    settings.decisions.map { DecisionRetention(longest: $0.keep, most: $0.most) } ?? .nothing
  }
}

/// Writes the decisions about keys to the store, in groups and in the background.
///
/// If the store is slow or down, at most as many decisions wait here as in the queue, the oldest leave, and they are
/// counted.
struct DecisionWriter: Sendable {
  /// The number of decisions in a transaction: an embedded store admits no device meanwhile.
  private static let portion = 64

  let store: any DecisionStorage
  let queue: DecisionQueue
  /// The maximum number of decisions of each kind about one key.
  let mostOfKey: Int
  let logger: Logger
  /// The time between two writes.
  var pause = Duration.seconds(2)

  /// Runs until the task is cancelled. Writes what waits then, once.
  func run() async {
    // One that was cancelled while it waited for another one's end must not open a queue that no writer empties.
    if !Task.isCancelled { queue.open() }
    var waiting: [KeyDecision] = []
    var hasFailed = false
    while !Task.isCancelled {
      try? await Task.sleep(for: pause)
      do throws(StoreError) {
        try await write(&waiting)
        if hasFailed { logger.notice("decisions about keys stored again") }
        hasFailed = false
      } catch {
        if !hasFailed {
          logger.warning("decisions about keys not stored: admissions go on", metadata: ["step": "\(error.step)"])
        }
        hasFailed = true
      }
    }
    try? await write(&waiting)
    queue.drop(waiting.count)
  }

  /// Writes `waiting` and what has come since, and leaves in `waiting` what the store has not taken.
  func write(_ waiting: inout [KeyDecision]) async throws(StoreError) {
    waiting += queue.take()
    let excess = waiting.count - DecisionQueue.capacity
    if excess > 0 {
      waiting.removeFirst(excess)
      queue.drop(excess)
    }
    while !waiting.isEmpty {
      let portion = Array(waiting.prefix(Self.portion))
      do throws(StoreError) {
        try await store.store(portion, atMost: mostOfKey)
      } catch {
        if case .inDoubt = error {
          // They may be stored: once more would store them twice.
          waiting.removeFirst(portion.count)
          queue.drop(portion.count)
        }
        throw error
      }
      waiting.removeFirst(portion.count)
    }
  }
}
