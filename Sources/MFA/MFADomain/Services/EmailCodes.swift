internal import ByteCoding
internal import Foundation

/// Codes by e-mail: as a second factor, and to confirm an address.
public struct EmailCodes: Sendable {
  let context: DomainContext

  public init(_ context: DomainContext) { self.context = context }

  static func subject(_ userID: UUID) -> String { "email:\(userID.uuidString.lowercased())" }
  static func place(_ userID: UUID) -> String { "user:\(userID.uuidString.lowercased()):email" }

  /// Sends a code to the user's address.
  ///
  /// - Throws: `.noEmailAddress` if there is none. The caller has proved a factor of the account, so that is no news to
  ///   others; and the status says so as well.
  public func send(by caller: Caller) async throws {
    let now = context.clock.now()
    let (code, id) = (OneTimeCode.makeDigits(6, context.entropy), context.entropy.uuid())
    let tally = SendTally(caller, context)
    let outcome = try await context.store.write { [context] records -> Result<OutgoingMessage?, MFARefusal> in
      let (_, user) = try records.session(of: caller, scope: .pending, at: now)
      guard let sealed = try records.email(of: user.id) else {
        try records.noteSend(.email, isSent: false, by: caller, account: user.username.key, at: now)
        return .failure(.noEmailAddress)
      }
      let address = try EmailAddress(trusted: context.vault.openText(sealed, for: Self.place(user.id)))
      return try Self.draft(
        code, id, to: address, isConfirmed: true, for: Self.subject(user.id), user, tally, context, by: caller,
        in: records,
        at: now)
    }
    if let message = try outcome.get() { context.outbox.send(message) }
  }

  /// Sends a code to an address that the user wants to have codes at. That makes another second factor, so where
  /// there is one already it takes a session that has given it.
  public func offer(_ address: EmailAddress, by caller: Caller) async throws {
    let now = context.clock.now()
    let (code, id) = (OneTimeCode.makeDigits(6, context.entropy), context.entropy.uuid())
    let tally = SendTally(caller, context)
    let outcome = try await context.store.write { [context] records -> Result<OutgoingMessage?, MFARefusal> in
      let (session, user) = try records.freshSession(of: caller, maximumAge: context.policy.freshProof, at: now)
      try records.admitToFactors(session)
      return try Self.draft(
        code, id, to: address, isConfirmed: false, for: Self.offers(user.id), user, tally, context, by: caller,
        in: records, at: now
      )
    }
    if let message = try outcome.get() { context.outbox.send(message) }
  }

  /// Takes the address for the user's own, for the code that went there. Only the newest offer can be confirmed, and
  /// wrong codes count against the account, whatever addresses they name.
  public func confirm(_ address: EmailAddress, _ code: String, by caller: Caller) async throws {
    let now = context.clock.now()
    let guess = try CodeGuess(code)
    let outcome = try await context.store.write { [context] records -> Result<UUID, MFARefusal> in
      let (session, user) = try records.session(of: caller, at: now)
      try records.admitToFactors(session)
      let target = CodeTarget(address.key, isConfirmed: false, in: context.vault)
      return try records.judge(.email, for: Self.offers(user.id), by: caller, account: user.username.key, at: now) {
        code in
        let isRight = constantTimeEqual(SMSCodes.hash(guess.text, of: code.id, in: context.vault), code.hash)
        return constantTimeEqual(target.hash, code.target) && isRight ? () : nil
      } then: {
        try records.saveEmail(context.vault.seal(address.text, for: Self.place(user.id)), of: user.id)
        try records.note(.emailConfirmed, by: caller, account: user.username.key, at: now)
        _ = try records.append(.emailConfirmed, to: user.id, concerning: nil, at: now)
        return user.id
      }
    }
    context.hub.notify(for: try outcome.get())
  }

  /// Whose codes to addresses that are not confirmed are: one count for all addresses that an account offers.
  private static func offers(_ userID: UUID) -> String { "\(subject(userID)):offer" }

  private static func draft(
    _ code: String, _ id: UUID, to address: EmailAddress, isConfirmed: Bool, for subject: String,
    _ user: User, _ tally: SendTally, _ context: DomainContext, by caller: Caller, in records: any Records,
    at now: Timestamp
  ) throws -> Result<OutgoingMessage?, MFARefusal> {
    let vault = context.vault
    let target = CodeTarget(address.key, isConfirmed: isConfirmed, in: vault)
    let account = user.username.key
    let refusal = try records.refusalOfSending(
      to: target, for: subject, account: account, tally, .email, context.policy, by: caller, at: now)
    if let refusal { return .failure(refusal) }
    try records.countSend(tally, .email, at: now)
    try records.insert(
      OneTimeCode(
        id: id, subject: subject, channel: .email,
        hash: SMSCodes.hash(code, of: id, in: vault), target: target.hash, createdAt: now,
        expiresAt: now.advanced(by: OneTimeCode.lifetime), isClaimed: true))
    try records.noteSend(.email, isSent: true, by: caller, account: account, at: now)
    return .success(OutgoingMessage(destination: .email(address), code: code, lifetime: OneTimeCode.lifetime))
  }
}
