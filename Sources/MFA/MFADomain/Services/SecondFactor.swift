internal import ByteCoding
internal import Foundation

/// Giving the second factor.
public struct SecondFactor: Sendable {
  let context: DomainContext
  let sessions: Sessions

  public init(_ context: DomainContext) {
    self.context = context
    sessions = Sessions(context)
  }

  /// How the device that wants to be trusted describes itself; shown to the user, and never decided by.
  public struct Description: Sendable, Hashable {
    public let name: String
    public let userAgent: String

    public init(name: String, userAgent: String) {
      self.name = name
      self.userAgent = userAgent
    }
  }

  /// Completes the caller's session by a code of an authenticator, of an e-mail, or of the paper; which of them it is
  /// need not be said. Counted before it is compared, as one guess.
  ///
  /// - Parameter trusting: describes the device that is to be trusted for 30 days; `nil` to trust none.
  public func verify(
    _ code: String, method: SecondFactorMethod?, trusting description: Description?, by caller: Caller
  ) async throws -> (tokens: SessionTokens, trustToken: String?) {
    let now = context.clock.now()
    let guess = try CodeGuess(code)
    let trustToken = description.map { _ in Base64URL.encode(context.entropy.bytes(32)) }
    let outcome = try await context.store.write { [context] records -> Result<(LoginSession, User), MFARefusal> in
      var (session, user) = try records.session(of: caller, scope: .pending, at: now)
      let judged = try records.judgeSecondFactor(guess, method: method, of: user, by: caller, context.vault, at: now)
      guard case .success(let used) = judged else { return judged.map { _ in (session, user) } }
      session.prove(used.reference, at: now)
      try records.update(session)
      try records.remember(
        caller.identity.clientAddress, of: user, caller.identity.binding, context.policy, at: now)
      if let trustToken, let description, caller.identity.binding != .debugBuild {
        try Self.trust(description, trustToken, user, caller, context.vault, in: records, at: now)
      }
      return .success((session, user))
    }
    let (session, user) = try outcome.get()
    let isTrusted = trustToken != nil && caller.identity.binding != .debugBuild
    return (try await sessions.tokens(for: session, of: user), isTrusted ? trustToken : nil)
  }

  /// Trusts the caller's app instance from now on, by a token that it keeps.
  static func trust(
    _ description: Description, _ token: String, _ user: User, _ caller: Caller, _ vault: Vault,
    in records: any Records, at now: Timestamp
  ) throws {
    // One app instance is one entry of the list: to end the one that is shown ends its trust.
    try records.removeTrustedDevices(of: user.id, boundTo: caller.identity.binding)
    let fingerprint = vault.hash(description.userAgent, caller.identity.clientAddress, as: "fingerprint")
    let id = try records.insert(
      TrustedDevice(
        id: 0, userID: user.id, tokenHash: vault.hash(token, as: "trust"), binding: caller.identity.binding,
        name: description.name, fingerprint: Hex.encode(fingerprint.prefix(16)),
        address: caller.identity.clientAddress, createdAt: now, lastUsedAt: now,
        expiresAt: now.advanced(by: TrustedDevice.lifetime)))
    try records.note(.deviceTrusted, by: caller, account: user.username.key, ["trusted=\(id)"], at: now)
  }
}

extension FactorRecords where Self: CodeRecords & AttemptLimiterRecords & AuditRecords {
  /// Counts a guess, compares it with what the user could give, and uses up what it was.
  ///
  /// All of it belongs in one transaction, and what comes back refused is to be committed: it has been counted.
  func judgeSecondFactor(
    _ guess: CodeGuess, method: SecondFactorMethod?, of user: User, by caller: Caller, _ vault: Vault,
    at now: Timestamp
  ) throws -> Result<SecondFactorMethod, MFARefusal> {
    guard var factor = try totp(of: user.id), factor.confirmedAt != nil else { return .failure(.notEnabled) }
    let subject = AttemptLimiter.secondFactor(of: user.id)
    var limiter = try limiter(on: subject) ?? AttemptLimiter(at: now)
    if let refusal = limiter.refusal(at: now) {
      try noteRefusal(.codeThrottled, refusal, of: user, by: caller, at: now)
      return .failure(refusal)
    }
    limiter.count(at: now)
    let judged = try compare(guess, method: method, with: &factor, of: user, vault, at: now)
    let account = user.username.key
    switch judged {
    case .success(let used):
      limiter.release(at: now)
      try note(
        used == .backup ? .backupCodeSpent : .codeAccepted, by: caller, account: account, ["factor=\(used.rawValue)"],
        at: now)
    case .failure(let refusal): try noteRefusal(.codeRefused, refusal, of: user, by: caller, at: now)
    }
    try save(limiter, on: subject, account: account)
    return judged
  }

  /// Notes that a guess at the second factor was not taken, or not looked at.
  func noteRefusal(
    _ event: AuditEvent, _ refusal: MFARefusal, of user: User, by caller: Caller, at now: Timestamp
  ) throws {
    try note(event, by: caller, account: user.username.key, ["factor=second", "reason=\(refusal.cause)"], at: now)
  }

  private func compare(
    _ guess: CodeGuess, method: SecondFactorMethod?, with factor: inout TOTPFactor, of user: User, _ vault: Vault,
    at now: Timestamp
  ) throws -> Result<SecondFactorMethod, MFARefusal> {
    let secret = try vault.open(factor.secret, for: Authenticator.place(user.id))
    if method ?? .totp == .totp, guess.isDigits,
      let step = factor.parameters.matchingStep(guess.text, secret, at: now, after: factor.lastStep)
    {
      factor.lastStep = step
      try save(factor)
      return .success(.totp)
    }
    if method ?? .email == .email, guess.isDigits,
      var code = try newestCode(for: EmailCodes.subject(user.id), .email), !code.isSpent,
      code.failures < code.channel.mostFailures
    {
      let isRight = constantTimeEqual(SMSCodes.hash(guess.text, of: code.id, in: vault), code.hash)
      if now >= code.expiresAt { return .failure(isRight || method == .email ? .codeExpired : .codeInvalid(.wrong)) }
      code.failures += 1
      code.isSpent = isRight
      try update(code)
      if isRight { return .success(.email) }
    }
    if method ?? .backup == .backup, guess.mayBeBackupCode,
      try spendBackupCode(Authenticator.hash(guess.text, of: user.id, vault), of: user.id, at: now)
    {
      return .success(.backup)
    }
    return .failure(.codeInvalid(try wasUsed(guess, factor, secret, of: user, vault, at: now) ? .used : .wrong))
  }

  /// Whether a guess that is not taken would have been before: for the history. All is looked at whatever is found, so
  /// that a used code and a wrong one take the same time.
  private func wasUsed(
    _ guess: CodeGuess, _ factor: TOTPFactor, _ secret: [UInt8], of user: User, _ vault: Vault, at now: Timestamp
  ) throws -> Bool {
    let ofAuthenticator = factor.parameters.matchingStep(guess.text, secret, at: now, after: -1) != nil
    let mailed = try newestCode(for: EmailCodes.subject(user.id), .email)
    let ofMail =
      mailed.map { $0.isSpent && constantTimeEqual(SMSCodes.hash(guess.text, of: $0.id, in: vault), $0.hash) }
      ?? false
    let ofPaper = try isSpentBackupCode(Authenticator.hash(guess.text, of: user.id, vault), of: user.id)
    return ofAuthenticator || ofMail || ofPaper
  }
}

extension AttemptLimiter {
  /// The subject against which guesses at a user's second factor are counted.
  static func secondFactor(of userID: UUID) -> String { "mfa:\(userID.uuidString.lowercased())" }
}
