internal import ByteCoding
public import Foundation

/// What a client holds of a session.
public struct SessionTokens: Sendable, Hashable {
  public let access: String
  public let refresh: String
  /// How long the access token is good.
  public let lifetime: Duration
  public let userID: UUID
  public let scope: LoginSession.Scope
}

/// The beginning, prolonging and end of sessions.
public struct Sessions: Sendable {
  let context: DomainContext

  public init(_ context: DomainContext) { self.context = context }

  /// A session that has just been proved, to be inserted by the caller's transaction.
  func begin(for user: User, device: Device?, caller: Caller, scope: LoginSession.Scope, methods: [String])
    -> LoginSession
  {
    let now = context.clock.now()
    return LoginSession(
      id: context.entropy.uuid(), userID: user.id, deviceID: device?.id, binding: caller.identity.binding,
      scope: scope, methods: methods, authenticatedAt: now, createdAt: now,
      expiresAt: now.advanced(by: LoginSession.lifetime), rotatedAt: now)
  }

  func tokens(for session: LoginSession, of user: User) async throws -> SessionTokens {
    SessionTokens(
      access: try await context.tokens.issue(for: session, of: user, at: context.clock.now()),
      refresh: RefreshToken(session: session.id, generation: session.generation).text(in: context.vault),
      lifetime: context.tokens.lifetime, userID: user.id, scope: session.scope)
  }
}

/// What prolongs a session: its id, the number of the renewal, and a MAC that only this server makes.
struct RefreshToken: Sendable, Hashable {
  let session: UUID
  let generation: Int

  func text(in vault: Vault) -> String {
    let id = session.uuidString.lowercased()
    return "\(id).\(generation).\(Base64URL.encode(vault.refreshMAC(session: id, generation: generation)))"
  }

  /// The token that `text` is, if this server made it, written as the server writes it.
  init?(_ text: String, in vault: Vault) {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard text.utf8.count < 128, parts.count == 3, let session = UUID(uuidString: String(parts[0])),
      let generation = Int(parts[1]), generation >= 0, let mac = Base64URL.decode(parts[2])
    else { return nil }
    self.init(session: session, generation: generation)
    let id = session.uuidString.lowercased()
    guard constantTimeEqual(mac, vault.refreshMAC(session: id, generation: generation)),
      parts[0] == id, parts[1] == String(generation)
    else { return nil }
  }

  init(session: UUID, generation: Int) {
    self.session = session
    self.generation = generation
  }
}

extension SessionRecords where Self: UserRecords {
  /// The live session that the caller's token names, with its user.
  ///
  /// - Throws: `.sessionRequired` without one; `.boundElsewhere` if another app instance began it; `.accountLocked`
  ///   if an operator has locked the user; `.secondFactorRequired` if it has not come as far as `scope`.
  func session(of caller: Caller, scope: LoginSession.Scope = .full, at now: Timestamp) throws -> (
    session: LoginSession, user: User
  ) {
    guard let proof = caller.session, let session = try self.session(proof.sessionID), session.isLive(at: now),
      session.userID == proof.userID, let user = try self.user(session.userID)
    else { throw MFARefusal.sessionRequired }
    guard session.binding == caller.identity.binding else {
      throw MFARefusal.boundElsewhere(account: user.username.key)
    }
    guard user.lockedAt == nil else { throw MFARefusal.accountLocked(retryAfter: nil) }
    guard session.scope.reaches(scope) else { throw MFARefusal.secondFactorRequired }
    return (session, user)
  }

  /// The same, proved no longer ago than `maximumAge`.
  func freshSession(
    of caller: Caller, scope: LoginSession.Scope = .full, maximumAge: Duration, at now: Timestamp
  ) throws -> (session: LoginSession, user: User) {
    let (session, user) = try self.session(of: caller, scope: scope, at: now)
    guard now.since(session.authenticatedAt) <= maximumAge else {
      throw MFARefusal.freshProofRequired(maximumAge: maximumAge)
    }
    return (session, user)
  }
}

extension UnitOfWork {
  /// Returns the live session that the token of `caller` names, with its user.
  ///
  /// - Throws: `.sessionRequired` without one; `.boundElsewhere` if another app instance began it; `.accountLocked`
  ///   if an operator has locked the user; `.secondFactorRequired` if the session has not reached `scope`.
  func session(of caller: Caller, scope: LoginSession.Scope = .full) throws -> (session: LoginSession, user: User) {
    guard let proof = caller.session, let session = try records.session(proof.sessionID), session.isLive(at: now),
      session.userID == proof.userID, let user = try records.user(session.userID)
    else { throw MFARefusal.sessionRequired }
    guard session.binding == caller.identity.binding else {
      throw MFARefusal.boundElsewhere(account: user.username.key)
    }
    guard user.lockedAt == nil else { throw MFARefusal.accountLocked(retryAfter: nil) }
    guard session.scope.reaches(scope) else { throw MFARefusal.secondFactorRequired }
    return (session, user)
  }

  /// - Throws: `.freshProofRequired` if the last proof of `session` is older than the policy allows.
  func checkFreshness(of session: LoginSession) throws {
    guard now.since(session.authenticatedAt) <= policy.freshProof else {
      throw MFARefusal.freshProofRequired(maximumAge: policy.freshProof)
    }
  }
}

extension UnitOfWork where Initiator == Caller {
  var caller: Caller { initiator }

  /// Returns the caller's live session, as `session(of:scope:)`.
  func session(scope: LoginSession.Scope = .full) throws -> (session: LoginSession, user: User) {
    try session(of: caller, scope: scope)
  }

  /// Returns the caller's live session if its last proof is recent.
  ///
  /// - Throws: what `session(of:scope:)` and `checkFreshness(of:)` throw.
  func freshSession(scope: LoginSession.Scope = .full) throws -> (session: LoginSession, user: User) {
    let found = try session(scope: scope)
    try checkFreshness(of: found.session)
    return found
  }
}

extension UnitOfWork {
  /// Ends all sessions of the user, or those of `device`, with one notice if there were any.
  func endSessions(of userID: UUID, on device: DeviceID? = nil) throws {
    try records.endSessions(of: userID, on: device, at: now)
    wakeSockets(of: userID)
  }
}

extension Sessions {
  /// How long after its renewal a refresh token still gives the same successor, for a client that lost the answer.
  static let grace = Duration.seconds(10)

  /// Prolongs a session. Each refresh token is valid once; within ten seconds it returns its successor again, to the
  /// same app instance. A token that is used later was copied: the session ends, since it is unknown which client is
  /// the thief.
  public func refresh(_ text: String, by caller: Caller) async throws -> SessionTokens {
    let now = context.clock.now()
    guard let token = RefreshToken(text, in: context.vault) else { throw MFARefusal.sessionRequired }
    let outcome = try await context.store.write {
      [policy = context.policy] records -> Result<(LoginSession, User), MFARefusal> in
      guard var session = try records.session(token.session), let user = try records.user(session.userID) else {
        return .failure(.sessionRequired)
      }
      let account = user.username.key
      func refuse(_ reason: String, _ refusal: MFARefusal) throws -> Result<(LoginSession, User), MFARefusal> {
        try records.note(
          .refreshRefused, by: caller, account: account, ["session=\(session.id)", "reason=\(reason)"], at: now)
        return .failure(refusal)
      }
      guard session.isLive(at: now) else { return try refuse("session_ended", .sessionRequired) }
      guard session.binding == caller.identity.binding else { return .failure(.boundElsewhere(account: account)) }
      guard user.lockedAt == nil else { return try refuse("locked", .accountLocked(retryAfter: nil)) }
      if let device = try session.deviceID.flatMap({ try records.device($0) }), !policy.admits(device) {
        return try refuse(SignInFault.unlock.rawValue, .sessionRequired)
      }
      if token.generation == session.generation {
        try records.renew(&session, of: user, policy, at: now)
        try records.note(.sessionRefreshed, by: caller, account: account, ["session=\(session.id)"], at: now)
        return .success((session, user))
      }
      if token.generation == session.generation - 1, now.since(session.rotatedAt) <= Self.grace {
        return .success((session, user))
      }
      try records.revoke(&session, at: now)
      try records.note(.refreshReused, by: caller, account: account, ["session=\(session.id)"], at: now)
      return .failure(.sessionRequired)
    }
    if case .failure = outcome { await notify(for: token.session) }
    let (session, user) = try outcome.get()
    return try await tokens(for: session, of: user)
  }

  /// Ends the caller's session, or the one that a refresh token belongs to. Ending one that has ended is no error.
  public func end(_ text: String?, by caller: Caller) async throws {
    let now = context.clock.now()
    let id = text.flatMap { RefreshToken($0, in: context.vault)?.session } ?? caller.session?.sessionID
    guard let id else { throw MFARefusal.sessionRequired }
    try await context.store.write { records in
      guard var session = try records.session(id), session.isLive(at: now) else { return }
      let account = try records.user(session.userID)?.username.key
      guard session.binding == caller.identity.binding else {
        throw MFARefusal.boundElsewhere(account: account ?? "")
      }
      try records.revoke(&session, at: now)
      try records.note(.sessionRevoked, by: caller, account: account, ["session=\(session.id)"], at: now)
    }
    await notify(for: id)
  }

  private func notify(for id: UUID) async {
    let session = try? await context.store.read { try $0.session(id) }
    if let session { context.hub.notify(for: session.userID) }
  }
}

extension SessionRecords where Self: FactorRecords & SecurityKeyRecords {
  /// Gives `session` its next refresh token. The user's time of grace may have run out since the sign-in.
  fileprivate func renew(_ session: inout LoginSession, of user: User, _ policy: Policy, at now: Timestamp) throws {
    session.generation += 1
    session.rotatedAt = now
    // It may have begun under an older version, or before the operator stopped vouching.
    if !policy.vouchesForDeviceKeys {
      session.methods = session.methods.map { $0 == "hwk" ? policy.reference(ofKeyBoundTo: session.binding) : $0 }
    }
    if session.scope == .full, policy.blocks(user, at: now), try secondFactorSince(of: user.id) == nil {
      session.scope = .setup
    }
    try update(session)
  }
}

extension SessionRecords where Self: AuditRecords {
  /// Inserts the session of a sign-in, and ends the oldest of its device that are too many by it.
  func begin(_ session: LoginSession, of user: User, by caller: Caller, at now: Timestamp) throws {
    let ended = try revokeSessions(of: user.id, on: session.deviceID, sparing: LoginSession.mostOfDevice - 1, at: now)
    try insert(session)
    guard ended > 0 else { return }
    try note(.sessionRevoked, by: caller, account: user.username.key, ["count=\(ended)", "reason=too_many"], at: now)
  }
}

extension SessionRecords where Self: NoticeRecords {
  /// Ends all sessions of `user`, or of `device` alone, and tells the user's devices once.
  func endSessions(of userID: UUID, on device: DeviceID? = nil, at now: Timestamp) throws {
    guard try revokeSessions(of: userID, on: device, sparing: 0, at: now) > 0 else { return }
    _ = try append(.sessionRevoked, to: userID, concerning: device?.text, at: now)
  }

  /// Ends `session` and tells its user's devices.
  func revoke(_ session: inout LoginSession, at now: Timestamp) throws {
    session.revokedAt = now
    try update(session)
    _ = try append(.sessionRevoked, to: session.userID, concerning: session.id.uuidString.lowercased(), at: now)
  }
}
