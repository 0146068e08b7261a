internal import Dispatch
internal import Locking

/// Runs jobs in batches, so that one commit, and so one flush to disk, serves a whole batch.
///
/// Jobs that arrive while a batch runs form the next batch, in their order. Under load, jobs share the cost of a
/// commit; without load, no job waits. One dispatch queue runs all batches, one after the other.
public final class GroupCommitQueue<Job: Sendable>: Sendable {
  private struct Waiting {
    var jobs: [Job] = []
    var isDraining = false

    /// Removes the jobs that match, and keeps the order of the others. Asks once for each job: one that expired between
    /// two questions would be lost.
    mutating func remove(where matches: (Job) -> Bool) -> [Job] {
      var removed: [Job] = []
      var rest: [Job] = []
      for job in jobs {
        if matches(job) { removed.append(job) } else { rest.append(job) }
      }
      jobs = rest
      return removed
    }
  }

  /// The result of `add`.
  public struct Addition: Sendable {
    /// Whether the job was added. If not, it never runs.
    public let isAccepted: Bool
    /// Jobs that were removed from the queue because they have expired. They never run.
    public let expired: [Job]
  }

  private let mostWaiting: Int
  private let mostInBatch: Int
  private let isExpired: @Sendable (Job) -> Bool
  private let commit: @Sendable ([Job]) -> Void
  private let queue: DispatchQueue
  private let waiting = LockedValue(Waiting())

  /// Creates a queue without jobs.
  ///
  /// - Parameters:
  ///   - label: The name of the dispatch queue, for debuggers.
  ///   - mostWaiting: The number of jobs that may wait for the current batch to finish; more are not accepted.
  ///   - mostInBatch: The number of jobs in one batch.
  ///   - isExpired: Whether a waiting job need not run any more. It is asked only when the queue is full.
  ///   - commit: Runs a batch of at least one job and reports to each of them.
  public init(
    label: String, mostWaiting: Int, mostInBatch: Int = 256,
    isExpired: @escaping @Sendable (Job) -> Bool = { _ in false },
    commit: @escaping @Sendable ([Job]) -> Void
  ) {
    self.mostWaiting = mostWaiting
    self.mostInBatch = mostInBatch
    self.isExpired = isExpired
    self.commit = commit
    queue = DispatchQueue(label: label)
  }

  /// The number of jobs that wait for the current batch to finish.
  public var countOfWaiting: Int { waiting.withLock { $0.jobs.count } }

  /// Adds `job` to the next batch, unless the queue is full even without its expired jobs. Returns at once.
  ///
  /// May be called from any thread. Jobs of one caller keep their order.
  public func add(_ job: Job) -> Addition {
    let (addition, starts) = waiting.withLock { waiting in
      let expired = waiting.jobs.count < mostWaiting ? [] : waiting.remove(where: isExpired)
      guard waiting.jobs.count < mostWaiting else { return (Addition(isAccepted: false, expired: expired), false) }
      waiting.jobs.append(job)
      defer { waiting.isDraining = true }
      return (Addition(isAccepted: true, expired: expired), !waiting.isDraining)
    }
    if starts { queue.async { self.drain() } }
    return addition
  }

  private func drain() {
    while let batch = next() { commit(batch) }
  }

  private func next() -> [Job]? {
    waiting.withLock { waiting in
      guard !waiting.jobs.isEmpty else {
        waiting.isDraining = false
        return nil
      }
      defer { waiting.jobs.removeFirst(min(mostInBatch, waiting.jobs.count)) }
      return Array(waiting.jobs.prefix(mostInBatch))
    }
  }
}
