internal import ByteCoding
internal import Foundation

/// Giving the second factor by a security key. For a full session it is a fresh proof.
public struct SecurityKeyProof: Sendable {
  let context: DomainContext
  let sessions: Sessions

  public init(_ context: DomainContext) {
    self.context = context
    sessions = Sessions(context)
  }

  /// The parameters for a client that has a key sign.
  public struct Request: Sendable, Hashable {
    public let party: RelyingParty
    public let challenge: [UInt8]
    /// The keys that may answer.
    public let keys: [SecurityKey]
  }

  /// Returns a challenge for the caller's session, which replaces an older one.
  ///
  /// - Throws: `.notEnabled` for a user without security keys.
  public func request(by caller: Caller) async throws -> Request {
    let party = try context.relyingParty()
    let nonce = context.entropy.bytes(32)
    return try await context.write(by: caller) { work in
      let (session, user) = try work.session(scope: .pending)
      let keys = try work.records.securityKeys(of: user.id)
      guard !keys.isEmpty else { throw MFARefusal.notEnabled }
      try work.records.save(
        KeyChallenge(
          sessionID: session.id, ceremony: .authentication, nonce: nonce,
          expiresAt: work.now.advanced(by: KeyChallenge.lifetime)))
      return Request(party: party, challenge: nonce, keys: keys)
    }
  }

  /// Completes the caller's session by a key's signature.
  ///
  /// The attempt is counted against the limit of the second factor, and the challenge is spent, before the result of
  /// the verification is used. Of concurrent calls with one response, one succeeds.
  ///
  /// - Parameter trusting: describes the device that is trusted for 30 days; `nil` to trust none.
  /// - Throws: `.securityKeyRefused` with the rule that the response breaks; `.notEnabled` for a user without keys.
  public func verify(
    _ response: AuthenticationResponse, trusting description: SecondFactor.Description?, by caller: Caller
  ) async throws -> (tokens: SessionTokens, trustToken: String?) {
    let party = try context.relyingParty()
    let trustToken =
      caller.identity.binding == .debugBuild
      ? nil : description.map { _ in Base64URL.encode(context.entropy.bytes(32)) }
    let now = context.clock.now()
    let asked = try await context.read(by: caller, at: now) { work in
      let (session, user) = try work.session(scope: .pending)
      return (
        challenge: try work.records.keyChallenge(.authentication, of: session.id), user: user,
        key: try work.records.securityKeys(of: user.id).first { $0.credentialID.bytes == response.credentialID }
      )
    }
    let verdict = Result { () throws(WebAuthnRejection) in
      guard let challenge = asked.challenge else { throw .challengeUnknown }
      guard let key = asked.key else { throw .credentialUnknown }
      return try party.verify(response, by: key, userHandle: asked.user.handle, challenge: challenge.nonce)
    }
    let attempt = KeyAttempt(verdict: verdict, key: asked.key, challenge: asked.challenge)
    let (session, user) = try await context.write(by: caller, at: now) { work in
      var (session, user) = try work.session(scope: .pending)
      let key = try work.judge(attempt, in: session, of: user)
      session.prove(SecondFactorMethod.securityKey.reference, at: work.now)
      try work.records.update(session)
      try work.remember(caller.identity.clientAddress, of: user, caller.identity.binding)
      try work.note(.securityKeyAccepted, of: user, [key.detail])
      if let trustToken, let description { try work.trust(description, trustToken, for: user) }
      return (session, user)
    }
    return (try await sessions.tokens(for: session, of: user), trustToken)
  }
}

/// A response that was verified outside the transaction.
private struct KeyAttempt: Sendable {
  let verdict: Result<VerifiedUse, WebAuthnRejection>
  /// The key that the response names; `nil` if the user has no such key.
  let key: SecurityKey?
  /// The challenge that the response was verified against; `nil` if the session has none.
  let challenge: KeyChallenge?
}

extension UnitOfWork where Initiator == Caller {
  /// Counts the attempt, spends the challenge, and then uses the result of the verification.
  ///
  /// - Throws: `RecordedRefusal`
  fileprivate func judge(_ attempt: KeyAttempt, in session: LoginSession, of user: User) throws -> SecurityKey {
    let keys = try records.securityKeys(of: user.id)
    guard !keys.isEmpty else { throw RecordedRefusal(.notEnabled) }
    let subject = AttemptLimiter.secondFactor(of: user.id)
    var limiter = try attemptLimiter(on: subject, account: user.username.key)
    if let refusal = limiter.refusal(at: now) { throw try self.refuse(refusal, .authentication, of: user) }
    limiter.count(at: now)
    func refuse(_ fault: WebAuthnRejection) throws -> RecordedRefusal {
      try records.save(limiter, on: subject, account: user.username.key)
      return try self.refuse(
        .securityKeyRefused(fault), .authentication, of: user, attempt.key.map { [$0.detail] } ?? [])
    }
    if let fault = try spend(attempt.challenge, .authentication, of: session) { throw try refuse(fault) }
    let use: VerifiedUse
    switch attempt.verdict {
    case .success(let verified): use = verified
    // A valid signature is no guess, and is not counted.
    case .failure(.backupEligibility):
      throw try self.refuse(
        .securityKeyRefused(.backupEligibility), .authentication, of: user, attempt.key.map { [$0.detail] } ?? [])
    case .failure(let fault): throw try refuse(fault)
    }
    // The key may have been removed, used or renamed since it was read.
    guard var current = keys.first(where: { $0.id == attempt.key?.id }) else { throw try refuse(.credentialUnknown) }
    do throws(WebAuthnRejection) {
      try current.use(use)
    } catch {
      try notify(user.id, of: .securityKeySuspected, concerning: current.id.text)
      throw try refuse(error)
    }
    current.lastUsedAt = now
    try records.update(current)
    limiter.release(at: now)
    try records.save(limiter, on: subject, account: user.username.key)
    return current
  }
}
