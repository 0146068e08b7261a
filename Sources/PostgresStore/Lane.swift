internal import AttestGate
internal import Locking

/// One connection with a thread of its own, and the calls that wait for it.
///
/// Calls that arrive while others are under way wait and go together: under load many share a round trip and a commit,
/// without load nobody waits. While the database cannot be had, calls are refused at once, and the thread tries to
/// connect again and again.
final class Lane<Input: Sendable, Answer: Sendable>: Sendable {
  /// Answers each of the inputs, in their order. A thrown error answers all of them.
  typealias Work = @Sendable (Connection, [Input]) throws(StoreError) -> [Result<Answer, StoreError>]

  private struct Waiting: Sendable {
    let input: Input
    let continuation: CheckedContinuation<Result<Answer, StoreError>, Never>
  }

  private let name: String
  private let dialer: Dialer
  private let health: StoreHealthRecord
  private let mostAtOnce: Int
  private let work: Work
  private let queue: CallQueue<Waiting>
  private let isStarted = Guarded(false)
  /// Why there is no connection; `nil` before the first attempt, too.
  private let outage = Guarded<StoreError?>(nil)

  /// - Parameter name: the part of the store whose health the lane tells.
  init(_ name: String, dialer: Dialer, health: StoreHealthRecord, mostAtOnce: Int, work: @escaping Work) {
    self.name = name
    self.dialer = dialer
    self.health = health
    self.mostAtOnce = mostAtOnce
    self.work = work
    queue = CallQueue(bound: dialer.limits.mostWaiting)
  }

  var countOfWaiting: Int { queue.countOfWaiting }

  /// Hands `input` to the lane's thread and waits for the answer.
  func run(_ input: Input) async throws(StoreError) -> Answer {
    let result = await withCheckedContinuation { continuation in
      let waiting = Waiting(input: input, continuation: continuation)
      if let refusal = enqueue(waiting) { continuation.resume(returning: .failure(refusal)) }
    }
    return try result.get()
  }

  private func enqueue(_ waiting: Waiting) -> StoreError? {
    if let outage = outage.withLock({ $0 }) { return outage }
    guard start() else { return .unreachable(reason: "no thread for the connection") }
    return switch queue.offer(waiting) {
    case .taken: nil
    case .full: .overloaded
    case .closed: .closed
    }
  }

  private func start() -> Bool {
    isStarted.withLock { isStarted in
      if !isStarted { isStarted = Worker.start { self.serve() } }
      return isStarted
    }
  }

  /// Finishes what waits, and ends the thread.
  func close() {
    queue.close()
    outage.withLock { $0 = .closed }
  }

  // MARK: On the thread

  private func serve() {
    var connection: Connection?
    var backoff = Backoff()
    var random = SystemRandomNumberGenerator()
    var nextAttempt: ContinuousClock.Instant?
    while true {
      var batch: [Waiting] = []
      switch queue.take(atMost: mostAtOnce, until: nextAttempt) {
      case .closed: return
      case .none: break
      case .some(let waiting): batch = waiting
      }
      if connection?.isUsable() != true {
        do throws(StoreError) {
          connection = try dialer.open()
          note(nil)
          backoff.reset()
          nextAttempt = nil
        } catch {
          connection = nil
          note(error)
          refuse(batch, error)
          nextAttempt = .now + backoff.next(using: &random)
        }
      }
      guard let usable = connection, !batch.isEmpty else { continue }
      if let fault = perform(batch, on: usable), fault.endsConnection { connection = nil }
    }
  }

  private func perform(_ batch: [Waiting], on connection: Connection) -> StoreError? {
    do throws(StoreError) {
      let answers = try work(connection, batch.map(\.input))
      for (index, waiting) in batch.enumerated() {
        waiting.continuation.resume(
          returning: answers.indices.contains(index) ? answers[index] : .failure(.failed(reason: "no answer")))
      }
      let fault = answers.lazy.compactMap(\.fault).first
      health.note(fault, of: name)
      return fault
    } catch {
      health.note(error, of: name)
      refuse(batch, error)
      return error
    }
  }

  private func refuse(_ batch: [Waiting], _ error: StoreError) {
    for waiting in batch { waiting.continuation.resume(returning: .failure(error)) }
  }

  private func note(_ error: StoreError?) {
    health.note(error, of: name)
    outage.withLock { outage in
      if outage != .closed { outage = error }
    }
  }
}

extension Result where Failure == StoreError {
  fileprivate var fault: StoreError? {
    if case .failure(let error) = self { error } else { nil }
  }
}

extension StoreError {
  /// Whether a new connection may help.
  fileprivate var endsConnection: Bool {
    switch self {
    case .unreachable, .readOnly, .inDoubt, .failed, .corrupt, .closed: true
    case .full, .locked, .overloaded: false
    }
  }
}
