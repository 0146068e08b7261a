internal import ByteCoding
internal import Foundation

/// Codes that bring another device into an account.
public struct Linking: Sendable {
  let premises: Premises

  public init(_ premises: Premises) { self.premises = premises }

  /// A code that a new device of the caller's account enrols with, once, within its life. An older one is void.
  public func code(for caller: Caller) async throws -> String {
    let now = premises.clock.now()
    let (code, id) = (BackupCode.make(premises.entropy), premises.entropy.uuid())
    try await premises.store.write { [premises] records in
      let (_, user) = try records.freshSession(of: caller, maximumAge: premises.policy.freshProof, at: now)
      try Self.insert(code, id, for: user, lifetime: OneTimeCode.lifetime, premises.vault, in: records, at: now)
      try records.note(.linkCodeMade, by: caller, account: user.username.key, at: now)
    }
    return code
  }

  static func insert(
    _ code: String, _ id: UUID, for user: User, lifetime: Duration, _ vault: Vault, in records: any Records,
    at now: Timestamp
  ) throws {
    try records.insert(
      OneTimeCode(
        id: id, subject: subject(user), channel: .link, hash: TextedCodes.hash(code, of: id, in: vault),
        target: vault.hash(id.uuidString, as: "no target"), createdAt: now, expiresAt: now.advanced(by: lifetime),
        isClaimed: true))
  }

  /// Uses a code up; a wrong one is counted against the code, and against the app instance that guessed.
  static func judge(
    _ guess: CodeGuess, for user: User, by caller: Caller, _ vault: Vault, in records: any Records, at now: Timestamp
  ) throws -> Result<Void, Refusal> {
    if user.lockedAt != nil { return .failure(.accountLocked(retryAfter: nil)) }
    return try records.judge(
      .link, for: subject(user), braking: "\(subject(user)):\(caller.identity.subject)", by: caller,
      account: user.username.key, at: now
    ) { code in
      constantTimeEqual(TextedCodes.hash(guess.text, of: code.id, in: vault), code.hash)
    } then: {
    }
  }

  private static func subject(_ user: User) -> String { "link:\(user.id.uuidString.lowercased())" }
}
