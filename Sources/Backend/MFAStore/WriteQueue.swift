internal import Databases
internal import Locking
internal import MFADomain

/// A database with write access.
protocol SQLWriter: Sendable {
  /// Whether transactions that exclude no more than rows run beside those of other processes.
  var runsBesideOthers: Bool { get }
  /// Runs `body` in one transaction and commits it. An error of `body` rolls it back. `body` may run more than once.
  func transaction(excluding others: WriteExclusion, _ body: (any SQLSession) throws -> Void) throws
}

/// Commits writes in groups, with one transaction and one flush to disk per group.
///
/// Each write has its own savepoint, so an error rolls back only that write. The identities that the writes spend are
/// recorded before the first savepoint, so they are kept whatever the writes do.
///
/// A group whose transaction runs beside others waits for a row for some milliseconds only, since it holds the rows of
/// its earlier writes: a write that would wait longer runs again in a transaction that excludes all other writers. So
/// two groups never wait for each other.
final class WriteQueue: Sendable {
  private let queue: GroupCommitQueue<any WriteJob>

  init(writer: any SQLWriter, mostWaiting: Int, historyKeys: HistoryKeyPlace) {
    queue = GroupCommitQueue(
      label: "mfa.store.write", mostWaiting: mostWaiting, isExpired: \.isLate,
      commit: { jobs in WriteGroups(writer: writer, historyKeys: historyKeys).commit(jobs) })
  }

  /// Runs `body` and returns after its commit.
  ///
  /// - Throws: the error of `body`; `IdentityUsedBefore`; `MFAStoreError` for errors of the database, for a passed
  ///   deadline, and immediately if too many writes are waiting.
  func run<Value: Sendable>(
    excluding others: WriteExclusion, _ body: @escaping @Sendable (any Records) throws -> Value
  ) async throws -> Value {
    let unspent = UnspentIdentity.current
    let number = try unspent?.take()
    return try await StoreDeadline.answer { answer in
      let job = PendingWrite(
        body: body, excluding: others, deadline: StoreDeadline.current, identity: number, of: unspent, answer: answer)
      let addition = queue.add(job)
      for job in addition.expired { job.finish(.late) }
      if !addition.isAccepted { job.finish(MFAStoreError(reason: "too many writes are waiting", isOverload: true)) }
    }
  }
}

/// The commit of one batch of jobs.
private struct WriteGroups {
  let writer: any SQLWriter
  let historyKeys: HistoryKeyPlace

  func commit(_ jobs: [any WriteJob]) {
    guard writer.runsBesideOthers else {
      _ = commit(jobs, excluding: .writers)
      return
    }
    let unfinished = commit(jobs.filter { $0.others == .rows }, excluding: .rows)
    _ = commit(jobs.filter { $0.others == .writers } + unfinished, excluding: .writers)
  }

  /// Commits `jobs` in one transaction, and returns those that must run again and exclude all other writers.
  private func commit(_ jobs: [any WriteJob], excluding others: WriteExclusion) -> [any WriteJob] {
    guard !jobs.isEmpty else { return [] }
    do {
      try writer.transaction(excluding: others) { try run(jobs, in: $0, excluding: others) }
    } catch is HistoryRefused where others == .rows {
      // Rolled back. Together with other writers each job notes its own entries, in its own savepoint.
      return jobs
    } catch {
      for job in jobs { job.finish(MFAStoreError(error)) }
      return []
    }
    var unfinished: [any WriteJob] = []
    for job in jobs {
      if others == .rows, job.needsExclusion {
        job.identityIsRecorded()
        unfinished.append(job)
      } else {
        job.finish(nil)
      }
    }
    return unfinished
  }

  private func run(_ jobs: [any WriteJob], in sql: any SQLSession, excluding others: WriteExclusion) throws {
    let turn = HistoryTurn()
    var records = SQLRecords(
      sql: sql, historyKeys: historyKeys.withLock { $0 }, historyEnd: HistoryEnd(),
      historyTurn: others == .rows ? turn : nil)
    var firstUses = try records.spend(jobs.compactMap(\.identity))
    if others == .rows { try sql.limitWaitForRows() }
    for job in jobs {
      if let identity = job.identity, firstUses.remove(identity.id) == nil {
        job.refuseAsUsedBefore()
        continue
      }
      let count = turn.waiting.count
      let isKept = try sql.savepoint { job.perform(records) }
      guard !isKept else { continue }
      records.historyEnd?.known = nil
      turn.cut(to: count)
    }
    guard !turn.waiting.isEmpty else { return }
    try sql.waitForHistory()
    records.historyTurn = nil
    do {
      for body in turn.waiting { try body(records) }
    } catch let error where !(error is any UnderlyingStoreError) {
      throw HistoryRefused()
    }
  }
}

/// An entry of one job cannot be written at the end of a transaction that several jobs share.
private struct HistoryRefused: Error {}

extension SQLSession {
  /// Runs `body` in a savepoint, rolls it back if `body` returns `false`, and returns the result of `body`.
  fileprivate func savepoint(_ body: () -> Bool) throws -> Bool {
    try enqueue("SAVEPOINT job", [])
    let isKept = body()
    // At once: after an error, the server prepares no other statement before it.
    if !isKept { try run("ROLLBACK TO SAVEPOINT job", []) }
    try enqueue("RELEASE SAVEPOINT job", [])
    return isKept
  }
}

private protocol WriteJob: Sendable {
  var others: WriteExclusion { get }
  /// Whether the deadline has passed, so that the job must not start.
  var isLate: Bool { get }
  /// The identity to record with the job; `nil` if there is none, or if it is recorded.
  var identity: IdentityNumber? { get }
  /// Notes that the identity was used before, so that the job does not run.
  func refuseAsUsedBefore()
  /// Notes that the identity is committed, though the job has yet to run.
  func identityIsRecorded()
  /// Runs the job and returns whether its changes are kept.
  func perform(_ records: SQLRecords) -> Bool
  /// Whether the last run has found that the job must exclude all other writers.
  var needsExclusion: Bool { get }
  /// Answers the caller. `fault` is set if the whole group failed.
  func finish(_ fault: MFAStoreError?)
}

private final class PendingWrite<Value: Sendable>: WriteJob {
  private struct State {
    var result: Result<Value, any Error>?
    var isIdentityRecorded = false
  }

  let others: WriteExclusion
  private let body: @Sendable (any Records) throws -> Value
  private let answer: @Sendable (Result<Value, any Error>) -> Void
  private let deadline: ContinuousClock.Instant?
  private let number: IdentityNumber?
  private let unspent: UnspentIdentity?
  private let state = LockedValue(State())

  /// - Parameter identity: what this write has taken of `unspent`.
  init(
    body: @escaping @Sendable (any Records) throws -> Value, excluding others: WriteExclusion,
    deadline: ContinuousClock.Instant?, identity: IdentityNumber?, of unspent: UnspentIdentity?,
    answer: @escaping @Sendable (Result<Value, any Error>) -> Void
  ) {
    self.body = body
    self.others = others
    self.deadline = deadline
    number = identity
    self.unspent = unspent
    self.answer = answer
  }

  var identity: IdentityNumber? { state.withLock { $0.isIdentityRecorded } ? nil : number }

  func refuseAsUsedBefore() { state.withLock { $0.result = .failure(IdentityUsedBefore()) } }

  func identityIsRecorded() { state.withLock { $0.isIdentityRecorded = true } }

  func perform(_ records: SQLRecords) -> Bool {
    let outcome = Result {
      if isLate { throw MFAStoreError.late }
      return try body(records)
    }
    state.withLock { $0.result = outcome }
    if case .success = outcome { return true }
    return false
  }

  var needsExclusion: Bool {
    guard case .failure(let error)? = state.withLock({ $0.result }) else { return false }
    return error is NeedsExclusion || (error as? any UnderlyingStoreError)?.isContention == true
  }

  var isLate: Bool { StoreDeadline.hasPassed(deadline) }

  func finish(_ fault: MFAStoreError?) {
    let result = state.withLock { $0.result }
    if number != nil { unspent?.end(fault != nil ? .failed : Self.outcome(of: result)) }
    switch (fault, result) {
    case (nil, .success(let value)?): answer(.success(value))
    case (nil, .failure(let error)?): answer(.failure(MFAStoreError.translated(error)))
    case (let fault, _): answer(.failure(fault ?? MFAStoreError(reason: "the write did not run")))
    }
  }

  private static func outcome(of result: Result<Value, any Error>?) -> UnspentIdentity.Outcome {
    switch result {
    case .failure(let error) where error is IdentityUsedBefore: .usedBefore
    case .none: .failed
    default: .recorded
    }
  }
}

/// An error of the database library.
protocol UnderlyingStoreError: Error {
  /// The reason for people, on one line.
  var plainReason: String { get }
  /// Whether another transaction holds what the statement needs, so that the statement may succeed later.
  var isContention: Bool { get }
}

extension UnderlyingStoreError {
  var isContention: Bool { false }
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
