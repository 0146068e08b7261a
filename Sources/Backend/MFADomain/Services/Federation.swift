internal import ByteCoding
public import Foundation

/// Signing in with an identity provider, and connecting accounts to it.
///
/// An ID token is a first factor and never more: the session that it begins lacks the second factor, or must set one
/// up. Neither trust nor a grace period replaces it.
public struct Federation: Sendable {
  let context: DomainContext
  let sessions: Sessions

  public init(_ context: DomainContext) {
    self.context = context
    sessions = Sessions(context)
  }

  /// A client's answer to a challenge.
  public struct Answer: Sendable {
    public let challengeID: UUID
    /// The ID token, whose nonce is the hash of the challenge.
    public let idToken: String

    public init(challengeID: UUID, idToken: String) {
      self.challengeID = challengeID
      self.idToken = idToken
    }
  }

  /// Returns a challenge for the calling app instance.
  ///
  /// - Throws: `.federationOff`
  public func challenge(for caller: Caller) async throws -> FederationChallenge {
    _ = try context.identityTokens()
    let (id, bytes) = (context.entropy.uuid(), context.entropy.bytes(32))
    return try await context.write(by: caller) { work in
      let challenge = FederationChallenge(
        id: id, bytes: bytes, binding: caller.identity.binding,
        expiresAt: work.now.advanced(by: FederationChallenge.lifetime))
      try work.records.insert(challenge)
      return challenge
    }
  }

  /// Begins a session of the connected account, on its device that is bound to the calling app instance. The challenge
  /// is spent.
  ///
  /// - Throws: `.federationRefused`, alike for a wrong token and for an unknown user; `.accountLocked`;
  ///   `.federationOff`.
  public func signIn(_ answer: Answer, by caller: Caller) async throws -> SessionTokens {
    let now = context.clock.now()
    let examined = try await context.examine(answer, by: caller, at: now)
    let (session, user) = try await context.write(by: caller, at: now) { try $0.begin(by: examined) }
    return try await sessions.tokens(for: session, of: user)
  }

  /// Connects the caller's account to the user of the provider, for a session with a recent proof. The challenge is
  /// spent. If they are connected already, nothing else changes.
  ///
  /// - Throws: `.federationRefused`; `.identityConnected` if one of them is connected otherwise; what `freshSession`
  ///   and `admitToFactors` throw; `.federationOff`.
  public func connect(_ answer: Answer, by caller: Caller) async throws {
    let now = context.clock.now()
    // A session without the right must not make the backend verify tokens.
    try await context.read(by: caller, at: now) { _ = try $0.admitToIdentities() }
    let examined = try await context.examine(answer, by: caller, at: now)
    try await context.write(by: caller, at: now) { work in
      let user = try work.admitToIdentities()
      let subject = try work.verified(examined, account: user.username.key)
      let own = try work.records.federatedIdentities(of: user.id).first { $0.subject.issuer == subject.issuer }
      if own?.subject != subject, try own != nil || work.records.federatedIdentity(of: subject) != nil {
        throw try work.refuseConnected(account: user.username.key)
      }
      try work.spend(examined, account: user.username.key)
      if own == nil { try work.connect(subject, to: user) }
    }
  }

  /// The identities that the caller's account is connected to.
  public func identities(for caller: Caller) async throws -> [FederatedIdentity] {
    try await context.read(by: caller) { try $0.records.federatedIdentities(of: $0.session().user.id) }
  }

  /// Ends the connection of the caller's account to the identity provider, for a session with a recent proof.
  ///
  /// - Throws: `.notFound` without one; what `freshSession` and `admitToFactors` throw.
  public func disconnect(by caller: Caller) async throws {
    try await context.write(by: caller) { work in
      let user = try work.admitToIdentities()
      guard try work.records.removeFederatedIdentities(of: user.id) > 0 else { throw MFARefusal.notFound }
      try work.note(.identityDisconnected, of: user)
      try work.notify(user.id, of: .identityDisconnected)
    }
  }
}

/// An answer whose token was verified, outside of a transaction. Its challenge is not spent yet.
struct ExaminedAnswer: Sendable {
  let challengeID: UUID
  let verdict: Result<ProviderSubject, FederationRejection>
}

extension DomainContext {
  /// The verifier of ID tokens.
  ///
  /// - Throws: `.federationOff` if no identity provider is configured.
  func identityTokens() throws -> any IdentityTokenVerifier {
    guard let provider else { throw MFARefusal.federationOff }
    return provider
  }

  /// Verifies the token of `answer` against its challenge. Whether the challenge can be spent is decided in the
  /// transaction that spends it.
  ///
  /// - Throws: `.federationOff`; `MFAStoreError`
  func examine(_ answer: Federation.Answer, by caller: Caller, at now: Timestamp) async throws -> ExaminedAnswer {
    let provider = try identityTokens()
    let asked = try await read(by: caller, at: now) { try $0.records.federationChallenge(answer.challengeID) }
    let nonce = FederationChallenge.nonce(of: asked?.bytes ?? [UInt8](repeating: 0, count: 32))
    // The token is verified in every case, so that the time does not reveal what is missing.
    let verdict: Result<ProviderSubject, FederationRejection>
    do {
      verdict = .success(try await provider.subject(of: answer.idToken, nonce: nonce, at: now))
    } catch let rejection as FederationRejection {
      verdict = .failure(rejection)
    }
    let fault: FederationRejection? =
      switch asked {
      case nil: .challengeUnknown
      case let challenge? where challenge.binding != caller.identity.binding: .attestedKey
      case _?: nil
      }
    return ExaminedAnswer(challengeID: answer.challengeID, verdict: fault.map { .failure($0) } ?? verdict)
  }
}

extension UnitOfWork where Initiator == Caller {
  /// Spends the challenge and begins the session.
  ///
  /// - Throws: `RecordedRefusal`
  fileprivate func begin(by examined: ExaminedAnswer) throws -> (LoginSession, User) {
    let subject = try verified(examined, account: nil)
    guard var identity = try records.federatedIdentity(of: subject), let user = try records.user(identity.userID) else {
      throw try refuse(.identityUnknown, account: nil)
    }
    let account = user.username.key
    guard let device = try records.devices(of: user.id).first(where: { $0.binding == caller.identity.binding }) else {
      throw try refuse(.deviceUnknown, account: account)
    }
    try spend(examined, account: account)
    guard user.lockedAt == nil else {
      let refusal = MFARefusal.accountLocked(retryAfter: nil)
      try note(.identityRefused, account: account, ["reason=\(refusal.cause)"])
      throw RecordedRefusal(refusal)
    }
    guard policy.deviceUnlock == .any else { throw try refuse(.unlock, account: account) }
    // `lastUsed` of the device stays: it is of the factor that the device proves itself by.
    identity.lastUsedAt = now
    try records.update(identity)
    let scope = try scopeBeforeSecondFactor(of: user)
    let session = try beginSession(of: user, on: device, scope: scope, methods: ["fed"])
    try note(.identityAccepted, of: user, ["device=\(device.id.text)"])
    return (session, user)
  }

  /// Returns the user of the caller's session if it may change how the account signs in.
  fileprivate func admitToIdentities() throws -> User {
    let (session, user) = try freshSession()
    try records.admitToFactors(session)
    return user
  }

  /// Checks that an answer of a new account is right and that its subject is free, and spends its challenge.
  ///
  /// - Parameter account: the key of the account's name, which may exist.
  /// - Throws: `RecordedRefusal`
  func admitNew(_ examined: ExaminedAnswer, account: String) throws -> ProviderSubject {
    let subject = try verified(examined, account: account)
    guard try records.federatedIdentity(of: subject) == nil else { throw try refuseConnected(account: account) }
    try spend(examined, account: account)
    return subject
  }

  /// Whether the account of `user` is connected to the user that `examined` proves. No answer asks for nothing.
  func isConnected(_ examined: ExaminedAnswer?, to user: User) throws -> Bool {
    guard let examined else { return true }
    guard case .success(let subject) = examined.verdict else { return false }
    return try records.federatedIdentity(of: subject)?.userID == user.id
  }

  /// Connects `user` to `subject`, which is free, with a notice.
  func connect(_ subject: ProviderSubject, to user: User) throws {
    try records.insert(FederatedIdentity(userID: user.id, subject: subject, createdAt: now))
    try note(.identityConnected, of: user)
    try notify(user.id, of: .identityConnected)
  }

  /// Returns the user of the provider that the answer proves.
  ///
  /// - Throws: `RecordedRefusal`
  fileprivate func verified(_ examined: ExaminedAnswer, account: String?) throws -> ProviderSubject {
    switch examined.verdict {
    case .success(let subject): return subject
    case .failure(let rejection): throw try refuse(rejection, account: account)
    }
  }

  /// Spends the challenge of `examined`. Of concurrent answers, one succeeds.
  ///
  /// - Throws: `RecordedRefusal`
  fileprivate func spend(_ examined: ExaminedAnswer, account: String) throws {
    if try records.spend(federationChallenge: examined.challengeID, at: now) { return }
    guard let challenge = try records.federationChallenge(examined.challengeID) else {
      throw try refuse(.challengeUnknown, account: account)
    }
    throw try refuse(challenge.isUsed ? .challengeUsed : .challengeExpired, account: account)
  }

  private func refuse(_ rejection: FederationRejection, account: String?) throws -> RecordedRefusal {
    let refusal = MFARefusal.federationRefused(rejection)
    try note(.identityRefused, account: account, ["reason=\(refusal.cause)"])
    return RecordedRefusal(refusal)
  }

  fileprivate func refuseConnected(account: String) throws -> RecordedRefusal {
    let refusal = MFARefusal.identityConnected
    try note(.identityRefused, account: account, ["reason=\(refusal.cause)"])
    return RecordedRefusal(refusal)
  }
}
