internal import ByteCoding
internal import Foundation

/// Codes by e-mail: as a second factor, and to confirm an address.
public struct MailedCodes: Sendable {
  let premises: Premises

  public init(_ premises: Premises) { self.premises = premises }

  static func subject(_ userID: UUID) -> String { "email:\(userID.uuidString.lowercased())" }
  static func place(_ userID: UUID) -> String { "user:\(userID.uuidString.lowercased()):email" }

  /// Sends a code to the user's address. A user without one is answered alike.
  public func send(by caller: Caller) async throws {
    let now = premises.clock.now()
    let (code, id) = (OneTimeCode.makeDigits(6, premises.entropy), premises.entropy.uuid())
    let tally = SendTally(caller, premises)
    let outcome = try await premises.store.write { [premises] records -> Result<OutgoingMessage?, Refusal> in
      let (_, user) = try records.session(of: caller, scope: .pending, at: now)
      let address = try records.email(of: user.id).map {
        try EmailAddress(premises.vault.openText($0, for: Self.place(user.id)))
      }
      return try Self.draft(
        code, id, to: address, isConfirmed: true, for: Self.subject(user.id), user, tally, premises, by: caller,
        in: records,
        at: now)
    }
    if let message = try outcome.get() { premises.outbox.send(message) }
  }

  /// Sends a code to an address that the user wants to have codes at. That makes another second factor, so where there is
  /// one already it takes a session that has given it.
  public func offer(_ address: EmailAddress, by caller: Caller) async throws {
    let now = premises.clock.now()
    let (code, id) = (OneTimeCode.makeDigits(6, premises.entropy), premises.entropy.uuid())
    let tally = SendTally(caller, premises)
    let outcome = try await premises.store.write { [premises] records -> Result<OutgoingMessage?, Refusal> in
      let (session, user) = try records.freshSession(of: caller, maximumAge: premises.policy.freshProof, at: now)
      try records.admitToFactors(session)
      let subject = Self.confirmation(of: address, user.id, premises.vault)
      return try Self.draft(
        code, id, to: address, isConfirmed: false, for: subject, user, tally, premises, by: caller, in: records, at: now
      )
    }
    if let message = try outcome.get() { premises.outbox.send(message) }
  }

  /// Takes the address for the user's own, for the code that went there.
  public func confirm(_ address: EmailAddress, _ code: String, by caller: Caller) async throws {
    let now = premises.clock.now()
    let guess = try CodeGuess(code)
    let outcome = try await premises.store.write { [premises] records -> Result<UUID, Refusal> in
      let (session, user) = try records.session(of: caller, at: now)
      try records.admitToFactors(session)
      let subject = Self.confirmation(of: address, user.id, premises.vault)
      return try records.judge(.email, for: subject, by: caller, account: user.username.key, at: now) { code in
        constantTimeEqual(TextedCodes.hash(guess.text, of: code.id, in: premises.vault), code.hash) ? () : nil
      } then: {
        try records.saveEmail(premises.vault.seal(address.text, for: Self.place(user.id)), of: user.id)
        try records.note(.emailConfirmed, by: caller, account: user.username.key, at: now)
        _ = try records.append(.emailConfirmed, to: user.id, concerning: nil, at: now)
        return user.id
      }
    }
    premises.bell.ring(for: try outcome.get())
  }

  private static func confirmation(of address: EmailAddress, _ userID: UUID, _ vault: Vault) -> String {
    "\(subject(userID)):\(Hex.encode(vault.hash(address.key, as: "address").prefix(16)))"
  }

  private static func draft(
    _ code: String, _ id: UUID, to address: EmailAddress?, isConfirmed: Bool, for subject: String,
    _ user: User, _ tally: SendTally, _ premises: Premises, by caller: Caller, in records: any Records,
    at now: Timestamp
  ) throws -> Result<OutgoingMessage?, Refusal> {
    let vault = premises.vault
    let target =
      address.map { CodeTarget($0.key, isConfirmed: isConfirmed, in: vault) }
      ?? CodeTarget(standingIn: vault.hash(subject, as: "no target"))
    let account = user.username.key
    let refusal = try records.refusalOfSending(
      to: target, for: subject, account: account, tally, .email, premises.policy, by: caller, at: now)
    if let refusal { return .failure(refusal) }
    try records.countSend(tally, .email, at: now)
    try records.insert(
      OneTimeCode(
        id: id, subject: subject, channel: .email,
        hash: address == nil ? target.hash : TextedCodes.hash(code, of: id, in: vault), target: target.hash,
        createdAt: now, expiresAt: now.advanced(by: OneTimeCode.lifetime), isClaimed: true))
    try records.noteSend(.email, isSent: address != nil, by: caller, account: account, at: now)
    return .success(
      address.map { OutgoingMessage(destination: .email($0), code: code, lifetime: OneTimeCode.lifetime) })
  }
}
