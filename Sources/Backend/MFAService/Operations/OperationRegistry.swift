internal import ByteCoding
public import Logging
public import MFADomain
internal import MFAWire
internal import Metrics

/// All operations, and the common code that runs them.
public struct OperationRegistry: Sendable {
  /// All operations.
  public let operations: [Operation]
  private let byName: [String: Operation]
  /// The metrics of each operation that was not refused, by its name: finding them again costs more than counting.
  private let metrics: [String: (done: Counter, duration: Metrics.Timer)]
  private let rateLimiter: RateLimiter
  private let clock: WallClock
  private let refusals: RefusedAccess
  private let idempotency: Idempotency
  private let notices: Notices
  private let store: any Store
  private let patience: Duration
  private let logger: Logger

  /// The time limit for the store in requests without effects. After it, the request is answered with 503: a database
  /// that does not answer would keep each of them for seconds.
  public static let patience = Duration.milliseconds(500)

  /// Creates the registry.
  ///
  /// - Parameter patience: the time limit for the store in requests without effects.
  public init(
    _ operations: [Operation], context: DomainContext, logger: Logger, rateLimiter: RateLimiter,
    patience: Duration = Self.patience
  ) {
    self.operations = operations
    byName = Dictionary(operations.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    metrics = byName.mapValues { operation in
      (
        Self.counter(operation.name, Self.done),
        Metrics.Timer(label: "mfa_operation_duration_seconds", dimensions: [("operation", operation.name)])
      )
    }
    clock = context.clock
    store = context.store
    self.rateLimiter = rateLimiter
    refusals = RefusedAccess(context)
    idempotency = Idempotency(context)
    notices = Notices(context)
    self.patience = patience
    self.logger = logger
    createCounters()
  }

  /// The operation with the given name; `nil` if there is none.
  public func operation(named name: String) -> Operation? {
    // A client chooses the name of a socket's message.
    guard name.utf8.count <= Self.longestName else { return nil }
    return byName[name]
  }

  /// Longer than any name of an operation, in bytes.
  private static let longestName = 64

  /// Runs `operation` and returns its response as JSON: see `outcome(of:_:for:key:)`.
  func run(
    _ operation: Operation, _ input: OperationInput, for caller: Caller, key: IdempotencyKey? = nil
  ) async throws(PublicRefusal) -> [UInt8] {
    try await outcome(of: operation, input, for: caller, key: key).get()
  }

  /// Runs `operation` and returns its response as JSON, or its refusal. Responses of operations without a session are
  /// delayed by `ResponseTimeQuantizer`.
  ///
  /// An expired token counts as absent: the token of a socket may have expired after it was attached.
  ///
  /// - Parameter key: names the call for repetitions. It has an effect only on operations that send messages.
  func outcome(
    of operation: Operation, _ input: OperationInput, for caller: Caller, key: IdempotencyKey? = nil
  ) async -> Result<[UInt8], PublicRefusal> {
    let start = ContinuousClock.now
    let isExpired = caller.session?.isExpired(at: clock.now()) ?? false
    let outcome = await settled(
      await performed(operation, input, for: isExpired ? caller.with(nil) : caller, key: key, since: start),
      for: caller)
    if operation.access == .attested { await ResponseTimeQuantizer.wait(since: start) }
    return outcome
  }

  /// Records the identity of the request unless its operation has, and returns `outcome`; or the refusal of an identity
  /// that was used before, whatever the outcome was.
  func settled(
    _ outcome: Result<[UInt8], PublicRefusal>, for caller: Caller
  ) async -> Result<[UInt8], PublicRefusal> {
    guard let identity = UnspentIdentity.current else { return outcome }
    do {
      try await identity.settle(in: store)
      return outcome
    } catch {
      if error is IdentityUsedBefore {
        logger.notice(
          "identity refused",
          metadata: ["request_id": "\(caller.requestID)", "reason": "jti was used before, at another backend"])
      }
      return .failure(PublicRefusal(error))
    }
  }

  private func performed(
    _ operation: Operation, _ input: OperationInput, for caller: Caller, key: IdempotencyKey?,
    since start: ContinuousClock.Instant
  ) async -> Result<[UInt8], PublicRefusal> {
    do {
      try admit(caller, to: operation)
      let answer: [UInt8]
      if let key, operation.sendsMessages {
        answer = try await performOnce(operation, input, for: caller, key)
      } else {
        answer = try await perform(operation, input, for: caller)
      }
      log(.info, "operation completed", operation.name, caller.requestID, caller.identity, code: nil)
      count(operation, nil, since: start)
      return .success(answer)
    } catch {
      let refusal = PublicRefusal(error)
      logRefusal(error, "operation refused", of: operation.name, requestID: caller.requestID, caller.identity)
      count(operation, refusal.code, since: start)
      return .failure(refusal)
    }
  }

  /// Runs `operation` unless `key` names an earlier call. A repetition gets its answer only while its session is live:
  /// the operation, which checks the session, does not run again.
  private func performOnce(
    _ operation: Operation, _ input: OperationInput, for caller: Caller, _ key: IdempotencyKey
  ) async throws -> [UInt8] {
    let request = try operation.canonicalRequest(input)
    if caller.session != nil {
      do {
        try await notices.admit(caller)
      } catch {
        throw await kept(error, of: operation.name, by: caller)
      }
    }
    let answer = try await idempotency.run(operation.name, request, key: key.text, by: caller) {
      try await perform(operation, input, for: caller)
    }
    if let fault = answer.fault {
      log(
        .warning, "answer not kept for repetitions", operation.name, caller.requestID, caller.identity, code: nil,
        reason: "\(fault)")
    }
    return answer.bytes
  }

  /// Runs `operation`. Before it throws a refusal, it records the refusal in the history if necessary.
  private func perform(
    _ operation: Operation, _ input: OperationInput, for caller: Caller
  ) async throws -> [UInt8] {
    let body = { @Sendable in
      do {
        return try await operation.perform(input, caller)
      } catch {
        throw await kept(error, of: operation.name, by: caller)
      }
    }
    return operation.method == .get ? try await StoreDeadline.within(patience, body) : try await body()
  }

  /// Records a refusal in the history if necessary, and returns it. Returns the error of the store if recording
  /// fails.
  func kept(_ error: any Error, of operation: String, by caller: Caller) async -> any Error {
    guard let refusal = error as? MFARefusal else { return error }
    do {
      try await refusals.note(refusal, of: operation, by: caller)
      return refusal
    } catch {
      return error
    }
  }

  /// The name in metrics of requests that reached no operation. Names that clients choose are no labels.
  private static let unserved = "unserved"
  /// The outcome in metrics of an operation that was not refused.
  private static let done = "done"

  /// Successes and faults exist with 0 from the start: without that, Prometheus does not see the first event.
  private func createCounters() {
    for operation in operations.map(\.name) + [Self.unserved] {
      for outcome in [Self.done, RefusalCode.unavailable.rawValue, RefusalCode.internalError.rawValue] {
        Self.counter(operation, outcome).increment(by: 0)
      }
    }
  }

  private static func counter(_ operation: String, _ outcome: String) -> Counter {
    Counter(label: "mfa_operations_total", dimensions: [("operation", operation), ("outcome", outcome)])
  }

  /// - Parameter code: the code of a refusal; `nil` for none.
  private func count(_ operation: Operation, _ code: RefusalCode?, since start: ContinuousClock.Instant) {
    let metrics = metrics[operation.name]
    if let code { Self.counter(operation.name, code.rawValue).increment() } else { metrics?.done.increment() }
    metrics?.duration.record(duration: ContinuousClock.now - start)
  }

  private func admit(_ caller: Caller, to operation: Operation) throws {
    switch operation.access {
    case .attested: break
    case .pendingSession, .session, .admin: if caller.session == nil { throw MFARefusal.sessionRequired }
    }
    if let wait = rateLimiter.take(operation.rateClass, for: caller.identity) {
      throw OperationInputError.tooFast(retryAfter: wait)
    }
  }

  /// Logs and counts a request that reached no operation.
  ///
  /// - Parameters:
  ///   - name: the requested operation, if it is a known name.
  ///   - identity: the caller, if known.
  func logUnserved(
    _ error: any Error, of name: String? = nil, requestID: String, by identity: GateIdentity? = nil
  ) {
    logRefusal(error, "request refused", of: name, requestID: requestID, identity)
    Self.counter(Self.unserved, Self.code(of: error).rawValue).increment()
  }

  private static func code(of error: any Error) -> RefusalCode {
    (error as? RPCError)?.refusal.code ?? PublicRefusal(error).code
  }

  private func logRefusal(
    _ error: any Error, _ message: Logger.Message, of name: String?, requestID: String, _ identity: GateIdentity?
  ) {
    let code = Self.code(of: error)
    // A feature that the operator turned off is not a fault of the server.
    let isOff = [.securityKeysOff, .federationOff].contains(error as? MFARefusal)
    let isFault = (code == .internalError || code == .unavailable) && !isOff
    let reason: String? =
      switch error {
      case let refusal as MFARefusal: refusal.cause
      case let value as InvalidValue: MFARefusal.invalid(value).cause
      case let fault as OperationInputError: fault.cause
      case is IdentityUsedBefore: "identity_used_before"
      case IdempotencyRefusal.keyReused: "idempotency_key_reused"
      case IdempotencyRefusal.inProgress: "request_in_progress"
      case let error as RPCError: error.cause
      default: isFault ? "\(error)" : nil
      }
    log(isFault ? .error : .info, message, name, requestID, identity, code: code, reason: reason)
  }

  private func log(
    _ level: Logger.Level, _ message: Logger.Message, _ operation: String?, _ requestID: String,
    _ identity: GateIdentity?, code: RefusalCode?, reason: String? = nil
  ) {
    guard logger.logLevel <= level else { return }
    var metadata: Logger.Metadata = ["request_id": "\(requestID)"]
    if let operation { metadata["operation"] = "\(operation)" }
    if let identity { metadata["key"] = "\(identity.subject)" }
    if let code { metadata["code"] = "\(code.rawValue)" }
    if let reason { metadata["reason"] = "\(reason)" }
    logger.log(level: level, message, metadata: metadata)
  }
}
