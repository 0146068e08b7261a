internal import ByteCoding
internal import Foundation

/// The way back for a user who has lost every device: a code on paper, and a time of waiting in which it can be
/// stopped.
public struct AccountRecovery: Sendable {
  let context: DomainContext

  public init(_ context: DomainContext) { self.context = context }

  /// What the client that begins a recovery gets.
  public struct Start: Sendable, Hashable {
    public let recovery: Recovery
    /// Completes it, once, from the same app instance.
    public let token: String
    /// How many codes are left on the paper, of which one may be needed for the second factor.
    public let codesRemaining: Int
  }

  /// Begins a recovery by a backup code, which it uses up, and sends the notices.
  ///
  /// An unknown name is answered like a wrong code. Of concurrent calls with one code, one begins; a client that lost
  /// the answer gets it again by the same code from the same app instance. A recovery begins only if it can be
  /// announced to every number and mailbox of the account: an attacker could otherwise use the messages up first.
  ///
  /// - Throws: `.notFound` if recoveries are off; `.recoveryWaits` for a right code while one is open.
  public func start(_ username: Username, _ code: CodeGuess, by caller: Caller) async throws -> Start {
    guard let wait = context.policy.recoveryWait else { throw MFARefusal.notFound }
    let now = context.clock.now()
    let draft = RecoveryDraft(caller, context)
    let outcome = try await context.store.write {
      [context] records -> Result<(recovery: Recovery, codes: Int, messages: [OutgoingMessage]), MFARefusal> in
      switch try records.judgeRecoveryCode(code, for: username, draft, context.vault, at: now) {
      case .failure(let refusal): return .failure(refusal)
      case .success(.again(let recovery)):
        return .success((recovery, try records.countBackupCodes(of: recovery.userID), []))
      case .success(.right(let user, let hash)):
        let told = try Recipient.all(of: user, context.vault, in: records)
        if let refusal = try records.refusalOfBeginning(told, for: user, draft, context, at: now) {
          return .failure(refusal)
        }
        let recovery = try records.begin(draft, for: user, by: hash, wait: wait, told, context, at: now)
        return .success(
          (
            recovery, try records.countBackupCodes(of: user.id),
            recovery.notices(to: told, context.vault, at: now)
          ))
      }
    }
    let (recovery, codes, messages) = try outcome.get()
    for message in messages { context.outbox.send(message) }
    context.hub.notify(for: recovery.userID)
    return Start(
      recovery: recovery, token: RecoveryToken(recovery: recovery.id).text(in: context.vault), codesRemaining: codes)
  }

  /// The recovery that `token` is of, for the app instance that began it. It may have ended.
  ///
  /// - Throws: `.codeInvalid` for any other token and caller.
  public func recovery(of token: String, for caller: Caller) async throws -> (recovery: Recovery, state: Recovery.State)
  {
    let now = context.clock.now()
    guard let token = RecoveryToken(token, in: context.vault),
      let recovery = try await context.store.read({ try $0.recovery(token.recovery) }),
      recovery.binding == caller.identity.binding
    else { throw MFARefusal.codeInvalid(.noCode) }
    return (recovery, recovery.state(at: now))
  }

  /// The open recovery of the caller's own account; `nil` if there is none.
  public func open(for caller: Caller) async throws -> Recovery? {
    let now = context.clock.now()
    return try await context.store.read { records in
      let (_, user) = try records.session(of: caller, at: now)
      return try records.unendedRecovery(of: user.id).flatMap { $0.isOpen(at: now) ? $0 : nil }
    }
  }

  /// Stops the recovery of the caller's own account. Any full session may, however long ago it was proved: what is
  /// stopped can be begun again.
  ///
  /// - Throws: `.notFound` if none is open.
  public func cancel(by caller: Caller) async throws {
    let now = context.clock.now()
    let userID = try await context.store.write { records in
      let (_, user) = try records.session(of: caller, at: now)
      guard try records.cancelRecovery(of: user, .session, by: caller, at: now) else {
        throw MFARefusal.notFound
      }
      return user.id
    }
    context.hub.notify(for: userID)
  }

  /// Stops the recovery of an account by the code that the account's numbers and mailbox were told.
  ///
  /// - Throws: `.codeInvalid` alike for a wrong code, a name that is not known, and an account without an open
  ///   recovery.
  public func stop(_ username: Username, _ code: CodeGuess, by caller: Caller) async throws {
    let now = context.clock.now()
    let outcome = try await context.store.write { [vault = context.vault] records -> Result<UUID, MFARefusal> in
      let user = try records.user(named: username)
      let subject = "recovery-stop:\(username.key):\(caller.identity.subject)"
      var limiter = try records.limiter(on: subject) ?? AttemptLimiter(at: now)
      func refuse(_ refusal: MFARefusal) throws -> Result<UUID, MFARefusal> {
        try records.noteRefusedRecovery("stop", refusal.cause, by: caller, account: username.key, at: now)
        return .failure(refusal)
      }
      if let refusal = limiter.refusal(at: now) { return try refuse(refusal) }
      limiter.count(at: now)
      var recovery = try records.unendedRecovery(of: user?.id ?? .unknownUser)
      let isOpen = recovery.map { $0.isOpen(at: now) && $0.stopFailures < Recovery.mostStopFailures } ?? false
      let stopCode = RecoveryDraft.stopCode(of: recovery?.id ?? .unknownUser, in: vault)
      let isRight = constantTimeEqual(Array(stopCode.utf8), Array(code.text.utf8))
      guard let user, isOpen, isRight else {
        try records.save(limiter, on: subject, account: username.key)
        recovery?.stopFailures += 1
        if let recovery { try records.update(recovery) }
        return try refuse(.codeInvalid(isOpen ? .wrong : .noCode))
      }
      limiter.release(at: now)
      try records.save(limiter, on: subject, account: username.key)
      _ = try records.cancelRecovery(of: user, .code, by: caller, at: now)
      return .success(user.id)
    }
    context.hub.notify(for: try outcome.get())
  }
}

/// What completes a recovery: its id, and a MAC that only this server makes.
struct RecoveryToken: Sendable, Hashable {
  let recovery: UUID

  init(recovery: UUID) { self.recovery = recovery }

  /// The token that `text` is, if this server made it, written as the server writes it.
  init?(_ text: String, in vault: Vault) {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard text.utf8.count <= 128, parts.count == 2, let id = UUID(uuidString: String(parts[0])),
      let mac = Base64URL.decode(parts[1]), constantTimeEqual(mac, Self.mac(id, vault)),
      parts[0] == id.uuidString.lowercased()
    else { return nil }
    recovery = id
  }

  func text(in vault: Vault) -> String {
    "\(recovery.uuidString.lowercased()).\(Base64URL.encode(Self.mac(recovery, vault)))"
  }

  private static func mac(_ id: UUID, _ vault: Vault) -> [UInt8] {
    vault.hash(id.uuidString.lowercased(), as: "recovery token")
  }
}

/// Who may stop a recovery.
enum RecoveryStopper: String {
  /// Any full session of the account.
  case session
  /// A reader of the notice.
  case code
  case `operator`
  /// New codes on paper took the place of those that it was begun by, or the codes were taken away.
  case codesReplaced = "codes_replaced"
}

extension RecoveryRecords where Self: AuditRecords & NoticeRecords {
  /// Stops the recovery of `user`, and says whether one was open.
  func cancelRecovery(
    of user: User, _ stopper: RecoveryStopper, by actor: some HistoryActor, at now: Timestamp
  ) throws -> Bool {
    guard var recovery = try unendedRecovery(of: user.id), recovery.isOpen(at: now) else { return false }
    recovery.end(.cancelled, at: now)
    try update(recovery)
    try note(
      .recoveryCancelled, by: actor, account: user.username.key,
      ["recovery=\(recovery.id.uuidString.lowercased())", "by=\(stopper.rawValue)"], at: now)
    _ = try append(
      .recoveryCancelled, to: user.id, concerning: recovery.id.uuidString.lowercased(), at: now)
    return true
  }
}

extension UnitOfWork {
  /// Stops the recovery of `user`, and returns whether one was open.
  func cancelRecovery(of user: User, _ stopper: RecoveryStopper) throws -> Bool {
    wakeSockets(of: user.id)
    return try records.cancelRecovery(of: user, stopper, by: initiator, at: now)
  }
}

extension AuditRecords {
  /// - Parameter step: what was refused: `start`, `complete` or `stop`.
  func noteRefusedRecovery(
    _ step: String, _ reason: String, by caller: Caller, account: String, at now: Timestamp
  ) throws {
    try note(.recoveryRefused, by: caller, account: account, ["operation=\(step)", "reason=\(reason)"], at: now)
  }
}

extension UUID {
  /// No user's and no recovery's id.
  static let unknownUser = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
}
