internal import Dispatch
internal import Locking

/// Reads files on threads of their own, so that a file system that does not answer blocks neither the gate's actor
/// nor a thread of the concurrency pool: status, metrics and shutdown go on.
final class FileReads: Sendable {
  /// How long reads may take before they are given up.
  static let limit = Duration.seconds(10)
  /// How many reads may be under way, those that were given up included: a read in the kernel cannot be ended.
  private static let mostAtOnce = 8

  private let count = LockedValue(0)

  /// Runs `work` on another thread.
  ///
  /// - Throws: what `work` throws; `.unavailable` if it takes longer than `limit`, or if too many reads still run. What
  ///   `work` comes to later is dropped.
  func run<Value: Sendable>(
    within limit: Duration = limit, _ work: @escaping @Sendable () throws(SallyportError) -> Value
  ) async throws(SallyportError) -> Value {
    let isAdmitted = count.withLock { count in
      guard count < Self.mostAtOnce else { return false }
      count += 1
      return true
    }
    guard isAdmitted else { throw Self.noAnswer(within: limit) }
    let outcome = await withCheckedContinuation { continuation in
      let answer = Answer<Value>(continuation)
      DispatchQueue.global().async { [self] in
        let result: Result<Value, SallyportError>
        do throws(SallyportError) { result = .success(try work()) } catch { result = .failure(error) }
        count.withLock { $0 -= 1 }
        answer.give(result)
      }
      Task {
        try? await Task.sleep(for: limit)
        answer.give(.failure(Self.noAnswer(within: limit)))
      }
    }
    return try outcome.get()
  }

  private static func noAnswer(within limit: Duration) -> SallyportError {
    SallyportError(
      .unavailable, error: "the files of the configuration cannot be read: no answer within \(limit)",
      hint: "see the file systems that they are on, such as network mounts")
  }
}

/// The first answer of several counts.
private final class Answer<Value: Sendable>: Sendable {
  private typealias Continuation = CheckedContinuation<Result<Value, SallyportError>, Never>
  private let continuation: LockedValue<Continuation?>

  init(_ continuation: CheckedContinuation<Result<Value, SallyportError>, Never>) {
    self.continuation = LockedValue(continuation)
  }

  func give(_ result: Result<Value, SallyportError>) {
    let waiting = continuation.withLock { continuation in
      defer { continuation = nil }
      return continuation
    }
    waiting?.resume(returning: result)
  }
}
