internal import ByteCoding
internal import Foundation

/// Link codes, which bring another device into an account.
public struct Linking: Sendable {
  let context: DomainContext

  public init(_ context: DomainContext) { self.context = context }

  /// Returns a code that enrols one new device in the caller's account, once. An older code becomes invalid.
  ///
  /// - Throws: what `UnitOfWork.freshSession` throws.
  public func code(for caller: Caller) async throws -> String {
    let code = LinkCode(context.entropy, from: .user, lifetime: OneTimeCode.lifetime)
    try await context.write(by: caller) { work in
      let (_, user) = try work.freshSession()
      try work.insert(code, for: user)
      try work.note(.linkCodeMade, of: user)
    }
    return code.text
  }

  /// The issuer of a code. The codes of each issuer are separate: a newer one of the user does not replace the
  /// operator's.
  enum LinkIssuer: String, CaseIterable { case `operator`, user }

  /// Makes the last code of `issuer` invalid.
  static func void(_ issuer: LinkIssuer, for user: User, in records: some CodeRecords) throws {
    guard var code = try records.newestCode(for: subject(user.id, issuer), .link) else { return }
    code.isSpent = true
    try records.update(code)
  }

  fileprivate static func subject(_ userID: UUID, _ issuer: LinkIssuer) -> String {
    (issuer == .user ? "link:" : "recovery:") + userID.text
  }
}

/// A link code that was drawn, to be inserted by a unit of work.
struct LinkCode: Sendable {
  let text: String
  let id: UUID
  let issuer: Linking.LinkIssuer
  let lifetime: Duration

  init(_ entropy: Entropy, from issuer: Linking.LinkIssuer, lifetime: Duration) {
    text = BackupCode.make(entropy)
    id = entropy.uuid()
    self.issuer = issuer
    self.lifetime = lifetime
  }
}

extension UnitOfWork {
  /// Inserts a link code for `user`.
  func insert(_ code: LinkCode, for user: User) throws {
    try records.insert(
      OneTimeCode(
        id: code.id, subject: Linking.subject(user.id, code.issuer), channel: .link,
        hash: SMSCodes.hash(code.text, of: code.id, in: vault),
        target: vault.hash(code.id.uuidString, as: "no target"), createdAt: now,
        expiresAt: now.advanced(by: code.lifetime), isClaimed: true))
  }
}

extension UnitOfWork where Initiator == Caller {
  /// Spends a link code of the account.
  ///
  /// A wrong code is counted against the code, and against the app instance that guessed.
  ///
  /// - Parameter user: the user of `username`. A name without a user has no code; its guesses are counted alike.
  /// - Returns: The code as it was before.
  /// - Throws: `RecordedRefusal` with `.accountLocked`, or with what `judge(_:_:then:)` refuses.
  func spendLinkCode(_ guess: CodeGuess, for user: User?, named username: Username) throws -> OneTimeCode? {
    let account = user?.username.key ?? username.key
    let subject = user.map { Linking.subject($0.id, .user) } ?? "link:name:\(account)"
    func isRight(_ code: OneTimeCode) -> Bool {
      constantTimeEqual(SMSCodes.hash(guess.text, of: code.id, in: vault), code.hash)
    }
    let id = user?.id ?? .unknownUser
    let codes = try Linking.LinkIssuer.allCases.compactMap {
      try records.newestCode(for: Linking.subject(id, $0), .link)
    }
    let open = codes.filter { $0.isOpen(at: now) }
    // The guess selects the code that it is counted against. `judge` decides whether it may be compared at all. That a
    // code has expired is told to its owner alone: others would learn that the name has an account.
    let meant = open.first(where: isRight) ?? open.first ?? codes.first { now < $0.expiresAt || isRight($0) }
    let attempt = CodeAttempt(
      .link, for: meant?.subject ?? "link:name:\(account)", account: account,
      limitedSubject: "\(subject):\(caller.identity.subject)")
    return try judge(attempt) {
      isRight($0) ? () : nil
    } then: {
      // Only to a right code: the lock would tell others that the name has an account.
      guard user?.lockedAt == nil else {
        // It serves when the account is unlocked.
        if let meant { try records.update(meant) }
        throw try refuseCode(.accountLocked(retryAfter: nil), .link, account: account)
      }
      return meant
    }
  }
}
