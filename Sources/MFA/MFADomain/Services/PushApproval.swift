internal import ByteCoding
public import Foundation

/// The second factor by another device of the user.
public struct PushApproval: Sendable {
  let context: DomainContext
  let sessions: Sessions

  public init(_ context: DomainContext) {
    self.context = context
    sessions = Sessions(context)
  }

  /// Asks the user's other devices to approve the caller's sign-in. A session that is full already asks as well: the
  /// approval is then a fresh proof. One that must set a second factor up cannot go round that by asking.
  public func start(by caller: Caller) async throws -> PushChallenge {
    let now = context.clock.now()
    let (id, nonce) = (context.entropy.uuid(), context.entropy.bytes(32))
    let number = 10 + Int(context.entropy.number(below: 90))
    let push = try await context.store.write { records in
      let (session, user) = try records.session(of: caller, scope: .pending, at: now)
      guard session.scope != .setup else { throw MFARefusal.secondFactorRequired }
      let recent = try records.pushes(of: user.id, since: now.advanced(by: .seconds(-3600)))
      if let end = PushChallenge.pause(after: recent, at: now) {
        throw MFARefusal.rateLimited(retryAfter: end.since(now))
      }
      let push = PushChallenge(
        id: id, userID: user.id, sessionID: session.id, number: number, nonce: nonce,
        address: caller.identity.clientAddress, createdAt: now, expiresAt: now.advanced(by: PushChallenge.lifetime))
      try records.insert(push)
      try records.note(.pushStarted, by: caller, account: user.username.key, ["push=\(id)"], at: now)
      return push
    }
    context.hub.notify(for: push.userID)
    return push
  }

  /// Those that wait for the caller to answer.
  public func pending(for caller: Caller) async throws -> [PushChallenge] {
    guard let proof = caller.session else { throw MFARefusal.sessionRequired }
    let now = context.clock.now()
    return try await context.store.read { records in
      _ = try records.session(of: caller, at: now)
      return try records.pendingPushes(for: proof, at: now)
    }
  }

  /// Approves or denies by the key of the caller's own device. A number that is not the one shown denies.
  ///
  /// - Throws: `.authenticationFailed` for a wrong signature; `.notFound` for a push that is not another device's of
  ///   the user, or does not wait any more.
  public func answer(
    _ id: UUID, approves: Bool, number: Int, _ signature: [UInt8], by caller: Caller
  ) async throws -> PushChallenge.State {
    let now = context.clock.now()
    let outcome = try await context.store.write {
      [policy = context.policy] records -> Result<(PushChallenge.State, UUID), MFARefusal> in
      let (session, user) = try records.session(of: caller, at: now)
      func refuse(_ reason: String, _ refusal: MFARefusal) throws -> Result<(PushChallenge.State, UUID), MFARefusal> {
        try records.note(
          .pushRefused, by: caller, account: user.username.key, ["push=\(id)", "reason=\(reason)"], at: now)
        return .failure(refusal)
      }
      guard var push = try records.push(id), push.userID == user.id else { return .failure(.notFound) }
      guard push.state == .pending else { return try refuse("answered", .notFound) }
      guard now < push.expiresAt else { return try refuse("expired", .notFound) }
      guard try records.isOfAnotherDevice(push, than: session) else { return try refuse("own_device", .notFound) }
      let device = try session.deviceID.flatMap { try records.device($0) }
      let signed = PushChallenge.signedBytes(
        id: id, userID: user.id, nonce: push.nonce, approves: approves, number: number)
      guard let device, device.removedAt == nil, let key = device.publicKey, key.verifies(signature, of: signed) else {
        return try refuse(SignInFault.signature.rawValue, .authenticationFailed(.signature))
      }
      push.state = approves && number == push.number ? .approved : .denied
      push.answeredAt = now
      try records.update(push)
      if push.state == .approved {
        let binding = try Self.complete(push.sessionID, in: records, at: now)
        try records.remember(push.address, of: user, binding, policy, at: now)
      }
      try records.note(
        push.state == .approved ? .pushApproved : .pushDenied, by: caller, account: user.username.key, ["push=\(id)"],
        at: now)
      return .success((push.state, user.id))
    }
    let (state, userID) = try outcome.get()
    context.hub.notify(for: userID)
    return state
  }

  /// Gives what the app instance of the session is bound to.
  private static func complete(_ id: UUID, in records: any Records, at now: Timestamp) throws -> Binding {
    guard var session = try records.session(id), session.isLive(at: now), session.scope != .setup else {
      throw MFARefusal.notFound
    }
    session.prove("mca", at: now)
    try records.update(session)
    return session.binding
  }

  /// What became of a push of the caller's own session; with its tokens once it is approved.
  public func outcome(
    of id: UUID, for caller: Caller
  ) async throws -> (state: PushChallenge.State, tokens: SessionTokens?) {
    let now = context.clock.now()
    let (push, session, user) = try await context.store.read { records in
      let (session, user) = try records.session(of: caller, scope: .pending, at: now)
      guard let push = try records.push(id), push.sessionID == session.id else { throw MFARefusal.notFound }
      guard push.state != .pending || now < push.expiresAt else { throw MFARefusal.codeExpired }
      return (push, session, user)
    }
    guard push.state == .approved else { return (push.state, nil) }
    return (.approved, try await sessions.tokens(for: session, of: user))
  }
}

extension PushRecords where Self: SessionRecords {
  /// Those that the session of `proof` may answer: of its user, and of another device than its own.
  func pendingPushes(for proof: SessionProof, at now: Timestamp) throws -> [PushChallenge] {
    guard let session = try session(proof.sessionID) else { return [] }
    return try pushes(of: proof.userID, since: now.advanced(by: PushChallenge.lifetime * -1)).filter {
      try $0.state == .pending && now < $0.expiresAt && isOfAnotherDevice($0, than: session)
    }
  }

  /// Whether who asked has neither the device nor the app instance of `session`: one key is one factor, however often
  /// it signs in, and an app instance can enrol any number of keys.
  func isOfAnotherDevice(_ push: PushChallenge, than session: LoginSession) throws -> Bool {
    guard let asking = try self.session(push.sessionID) else { return false }
    return asking.deviceID != session.deviceID && asking.binding != session.binding
  }
}
