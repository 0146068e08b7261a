internal import ByteCoding
internal import Foundation

/// Codes that bring another device into an account.
public struct Linking: Sendable {
  let context: DomainContext

  public init(_ context: DomainContext) { self.context = context }

  /// A code that a new device of the caller's account enrols with, once, within its life. An older one is void.
  public func code(for caller: Caller) async throws -> String {
    let now = context.clock.now()
    let (code, id) = (BackupCode.make(context.entropy), context.entropy.uuid())
    try await context.store.write { [context] records in
      let (_, user) = try records.freshSession(of: caller, maximumAge: context.policy.freshProof, at: now)
      try Self.insert(
        code, id, from: .user, for: user, lifetime: OneTimeCode.lifetime, context.vault, in: records, at: now)
      try records.note(.linkCodeMade, by: caller, account: user.username.key, at: now)
    }
    return code
  }

  /// Who gives a code out. Each giver's codes stand apart: a newer one of the user does not void the operator's.
  enum LinkIssuer: String, CaseIterable { case `operator`, user }

  static func insert(
    _ code: String, _ id: UUID, from giver: LinkIssuer, for user: User, lifetime: Duration, _ vault: Vault,
    in records: any Records, at now: Timestamp
  ) throws {
    try records.insert(
      OneTimeCode(
        id: id, subject: subject(user, giver), channel: .link, hash: SMSCodes.hash(code, of: id, in: vault),
        target: vault.hash(id.uuidString, as: "no target"), createdAt: now, expiresAt: now.advanced(by: lifetime),
        isClaimed: true))
  }

  /// Uses a code up; a wrong one is counted against the code, and against the app instance that guessed.
  ///
  /// - Parameter user: the user of `username`; a name without a user, mistyped or guessed, has no code, and its
  ///   guesses are counted alike.
  static func judge(
    _ guess: CodeGuess, for user: User?, named username: Username, by caller: Caller, _ vault: Vault,
    in records: any Records, at now: Timestamp
  ) throws -> Result<Void, MFARefusal> {
    let account = username.key
    if user?.lockedAt != nil {
      let refusal = MFARefusal.accountLocked(retryAfter: nil)
      try records.noteRefusedCode(refusal, .link, by: caller, account: account, at: now)
      return .failure(refusal)
    }
    let subject = user.map { Self.subject($0, .user) } ?? "link:name:\(account)"
    func isRight(_ code: OneTimeCode) -> Bool {
      constantTimeEqual(SMSCodes.hash(guess.text, of: code.id, in: vault), code.hash)
    }
    let codes = try user.map { user in
      try LinkIssuer.allCases.compactMap { try records.newestCode(for: Self.subject(user, $0), .link) }
    }
    let open = (codes ?? []).filter { $0.isOpen(at: now) }
    // Which code it is decides whose it is; whether it may be looked at at all is decided by `judge`.
    let meant = open.first(where: isRight) ?? open.first
    return try records.judge(
      .link, for: meant?.subject ?? subject, limiting: "\(subject):\(caller.identity.subject)", by: caller,
      account: account, at: now
    ) {
      isRight($0) ? () : nil
    } then: {
    }
  }

  /// Puts the code that `giver` gave out last out of use.
  static func void(_ giver: LinkIssuer, for user: User, in records: some CodeRecords) throws {
    guard var code = try records.newestCode(for: subject(user, giver), .link) else { return }
    code.isSpent = true
    try records.update(code)
  }

  private static func subject(_ user: User, _ giver: LinkIssuer) -> String {
    (giver == .user ? "link:" : "recovery:") + user.id.uuidString.lowercased()
  }
}
