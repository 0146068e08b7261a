internal import GroupCommit
internal import Locking
internal import MFADomain

/// A database with write access.
protocol SQLWriter: Sendable {
  /// Runs `body` in one transaction, exclusive among the writers, and commits it. An error of `body` rolls it back.
  func transaction(_ body: (any SQLSession) throws -> Void) throws
}

/// Commits writes in groups, with one transaction and one flush to disk per group.
///
/// Each write has its own savepoint, so an error rolls back only that write.
final class WriteQueue: Sendable {
  private let queue: GroupCommitQueue<any WriteJob>

  init(writer: any SQLWriter, mostWaiting: Int, historyKeys: HistoryKeyPlace) {
    queue = GroupCommitQueue(
      label: "mfa.store.write", mostWaiting: mostWaiting, isExpired: \.isLate,
      commit: { jobs in Self.commit(jobs, to: writer, historyKeys) })
  }

  /// Runs `body` and returns after its commit.
  ///
  /// - Throws: the error of `body`; `MFAStoreError` for errors of the database, for a passed deadline, and immediately
  ///   if too many writes are waiting.
  func run<Value: Sendable>(_ body: @escaping @Sendable (any Records) throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      let job = PendingWrite(body: body, deadline: StoreDeadline.current, continuation: continuation)
      let addition = queue.add(job)
      for job in addition.expired { job.finish(.late) }
      if !addition.isAccepted { job.finish(MFAStoreError(reason: "too many writes are waiting", isOverload: true)) }
    }
  }

  private static func commit(_ jobs: [any WriteJob], to writer: any SQLWriter, _ historyKeys: HistoryKeyPlace) {
    do {
      try writer.transaction { sql in
        let keys = historyKeys.withLock { $0 }
        for job in jobs { try sql.savepoint { job.perform(SQLRecords(sql: sql, historyKeys: keys)) } }
      }
      for job in jobs { job.finish(nil) }
    } catch {
      for job in jobs { job.finish(MFAStoreError(error)) }
    }
  }
}

extension SQLSession {
  /// Runs `body` in a savepoint and rolls it back if `body` returns `false`.
  fileprivate func savepoint(_ body: () -> Bool) throws {
    try run("SAVEPOINT job", [])
    if !body() { try run("ROLLBACK TO SAVEPOINT job", []) }
    try run("RELEASE SAVEPOINT job", [])
  }
}

private protocol WriteJob: Sendable {
  /// Whether the deadline has passed, so that the job must not start.
  var isLate: Bool { get }
  /// Runs the job and returns whether its changes are kept.
  func perform(_ records: SQLRecords) -> Bool
  /// Resumes the caller. `fault` is set if the whole group failed.
  func finish(_ fault: MFAStoreError?)
}

private final class PendingWrite<Value: Sendable>: WriteJob {
  private let body: @Sendable (any Records) throws -> Value
  private let continuation: CheckedContinuation<Value, any Error>
  private let deadline: ContinuousClock.Instant?
  private let result = LockedValue<Result<Value, any Error>?>(nil)

  init(
    body: @escaping @Sendable (any Records) throws -> Value, deadline: ContinuousClock.Instant?,
    continuation: CheckedContinuation<Value, any Error>
  ) {
    self.body = body
    self.deadline = deadline
    self.continuation = continuation
  }

  func perform(_ records: SQLRecords) -> Bool {
    let outcome = Result {
      if isLate { throw MFAStoreError.late }
      return try body(records)
    }
    result.withLock { $0 = outcome }
    if case .success = outcome { return true }
    return false
  }

  var isLate: Bool { StoreDeadline.hasPassed(deadline) }

  func finish(_ fault: MFAStoreError?) {
    switch (fault, result.withLock { $0 }) {
    case (nil, .success(let value)?): continuation.resume(returning: value)
    case (nil, .failure(let error)?): continuation.resume(throwing: MFAStoreError.translated(error))
    case (let fault, _): continuation.resume(throwing: fault ?? MFAStoreError(reason: "the write did not run"))
    }
  }
}

/// An error of the database library.
protocol UnderlyingStoreError: Error {
  /// The reason for people, on one line.
  var plainReason: String { get }
}

extension MFAStoreError {
  init(_ error: any Error) {
    self =
      (error as? MFAStoreError)
      ?? MFAStoreError(reason: (error as? any UnderlyingStoreError)?.plainReason ?? "\(error)")
  }

  /// Converts errors of the database, including unreadable rows, to `MFAStoreError`. Errors of the domain stay as they
  /// are.
  static func translated(_ error: any Error) -> any Error {
    error is any UnderlyingStoreError ? MFAStoreError(error) : error
  }
}
