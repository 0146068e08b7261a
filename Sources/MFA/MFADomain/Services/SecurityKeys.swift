internal import ByteCoding
public import Foundation

/// Security keys coming, being listed, named and going.
public struct SecurityKeys: Sendable {
  let context: DomainContext

  public init(_ context: DomainContext) { self.context = context }

  /// What a client makes a credential for.
  public struct Offer: Sendable, Hashable {
    public let party: RelyingParty
    /// What people read of the relying party.
    public let partyName: String
    public let userHandle: [UInt8]
    public let username: String
    public let challenge: [UInt8]
    /// Those that the user has already; none of them is to be registered again.
    public let known: [SecurityKey]
  }

  /// Begins a registration: a challenge for the caller's session, in place of an older one.
  ///
  /// - Throws: `.freshProofRequired`; `.secondFactorRequired` if there is a second factor and the session has not given
  ///   it; `.tooManySecurityKeys`.
  public func offer(by caller: Caller) async throws -> Offer {
    let party = try context.relyingParty()
    let now = context.clock.now()
    let nonce = context.entropy.bytes(32)
    return try await context.store.write { [policy = context.policy] records in
      let (session, user) = try Self.admit(caller, policy, in: records, at: now)
      let known = try Self.checkRoom(for: user, in: records)
      try records.save(
        KeyChallenge(
          sessionID: session.id, ceremony: .registration, nonce: nonce,
          expiresAt: now.advanced(by: KeyChallenge.lifetime)))
      return Offer(
        party: party, partyName: policy.issuer, userHandle: user.handle, username: user.username.text,
        challenge: nonce, known: known)
    }
  }

  /// Registers the credential that a client made, under a name for people. The challenge is used up by it, whatever
  /// comes of it. A session that must set a second factor up is full from then on.
  ///
  /// Nothing is guessed here, so it is the challenge alone that a wrong response costs, and no brake.
  ///
  /// - Throws: what `offer` throws; `.registrationRefused` with the rule that the response breaks;
  ///   `.securityKeyExists` for a credential that is registered, for whomever.
  public func register(
    _ response: RegistrationResponse, name: DeviceModel, by caller: Caller
  ) async throws -> SecurityKey {
    let party = try context.relyingParty()
    let now = context.clock.now()
    let id = context.entropy.uuid()
    let asked = try await context.store.read { [policy = context.policy] records in
      try records.keyChallenge(.registration, of: Self.admit(caller, policy, in: records, at: now).session.id)
    }
    let verdict = Result { () throws(WebAuthnFault) in
      guard let asked else { throw .challengeUnknown }
      return try party.verify(response, challenge: asked.nonce)
    }
    let outcome = try await context.store.write {
      [policy = context.policy] records -> Result<SecurityKey, MFARefusal> in
      var (session, user) = try Self.admit(caller, policy, in: records, at: now)
      func refuse(_ refusal: MFARefusal) throws -> Result<SecurityKey, MFARefusal> {
        try records.noteRefused(refusal, .registration, of: user, by: caller, at: now)
        return .failure(refusal)
      }
      if let fault = try records.spend(asked, .registration, of: session, at: now) {
        return try refuse(.registrationRefused(fault))
      }
      let credential: VerifiedCredential
      switch verdict {
      case .success(let verified): credential = verified
      case .failure(let fault): return try refuse(.registrationRefused(fault))
      }
      guard try records.securityKey(credential.id) == nil else { return try refuse(.securityKeyExists) }
      _ = try Self.checkRoom(for: user, in: records)
      let isFirst = try records.secondFactorSince(of: user.id) == nil
      let key = SecurityKey(
        id: id, userID: user.id, credentialID: credential.id, publicKey: credential.publicKey,
        signatureCount: credential.signatureCount, isBackupEligible: credential.isBackupEligible,
        isBackedUp: credential.isBackedUp, transports: response.transports, name: name, createdAt: now)
      try records.insert(key)
      session.prove(SecondFactorMethod.securityKey.reference, at: now)
      try records.update(session)
      try records.note(.securityKeyRegistered, by: caller, account: user.username.key, [key.detail], at: now)
      _ = try records.append(.securityKeyAdded, to: user.id, concerning: key.id.text, at: now)
      if isFirst { _ = try records.append(.mfaEnabled, to: user.id, concerning: nil, at: now) }
      return .success(key)
    }
    let key = try outcome.get()
    context.hub.notify(for: key.userID)
    return key
  }

  /// The caller's own, by age.
  public func list(for caller: Caller) async throws -> [SecurityKey] {
    _ = try context.relyingParty()
    let now = context.clock.now()
    return try await context.store.read { records in
      try records.securityKeys(of: records.session(of: caller, at: now).user.id)
    }
  }

  /// - Throws: `.notFound` for another user's key as for none.
  public func rename(_ id: UUID, to name: DeviceModel, by caller: Caller) async throws -> SecurityKey {
    _ = try context.relyingParty()
    let now = context.clock.now()
    return try await context.store.write { records in
      let (_, user) = try records.session(of: caller, at: now)
      guard var key = try records.securityKeys(of: user.id).first(where: { $0.id == id }) else {
        throw MFARefusal.notFound
      }
      key.name = name
      try records.update(key)
      try records.note(.securityKeyRenamed, by: caller, account: user.username.key, [key.detail], at: now)
      return key
    }
  }

  /// Takes a key away, for a session that has given the second factor lately. With the last second factor trust goes
  /// too.
  ///
  /// - Throws: `.notFound` for another user's key as for none.
  public func remove(_ id: UUID, by caller: Caller) async throws {
    _ = try context.relyingParty()
    let now = context.clock.now()
    let userID = try await context.store.write { [policy = context.policy] records in
      let (session, user) = try records.freshSession(of: caller, maximumAge: policy.freshProof, at: now)
      try records.admitToFactors(session)
      guard try records.removeSecurityKey(id, of: user.id) else { throw MFARefusal.notFound }
      try records.note(.securityKeyRemoved, by: caller, account: user.username.key, ["key=\(id.text)"], at: now)
      _ = try records.append(.securityKeyRemoved, to: user.id, concerning: id.text, at: now)
      if try records.secondFactorSince(of: user.id) == nil {
        try records.removeTrustedDevices(of: user.id, boundTo: nil)
        _ = try records.append(.mfaDisabled, to: user.id, concerning: nil, at: now)
      }
      return user.id
    }
    context.hub.notify(for: userID)
  }

  private static func admit(
    _ caller: Caller, _ policy: Policy, in records: any Records, at now: Timestamp
  ) throws -> (session: LoginSession, user: User) {
    let found = try records.freshSession(of: caller, scope: .setup, maximumAge: policy.freshProof, at: now)
    try records.admitToFactors(found.session)
    return found
  }

  /// The user's keys, if another one has room beside them.
  private static func checkRoom(for user: User, in records: any Records) throws -> [SecurityKey] {
    let keys = try records.securityKeys(of: user.id)
    guard keys.count < SecurityKey.most else { throw MFARefusal.tooManySecurityKeys(limit: SecurityKey.most) }
    return keys
  }
}

extension DomainContext {
  /// - Throws: `.securityKeysOff` where the operator has named none.
  func relyingParty() throws -> RelyingParty {
    guard let party = policy.relyingParty else { throw MFARefusal.securityKeysOff }
    return party
  }
}

extension User {
  /// What authenticators call the user: it says nothing of who it is (Web Authentication Level 3, section 14.6.1).
  var handle: [UInt8] { withUnsafeBytes(of: id.uuid) { Array($0) } }
}

extension UUID {
  var text: String { uuidString.lowercased() }
}

extension SecurityKey {
  /// How the history names it.
  var detail: String { "key=\(id.text)" }
}

extension SecurityKeyRecords {
  /// Uses up `challenge`, which the response was verified against, and says why that cannot be.
  func spend(
    _ challenge: KeyChallenge?, _ ceremony: KeyChallenge.Ceremony, of session: LoginSession, at now: Timestamp
  ) throws -> WebAuthnFault? {
    guard let challenge else { return .challengeUnknown }
    if try spend(challenge, at: now) { return nil }
    guard let kept = try keyChallenge(ceremony, of: session.id), kept.nonce == challenge.nonce else {
      return .challengeUnknown
    }
    return kept.isUsed ? .challengeUsed : .challengeExpired
  }
}

extension AuditRecords {
  /// Notes a security key's response that is not taken, or not looked at.
  func noteRefused(
    _ refusal: MFARefusal, _ ceremony: KeyChallenge.Ceremony, of user: User, by caller: Caller, _ detail: [String] = [],
    at now: Timestamp
  ) throws {
    let event: AuditEvent =
      if case .securityKeyRefused(.signatureCount) = refusal { .securityKeyCloned } else { .securityKeyRefused }
    try note(
      event, by: caller, account: user.username.key,
      ["ceremony=\(ceremony.rawValue)"] + detail + ["reason=\(refusal.cause)"], at: now)
  }
}
