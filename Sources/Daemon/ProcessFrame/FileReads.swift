internal import Dispatch
internal import Locking

/// Reads files on separate threads, so that a file system that hangs blocks neither the actor of a server nor the
/// concurrency pool. Status, metrics and shutdown keep working.
public final class FileReads: Sendable {
  /// The default timeout of a read.
  public static let limit = Duration.seconds(10)
  /// The maximum number of running reads. Reads that timed out count too, because a read in the kernel cannot be
  /// cancelled.
  private static let mostAtOnce = 8

  private let count = LockedValue(0)

  public init() {}

  /// Runs `work` on another thread.
  ///
  /// - Throws: The error of `work`, or `late` if `work` takes longer than `limit` or too many reads are still running. A
  ///   result after the timeout is discarded.
  public func run<Value: Sendable, Fault: Error>(
    within limit: Duration, late: Fault, _ work: @escaping @Sendable () throws(Fault) -> Value
  ) async throws(Fault) -> Value {
    let isAdmitted = count.withLock { count in
      guard count < Self.mostAtOnce else { return false }
      count += 1
      return true
    }
    guard isAdmitted else { throw late }
    let outcome = await withCheckedContinuation { continuation in
      let answer = Answer<Value, Fault>(continuation)
      DispatchQueue.global().async { [self] in
        let result: Result<Value, Fault>
        do throws(Fault) { result = .success(try work()) } catch { result = .failure(error) }
        count.withLock { $0 -= 1 }
        answer.give(result)
      }
      Task {
        try? await Task.sleep(for: limit)
        answer.give(.failure(late))
      }
    }
    return try outcome.get()
  }
}

/// Resumes a continuation with the first of several answers.
private final class Answer<Value: Sendable, Fault: Error>: Sendable {
  private typealias Continuation = CheckedContinuation<Result<Value, Fault>, Never>
  private let continuation: LockedValue<Continuation?>

  init(_ continuation: CheckedContinuation<Result<Value, Fault>, Never>) {
    self.continuation = LockedValue(continuation)
  }

  func give(_ result: Result<Value, Fault>) {
    let waiting = continuation.withLock { continuation in
      defer { continuation = nil }
      return continuation
    }
    waiting?.resume(returning: result)
  }
}
