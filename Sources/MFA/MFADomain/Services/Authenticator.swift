internal import ByteCoding
internal import Foundation

/// Setting up an authenticator app and the codes on paper, and taking them away.
public struct Authenticator: Sendable {
  let context: DomainContext

  public init(_ context: DomainContext) { self.context = context }

  /// What the user takes down when an authenticator is set up. None of it can be read again.
  public struct Offer: Sendable, Hashable {
    /// Base32.
    public let secret: String
    /// What a QR code of it says.
    public let uri: String
    public let backupCodes: [String]
  }

  /// Offers a new secret. It counts for nothing until a code of it has been given; another offer takes its place.
  ///
  /// - Throws: `.alreadyEnabled` if an authenticator is set up.
  public func offer(_ parameters: TOTPParameters, by caller: Caller) async throws -> Offer {
    let now = context.clock.now()
    let secret = context.entropy.bytes(parameters.secretLength)
    let codes = BackupCode.makeAll(context.entropy)
    let username = try await context.store.write { [context] records in
      let (session, user) = try records.freshSession(
        of: caller, scope: .setup, maximumAge: context.policy.freshProof, at: now)
      guard try records.totp(of: user.id)?.confirmedAt == nil else { throw MFARefusal.alreadyEnabled }
      try records.admitToFactors(session)
      try records.save(
        TOTPFactor(
          userID: user.id, secret: context.vault.seal(secret, for: Self.place(user.id)), parameters: parameters,
          createdAt: now))
      try records.replaceBackupCodes(
        of: user.id, with: codes.map { Self.hash($0, of: user.id, context.vault) })
      try records.note(.totpOffered, by: caller, account: user.username.key, at: now)
      return user.username.text
    }
    let text = Base32.encode(secret)
    return Offer(
      secret: text, uri: parameters.uri(secret: text, issuer: context.policy.issuer, account: username),
      backupCodes: codes)
  }

  /// Sets the offered authenticator up by a code of it, which is thereby used.
  public func confirm(_ code: String, by caller: Caller) async throws {
    let now = context.clock.now()
    let guess = try CodeGuess(code)
    let outcome = try await context.store.write { [context] records -> Result<UUID, MFARefusal> in
      var (session, user) = try records.session(of: caller, scope: .setup, at: now)
      guard var factor = try records.totp(of: user.id) else { return .failure(.notEnabled) }
      guard factor.confirmedAt == nil else { return .failure(.alreadyEnabled) }
      try records.admitToFactors(session)
      let subject = AttemptLimiter.secondFactor(of: user.id)
      var limiter = try records.limiter(on: subject) ?? AttemptLimiter(at: now)
      if let refusal = limiter.refusal(at: now) {
        try records.noteRefusal(.codeThrottled, refusal, of: user, by: caller, at: now)
        return .failure(refusal)
      }
      limiter.count(at: now)
      let secret = try context.vault.open(factor.secret, for: Self.place(user.id))
      guard let step = factor.parameters.matchingStep(guess.text, secret, at: now, after: factor.lastStep) else {
        try records.save(limiter, on: subject, account: user.username.key)
        try records.noteRefusal(.codeRefused, .codeInvalid(.wrong), of: user, by: caller, at: now)
        return .failure(.codeInvalid(.wrong))
      }
      limiter.release(at: now)
      try records.save(limiter, on: subject, account: user.username.key)
      factor.lastStep = step
      factor.confirmedAt = now
      try records.save(factor)
      session.prove(SecondFactorMethod.totp.reference, at: now)
      try records.update(session)
      try records.note(.totpConfirmed, by: caller, account: user.username.key, at: now)
      _ = try records.append(.mfaEnabled, to: user.id, concerning: nil, at: now)
      return .success(user.id)
    }
    context.hub.notify(for: try outcome.get())
  }

  /// Takes the authenticator, the codes on paper, the address for codes by e-mail, all security keys and all trust
  /// away, for a code.
  public func disable(_ code: String, by caller: Caller) async throws {
    let now = context.clock.now()
    let userID = try await withCode(code, by: caller) { user, records in
      try records.removeTOTP(of: user.id)
      try records.replaceBackupCodes(of: user.id, with: [])
      try records.saveEmail(nil, of: user.id)
      try records.removeSecurityKeys(of: user.id)
      try records.removeTrustedDevices(of: user.id, boundTo: nil)
      _ = try records.cancelRecovery(
        of: user, .codesReplaced, by: caller, at: now)
      try records.note(.totpRemoved, by: caller, account: user.username.key, at: now)
      _ = try records.append(.mfaDisabled, to: user.id, concerning: nil, at: now)
      return user.id
    }
    context.hub.notify(for: userID)
  }

  /// New codes on paper in place of the old, for a code.
  public func regenerateBackupCodes(_ code: String, by caller: Caller) async throws -> [String] {
    let now = context.clock.now()
    let codes = BackupCode.makeAll(context.entropy)
    let userID = try await withCode(code, by: caller) { [vault = context.vault] user, records in
      try records.replaceBackupCodes(of: user.id, with: codes.map { Self.hash($0, of: user.id, vault) })
      // Who makes new ones may do it because the old ones are in other hands.
      _ = try records.cancelRecovery(
        of: user, .codesReplaced, by: caller, at: now)
      try records.note(.backupCodesMade, by: caller, account: user.username.key, at: now)
      return user.id
    }
    context.hub.notify(for: userID)
    return codes
  }

  private func withCode<Value: Sendable>(
    _ code: String, by caller: Caller, _ body: @escaping @Sendable (User, any Records) throws -> Value
  ) async throws -> Value {
    let now = context.clock.now()
    let guess = try CodeGuess(code)
    return try await context.store.write { [context] records -> Result<Value, MFARefusal> in
      let (_, user) = try records.session(of: caller, at: now)
      switch try records.judgeSecondFactor(guess, method: nil, of: user, by: caller, context.vault, at: now) {
      case .success: return .success(try body(user, records))
      case .failure(let refusal): return .failure(refusal)
      }
    }.get()
  }

  /// What the vault seals a user's secret for.
  static func place(_ userID: UUID) -> String { "user:\(userID.uuidString.lowercased()):totp" }

  static func hash(_ code: String, of userID: UUID, _ vault: Vault) -> [UInt8] {
    vault.hash(userID.uuidString, code, as: "backup code")
  }
}

extension TOTPParameters {
  /// The secret as authenticator apps scan it.
  func uri(secret: String, issuer: String, account: String) -> String {
    "otpauth://totp/\(issuer.percentEncoded):\(account.percentEncoded)?secret=\(secret)&issuer=\(issuer.percentEncoded)"
      + "&algorithm=\(algorithm.rawValue)&digits=\(digits)&period=\(period)"
  }
}

extension String {
  fileprivate var percentEncoded: String {
    // A valid text is always encodable.
    addingPercentEncoding(withAllowedCharacters: .alphanumerics.intersection(.ascii).union(.unreservedMarks)) ?? ""
  }
}

extension CharacterSet {
  fileprivate static let ascii = CharacterSet(charactersIn: Unicode.Scalar(0)...Unicode.Scalar(127))
  fileprivate static let unreservedMarks = CharacterSet(charactersIn: "-._~")
}
