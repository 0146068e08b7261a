public import ByteCoding
public import Foundation
internal import OneTimePasswords

/// Adding further authenticator apps to an account, and listing, renaming and removing its authenticators.
public struct AuthenticatorApps: Sendable {
  let context: DomainContext

  public init(_ context: DomainContext) { self.context = context }

  /// The secret of a further app. It cannot be read again.
  public struct Offer: Sendable, Hashable {
    public let id: UUID
    /// Base32.
    public let secret: String
    /// The content of its QR code.
    public let uri: String
    public let expiresAt: Timestamp
  }

  /// An authenticator of an account. No value is secret.
  public struct Entry: Sendable, Hashable {
    public enum Kind: String, Sendable, Hashable, CaseIterable {
      /// The app that was set up together with the backup codes.
      case first
      /// A further app that the user has added.
      case app
      /// A token that an operator has assigned. The user cannot rename or remove it.
      case token
    }

    public let id: AuthenticatorID
    public let kind: Kind
    /// The user's name for an app; maker and serial number of a token; empty for the first app.
    public let name: String
    /// When it became a second factor of the account.
    public let createdAt: Timestamp
    /// When its last code was accepted, in steps of the first app; `nil` before the first code of a token.
    public let lastUsedAt: Timestamp?
  }

  /// Offers the secret of a further app to the caller's session, for ten minutes. It is not in use until the session
  /// has given a code of it. Another offer to the session replaces it.
  ///
  /// - Throws: what `freshSession` and `admitToFactors` throw; `.notEnabled` for an account without an authenticator;
  ///   `.tooManyAuthenticators`.
  public func offer(_ name: AppName, _ parameters: TOTPParameters, by caller: Caller) async throws -> Offer {
    let id = context.entropy.uuid()
    let secret = context.entropy.bytes(parameters.secretLength)
    let (username, end) = try await context.write(by: caller) { work in
      let (session, user) = try work.freshSession()
      try work.records.admitToFactors(session)
      try work.checkRoomForApp(of: user)
      let end = work.now.advanced(by: AppOffer.lifetime)
      try work.records.save(
        AppOffer(
          id: id, sessionID: session.id, userID: user.id, name: name,
          secret: work.vault.seal(secret, for: OATHToken.place(id)), parameters: parameters, expiresAt: end))
      try work.note(.appOffered, of: user, ["serial=\(TokenSerial(ofApp: id).text)"])
      return (user.username.text, end)
    }
    let text = Base32.encode(secret)
    return Offer(
      id: id, secret: text, uri: parameters.uri(secret: text, issuer: context.policy.issuer, account: username),
      expiresAt: end)
  }

  /// Adds the app that was offered to the caller's session, by a code of it, which is spent. The code is counted as a
  /// guess at the second factor before it is compared. Of concurrent callers with a right code, one gets the app and
  /// the others `.notFound`.
  ///
  /// The session does not count as proved again: it has made the secret itself.
  ///
  /// - Throws: `.notFound` unless `id` is the newest offer to this session and has not expired; what `offer` throws,
  ///   but for the age of the proof; `.codeInvalid`; the refusal of the attempt limit.
  public func confirm(_ id: UUID, _ code: String, by caller: Caller) async throws -> Entry {
    let guess = try CodeGuess(code)
    return try await context.write(by: caller) { work in
      let now = work.now
      let (session, user) = try work.session()
      try work.records.admitToFactors(session)
      try work.checkRoomForApp(of: user)
      guard let offer = try work.records.appOffer(to: session.id), offer.id == id, offer.userID == user.id,
        now < offer.expiresAt
      else { throw MFARefusal.notFound }
      let secret = try work.vault.open(offer.secret, for: OATHToken.place(id))
      let step = try work.countGuess(at: user) { offer.parameters.matchingStep(guess.text, secret, at: now, after: -1) }
      guard try !work.secrets(of: user).contains(secret) else { throw MFARefusal.alreadyEnabled }
      guard var app = OATHToken(offer, addedAt: now) else {
        throw InvalidValue(field: "digits", rule: "is 6, 7 or 8")
      }
      app.accept(step, at: now)
      try work.records.insert(app)
      try work.records.removeAppOffer(to: session.id)
      try work.note(.appAdded, of: user, [app.detail])
      try work.notify(user.id, of: .authenticatorAdded, concerning: id.text)
      return Entry(app)
    }
  }

  /// The caller's own authenticators: the first app, then apps and tokens by age.
  public func list(for caller: Caller) async throws -> [Entry] {
    try await context.read(by: caller) { work in
      let (_, user) = try work.session()
      let first = try work.firstApp(of: user)
      let further = try work.records.tokens(of: user.id).map { Entry($0) }
      return (first.flatMap { Entry($0, at: work.now) }.map { [$0] } ?? [])
        + further.sorted { ($0.createdAt, $0.id.text) < ($1.createdAt, $1.id.text) }
    }
  }

  /// Gives an added app another name.
  ///
  /// - Throws: `.notFound` for the first app, for an unknown id and for an app of another user; `.forbidden` for a token
  ///   of operators.
  public func rename(_ id: AuthenticatorID, to name: AppName, by caller: Caller) async throws -> Entry {
    try await context.write(by: caller) { work in
      let (_, user) = try work.session()
      guard case .further(let number) = id else { throw MFARefusal.notFound }
      var app = try work.addedApp(number, of: user)
      app.name = name
      try work.records.update(app)
      try work.note(.appRenamed, of: user, [app.detail])
      return Entry(app)
    }
  }

  /// Removes the first app or an added app with its secret, for a session with a recent second factor. Another
  /// authenticator must remain: backup codes and codes by e-mail belong to them all.
  ///
  /// Trust and sessions stay, as for a removed security key: they belong to devices, and end with those.
  ///
  /// - Throws: what `freshSession` and `admitToFactors` throw; `.notFound` for an unknown id and for an app of another
  ///   user; `.forbidden` for a token of operators; `.lastAuthenticator`.
  public func remove(_ id: AuthenticatorID, by caller: Caller) async throws {
    try await context.write(by: caller) { work in
      let (session, user) = try work.freshSession()
      try work.records.admitToFactors(session)
      let first = try work.firstApp(of: user)
      let further = try work.records.tokens(of: user.id).count
      switch id {
      case .first:
        guard first != nil else { throw MFARefusal.notFound }
        guard further > 0 else { throw MFARefusal.lastAuthenticator }
        try work.records.removeTOTP(of: user.id)
        try work.note(.appRemoved, of: user, ["app=first"])
      case .further(let number):
        let app = try work.addedApp(number, of: user)
        guard first != nil || further > 1 else { throw MFARefusal.lastAuthenticator }
        try work.records.removeToken(app.id)
        try work.note(.appRemoved, of: user, [app.detail])
      }
      try work.notify(user.id, of: .authenticatorRemoved, concerning: id.text)
    }
  }
}

extension UnitOfWork {
  /// The first app of `user`; `nil` if it is only offered, or there is none.
  fileprivate func firstApp(of user: User) throws -> TOTPFactor? {
    try records.totp(of: user.id).flatMap { $0.confirmedAt == nil ? nil : $0 }
  }

  /// The app that `user` has added under this id.
  ///
  /// - Throws: `.notFound`; `.forbidden` for a token of operators.
  fileprivate func addedApp(_ id: UUID, of user: User) throws -> OATHToken {
    guard let app = try records.tokens(of: user.id).first(where: { $0.id == id }) else { throw MFARefusal.notFound }
    guard app.name != nil else { throw MFARefusal.forbidden }
    return app
  }

  /// Checks that `user` has an authenticator already, whose backup codes are for all, and room for a further one.
  ///
  /// - Throws: `.notEnabled`; `.tooManyAuthenticators`.
  fileprivate func checkRoomForApp(of user: User) throws {
    let further = try records.tokens(of: user.id).count
    guard try further > 0 || firstApp(of: user) != nil else { throw MFARefusal.notEnabled }
    guard further < OATHToken.mostOfAccount else {
      throw MFARefusal.tooManyAuthenticators(limit: OATHToken.mostOfAccount)
    }
  }
}

extension OATHToken {
  /// The app of an offer; `nil` if digits or period are outside their bounds.
  fileprivate init?(_ offer: AppOffer, addedAt now: Timestamp) {
    let parameters = offer.parameters
    self.init(
      id: offer.id, serial: TokenSerial(ofApp: offer.id), maker: "", name: offer.name, userID: offer.userID,
      kind: .totp, secret: offer.secret, algorithm: parameters.algorithm, digits: parameters.digits,
      period: parameters.period, next: 0, drift: 0, createdAt: now, assignedAt: now)
  }
}

extension AuthenticatorApps.Entry {
  /// The first app; `nil` if it is only offered.
  fileprivate init?(_ factor: TOTPFactor, at now: Timestamp) {
    guard let createdAt = factor.confirmedAt else { return nil }
    // The steps of the app's clock, as the server's clock would have them: a code of the next step may have been used.
    let (seconds, isTooMuch) = (factor.lastStep - factor.drift)
      .multipliedReportingOverflow(by: Int64(factor.parameters.period))
    let begun = Timestamp(seconds: max(0, seconds))
    let lastUse = factor.lastStep < 0 || isTooMuch ? nil : min(max(begun, createdAt), now)
    self.init(id: .first, kind: .first, name: "", createdAt: createdAt, lastUsedAt: lastUse)
  }

  fileprivate init(_ token: OATHToken) {
    let label = token.maker.isEmpty ? token.serial.text : "\(token.maker) \(token.serial.text)"
    self.init(
      id: .further(token.id), kind: token.name == nil ? .token : .app, name: token.name?.text ?? label,
      createdAt: token.assignedAt ?? token.createdAt, lastUsedAt: token.lastUsedAt)
  }
}
