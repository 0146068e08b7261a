internal import ByteCoding
internal import Foundation

/// Runs a call once per key, so that a client that got no answer can repeat a call without a second message.
///
/// Of concurrent calls with one key, at any backend on the database, one runs. A refused call leaves nothing behind: it
/// may be repeated under the same key. A call may run again in these cases:
/// - Its answer is older than `IdempotentCall.lifetime`, or `mostOfCaller` calls of the app instance came after it.
/// - Its process ended before it kept the answer, `IdempotentCall.longestRun` ago. Where the clock of the process ran
///   ahead of this one by more than that, the call runs again at once.
public struct Idempotency: Sendable {
  private let context: DomainContext
  private let mostOfCaller: Int

  /// - Parameter mostOfCaller: the number of calls that are kept for one app instance.
  public init(_ context: DomainContext, mostOfCaller: Int = IdempotentCall.mostOfCaller) {
    self.context = context
    self.mostOfCaller = mostOfCaller
  }

  /// The answer of a call.
  public struct Answer: Sendable {
    public let bytes: [UInt8]
    /// The reason why the answer was not kept; `nil` if it was. Then a repetition is refused until the claim expires.
    public let fault: (any Error)?
  }

  /// Runs `body`, or returns the answer of an earlier call of `caller` with this key, operation and input.
  ///
  /// - Parameter input: the request, in a form that is the same for each repetition.
  /// - Throws: the error of `body`; `IdempotencyRefusal`; `MFAStoreError`.
  public func run(
    _ operation: String, _ input: [UInt8], key: String, by caller: Caller, _ body: () async throws -> [UInt8]
  ) async throws -> Answer {
    let id = Hex.encode(context.vault.hash(caller.identity.subject, key, as: "idempotency key"))
    let user = caller.session?.userID.uuidString ?? ""
    let fingerprint = context.vault.hash(operation, user, Hex.encode(input), as: "idempotent call")
    let call = IdempotentCall(
      id: id, caller: caller.identity.subject, fingerprint: fingerprint, startedAt: context.clock.now(), answer: nil)
    if let earlier = try await claim(call) {
      return Answer(bytes: try answer(of: earlier, to: call), fault: nil)
    }
    let answer: [UInt8]
    do {
      answer = try await body()
    } catch {
      // A message is sent only by a call that succeeds.
      try? await context.store.write { try $0.remove(call) }
      throw error
    }
    do {
      try await keep(answer, of: call)
      return Answer(bytes: answer, fault: nil)
    } catch {
      // The call has succeeded all the same.
      return Answer(bytes: answer, fault: error)
    }
  }

  /// Keeps the answer for repetitions.
  private func keep(_ answer: [UInt8], of call: IdempotentCall) async throws {
    let sealed = try context.vault.seal(answer, for: Self.place(call.id))
    let kept = IdempotentCall(
      id: call.id, caller: call.caller, fingerprint: call.fingerprint, startedAt: call.startedAt, answer: sealed)
    try await context.store.write { try $0.update(kept) }
  }

  private static func place(_ id: String) -> String { "idempotency:" + id }

  /// Records `call` if it is the first one, and returns `nil`; otherwise the earlier call.
  private func claim(_ call: IdempotentCall) async throws -> IdempotentCall? {
    try await context.store.write { [mostOfCaller] records in
      if let earlier = try records.idempotentCall(call.id), !earlier.isOver(at: call.startedAt) { return earlier }
      try records.save(call)
      try records.removeIdempotentCalls(of: call.caller, exceptNewest: mostOfCaller)
      return nil
    }
  }

  private func answer(of earlier: IdempotentCall, to call: IdempotentCall) throws -> [UInt8] {
    guard constantTimeEqual(earlier.fingerprint, call.fingerprint) else { throw IdempotencyRefusal.keyReused }
    guard let answer = earlier.answer else { throw IdempotencyRefusal.inProgress }
    return try context.vault.open(answer, for: Self.place(call.id))
  }
}

extension IdempotentCall {
  /// Whether the key may be used again: the answer is too old, or the process that ran the call is gone.
  fileprivate func isOver(at now: Timestamp) -> Bool {
    let age = now.since(startedAt)
    // A call of a clock that was set back since would refuse its key until then.
    guard answer != nil else { return age > Self.longestRun || age < Self.longestRun * -1 }
    return age > Self.lifetime
  }
}
