internal import Locking

/// Room for registrations, each of which costs as much as ten admissions: so many are verified at once, others wait
/// for their turn, and beyond a bound they are refused at once.
///
/// A flood of attestations thereby takes neither all the threads that admissions need, nor all the places in the
/// store's queue. Turns are given in the order of arrival.
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
  ///   - width: how many are verified at once; one always is.
  ///   - capacity: how many are on their way at once, those that wait for the store included.
  public init(width: Int, capacity: Int = 512) {
    self.width = max(1, width)
    self.capacity = capacity
  }

  /// How many wait for their turn.
  var countOfWaiting: Int { state.withLock { $0.waiting.count } }

  /// What `body`, a whole registration, comes to.
  ///
  /// - Throws: `.tooManyRegistrations`, before `body` begins, if as many are on their way as may be.
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

  /// What `body`, a verification, comes to when it is its turn.
  func inTurn<Value, Failure: Error>(_ body: () throws(Failure) -> Value) async throws(Failure) -> Value {
    await begin()
    defer { end() }
    return try body()
  }

  /// Returns when it is the caller's turn; `end` has to follow.
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

  /// The next one's turn is this one's, handed on.
  func end() {
    let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
      guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
      state.verifying -= 1
      return nil
    }
    next?.resume()
  }
}
