internal import ByteCoding
public import Foundation

/// The tokens of a session, as the client gets them.
public struct SessionTokens: Sendable, Hashable {
  public let access: String
  public let refresh: String
  /// How long the access token is valid.
  public let lifetime: Duration
  public let userID: UUID
  public let scope: LoginSession.Scope
}

/// The start, renewal and end of sessions.
public struct Sessions: Sendable {
  let context: DomainContext

  public init(_ context: DomainContext) { self.context = context }

  /// How long after a renewal the old refresh token still returns the same new one, for a client that lost the
  /// response.
  static let grace = Duration.seconds(10)

  /// Issues the tokens of `session`.
  func tokens(for session: LoginSession, of user: User) async throws -> SessionTokens {
    SessionTokens(
      access: try await context.tokens.issue(for: session, of: user, at: context.clock.now()),
      refresh: RefreshToken(session: session.id, generation: session.generation).text(in: context.vault),
      lifetime: context.tokens.lifetime, userID: user.id, scope: session.scope)
  }

  /// Renews a session.
  ///
  /// Each refresh token is valid once. Within ten seconds it returns the same new token again, to the same app
  /// instance. A token that is used later was copied. The session ends then, since it is unknown which client is the
  /// thief.
  ///
  /// - Throws: `.sessionRequired` for an invalid token and an ended session; `.boundElsewhere`; `.accountLocked`.
  public func refresh(_ text: String, by caller: Caller) async throws -> SessionTokens {
    guard let token = RefreshToken(text, in: context.vault) else { throw MFARefusal.sessionRequired }
    let (session, user) = try await context.write(by: caller) { work in
      guard var session = try work.records.session(token.session),
        let user = try work.records.user(session.userID)
      else { throw MFARefusal.sessionRequired }
      if let refusal = try work.refusalToRenew(session, of: user) {
        // A socket of the session closes if the session has expired.
        work.wakeSockets(of: user.id)
        throw RecordedRefusal(refusal)
      }
      if token.generation == session.generation {
        try work.renew(&session, of: user)
        try work.note(.sessionRefreshed, of: user, ["session=\(session.id.text)"])
        return (session, user)
      }
      if token.generation == session.generation - 1, session.rotatedAt.isWithin(Self.grace, before: work.now) {
        return (session, user)
      }
      try work.revoke(&session)
      try work.note(.refreshReused, of: user, ["session=\(session.id.text)"])
      throw RecordedRefusal(.sessionRequired)
    }
    return try await tokens(for: session, of: user)
  }

  /// Ends the caller's session, or the session of a refresh token. Ending a session that has ended is not an error.
  ///
  /// - Throws: `.sessionRequired` without a session, and for a text that is no refresh token: the caller meant another
  ///   session than its own; `.boundElsewhere` for a session of another app instance.
  public func end(_ text: String?, by caller: Caller) async throws {
    let id = text.map { RefreshToken($0, in: context.vault)?.session } ?? caller.session?.sessionID
    guard let id else { throw MFARefusal.sessionRequired }
    try await context.write(by: caller) { work in
      guard var session = try work.records.session(id) else { return }
      work.wakeSockets(of: session.userID)
      guard session.isLive(at: work.now) else { return }
      let account = try work.records.user(session.userID)?.username.key
      guard session.binding == caller.identity.binding else {
        throw MFARefusal.boundElsewhere(account: account ?? "")
      }
      try work.revoke(&session)
      try work.note(.sessionRevoked, account: account, ["session=\(session.id.text)"])
    }
  }
}

extension Timestamp {
  /// Whether this time is at most `length` before `now`. A time of the future, from a clock that ran ahead, has no age.
  fileprivate func isWithin(_ length: Duration, before now: Timestamp) -> Bool {
    let age = now.since(self)
    return age >= RecordMaintenance.clockDifference * -1 && age <= length
  }
}

/// Renews a session: its id, the number of the renewal, and a MAC that only this server can make.
struct RefreshToken: Sendable, Hashable {
  let session: UUID
  let generation: Int

  func text(in vault: Vault) -> String {
    let id = session.text
    return "\(id).\(generation).\(Base64URL.encode(vault.refreshMAC(session: id, generation: generation)))"
  }

  /// Parses `text`; `nil` unless this server made it, in exactly this form.
  init?(_ text: String, in vault: Vault) {
    guard text.utf8.count < 128 else { return nil }
    let parts = text.split(atBytes: UInt8(ascii: "."))
    guard parts.count == 3, let session = UUID(text: String(parts[0])),
      let generation = Int(parts[1]), generation >= 0, let mac = Base64URL.decode(parts[2])
    else { return nil }
    self.init(session: session, generation: generation)
    let id = session.text
    guard constantTimeEqual(mac, vault.refreshMAC(session: id, generation: generation)),
      parts[0] == id, parts[1] == String(generation)
    else { return nil }
  }

  init(session: UUID, generation: Int) {
    self.session = session
    self.generation = generation
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

  /// - Throws: `.freshProofRequired` if the last proof of `session` is older than the policy allows, or if a clock that
  ///   ran ahead has dated it.
  func checkFreshness(of session: LoginSession) throws {
    guard session.authenticatedAt.isWithin(policy.freshProof, before: now) else {
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
  /// Ends all sessions of the user, or those of `device`, with one notice if there were any. A device without a session
  /// gets no push notifications either.
  func endSessions(of userID: UUID, on device: DeviceID? = nil) throws {
    if let device {
      _ = try records.removePushAddress(of: device)
    } else {
      _ = try records.removePushAddresses(of: userID)
    }
    guard try records.revokeSessions(of: userID, on: device, sparing: 0, at: now) > 0 else { return }
    try notify(userID, of: .sessionRevoked, concerning: device?.text)
  }

  /// Ends `session`, with a notice. Its device has signed out, so it gets no push notifications, unless the push address
  /// is that of another session.
  fileprivate func revoke(_ session: inout LoginSession) throws {
    if let device = session.deviceID, try !isOfAnotherSession(addressOf: device, than: session) {
      _ = try records.removePushAddress(of: device)
    }
    session.revokedAt = now
    try records.update(session)
    try notify(session.userID, of: .sessionRevoked, concerning: session.id.text)
  }

  /// Whether the push address of `device` was registered before `session` began, by a session that is still live: the
  /// app has confirmed its new number, for example, and goes on in its session.
  private func isOfAnotherSession(addressOf device: DeviceID, than session: LoginSession) throws -> Bool {
    guard let address = try records.pushAddress(of: device), address.registeredAt < session.createdAt else {
      return false
    }
    return try records.sessions(of: session.userID).contains {
      $0.deviceID == device && $0.isLive(at: now) && $0.scope == .full && $0.createdAt <= address.registeredAt
    }
  }

  /// Gives `session` its next refresh token. The user's grace period may have ended since the sign-in.
  fileprivate func renew(_ session: inout LoginSession, of user: User) throws {
    session.generation += 1
    session.rotatedAt = now
    // The session may have begun under an older version, or before the operator stopped vouching.
    if !policy.vouchesForDeviceKeys {
      session.methods = session.methods.map { $0 == "hwk" ? policy.reference(ofKeyBoundTo: session.binding) : $0 }
    }
    if session.scope == .full, policy.blocks(user, at: now), try records.secondFactorSince(of: user.id) == nil {
      session.scope = .setup
    }
    try records.update(session)
  }
}

extension UnitOfWork where Initiator == Caller {
  /// Inserts a session that was just proved, and ends the oldest sessions of its device above the limit.
  func beginSession(
    of user: User, on device: Device, scope: LoginSession.Scope, methods: [String]
  ) throws -> LoginSession {
    let session = LoginSession(
      id: context.entropy.uuid(), userID: user.id, deviceID: device.id, binding: caller.identity.binding,
      scope: scope, methods: methods, authenticatedAt: now, createdAt: now,
      expiresAt: now.advanced(by: LoginSession.lifetime), rotatedAt: now)
    let ended = try records.revokeSessions(
      of: user.id, on: session.deviceID, sparing: LoginSession.mostOfDevice - 1, at: now)
    try records.insert(session)
    if let language = caller.languages.tags.first, language != user.language {
      try records.saveLanguage(language, of: user.id)
    }
    if ended > 0 { try note(.sessionRevoked, of: user, ["count=\(ended)", "reason=too_many"]) }
    return session
  }

  /// The reason not to renew `session`, recorded except for a caller that the session is not bound to; `nil` if there
  /// is none.
  fileprivate func refusalToRenew(_ session: LoginSession, of user: User) throws -> MFARefusal? {
    func record(_ reason: String, _ refusal: MFARefusal) throws -> MFARefusal {
      try note(.refreshRefused, of: user, ["session=\(session.id.text)", "reason=\(reason)"])
      return refusal
    }
    guard session.isLive(at: now) else { return try record("session_ended", .sessionRequired) }
    guard session.binding == caller.identity.binding else { return .boundElsewhere(account: user.username.key) }
    guard user.lockedAt == nil else { return try record("locked", .accountLocked(retryAfter: nil)) }
    if let device = try session.deviceID.flatMap({ try records.device($0) }), !policy.admits(device) {
      return try record(SignInRejection.unlock.rawValue, .sessionRequired)
    }
    return nil
  }
}
