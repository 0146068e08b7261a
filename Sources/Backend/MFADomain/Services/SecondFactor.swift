internal import ByteCoding
internal import Foundation

/// Giving the second factor by a code.
public struct SecondFactor: Sendable {
  let context: DomainContext
  let sessions: Sessions

  public init(_ context: DomainContext) {
    self.context = context
    sessions = Sessions(context)
  }

  /// The description that a device gives of itself when it asks to be trusted. It is shown to the user and decides
  /// nothing.
  public struct Description: Sendable, Hashable {
    public let name: String
    public let userAgent: String

    public init(name: String, userAgent: String) {
      self.name = name
      self.userAgent = userAgent
    }
  }

  /// Completes the caller's session by a code of the authenticator, a code by e-mail or a backup code. The code is
  /// counted before it is compared, as one guess.
  ///
  /// - Parameters:
  ///   - method: the method that the code belongs to; `nil` to try all.
  ///   - trusting: describes the device that is trusted for 30 days; `nil` to trust none.
  /// - Throws: what `UnitOfWork.judgeSecondFactor` refuses.
  public func verify(
    _ code: String, method: SecondFactorMethod?, trusting description: Description?, by caller: Caller
  ) async throws -> (tokens: SessionTokens, trustToken: String?) {
    let guess = try CodeGuess(code)
    let trustToken = description.map { _ in Base64URL.encode(context.entropy.bytes(32)) }
    let (session, user) = try await context.write(by: caller) { work in
      var (session, user) = try work.session(scope: .pending)
      let used = try work.judgeSecondFactor(guess, method: method, of: user)
      session.prove(used.reference, at: work.now)
      try work.records.update(session)
      try work.remember(caller.identity.clientAddress, of: user, caller.identity.binding)
      if let trustToken, let description, caller.identity.binding != .debugBuild {
        try work.trust(description, trustToken, for: user)
      }
      return (session, user)
    }
    let isTrusted = trustToken != nil && caller.identity.binding != .debugBuild
    return (try await sessions.tokens(for: session, of: user), isTrusted ? trustToken : nil)
  }
}

extension UnitOfWork {
  /// Counts a guess at the second factor, compares it, and spends the code that it matches.
  ///
  /// - Throws: `RecordedRefusal` with `.codeInvalid`, `.codeExpired`, or the refusal of the attempt limit; with
  ///   `.notEnabled` for a user without an authenticator.
  func judgeSecondFactor(
    _ guess: CodeGuess, method: SecondFactorMethod?, of user: User
  ) throws -> SecondFactorMethod {
    let factor = try records.totp(of: user.id).flatMap { $0.confirmedAt == nil ? nil : $0 }
    let tokens = try records.tokens(of: user.id)
    guard factor != nil || !tokens.isEmpty else { throw RecordedRefusal(.notEnabled) }
    let subject = AttemptLimiter.secondFactor(of: user.id)
    var limiter = try attemptLimiter(on: subject, account: user.username.key)
    if let refusal = limiter.refusal(at: now) { throw try refuseSecondFactor(.codeThrottled, refusal, of: user) }
    limiter.count(at: now)
    let account = user.username.key
    let secrets = OTPSecrets(
      app: try factor.map { ($0, try vault.open($0.secret, for: Authenticator.place(user.id))) },
      tokens: try tokens.map { ($0, try vault.open($0.secret, for: OATHToken.place($0.id))) })
    switch try compare(guess, method: method, with: secrets, of: user) {
    case .success(let used):
      limiter.release(at: now)
      try note(
        used.method == .backup ? .backupCodeSpent : .codeAccepted, of: user,
        ["factor=\(used.method.rawValue)"] + (used.token.map { ["serial=\($0.text)"] } ?? []))
      try records.save(limiter, on: subject, account: account)
      return used.method
    case .failure(let refusal):
      let recorded = try refuseSecondFactor(.codeRefused, refusal, of: user)
      try records.save(limiter, on: subject, account: account)
      throw recorded
    }
  }

  /// Counts a guess at the second factor of `user`, and returns what `match` finds.
  ///
  /// - Throws: `RecordedRefusal` with the refusal of the attempt limit, before `match` is called; with `.codeInvalid` if
  ///   it finds nothing.
  func countGuess<Match>(at user: User, _ match: () throws -> Match?) throws -> Match {
    let subject = AttemptLimiter.secondFactor(of: user.id)
    var limiter = try attemptLimiter(on: subject, account: user.username.key)
    if let refusal = limiter.refusal(at: now) { throw try refuseSecondFactor(.codeThrottled, refusal, of: user) }
    limiter.count(at: now)
    guard let found = try match() else {
      try records.save(limiter, on: subject, account: user.username.key)
      throw try refuseSecondFactor(.codeRefused, .codeInvalid(.wrong), of: user)
    }
    limiter.release(at: now)
    try records.save(limiter, on: subject, account: user.username.key)
    return found
  }

  /// Records that a guess at the second factor was refused or not compared, and returns the refusal to throw.
  func refuseSecondFactor(_ event: AuditEvent, _ refusal: MFARefusal, of user: User) throws -> RecordedRefusal {
    try note(event, of: user, ["factor=second", "reason=\(refusal.cause)"])
    return RecordedRefusal(refusal)
  }

  private func compare(
    _ guess: CodeGuess, method: SecondFactorMethod?, with secrets: OTPSecrets, of user: User
  ) throws -> Result<(method: SecondFactorMethod, token: TokenSerial?), MFARefusal> {
    if method ?? .totp == .totp, guess.isDigits, let used = try spend(guess, of: secrets) { return .success(used) }
    if method ?? .email == .email, guess.isDigits,
      var code = try records.newestCode(for: EmailCodes.subject(user.id), .email), !code.isSpent,
      code.failures < code.channel.mostFailures, try wentToCurrentAddress(code, of: user)
    {
      let isRight = constantTimeEqual(SMSCodes.hash(guess.text, of: code.id, in: vault), code.hash)
      if now >= code.expiresAt { return .failure(isRight || method == .email ? .codeExpired : .codeInvalid(.wrong)) }
      code.failures += 1
      code.isSpent = isRight
      try records.update(code)
      if isRight { return .success((.email, nil)) }
    }
    if method ?? .backup == .backup, guess.mayBeBackupCode,
      try records.spendBackupCode(Authenticator.hash(guess.text, of: user.id, vault), of: user.id, at: now)
    {
      return .success((.backup, nil))
    }
    return .failure(.codeInvalid(try wasUsed(guess, secrets, of: user) ? .used : .wrong))
  }

  /// Spends the code in each authenticator and token that has it; `nil` if none has. All are compared in every case.
  private func spend(
    _ guess: CodeGuess, of secrets: OTPSecrets
  ) throws -> (method: SecondFactorMethod, token: TokenSerial?)? {
    let ofApp = secrets.app.flatMap { $0.factor.match(guess.text, $0.secret, at: now) }
    let ofTokens = secrets.tokens.map { $0.token.match(guess.text, $0.secret, at: now) }
    // Two of them may have one secret: a code that stayed valid in the other could be sent again.
    if let step = ofApp, var factor = secrets.app?.factor {
      factor.accept(step, at: now)
      try records.save(factor)
    }
    var serial: TokenSerial?
    for (var token, counter) in zip(secrets.tokens.map(\.token), ofTokens) {
      guard let counter else { continue }
      token.accept(counter, at: now)
      try records.update(token)
      if serial == nil { serial = token.serial }
    }
    if ofApp != nil { return (.totp, nil) }
    return serial.map { (.totp, $0) }
  }

  /// Whether `code` went to the address that the user has now: one to an earlier address, or to one that was removed
  /// with the authenticator, proves nothing.
  private func wentToCurrentAddress(_ code: OneTimeCode, of user: User) throws -> Bool {
    guard let sealed = try records.email(of: user.id) else { return false }
    let address = try EmailAddress(trusted: vault.openText(sealed, for: EmailCodes.place(user.id)))
    return constantTimeEqual(CodeTarget(address.key, isConfirmed: true, in: vault).hash, code.target)
  }

  /// Whether a refused guess is a code that was spent, for the history. All methods are checked in every case, so that
  /// a spent code and a wrong one take the same time.
  private func wasUsed(_ guess: CodeGuess, _ secrets: OTPSecrets, of user: User) throws -> Bool {
    let ofApp = secrets.app.map { $0.factor.match(guess.text, $0.secret, at: now, after: -1) != nil } ?? false
    let ofTokens = secrets.tokens.map { $0.token.wasSpent(guess.text, $0.secret, at: now) }
    let mailed = try records.newestCode(for: EmailCodes.subject(user.id), .email)
    let ofMail =
      mailed.map { $0.isSpent && constantTimeEqual(SMSCodes.hash(guess.text, of: $0.id, in: vault), $0.hash) }
      ?? false
    let ofPaper = try records.isSpentBackupCode(Authenticator.hash(guess.text, of: user.id, vault), of: user.id)
    return ofApp || ofTokens.contains(true) || ofMail || ofPaper
  }
}

/// The authenticator app and the tokens of a user, with their secrets.
private struct OTPSecrets {
  let app: (factor: TOTPFactor, secret: [UInt8])?
  let tokens: [(token: OATHToken, secret: [UInt8])]
}

extension AttemptLimiter {
  /// The subject against which guesses at a user's second factor are counted.
  static func secondFactor(of userID: UUID) -> String { "mfa:\(userID.text)" }
}
