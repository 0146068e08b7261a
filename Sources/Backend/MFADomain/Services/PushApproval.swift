internal import ByteCoding
public import Foundation

/// Giving the second factor by another device of the user.
public struct PushApproval: Sendable {
  let context: DomainContext
  let sessions: Sessions

  public init(_ context: DomainContext) {
    self.context = context
    sessions = Sessions(context)
  }

  /// Asks the user's other devices to approve the caller's sign-in.
  ///
  /// A session that is full already may ask as well: the approval is a fresh proof then. A session that must set a
  /// second factor up may not.
  ///
  /// - Throws: `.secondFactorRequired` for a session that must set a second factor up; `.rateLimited`.
  public func start(by caller: Caller) async throws -> PushChallenge {
    let (id, nonce) = (context.entropy.uuid(), context.entropy.bytes(32))
    let number = 10 + Int(context.entropy.number(below: 90))
    return try await context.write(by: caller) { work in
      let now = work.now
      let (session, user) = try work.session(scope: .pending)
      guard session.scope != .setup else { throw MFARefusal.secondFactorRequired }
      let recent = try work.records.pushes(of: user.id, since: now.advanced(by: .seconds(-3600)))
      if let end = PushChallenge.pause(after: recent, at: now) {
        throw MFARefusal.rateLimited(retryAfter: end.since(now))
      }
      let push = PushChallenge(
        id: id, userID: user.id, sessionID: session.id, number: number, nonce: nonce,
        address: caller.identity.clientAddress, createdAt: now, expiresAt: now.advanced(by: PushChallenge.lifetime))
      try work.records.insert(push)
      try work.note(.pushStarted, of: user, ["push=\(id.text)"])
      work.wakeSockets(of: user.id)
      try work.pushSignIn(push, of: session)
      return push
    }
  }

  /// The pushes that the caller may answer; none until its session has given the second factor itself.
  public func pending(for caller: Caller) async throws -> [PushChallenge] {
    guard let proof = caller.session else { throw MFARefusal.sessionRequired }
    return try await context.read(by: caller) { work in
      _ = try work.session()
      return try work.pendingPushes(for: proof)
    }
  }

  /// The answer of a device to a push.
  public struct Answer: Sendable {
    public let id: UUID
    public let approves: Bool
    /// The number that the user has chosen.
    public let number: Int
    /// By the key of the device.
    public let signature: [UInt8]

    public init(id: UUID, approves: Bool, number: Int, signature: [UInt8]) {
      self.id = id
      self.approves = approves
      self.number = number
      self.signature = signature
    }
  }

  /// Approves or denies by the key of the caller's own device. A number other than the one shown denies.
  ///
  /// An approval is a second factor of the session that asked, so the caller's session must have given one: trust that
  /// let it skip the second factor would otherwise become one.
  ///
  /// - Throws: `.secondFactorRequired`; `.authenticationFailed` for a wrong signature; `.notFound` for an unknown push,
  ///   a push of the caller's own device, and a push that was answered or has expired.
  public func answer(_ answer: Answer, by caller: Caller) async throws -> PushChallenge.State {
    try await context.write(by: caller) { work in
      let (session, user) = try work.session()
      try work.records.admitToFactors(session)
      guard var push = try work.records.push(answer.id), push.userID == user.id else { throw MFARefusal.notFound }
      try work.check(answer, to: push, in: session, of: user)
      push.state = answer.approves && answer.number == push.number ? .approved : .denied
      push.answeredAt = work.now
      try work.records.update(push)
      if push.state == .approved { try work.remember(push.address, of: user, work.complete(push.sessionID)) }
      try work.note(push.state == .approved ? .pushApproved : .pushDenied, of: user, ["push=\(push.id.text)"])
      work.wakeSockets(of: user.id)
      return push.state
    }
  }

  /// The state of a push of the caller's own session, with new tokens once it is approved.
  ///
  /// - Throws: `.notFound` for a push of another session; `.codeExpired` for a push that was not answered in time.
  public func outcome(
    of id: UUID, for caller: Caller
  ) async throws -> (state: PushChallenge.State, tokens: SessionTokens?) {
    let (push, session, user) = try await context.read(by: caller) { work in
      let (session, user) = try work.session(scope: .pending)
      guard let push = try work.records.push(id), push.sessionID == session.id else { throw MFARefusal.notFound }
      guard push.state != .pending || work.now < push.expiresAt else { throw MFARefusal.codeExpired }
      return (push, session, user)
    }
    guard push.state == .approved else { return (push.state, nil) }
    return (.approved, try await sessions.tokens(for: session, of: user))
  }
}

extension UnitOfWork where Initiator == Caller {
  /// Checks whether `session` may answer `push`, and the signature of the answer.
  ///
  /// - Throws: `RecordedRefusal`
  fileprivate func check(
    _ answer: PushApproval.Answer, to push: PushChallenge, in session: LoginSession, of user: User
  ) throws {
    func refuse(_ reason: String, _ refusal: MFARefusal) throws -> RecordedRefusal {
      try note(.pushRefused, of: user, ["push=\(push.id.text)", "reason=\(reason)"])
      return RecordedRefusal(refusal)
    }
    guard push.state == .pending else { throw try refuse("answered", .notFound) }
    guard now < push.expiresAt else { throw try refuse("expired", .notFound) }
    guard try records.isOfAnotherDevice(push, than: session) else { throw try refuse("own_device", .notFound) }
    let device = try session.deviceID.flatMap { try records.device($0) }
    let signed = PushChallenge.signedBytes(
      id: push.id, userID: user.id, nonce: push.nonce, approves: answer.approves, number: answer.number)
    guard let device, device.removedAt == nil, let key = device.publicKey,
      key.verifies(answer.signature, of: signed)
    else { throw try refuse(SignInRejection.signature.rawValue, .authenticationFailed(.signature)) }
  }

  /// Completes the session that asked, and returns the binding of its app instance.
  fileprivate func complete(_ id: UUID) throws -> Binding {
    guard var session = try records.session(id), session.isLive(at: now), session.scope != .setup else {
      throw MFARefusal.notFound
    }
    session.prove("mca", at: now)
    try records.update(session)
    return session.binding
  }

}

extension UnitOfWork {
  /// The pushes that the session of `proof` may answer: of its user, and of another device than its own.
  func pendingPushes(for proof: SessionProof) throws -> [PushChallenge] {
    guard let session = try records.session(proof.sessionID), try records.hasGivenFactor(session) else { return [] }
    return try records.pushes(of: proof.userID, since: now.advanced(by: PushChallenge.lifetime * -1)).filter {
      try $0.state == .pending && now < $0.expiresAt && records.isOfAnotherDevice($0, than: session)
    }
  }
}

extension PushRecords where Self: SessionRecords {
  /// Whether the session that asked has neither the device nor the app instance of `session`. One key is one factor,
  /// however often it signs in, and an app instance can enrol any number of keys.
  fileprivate func isOfAnotherDevice(_ push: PushChallenge, than session: LoginSession) throws -> Bool {
    guard let asking = try self.session(push.sessionID) else { return false }
    return asking.deviceID != session.deviceID && asking.binding != session.binding
  }
}
