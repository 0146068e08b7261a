internal import ByteCoding
internal import Foundation
internal import OneTimePasswords

/// Setting up and removing an authenticator app and its backup codes.
public struct Authenticator: Sendable {
  let context: DomainContext

  public init(_ context: DomainContext) { self.context = context }

  /// The secrets of a new authenticator. They cannot be read again.
  public struct Offer: Sendable, Hashable {
    /// Base32.
    public let secret: String
    /// The content of its QR code.
    public let uri: String
    public let backupCodes: [String]
  }

  /// Offers a new secret with backup codes. Neither is in use until a code of it was given, and backup codes that belong
  /// to other authenticators of the account are good until then. Another offer replaces it.
  ///
  /// - Throws: `.alreadyEnabled` if an authenticator is set up.
  public func offer(_ parameters: TOTPParameters, by caller: Caller) async throws -> Offer {
    let secret = context.entropy.bytes(parameters.secretLength)
    let (username, codes) = try await context.write(by: caller) { work in
      let (session, user) = try work.freshSession(scope: .setup)
      guard try work.records.totp(of: user.id)?.confirmedAt == nil else { throw MFARefusal.alreadyEnabled }
      try work.records.admitToFactors(session)
      try work.records.save(
        TOTPFactor(
          userID: user.id, secret: work.vault.seal(secret, for: Self.place(user.id)), parameters: parameters,
          createdAt: work.now))
      try work.note(.totpOffered, of: user)
      return (user.username.text, Self.backupCodes(ofOffer: secret, to: user.id, work.vault))
    }
    let text = Base32.encode(secret)
    return Offer(
      secret: text, uri: parameters.uri(secret: text, issuer: context.policy.issuer, account: username),
      backupCodes: codes)
  }

  /// Sets the offered authenticator up by a code of it, which is spent. The backup codes of the offer replace all others.
  /// If it is the first second factor of the account, all other sessions wait for it from then on.
  ///
  /// - Throws: `.notEnabled` without an offer; `.alreadyEnabled`; `.codeInvalid`; the refusal of the attempt limit.
  public func confirm(_ code: String, by caller: Caller) async throws {
    let guess = try CodeGuess(code)
    try await context.write(by: caller) { work in
      let now = work.now
      var (session, user) = try work.session(scope: .setup)
      guard var factor = try work.records.totp(of: user.id) else { throw MFARefusal.notEnabled }
      guard factor.confirmedAt == nil else { throw MFARefusal.alreadyEnabled }
      try work.records.admitToFactors(session)
      let secret = try work.vault.open(factor.secret, for: Self.place(user.id))
      let step = try work.countGuess(at: user) {
        factor.parameters.matchingStep(guess.text, secret, at: now, after: factor.lastStep)
      }
      let isFirst = try work.records.secondFactorSince(of: user.id) == nil
      factor.lastStep = step
      factor.confirmedAt = now
      try work.records.save(factor)
      let codes = Self.backupCodes(ofOffer: secret, to: user.id, work.vault)
      try work.records.replaceBackupCodes(of: user.id, with: codes.map { Self.hash($0, of: user.id, work.vault) })
      // A code that is replaced may have begun it.
      _ = try work.cancelRecovery(of: user, .codesReplaced)
      session.prove(SecondFactorMethod.totp.reference, at: now)
      try work.records.update(session)
      try work.notify(user.id, of: .mfaEnabled)
      try work.note(.totpConfirmed, of: user, isFirst ? work.beginSecondFactor(of: user, in: session) : [])
    }
  }

  /// Removes the authenticator, the apps that the user has added, the tokens that an operator has assigned, the backup
  /// codes, the address for codes by e-mail, all security keys and all trust, by a code of the second factor.
  ///
  /// - Throws: what `UnitOfWork.judgeSecondFactor` refuses.
  public func disable(_ code: String, by caller: Caller) async throws {
    try await withCode(code, by: caller) { user, work in
      let records = work.records
      try records.removeTOTP(of: user.id)
      for token in try records.tokens(of: user.id) { _ = try work.unassign(token, notifies: false) }
      try records.removeAppOffers(of: user.id)
      try records.replaceBackupCodes(of: user.id, with: [])
      try records.saveEmail(nil, of: user.id)
      try records.removeSecurityKeys(of: user.id)
      try records.removeTrustedDevices(of: user.id, boundTo: nil)
      _ = try work.cancelRecovery(of: user, .codesReplaced)
      try work.note(.totpRemoved, of: user)
      try work.notify(user.id, of: .mfaDisabled)
    }
  }

  /// Replaces the backup codes by new ones, by a code of the second factor.
  ///
  /// - Throws: what `UnitOfWork.judgeSecondFactor` refuses.
  public func regenerateBackupCodes(_ code: String, by caller: Caller) async throws -> [String] {
    let codes = BackupCode.makeAll(context.entropy)
    try await withCode(code, by: caller) { user, work in
      try work.records.replaceBackupCodes(of: user.id, with: codes.map { Self.hash($0, of: user.id, work.vault) })
      // The old codes may be in other hands.
      _ = try work.cancelRecovery(of: user, .codesReplaced)
      try work.note(.backupCodesMade, of: user)
    }
    return codes
  }

  /// Runs `body` for the user of the caller's session if `code` is a right one.
  private func withCode(
    _ code: String, by caller: Caller, _ body: @escaping @Sendable (User, UnitOfWork<Caller>) throws -> Void
  ) async throws {
    let guess = try CodeGuess(code)
    try await context.write(by: caller) { work in
      let (_, user) = try work.session()
      _ = try work.judgeSecondFactor(guess, method: nil, of: user)
      try body(user, work)
      work.wakeSockets(of: user.id)
    }
  }

  /// The vault's place for a user's secret.
  static func place(_ userID: UUID) -> String { "user:\(userID.text):totp" }

  /// The ten different backup codes of an offer. They follow from its secret and a key of the vault, so that nothing is
  /// stored before the offer is confirmed.
  private static func backupCodes(ofOffer secret: [UInt8], to userID: UUID, _ vault: Vault) -> [String] {
    let offer = Base32.encode(secret)
    var (codes, number): ([String], Int) = ([], 0)
    while codes.count < BackupCode.count {
      let place = String(number)
      let code = BackupCode.derive { vault.hash(userID.text, offer, place, String($0), as: "backup code of an offer") }
      if !codes.contains(code) { codes.append(code) }
      number += 1
    }
    return codes
  }

  static func hash(_ code: String, of userID: UUID, _ vault: Vault) -> [UInt8] {
    vault.hash(userID.uuidString, code, as: "backup code")
  }
}

extension TOTPParameters {
  /// The URI of the secret, as authenticator apps scan it.
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
