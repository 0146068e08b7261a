internal import Locking

/// Runs jobs in batches, so that one commit, and so one flush to disk, serves a whole batch.
///
/// Jobs that arrive while a batch runs form the next batch, in their order. Under load, jobs share the cost of a
/// commit; without load, no job waits. One thread of its own runs all batches, one after the other. It starts with the
/// first job, sleeps while there is none, and ends with the queue.
public final class GroupCommitQueue<Job: Sendable>: Sendable {
  private struct Waiting {
    var jobs: [Job] = []
    /// Whether the thread runs batches, or is about to.
    var isDraining = false
    var thread: WorkerThread?

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

  private let label: String
  private let mostWaiting: Int
  private let mostInBatch: Int
  private let isExpired: @Sendable (Job) -> Bool
  private let commit: @Sendable ([Job]) -> Void
  private let waiting = LockedValue(Waiting())

  /// Creates a queue without jobs.
  ///
  /// - Parameters:
  ///   - label: The name of the thread in `top -H` and in debuggers. Linux shows its first 15 bytes.
  ///   - mostWaiting: The number of jobs that may wait for the current batch to finish; more are not accepted.
  ///   - mostInBatch: The number of jobs in one batch.
  ///   - isExpired: Whether a waiting job need not run any more. It is asked only when the queue is full.
  ///   - commit: Runs a batch of at least one job and reports to each of them.
  public init(
    label: String, mostWaiting: Int, mostInBatch: Int = 256,
    isExpired: @escaping @Sendable (Job) -> Bool = { _ in false },
    commit: @escaping @Sendable ([Job]) -> Void
  ) {
    self.label = label
    self.mostWaiting = mostWaiting
    self.mostInBatch = mostInBatch
    self.isExpired = isExpired
    self.commit = commit
  }

  /// The number of jobs that wait for the current batch to finish.
  public var countOfWaiting: Int { waiting.withLock { $0.jobs.count } }

  /// Adds `job` to the next batch. Returns at once. The job is not accepted if the queue is full even without its
  /// expired jobs, or if the system cannot start the thread.
  ///
  /// May be called from any thread. Jobs of one caller keep their order.
  public func add(_ job: Job) -> Addition {
    let (addition, idle) = waiting.withLock { waiting -> (Addition, WorkerThread?) in
      let expired = waiting.jobs.count < mostWaiting ? [] : waiting.remove(where: isExpired)
      guard waiting.jobs.count < mostWaiting, let thread = waiting.thread ?? WorkerThread(name: label) else {
        return (Addition(isAccepted: false, expired: expired), nil)
      }
      waiting.thread = thread
      waiting.jobs.append(job)
      defer { waiting.isDraining = true }
      return (Addition(isAccepted: true, expired: expired), waiting.isDraining ? nil : thread)
    }
    // Keeps the queue until the thread has no more jobs.
    idle?.run { self.drain() }
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
