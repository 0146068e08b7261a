internal import Databases
internal import Locking
internal import MFADomain

/// Runs reads on one connection. Reads that wait at the same time share a transaction, so under load most of them need
/// no round trip for its beginning and end.
final class ReadQueue: Sendable {
  private let queue: GroupCommitQueue<any ReadJob>

  /// - Parameter database: used by this queue alone.
  init(database: PostgresDatabase, mostWaiting: Int, historyKeys: HistoryKeyPlace) {
    queue = GroupCommitQueue(
      label: "mfa.store.read", mostWaiting: mostWaiting, mostInBatch: 64, isExpired: \.isLate,
      commit: { Self.run($0, on: database, historyKeys) })
  }

  /// Runs `body`, which sees what was committed before this call.
  ///
  /// - Throws: the error of `body`; `MFAStoreError` for errors of the database, for a passed deadline, and immediately
  ///   if too many reads are waiting.
  func run<Value: Sendable>(_ body: @escaping @Sendable (any Records) throws -> Value) async throws -> Value {
    try await StoreDeadline.answer { answer in
      let job = PendingRead(body: body, deadline: StoreDeadline.current, answer: answer)
      let addition = queue.add(job)
      for job in addition.expired { job.finish(.late) }
      if !addition.isAccepted { job.finish(MFAStoreError(reason: "too many reads are waiting", isOverload: true)) }
    }
  }

  private static func run(_ batch: [any ReadJob], on database: PostgresDatabase, _ historyKeys: HistoryKeyPlace) {
    // A server that does not answer takes its time for each attempt, also to connect: late jobs cost none.
    var jobs: [any ReadJob] = []
    for job in batch {
      if job.isLate { job.finish(.late) } else { jobs.append(job) }
    }
    guard !jobs.isEmpty else { return }
    do {
      try database.readTransaction { sql in
        let records = SQLRecords(sql: sql, historyKeys: historyKeys.withLock { $0 })
        for job in jobs { try job.perform(records) }
      }
      for job in jobs { job.finish(nil) }
    } catch {
      guard jobs.count > 1 else { return jobs[0].finish(MFAStoreError(error)) }
      // A statement that failed has ended the transaction of all.
      for job in jobs { run([job], on: database, historyKeys) }
    }
  }
}

private protocol ReadJob: Sendable {
  /// Whether the deadline has passed, so that the job must not start.
  var isLate: Bool { get }
  /// Runs the job and keeps its result.
  ///
  /// - Throws: the error of the database.
  func perform(_ records: SQLRecords) throws
  /// Answers the caller. `fault` is set if the transaction failed.
  func finish(_ fault: MFAStoreError?)
}

private final class PendingRead<Value: Sendable>: ReadJob {
  private let body: @Sendable (any Records) throws -> Value
  private let deadline: ContinuousClock.Instant?
  private let answer: @Sendable (Result<Value, any Error>) -> Void
  private let result = LockedValue<Result<Value, any Error>?>(nil)

  init(
    body: @escaping @Sendable (any Records) throws -> Value, deadline: ContinuousClock.Instant?,
    answer: @escaping @Sendable (Result<Value, any Error>) -> Void
  ) {
    self.body = body
    self.deadline = deadline
    self.answer = answer
  }

  var isLate: Bool { StoreDeadline.hasPassed(deadline) }

  func perform(_ records: SQLRecords) throws {
    let outcome = Result {
      if isLate { throw MFAStoreError.late }
      return try body(records)
    }
    if case .failure(let error as any UnderlyingStoreError) = outcome { throw error }
    result.withLock { $0 = outcome }
  }

  func finish(_ fault: MFAStoreError?) {
    let outcome = result.withLock { $0 }
    answer(fault.map { .failure($0) } ?? outcome ?? .failure(MFAStoreError(reason: "the read did not run")))
  }
}
