internal import AttestGate
internal import Databases
internal import Locking

/// A connection with its own thread, and the calls that wait for it.
///
/// Calls that arrive while others are in progress wait and are sent together. Under load, many calls share a round
/// trip and a commit; without load, no call waits. While the database is unavailable, calls are refused immediately
/// and the thread keeps reconnecting. After a fault the thread probes the store by itself, so the reported health
/// recovers without waiting for the next call.
final class ConnectionWorker<Input: Sendable, Answer: Sendable>: Sendable {
  /// Returns one result per input, in order. A thrown error is the result of all inputs.
  typealias Work = @Sendable (PostgresConnection, [Input]) throws(StoreError) -> [Result<Answer, StoreError>]

  /// Checks that the store accepts calls of this kind when no call is waiting.
  typealias Probe = @Sendable (PostgresConnection) throws(StoreError) -> Void

  /// The time between two probes.
  private static var rest: Duration { .seconds(2) }

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
  private let probe: Probe
  private let isStarted = LockedValue(false)
  /// The reason why there is no connection; `nil` before the first attempt too.
  private let outage = LockedValue<StoreError?>(nil)

  /// - Parameters:
  ///   - name: The part of the store whose health this worker reports.
  ///   - probe: Runs every two seconds while the most recent call failed.
  init(
    _ name: String, dialer: Dialer, health: StoreHealthRecord, mostAtOnce: Int, probe: @escaping Probe,
    work: @escaping Work
  ) {
    self.name = name
    self.dialer = dialer
    self.health = health
    self.mostAtOnce = mostAtOnce
    self.probe = probe
    self.work = work
    queue = CallQueue(bound: dialer.limits.mostWaiting)
  }

  var countOfWaiting: Int { queue.countOfWaiting }
  /// Whether there was a call: without one, the worker has no thread and no connection.
  var hasStarted: Bool { isStarted.withLock(\.self) }

  /// Passes `input` to the worker's thread and waits for the result.
  func run(_ input: Input) async throws(StoreError) -> Answer {
    let result = await withCheckedContinuation { continuation in
      let waiting = Waiting(input: input, continuation: continuation)
      if let refusal = enqueue(waiting) { continuation.resume(returning: .failure(refusal)) }
    }
    return try result.get()
  }

  private func enqueue(_ waiting: Waiting) -> StoreError? {
    if let outage = outage.withLock({ $0 }) { return outage }
    guard start() else { return .unreachable(reason: "cannot start a thread for the connection") }
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

  /// Completes the waiting calls and stops the thread.
  func close() {
    queue.close()
    outage.withLock { $0 = .closed }
  }

  // MARK: On the thread

  private func serve() {
    var connection: PostgresConnection?
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
          setOutage(nil)
          backoff.reset()
        } catch {
          connection = nil
          health.note(error, of: name)
          setOutage(error)
          refuse(batch, error)
          nextAttempt = .now + backoff.next(using: &random)
        }
      }
      guard let usable = connection else { continue }
      let fault = batch.isEmpty ? ask(usable) : perform(batch, on: usable)
      if fault?.endsConnection == true { connection = nil }
      // A connection that broke during a call is reopened immediately; after a failed probe the worker pauses.
      nextAttempt = fault.map { $0.endsConnection && !batch.isEmpty ? .now : .now + Self.rest }
    }
  }

  private func ask(_ connection: PostgresConnection) -> StoreError? {
    do throws(StoreError) {
      try probe(connection)
      health.note(nil, of: name)
      return nil
    } catch {
      health.note(error, of: name)
      return error
    }
  }

  private func perform(_ batch: [Waiting], on connection: PostgresConnection) -> StoreError? {
    do throws(StoreError) {
      let answers = try work(connection, batch.map(\.input))
      let fault = answers.lazy.compactMap(\.fault).first { !$0.isOfOneAnswer }
      // Before the callers resume, so that they see the health that matches their result.
      health.note(fault, of: name)
      for (index, waiting) in batch.enumerated() {
        waiting.continuation.resume(
          returning: answers.indices.contains(index) ? answers[index] : .failure(.failed(reason: "no answer")))
      }
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

  private func setOutage(_ error: StoreError?) {
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
  /// Whether the error may concern only the data of one call, such as a damaged row, and not the other calls.
  fileprivate var isOfOneAnswer: Bool {
    if case .corrupt = self { true } else { false }
  }

  /// Whether a new connection may help.
  fileprivate var endsConnection: Bool {
    switch self {
    case .unreachable, .readOnly, .inDoubt, .failed, .corrupt, .closed: true
    case .full, .locked, .overloaded: false
    }
  }
}
