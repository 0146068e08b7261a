internal import Commands
internal import Dispatch
internal import Locking

/// Reads files on separate threads, so that a file system that hangs blocks neither the gate's actor nor the
/// concurrency pool. Status, metrics and shutdown keep working.
final class FileReads: Sendable {
  /// The default timeout of a read.
  static let limit = Duration.seconds(10)
  /// The maximum number of running reads. Reads that timed out count too, because a read in the kernel cannot be
  /// cancelled.
  private static let mostAtOnce = 8

  private let count = LockedValue(0)

  /// Runs `work` on another thread.
  ///
  /// - Throws: The error of `work`, or `.unavailable` if `work` takes longer than `limit` or too many reads are still
  ///   running. A result after the timeout is discarded.
  func run<Value: Sendable>(
    within limit: Duration = limit, _ work: @escaping @Sendable () throws(Failure) -> Value
  ) async throws(Failure) -> Value {
    let isAdmitted = count.withLock { count in
      guard count < Self.mostAtOnce else { return false }
      count += 1
      return true
    }
    guard isAdmitted else { throw Self.noAnswer(within: limit) }
    let outcome = await withCheckedContinuation { continuation in
      let answer = Answer<Value>(continuation)
      DispatchQueue.global().async { [self] in
        let result: Result<Value, Failure>
        do throws(Failure) { result = .success(try work()) } catch { result = .failure(error) }
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

  private static func noAnswer(within limit: Duration) -> Failure {
    Failure(
      .unavailable, "the configuration's files cannot be read: no answer within \(limit)",
      hint: "check the file systems that hold them, such as network mounts")
  }
}

/// Resumes a continuation with the first of several answers.
private final class Answer<Value: Sendable>: Sendable {
  private typealias Continuation = CheckedContinuation<Result<Value, Failure>, Never>
  private let continuation: LockedValue<Continuation?>

  init(_ continuation: CheckedContinuation<Result<Value, Failure>, Never>) {
    self.continuation = LockedValue(continuation)
  }

  func give(_ result: Result<Value, Failure>) {
    let waiting = continuation.withLock { continuation in
      defer { continuation = nil }
      return continuation
    }
    waiting?.resume(returning: result)
  }
}
