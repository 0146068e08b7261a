internal import AttestGate
internal import Databases
internal import Dispatch
internal import GRDB
internal import Locking

/// Runs reads or writes of a store in batches, one transaction per batch.
///
/// After a failure the queue probes the store by itself, so that the reported health recovers without other calls: a
/// gate that is not ready gets none from its load balancer.
final class StoreQueue: Sendable {
  private let batches: Batches
  private let queue: GroupCommitQueue<any Job>

  init(file: DatabaseFile, access: StoreAccess, health: StoreHealthRecord, mostWaiting: Int) {
    let batches = Batches(file: file, access: access, health: health)
    let probe = StoreProbe(access)
    self.batches = batches
    queue = GroupCommitQueue(
      label: "store.\(access)", mostWaiting: mostWaiting,
      commit: { if !batches.perform($0) { probe.schedule() } })
    probe.attach(to: queue)
  }

  /// The number of jobs that wait for the current batch to finish.
  var countOfWaiting: Int { queue.countOfWaiting }

  var tally: BatchTally { batches.tally.withLock { $0 } }

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
      let job = PendingJob(body: body, continuation: continuation)
      if !queue.add(job).isAccepted { job.finish(.overloaded) }
    }
    return try result.get()
  }
}

enum StoreAccess { case read, write }

/// Runs each batch in a transaction of the store's file.
private struct Batches: Sendable {
  let file: DatabaseFile
  let access: StoreAccess
  let health: StoreHealthRecord
  let tally = LockedValue(BatchTally())

  /// Returns whether the store works; `true` too if it is closed.
  func perform(_ batch: [any Job]) -> Bool {
    do throws(BatchFault) {
      try commit(batch)
      health.note(nil, of: "\(access)")
      tally.withLock { tally in
        tally.calls += batch.count
        tally.commits += 1
      }
      for job in batch { job.finish(nil) }
      return true
    } catch {
      if batch.count == 1 || error.fault.isOfTheStore {
        if !error.isOfOneJob { health.note(error.fault, of: "\(access)") }
        for job in batch { job.finish(error.fault) }
        return error.isOfOneJob || error.fault == .closed
      }
      // One job failed the transaction for all. Each job gets its own transaction, so that only the failing one
      // fails.
      return batch.reduce(true) { works, job in perform([job]) && works }
    }
  }

  private func commit(_ batch: [any Job]) throws(BatchFault) {
    var used: DatabasePool?
    do {
      let pool = try file.connections()
      used = pool
      switch access {
      case .read: try pool.read { db in try batch.forEach { try $0.perform(in: db) } }
      case .write:
        try pool.writeWithoutTransaction { db in
          // GRDB's own transactions parse both statements each time.
          try db.cachedStatement(sql: "BEGIN IMMEDIATE").execute()
          do {
            try batch.forEach { try $0.perform(in: db) }
            try db.cachedStatement(sql: "COMMIT").execute()
          } catch {
            // SQLite has rolled back by itself after some faults.
            if db.isInsideTransaction { try? db.rollback() }
            throw error
          }
        }
      }
    } catch {
      let fault = StoreError(error)
      // A malformed row is not a fault of the connection.
      if let used, error is DatabaseError, fault.endsConnection { file.discard(used) }
      let isOfOneJob = if used != nil, case .corrupt? = error as? StoreError { true } else { false }
      throw BatchFault(fault: fault, isOfOneJob: isOfOneJob)
    }
  }
}

/// Why a batch was not committed.
private struct BatchFault: Error {
  let fault: StoreError
  /// Whether a job found a malformed value in a row that it read. That says nothing about the rest of the store.
  let isOfOneJob: Bool
}

/// Adds a job of its own to the queue some time after a failure, again and again until one succeeds.
private final class StoreProbe: Sendable {
  private struct State {
    weak var queue: GroupCommitQueue<any Job>?
    var isScheduled = false
  }

  private static let interval = DispatchTimeInterval.seconds(2)

  private let access: StoreAccess
  private let state = LockedValue(State())

  init(_ access: StoreAccess) { self.access = access }

  func attach(to queue: GroupCommitQueue<any Job>) { state.withLock { $0.queue = queue } }

  func schedule() {
    let wasScheduled = state.withLock { state in
      defer { state.isScheduled = true }
      return state.isScheduled
    }
    guard !wasScheduled else { return }
    DispatchQueue.global().asyncAfter(deadline: .now() + Self.interval) { [weak self] in self?.run() }
  }

  private func run() {
    let queue = state.withLock { state in
      state.isScheduled = false
      return state.queue
    }
    // A full queue has other calls that show whether the store works.
    _ = queue?.add(ProbeJob(access: access))
  }
}

/// Reads from the store's file, or writes to it and changes nothing.
private struct ProbeJob: Job {
  let access: StoreAccess

  func perform(in db: Database) throws {
    let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
    // An empty transaction would also succeed on a full disk. This one commits a page.
    if access == .write { try db.execute(sql: "PRAGMA user_version = \(version)") }
  }

  func finish(_ fault: StoreError?) {}
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
  // Guarded by the queue: only its batches access a job, one at a time.
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
