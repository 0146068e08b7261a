internal import Dispatch
internal import Locking
internal import MFADomain

/// A database that can be written to.
protocol SQLWriter: Sendable {
  /// Runs `body` in one transaction, alone among the writers, and commits it; what `body` throws undoes it.
  func transaction(_ body: (any SQLSession) throws -> Void) throws
}

/// Runs writes in batches, one transaction and so one flush to the disk a batch.
///
/// Writes that arrive while a batch is on its way form the next one. Each has a savepoint of its own: what one of them
/// throws undoes that one alone.
final class WriteQueue: Sendable {
  private struct Waiting {
    var jobs: [any WriteJob] = []
    var isDraining = false

    /// Removes the jobs whose deadline has passed.
    mutating func removeLate() -> [any WriteJob] {
      let start = jobs.partition(by: \.isLate)
      defer { jobs.removeSubrange(start...) }
      return Array(jobs[start...])
    }
  }

  private let writer: any SQLWriter
  private let mostWaiting: Int
  private let mostInBatch = 256
  private let historyKeys: HistoryKeyPlace
  private let queue = DispatchQueue(label: "mfa.store.write")
  private let waiting = LockedValue(Waiting())

  init(writer: any SQLWriter, mostWaiting: Int, historyKeys: HistoryKeyPlace) {
    self.writer = writer
    self.mostWaiting = mostWaiting
    self.historyKeys = historyKeys
  }

  /// Answers once what `body` wrote is committed.
  ///
  /// - Throws: what `body` throws; `StoreFault` for the database's own errors, and at once if too many wait.
  func run<Value: Sendable>(_ body: @escaping @Sendable (any Records) throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      let job = PendingWrite(body: body, deadline: StoreDeadline.current, continuation: continuation)
      let (isTaken, starts, late) = waiting.withLock { waiting in
        let late = waiting.jobs.count < mostWaiting ? [] : waiting.removeLate()
        guard waiting.jobs.count < mostWaiting else { return (false, false, late) }
        waiting.jobs.append(job)
        defer { waiting.isDraining = true }
        return (true, !waiting.isDraining, late)
      }
      for job in late { job.finish(.late) }
      if !isTaken { job.finish(StoreFault(reason: "too many writes wait", isOverload: true)) }
      if starts { queue.async { self.drain() } }
    }
  }

  private func drain() {
    while let batch = next() {
      do {
        try writer.transaction { sql in
          let keys = historyKeys.withLock { $0 }
          for job in batch { try sql.savepoint { job.perform(SQLRecords(sql: sql, historyKeys: keys)) } }
        }
        for job in batch { job.finish(nil) }
      } catch {
        for job in batch { job.finish(StoreFault(error)) }
      }
    }
  }

  private func next() -> [any WriteJob]? {
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

extension SQLSession {
  /// Undoes what `body` wrote unless it gives `true`.
  fileprivate func savepoint(_ body: () -> Bool) throws {
    try run("SAVEPOINT job", [])
    if !body() { try run("ROLLBACK TO SAVEPOINT job", []) }
    try run("RELEASE SAVEPOINT job", [])
  }
}

private protocol WriteJob: Sendable {
  /// Whether its deadline has passed: it is not to begin any more.
  var isLate: Bool { get }
  /// Whether what it wrote is to stay.
  func perform(_ records: SQLRecords) -> Bool
  /// Answers, with `fault` if the batch came to nothing.
  func finish(_ fault: StoreFault?)
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
      if isLate { throw StoreFault.late }
      return try body(records)
    }
    result.withLock { $0 = outcome }
    if case .success = outcome { return true }
    return false
  }

  var isLate: Bool { StoreDeadline.hasPassed(deadline) }

  func finish(_ fault: StoreFault?) {
    switch (fault, result.withLock { $0 }) {
    case (nil, .success(let value)?): continuation.resume(returning: value)
    case (nil, .failure(let error)?): continuation.resume(throwing: StoreFault.translated(error))
    case (let fault, _): continuation.resume(throwing: fault ?? StoreFault(reason: "the write did not run"))
    }
  }
}

/// An error of a database's own library.
protocol DatabaseFault: Error {}

extension StoreFault {
  init(_ error: any Error) { self = (error as? StoreFault) ?? StoreFault(reason: "\(error)") }

  /// What the domain threw, as it is; what the database or a row that cannot be read threw, as a fault of the store.
  static func translated(_ error: any Error) -> any Error {
    error is any DatabaseFault ? StoreFault(error) : error
  }
}
