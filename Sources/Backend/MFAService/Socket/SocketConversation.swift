internal import ByteCoding
internal import Foundation
internal import Locking
internal import MFADomain
internal import MFAWire

/// The protocol of one socket, without the socket itself: requests in, answers and notices out.
final class SocketConversation: Sendable {
  private struct State {
    var session: SessionProof?
    var toldUpTo: Int64?
    var toldPushes: Set<UUID> = []
    /// The number of times that a session was attached.
    var attachments = 0
    var inFlight = 0
    var tokens: Double
    var countedAt: Timestamp
  }

  private let caller: Caller
  private let live: LiveService
  private let limits: SocketLimits
  private let clock: WallClock
  private let state: LockedValue<State>
  private let send: @Sendable ([UInt8]) throws -> Void
  private let sessionDidChange: @Sendable (SessionProof) -> Void

  /// Creates the conversation.
  ///
  /// - Parameters:
  ///   - send: queues one text message without waiting for the client.
  ///   - sessionDidChange: called after a session was attached, so that the socket subscribes to its notices.
  init(
    caller: Caller, live: LiveService, limits: SocketLimits, send: @escaping @Sendable ([UInt8]) throws -> Void,
    sessionDidChange: @escaping @Sendable (SessionProof) -> Void
  ) {
    self.caller = caller
    self.live = live
    self.limits = limits
    clock = live.current.context.clock
    self.send = send
    self.sessionDidChange = sessionDidChange
    state = LockedValue(State(session: caller.session, tokens: limits.messages.size, countedAt: clock.now()))
  }

  var session: SessionProof? { state.withLock { $0.session } }

  /// Counts a message of any kind and returns whether it exceeds the rate limit.
  func isTooFast() -> Bool {
    let now = clock.now()
    return state.withLock { state in
      let passed = max(0, now.since(state.countedAt) / .seconds(1))
      state.tokens = min(limits.messages.size, state.tokens + passed * limits.messages.perSecond)
      state.countedAt = now
      guard state.tokens >= 1 else { return true }
      state.tokens -= 1
      return false
    }
  }

  /// Reserves a place for a request. Returns `false` if too many requests are in progress; otherwise `end` releases
  /// the place.
  func begin() -> Bool {
    state.withLock { state in
      guard state.inFlight < limits.mostInFlight else { return false }
      state.inFlight += 1
      return true
    }
  }

  func end() { state.withLock { $0.inFlight -= 1 } }

  /// Waits until no request is in progress, at most for `limit`. Requests that begin meanwhile prolong the wait, so a
  /// client can use up the limit.
  func finishAnswers(within limit: Duration) async {
    let end = ContinuousClock.now + limit
    while state.withLock({ $0.inFlight > 0 }), ContinuousClock.now < end {
      guard (try? await Task.sleep(for: .milliseconds(5))) != nil else { return }
    }
  }

  /// Refuses a request that arrived while too many requests were in progress.
  func refuseAsBusy(_ text: [UInt8]) throws {
    let fault = OperationInputError.tooFast(retryAfter: .seconds(1))
    live.current.registry.logUnserved(fault, requestID: caller.requestID, by: caller.identity)
    let named: RPCID?
    do throws(RPCError) {
      named = try RPCRequest(text).id
    } catch {
      let readable = RPCID(ofRefused: text, for: error)
      named = readable == .null ? nil : readable
    }
    guard let id = named else { return }
    let error = RPCError.refused(PublicRefusal(fault))
    try send(RPCAnswer.failure(error, id: id, requestID: caller.requestID))
  }

  /// Runs one request in the session that was attached when it arrived, and answers it.
  func answer(_ text: [UInt8], in session: SessionProof?) async throws {
    let request: RPCRequest
    do throws(RPCError) {
      request = try RPCRequest(text)
    } catch {
      live.current.registry.logUnserved(error, requestID: caller.requestID, by: caller.identity)
      let id = RPCID(ofRefused: text, for: error)
      return try send(RPCAnswer.failure(error, id: id, requestID: caller.requestID))
    }
    let outcome: Result<[UInt8], RPCError>
    do throws(RPCError) {
      outcome = .success(try await perform(request, text, in: session))
    } catch {
      outcome = .failure(error)
    }
    guard let id = request.id else { return }
    switch outcome {
    case .success(let result): try send(RPCAnswer.success(result, id: id))
    case .failure(let error): try send(RPCAnswer.failure(error, id: id, requestID: caller.requestID))
    }
  }

  private func perform(
    _ request: RPCRequest, _ text: [UInt8], in session: SessionProof?
  ) async throws(RPCError) -> [UInt8] {
    let input: OperationInput = request.hasParameters ? .parameters(of: text) : .document(Array("{}".utf8))
    let service = live.current
    if let operation = service.registry.operation(named: request.method) {
      let key = try key(of: request, for: operation, service)
      do throws(PublicRefusal) {
        return try await service.registry.run(operation, input, for: caller.with(session), key: key)
      } catch {
        throw RPCError(error)
      }
    }
    guard request.method == AttachRequest.method else {
      service.registry.logUnserved(RPCError.unknownMethod, requestID: caller.requestID, by: caller.identity)
      throw RPCError.unknownMethod
    }
    do {
      return try await attach(input, service)
    } catch {
      service.registry.logUnserved(error, of: request.method, requestID: caller.requestID, by: caller.identity)
      throw RPCError(PublicRefusal(error))
    }
  }

  /// Reads the idempotency key of a request; `nil` if it has none or sends no message.
  private func key(
    of request: RPCRequest, for operation: Operation, _ service: ServiceGeneration
  ) throws(RPCError) -> IdempotencyKey? {
    guard operation.sendsMessages, let text = request.idempotencyKey else { return nil }
    do throws(OperationInputError) {
      return try IdempotencyKey(text)
    } catch {
      service.registry.logUnserved(error, of: operation.name, requestID: caller.requestID, by: caller.identity)
      throw RPCError(PublicRefusal(error))
    }
  }

  /// Attaches the session of an access token, for later requests and for notices.
  private func attach(_ input: OperationInput, _ service: ServiceGeneration) async throws -> [UInt8] {
    let request = try input.decode(as: AttachRequest.self)
    guard let proof = await service.tokens.proof(in: request.token, at: clock.now()) else {
      throw MFARefusal.sessionRequired
    }
    do {
      try await Notices(service.context).admit(caller.with(proof))
    } catch {
      throw await service.registry.kept(error, of: AttachRequest.method, by: caller.with(proof))
    }
    state.withLock { state in
      if state.session?.userID != proof.userID { state.toldUpTo = nil }
      state.session = proof
      state.attachments += 1
      if let after = request.after { state.toldUpTo = after }
    }
    sessionDidChange(proof)
    return Array("{\"success\":true}".utf8)
  }

  /// Sends new notices and push challenges of the attached session. Returns `false` if the session has ended or its
  /// token has expired.
  func tellNotices() async throws -> Bool {
    let (attached, toldUpTo, attachments) = state.withLock { ($0.session, $0.toldUpTo, $0.attachments) }
    guard let proof = attached else { return true }
    guard !proof.isExpired(at: clock.now()) else { return false }
    let news = try await Notices(live.current.context).news(
      for: proof, boundTo: caller.identity.binding, after: toldUpTo)
    // Another session was attached in the meantime. It gets its own notices by its own call.
    guard state.withLock({ $0.attachments }) == attachments else { return true }
    for notice in news.notices {
      try send(try RPCAnswer.notification("notice", NoticeEntry(notice)))
    }
    let told = state.withLock { $0.toldPushes }
    for push in news.pushes where !told.contains(push.id) {
      try send(try RPCAnswer.notification("push.challenge", PushEntry(push)))
    }
    state.withLock { state in
      guard state.attachments == attachments else { return }
      // Also if it is smaller: after a restore, a client may name a number that the store does not have. It got all
      // notices then, and would get them again at each look.
      state.toldUpTo = news.upTo
      state.toldPushes = Set(news.pushes.map(\.id))
    }
    return news.isSessionLive
  }
}
