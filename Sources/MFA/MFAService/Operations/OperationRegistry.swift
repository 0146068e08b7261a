internal import ByteCoding
public import Logging
public import MFADomain
internal import MFAWire
internal import Metrics

/// All operations, and the one way to run them.
public struct OperationRegistry: Sendable {
  public let operations: [Operation]
  private let byName: [String: Operation]
  private let paces: RateLimiter
  private let clock: WallClock
  private let refusals: RefusedAccess
  private let patience: Duration
  private let logger: Logger

  /// How long a request without effects waits for the store before it is answered 503. Writes of all backends take
  /// turns: one that stops in the middle of its own holds the others up for seconds.
  public static let patience = Duration.milliseconds(500)

  public init(
    _ operations: [Operation], context: DomainContext, logger: Logger, paces: RateLimits = RateLimits(),
    patience: Duration = Self.patience
  ) {
    self.operations = operations
    byName = Dictionary(operations.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    clock = context.clock
    self.paces = RateLimiter(limits: paces, clock: context.clock)
    refusals = RefusedAccess(context)
    self.patience = patience
    self.logger = logger
  }

  public func operation(named name: String) -> Operation? { byName[name] }

  /// Runs `operation` and gives its answer as JSON. Before a session, answers come when `ResponseTimeQuantizer` says.
  ///
  /// A token that has expired is as none, however it came: one that a socket carries may have been good when it was
  /// attached.
  func run(_ operation: Operation, _ input: OperationInput, for caller: Caller) async throws(PublicRefusal) -> [UInt8] {
    let start = ContinuousClock.now
    let isExpired = caller.session?.isExpired(at: clock.now()) ?? false
    let outcome = await outcome(of: operation, input, for: isExpired ? caller.with(nil) : caller, since: start)
    if operation.access == .attested { await ResponseTimeQuantizer.wait(since: start) }
    return try outcome.get()
  }

  private func outcome(
    of operation: Operation, _ input: OperationInput, for caller: Caller, since start: ContinuousClock.Instant
  ) async -> Result<[UInt8], PublicRefusal> {
    do {
      try admit(caller, to: operation)
      let answer = try await perform(operation, input, for: caller)
      log(.info, "operation done", operation.name, caller.requestID, caller.identity, code: nil)
      Self.count(operation, "done", since: start)
      return .success(answer)
    } catch {
      let refusal = PublicRefusal(error)
      logRefusal(error, "operation refused", of: operation.name, requestID: caller.requestID, caller.identity)
      Self.count(operation, refusal.code.rawValue, since: start)
      return .failure(refusal)
    }
  }

  /// What `operation` answers. What it throws is in the history by then, as far as it belongs there.
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

  /// `error`, once the history has what it is to have of it; else why it has not.
  func kept(_ error: any Error, of operation: String, by caller: Caller) async -> any Error {
    guard let refusal = error as? MFARefusal else { return error }
    do {
      try await refusals.note(refusal, of: operation, by: caller)
      return refusal
    } catch {
      return error
    }
  }

  private static func count(_ operation: Operation, _ outcome: String, since start: ContinuousClock.Instant) {
    Counter(label: "mfa_operations_total", dimensions: [("operation", operation.name), ("outcome", outcome)])
      .increment()
    Metrics.Timer(label: "mfa_operation_seconds", dimensions: [("operation", operation.name)])
      .record(duration: ContinuousClock.now - start)
  }

  private func admit(_ caller: Caller, to operation: Operation) throws {
    switch operation.access {
    case .attested: break
    case .pendingSession, .session, .admin: if caller.session == nil { throw MFARefusal.sessionRequired }
    }
    if let wait = paces.take(operation.rateClass, for: caller.identity) { throw RequestFault.tooFast(retryAfter: wait) }
  }

  /// Tells the log of a request that came to no operation.
  ///
  /// - Parameters:
  ///   - name: what it asked for, where that is known to be one of our names.
  ///   - identity: who asked, where that is known.
  func logUnserved(
    _ error: any Error, of name: String? = nil, requestID: String, by identity: GateIdentity? = nil
  ) {
    logRefusal(error, "request refused", of: name, requestID: requestID, identity)
  }

  private func logRefusal(
    _ error: any Error, _ message: Logger.Message, of name: String?, requestID: String, _ identity: GateIdentity?
  ) {
    let code = (error as? RPCError)?.refusal.code ?? PublicRefusal(error).code
    // That an operator has turned something off is no fault.
    let isFault = (code == .internalError || code == .unavailable) && error as? MFARefusal != .securityKeysOff
    let reason: String? =
      switch error {
      case let refusal as MFARefusal: refusal.cause
      case let value as InvalidValue: MFARefusal.invalid(value).cause
      case let fault as RequestFault: fault.cause
      case let error as RPCError: error.cause
      default: isFault ? "\(error)" : nil
      }
    log(isFault ? .error : .info, message, name, requestID, identity, code: code, reason: reason)
  }

  private func log(
    _ level: Logger.Level, _ message: Logger.Message, _ operation: String?, _ requestID: String,
    _ identity: GateIdentity?, code: RefusalCode?, reason: String? = nil
  ) {
    var metadata: Logger.Metadata = ["request_id": "\(requestID)"]
    if let operation { metadata["operation"] = "\(operation)" }
    if let identity { metadata["key"] = "\(identity.subject)" }
    if let code { metadata["code"] = "\(code.rawValue)" }
    if let reason { metadata["reason"] = "\(reason)" }
    logger.log(level: level, message, metadata: metadata)
  }
}
