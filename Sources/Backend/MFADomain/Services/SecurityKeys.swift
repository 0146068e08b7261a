internal import ByteCoding
public import Foundation

/// Registering, listing, renaming and removing security keys.
public struct SecurityKeys: Sendable {
  let context: DomainContext

  public init(_ context: DomainContext) { self.context = context }

  /// The parameters for a client that makes a credential.
  public struct Offer: Sendable, Hashable {
    public let party: RelyingParty
    /// The display name of the relying party.
    public let partyName: String
    public let userHandle: [UInt8]
    public let username: String
    public let challenge: [UInt8]
    /// The user's keys, which must not be registered again.
    public let known: [SecurityKey]
  }

  /// Begins a registration with a challenge for the caller's session, which replaces an older one.
  ///
  /// - Throws: `.freshProofRequired`; `.secondFactorRequired` if there is a second factor and the session has not given
  ///   it; `.tooManySecurityKeys`.
  public func offer(by caller: Caller) async throws -> Offer {
    let party = try context.relyingParty()
    let nonce = context.entropy.bytes(32)
    return try await context.write(by: caller) { work in
      let (session, user) = try work.admitToSecurityKeys()
      let known = try work.securityKeysBelowLimit(of: user)
      try work.records.save(
        KeyChallenge(
          sessionID: session.id, ceremony: .registration, nonce: nonce,
          expiresAt: work.now.advanced(by: KeyChallenge.lifetime)))
      return Offer(
        party: party, partyName: work.policy.issuer, userHandle: user.handle, username: user.username.text,
        challenge: nonce, known: known)
    }
  }

  /// Registers the credential that a client made, under a display name. The challenge is spent in every case. A session
  /// that must set a second factor up is full from then on. If the key is the first second factor of the account, all
  /// other sessions wait for it from then on.
  ///
  /// A wrong response costs the challenge and has no attempt limit, because there is nothing to guess.
  ///
  /// - Throws: what `offer` throws; `.registrationRefused` with the rule that the response breaks;
  ///   `.securityKeyExists` for a credential that any user has registered.
  public func register(
    _ response: RegistrationResponse, name: DeviceModel, by caller: Caller
  ) async throws -> SecurityKey {
    let party = try context.relyingParty()
    let (id, now) = (context.entropy.uuid(), context.clock.now())
    let asked = try await context.read(by: caller, at: now) { work in
      try work.records.keyChallenge(.registration, of: work.admitToSecurityKeys().session.id)
    }
    let verdict = Result { () throws(WebAuthnRejection) in
      guard let asked else { throw .challengeUnknown }
      return try party.verify(response, challenge: asked.nonce)
    }
    return try await context.write(by: caller, at: now) { work in
      var (session, user) = try work.admitToSecurityKeys()
      if let fault = try work.spend(asked, .registration, of: session) {
        throw try work.refuse(.registrationRefused(fault), .registration, of: user)
      }
      let credential: VerifiedCredential
      switch verdict {
      case .success(let verified): credential = verified
      case .failure(let fault): throw try work.refuse(.registrationRefused(fault), .registration, of: user)
      }
      guard try work.records.securityKey(credential.id) == nil else {
        throw try work.refuse(.securityKeyExists, .registration, of: user)
      }
      _ = try work.securityKeysBelowLimit(of: user)
      let isFirst = try work.records.secondFactorSince(of: user.id) == nil
      let key = SecurityKey(
        id: id, userID: user.id, credentialID: credential.id, publicKey: credential.publicKey,
        signatureCount: credential.signatureCount, isBackupEligible: credential.isBackupEligible,
        isBackedUp: credential.isBackedUp, transports: response.transports, name: name, createdAt: work.now)
      try work.records.insert(key)
      session.prove(SecondFactorMethod.securityKey.reference, at: work.now)
      try work.records.update(session)
      try work.notify(user.id, of: .securityKeyAdded, concerning: key.id.text)
      if isFirst { try work.notify(user.id, of: .mfaEnabled) }
      try work.note(
        .securityKeyRegistered, of: user,
        [key.detail] + (isFirst ? work.beginSecondFactor(of: user, in: session) : []))
      return key
    }
  }

  /// The caller's own security keys, by age.
  public func list(for caller: Caller) async throws -> [SecurityKey] {
    _ = try context.relyingParty()
    return try await context.read(by: caller) { work in
      try work.records.securityKeys(of: work.session().user.id)
    }
  }

  /// Gives a key another display name.
  ///
  /// - Throws: `.notFound` for an unknown key and for a key of another user.
  public func rename(_ id: UUID, to name: DeviceModel, by caller: Caller) async throws -> SecurityKey {
    _ = try context.relyingParty()
    return try await context.write(by: caller) { work in
      let (_, user) = try work.session()
      guard var key = try work.records.securityKeys(of: user.id).first(where: { $0.id == id }) else {
        throw MFARefusal.notFound
      }
      key.name = name
      try work.records.update(key)
      try work.note(.securityKeyRenamed, of: user, [key.detail])
      return key
    }
  }

  /// Removes a key, for a session with a recent second factor. With the last second factor all trust ends as well.
  ///
  /// - Throws: `.notFound` for an unknown key and for a key of another user.
  public func remove(_ id: UUID, by caller: Caller) async throws {
    _ = try context.relyingParty()
    try await context.write(by: caller) { work in
      let (session, user) = try work.freshSession()
      try work.records.admitToFactors(session)
      guard try work.records.removeSecurityKey(id, of: user.id) else { throw MFARefusal.notFound }
      try work.note(.securityKeyRemoved, of: user, ["key=\(id.text)"])
      try work.notify(user.id, of: .securityKeyRemoved, concerning: id.text)
      if try work.records.secondFactorSince(of: user.id) == nil {
        try work.records.removeTrustedDevices(of: user.id, boundTo: nil)
        try work.notify(user.id, of: .mfaDisabled)
      }
    }
  }
}

extension UnitOfWork where Initiator == Caller {
  /// Returns the caller's session if it may register a security key.
  ///
  /// - Throws: what `freshSession` and `admitToFactors` throw.
  fileprivate func admitToSecurityKeys() throws -> (session: LoginSession, user: User) {
    let found = try freshSession(scope: .setup)
    try records.admitToFactors(found.session)
    return found
  }

  /// Returns the user's keys if there is room for another one.
  ///
  /// - Throws: `.tooManySecurityKeys`
  fileprivate func securityKeysBelowLimit(of user: User) throws -> [SecurityKey] {
    let keys = try records.securityKeys(of: user.id)
    guard keys.count < SecurityKey.most else { throw MFARefusal.tooManySecurityKeys(limit: SecurityKey.most) }
    return keys
  }

  /// Spends `challenge`, which the response was verified against, and returns why that fails; `nil` if it does not.
  func spend(
    _ challenge: KeyChallenge?, _ ceremony: KeyChallenge.Ceremony, of session: LoginSession
  ) throws -> WebAuthnRejection? {
    guard let challenge else { return .challengeUnknown }
    if try records.spend(challenge, at: now) { return nil }
    guard let kept = try records.keyChallenge(ceremony, of: session.id), kept.nonce == challenge.nonce else {
      return .challengeUnknown
    }
    return kept.isUsed ? .challengeUsed : .challengeExpired
  }

  /// Records that a security key's response was refused or not verified, and returns the refusal to throw.
  func refuse(
    _ refusal: MFARefusal, _ ceremony: KeyChallenge.Ceremony, of user: User, _ detail: [String] = []
  ) throws -> RecordedRefusal {
    let event: AuditEvent =
      switch refusal {
      case .securityKeyRefused(.signatureCount): .securityKeyCloned
      case .securityKeyRefused(.backupEligibility): .securityKeyChanged
      default: .securityKeyRefused
      }
    try note(event, of: user, ["ceremony=\(ceremony.rawValue)"] + detail + ["reason=\(refusal.cause)"])
    return RecordedRefusal(refusal)
  }
}

extension DomainContext {
  /// The relying party of security keys.
  ///
  /// - Throws: `.securityKeysOff` if none is configured.
  func relyingParty() throws -> RelyingParty {
    guard let party = policy.relyingParty else { throw MFARefusal.securityKeysOff }
    return party
  }
}

extension User {
  /// The user handle for authenticators. It does not identify a person (Web Authentication Level 3, section 14.6.1).
  var handle: [UInt8] { withUnsafeBytes(of: id.uuid) { Array($0) } }
}

extension SecurityKey {
  /// The detail of an entry in the history about this key.
  var detail: String { "key=\(id.text)" }
}
