internal import ByteCoding
internal import Foundation

/// Giving the second factor by a security key; by a full session, a fresh proof.
public struct SecurityKeyProof: Sendable {
  let context: DomainContext
  let sessions: Sessions

  public init(_ context: DomainContext) {
    self.context = context
    sessions = Sessions(context)
  }

  /// What a client has a key sign.
  public struct Request: Sendable, Hashable {
    public let party: RelyingParty
    public let challenge: [UInt8]
    /// Those that may answer.
    public let keys: [SecurityKey]
  }

  /// A challenge for the caller's session, in place of an older one.
  ///
  /// - Throws: `.notEnabled` for a user without security keys.
  public func request(by caller: Caller) async throws -> Request {
    let party = try context.relyingParty()
    let now = context.clock.now()
    let nonce = context.entropy.bytes(32)
    return try await context.store.write { records in
      let (session, user) = try records.session(of: caller, scope: .pending, at: now)
      let keys = try records.securityKeys(of: user.id)
      guard !keys.isEmpty else { throw MFARefusal.notEnabled }
      try records.save(
        KeyChallenge(
          sessionID: session.id, ceremony: .authentication, nonce: nonce,
          expiresAt: now.advanced(by: KeyChallenge.lifetime)))
      return Request(party: party, challenge: nonce, keys: keys)
    }
  }

  /// Completes the caller's session by a key's signature. The attempt is counted against the second factor's brake and
  /// uses the challenge up before anything of it decides. Of callers that race with one response, one is let in.
  ///
  /// - Parameter trusting: describes the device that is to be trusted for 30 days; `nil` to trust none.
  /// - Throws: `.securityKeyRefused` with the rule that the response breaks; `.notEnabled` for a user without keys.
  public func verify(
    _ response: AuthenticationResponse, trusting description: SecondFactor.Description?, by caller: Caller
  ) async throws -> (tokens: SessionTokens, trustToken: String?) {
    let party = try context.relyingParty()
    let now = context.clock.now()
    let trustToken =
      caller.identity.binding == .debugBuild
      ? nil : description.map { _ in Base64URL.encode(context.entropy.bytes(32)) }
    let asked = try await context.store.read { records in
      let (session, user) = try records.session(of: caller, scope: .pending, at: now)
      return (
        challenge: try records.keyChallenge(.authentication, of: session.id), user: user,
        key: try records.securityKeys(of: user.id).first { $0.credentialID.bytes == response.credentialID }
      )
    }
    let verdict = Result { () throws(WebAuthnFault) in
      guard let challenge = asked.challenge else { throw .challengeUnknown }
      guard let key = asked.key else { throw .credentialUnknown }
      return try party.verify(response, by: key, userHandle: asked.user.handle, challenge: challenge.nonce)
    }
    let outcome = try await context.store.write {
      [vault = context.vault, policy = context.policy] records -> Result<(LoginSession, User), MFARefusal> in
      var (session, user) = try records.session(of: caller, scope: .pending, at: now)
      let judged = try records.judge(
        verdict, of: asked.key, answering: asked.challenge, in: session, of: user, by: caller, at: now)
      guard case .success(let key) = judged else { return judged.map { _ in (session, user) } }
      session.prove(SecondFactorMethod.securityKey.reference, at: now)
      try records.update(session)
      try records.remember(caller.identity.clientAddress, of: user, caller.identity.binding, policy, at: now)
      try records.note(.securityKeyAccepted, by: caller, account: user.username.key, [key.detail], at: now)
      if let trustToken, let description {
        try SecondFactor.trust(description, trustToken, user, caller, vault, in: records, at: now)
      }
      return .success((session, user))
    }
    if case .failure(.securityKeyRefused(.signatureCount)) = outcome { context.hub.notify(for: asked.user.id) }
    let (session, user) = try outcome.get()
    return (try await sessions.tokens(for: session, of: user), trustToken)
  }
}

extension SecurityKeyRecords where Self: AttemptLimiterRecords & AuditRecords & NoticeRecords {
  /// Counts the attempt, uses the challenge up, and only then looks at what the verification found.
  ///
  /// All of it belongs in one transaction, and what comes back refused is to be committed: it has been counted.
  fileprivate func judge(
    _ verdict: Result<VerifiedUse, WebAuthnFault>, of key: SecurityKey?, answering challenge: KeyChallenge?,
    in session: LoginSession, of user: User, by caller: Caller, at now: Timestamp
  ) throws -> Result<SecurityKey, MFARefusal> {
    let keys = try securityKeys(of: user.id)
    guard !keys.isEmpty else { return .failure(.notEnabled) }
    let subject = AttemptLimiter.secondFactor(of: user.id)
    var limiter = try limiter(on: subject) ?? AttemptLimiter(at: now)
    if let refusal = limiter.refusal(at: now) {
      try noteRefused(refusal, .authentication, of: user, by: caller, at: now)
      return .failure(refusal)
    }
    limiter.count(at: now)
    func refuse(_ fault: WebAuthnFault) throws -> Result<SecurityKey, MFARefusal> {
      try save(limiter, on: subject, account: user.username.key)
      let refusal = MFARefusal.securityKeyRefused(fault)
      try noteRefused(refusal, .authentication, of: user, by: caller, key.map { [$0.detail] } ?? [], at: now)
      return .failure(refusal)
    }
    if let fault = try spend(challenge, .authentication, of: session, at: now) { return try refuse(fault) }
    let use: VerifiedUse
    switch verdict {
    case .success(let verified): use = verified
    case .failure(let fault): return try refuse(fault)
    }
    // It may have been removed, used or renamed since it was read.
    guard var current = keys.first(where: { $0.id == key?.id }) else { return try refuse(.credentialUnknown) }
    do throws(WebAuthnFault) {
      try current.use(use)
    } catch {
      _ = try append(.securityKeySuspected, to: user.id, concerning: current.id.text, at: now)
      return try refuse(error)
    }
    current.lastUsedAt = now
    try update(current)
    limiter.release(at: now)
    try save(limiter, on: subject, account: user.username.key)
    return .success(current)
  }
}
