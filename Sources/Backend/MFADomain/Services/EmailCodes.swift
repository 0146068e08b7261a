internal import ByteCoding
internal import Foundation

/// Codes by e-mail: as a second factor, and to confirm an address.
public struct EmailCodes: Sendable {
  let context: DomainContext

  public init(_ context: DomainContext) { self.context = context }

  static func subject(_ userID: UUID) -> String { "email:\(userID.text)" }
  static func place(_ userID: UUID) -> String { "user:\(userID.text):email" }

  /// A code that was drawn before it is decided whether it is sent.
  fileprivate struct PreparedCode: Sendable {
    let code: String
    let id: UUID
    let tally: SendTally

    init(_ caller: Caller, _ context: DomainContext) {
      code = OneTimeCode.makeDigits(6, context.entropy)
      id = context.entropy.uuid()
      tally = SendTally(caller, context)
    }
  }

  /// Sends a code to the user's address.
  ///
  /// - Throws: `.noEmailAddress` if there is none. The caller has proved a factor of the account and can read the same
  ///   in its status. `.rateLimited` if a limit is reached.
  public func send(by caller: Caller) async throws {
    let draft = PreparedCode(caller, context)
    try await context.write(by: caller) { work in
      let (_, user) = try work.session(scope: .pending)
      guard let sealed = try work.records.email(of: user.id) else {
        try work.noteSend(.email, isSent: false, account: user.username.key)
        throw RecordedRefusal(.noEmailAddress)
      }
      let address = try EmailAddress(trusted: work.vault.openText(sealed, for: Self.place(user.id)))
      try work.send(draft, to: address, isConfirmed: true, of: user)
    }
  }

  /// Sends a code to an address that the user wants to confirm.
  ///
  /// A confirmed address is another second factor. Where there is one already, the session must have given it.
  public func offer(_ address: EmailAddress, by caller: Caller) async throws {
    let draft = PreparedCode(caller, context)
    try await context.write(by: caller) { work in
      let (session, user) = try work.freshSession()
      try work.records.admitToFactors(session)
      try work.send(draft, to: address, isConfirmed: false, of: user)
    }
  }

  /// Confirms the address by the code that was sent there.
  ///
  /// Only the newest offer can be confirmed. Wrong codes count against the account, whatever addresses they name.
  public func confirm(_ address: EmailAddress, _ code: String, by caller: Caller) async throws {
    let guess = try CodeGuess(code)
    try await context.write(by: caller) { work in
      let (session, user) = try work.session()
      try work.records.admitToFactors(session)
      let target = CodeTarget(address.key, isConfirmed: false, in: work.vault)
      try work.judge(CodeAttempt(.email, for: Self.offers(user.id), account: user.username.key)) { code in
        let isRight = constantTimeEqual(SMSCodes.hash(guess.text, of: code.id, in: work.vault), code.hash)
        return constantTimeEqual(target.hash, code.target) && isRight ? () : nil
      } then: {
        try work.records.saveEmail(work.vault.seal(address.text, for: Self.place(user.id)), of: user.id)
        try work.note(.emailConfirmed, of: user)
        try work.notify(user.id, of: .emailConfirmed)
      }
    }
  }

  /// The subject of codes to unconfirmed addresses: one count for all addresses that an account offers.
  fileprivate static func offers(_ userID: UUID) -> String { "\(subject(userID)):offer" }
}

extension UnitOfWork where Initiator == Caller {
  /// Inserts the code of `draft` and queues its message.
  ///
  /// - Throws: `RecordedRefusal` if a limit is reached.
  fileprivate func send(
    _ draft: EmailCodes.PreparedCode, to address: EmailAddress, isConfirmed: Bool, of user: User
  ) throws {
    let target = CodeTarget(address.key, isConfirmed: isConfirmed, in: vault)
    let subject = isConfirmed ? EmailCodes.subject(user.id) : EmailCodes.offers(user.id)
    let account = user.username.key
    // A code is confirmed for the address that it went to, and counted for the mailbox.
    let mailbox = vault.hash(address.mailbox, as: isConfirmed ? "mailbox" : "unconfirmed mailbox")
    try admit(
      CodeSending(
        channel: .email, subject: subject, target: target, account: account, sharedCount: mailbox, tally: draft.tally))
    try records.insert(
      OneTimeCode(
        id: draft.id, subject: subject, channel: .email, hash: SMSCodes.hash(draft.code, of: draft.id, in: vault),
        target: target.hash, createdAt: now, expiresAt: now.advanced(by: OneTimeCode.lifetime), isClaimed: true))
    try noteSend(.email, isSent: true, account: account)
    send(
      OutgoingMessage(
        destination: .email(address), code: draft.code, lifetime: OneTimeCode.lifetime,
        languages: caller.languages.followed(by: Languages(tag: user.language))))
  }
}
