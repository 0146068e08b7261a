internal import Locking

/// Limits how many registrations are verified at once, since each costs as much as ten admissions. Others wait in
/// order of arrival; above `capacity` they are refused immediately.
///
/// A flood of attestations then cannot occupy every thread, nor every place in the store's queue.
public final class VerificationLimiter: Sendable {
  private struct State {
    var inside = 0
    var verifying = 0
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let width: Int
  private let capacity: Int
  private let state = LockedValue(State())

  /// - Parameters:
  ///   - width: The number of verifications that run at once, at least 1.
  ///   - capacity: The number of registrations in progress, including those that wait for the store.
  public init(width: Int, capacity: Int = 512) {
    self.width = max(1, width)
    self.capacity = capacity
  }

  /// The number of verifications that wait for their turn.
  var countOfWaiting: Int { state.withLock { $0.waiting.count } }

  /// Runs `body`, a complete registration, and returns its result.
  ///
  /// - Throws: `.tooManyRegistrations` before `body` starts if `capacity` registrations are in progress.
  func holding<Value>(_ body: () async throws(Denial) -> Value) async throws(Denial) -> Value {
    let isAdmitted = state.withLock { state in
      guard state.inside < capacity else { return false }
      state.inside += 1
      return true
    }
    guard isAdmitted else { throw .tooManyRegistrations }
    defer { state.withLock { $0.inside -= 1 } }
    return try await body()
  }

  /// Waits for a turn, runs `body`, a verification, and returns its result.
  func inTurn<Value, Failure: Error>(_ body: () throws(Failure) -> Value) async throws(Failure) -> Value {
    await begin()
    defer { end() }
    return try body()
  }

  /// Returns when it is the caller's turn. The caller must call `end` afterwards.
  func begin() async {
    await withCheckedContinuation { continuation in
      let isTurn = state.withLock { state in
        guard state.verifying < width else {
          state.waiting.append(continuation)
          return false
        }
        state.verifying += 1
        return true
      }
      if isTurn { continuation.resume() }
    }
  }

  /// Hands the turn to the next waiting caller, or frees it.
  func end() {
    let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
      guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
      state.verifying -= 1
      return nil
    }
    next?.resume()
  }
}
