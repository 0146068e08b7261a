internal import AttestGate
internal import Dispatch
internal import GRDB
internal import Locking

/// Runs jobs in batches: one transaction, and so one disk flush, per batch.
///
/// Jobs that arrive while a batch runs form the next batch. Under load, jobs share the cost of a commit; without
/// load, no job waits. One dispatch queue serves all callers.
final class GroupCommitQueue: Sendable {
  enum Access { case read, write }

  private struct Waiting {
    var jobs: [any Job] = []
    var isDraining = false
    var tally = BatchTally()
  }

  private let file: DatabaseFile
  private let access: Access
  private let health: StoreHealthRecord
  private let mostWaiting: Int
  private let mostInBatch: Int
  private let queue: DispatchQueue
  private let waiting = LockedValue(Waiting())

  init(file: DatabaseFile, access: Access, health: StoreHealthRecord, mostWaiting: Int, mostInBatch: Int = 256) {
    self.file = file
    self.access = access
    self.health = health
    self.mostWaiting = mostWaiting
    self.mostInBatch = mostInBatch
    queue = DispatchQueue(label: "sallyport.store.\(access)")
  }

  /// The number of jobs that wait for the current batch to finish.
  var countOfWaiting: Int { waiting.withLock { $0.jobs.count } }

  var tally: BatchTally { waiting.withLock { $0.tally } }

  /// Runs `body` in a transaction and returns after the commit.
  ///
  /// An error in `body` rolls back its changes and does not affect the other jobs of the batch. `body` may run twice;
  /// the changes of the first run are then rolled back.
  ///
  /// - Throws: `.overloaded` immediately if too many jobs wait.
  func run<Value: Sendable>(
    _ body: @escaping @Sendable (Database) throws -> Value
  ) async throws(StoreError) -> Value {
    let result = await withCheckedContinuation { continuation in
      enqueue(PendingJob(body: body, continuation: continuation))
    }
    return try result.get()
  }

  private func enqueue(_ job: some Job) {
    let (isTaken, starts) = waiting.withLock { waiting in
      guard waiting.jobs.count < mostWaiting else { return (false, false) }
      waiting.jobs.append(job)
      defer { waiting.isDraining = true }
      return (true, !waiting.isDraining)
    }
    if !isTaken { job.finish(.overloaded) }
    if starts { queue.async { self.drain() } }
  }

  private func drain() {
    while let batch = next() { perform(batch) }
  }

  private func next() -> [any Job]? {
    waiting.withLock { waiting in
      guard !waiting.jobs.isEmpty else {
        waiting.isDraining = false
        return nil
      }
      defer { waiting.jobs.removeFirst(min(mostInBatch, waiting.jobs.count)) }
      return Array(waiting.jobs.prefix(mostInBatch))
    }
  }

  private func perform(_ batch: [any Job]) {
    do throws(StoreError) {
      try commit(batch)
      health.note(nil, of: "\(access)")
      waiting.withLock { waiting in
        waiting.tally.calls += batch.count
        waiting.tally.commits += 1
      }
      for job in batch { job.finish(nil) }
    } catch {
      if batch.count == 1 || error.isOfTheStore {
        health.note(error, of: "\(access)")
        for job in batch { job.finish(error) }
      } else {
        // One job failed the transaction for all. Each job gets its own transaction, so that only the failing one
        // fails.
        for job in batch { perform([job]) }
      }
    }
  }

  private func commit(_ batch: [any Job]) throws(StoreError) {
    var used: DatabasePool?
    do {
      let pool = try file.connections()
      used = pool
      switch access {
      case .read: try pool.read { db in try batch.forEach { try $0.perform(in: db) } }
      case .write:
        try pool.writeWithoutTransaction { db in
          try db.inTransaction(.immediate) {
            try batch.forEach { try $0.perform(in: db) }
            return .commit
          }
        }
      }
    } catch {
      let fault = StoreError(error)
      // A malformed row is not a fault of the connection.
      if let used, error is DatabaseError, fault.endsConnection { file.discard(used) }
      throw fault
    }
  }
}

/// A call that waits for its transaction.
private protocol Job: Sendable {
  func perform(in db: Database) throws
  /// Resumes the caller with the result of `perform`, or with `fault`.
  func finish(_ fault: StoreError?)
}

private final class PendingJob<Value: Sendable>: Job, @unchecked Sendable {
  private let body: @Sendable (Database) throws -> Value
  private let continuation: CheckedContinuation<Result<Value, StoreError>, Never>
  // LockedValue by the dispatch queue: only its batches access a job, one at a time.
  private var value: Value?

  init(
    body: @escaping @Sendable (Database) throws -> Value,
    continuation: CheckedContinuation<Result<Value, StoreError>, Never>
  ) {
    self.body = body
    self.continuation = continuation
  }

  func perform(in db: Database) throws { value = try body(db) }

  func finish(_ fault: StoreError?) {
    if let fault {
      continuation.resume(returning: .failure(fault))
    } else if let value {
      continuation.resume(returning: .success(value))
    } else {
      continuation.resume(returning: .failure(.failed(reason: "the job did not run")))
    }
  }
}
