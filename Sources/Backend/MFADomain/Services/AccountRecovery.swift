internal import ByteCoding
internal import Foundation

/// Recovers the account of a user who has lost every device: by a backup code, after a waiting time in which the
/// recovery can be stopped.
public struct AccountRecovery: Sendable {
  let context: DomainContext

  public init(_ context: DomainContext) { self.context = context }

  /// The response to a client that begins a recovery.
  public struct Start: Sendable, Hashable {
    public let recovery: Recovery
    /// `.ready` for a client that repeats its call after the wait.
    public let state: Recovery.State
    /// Completes the recovery, once, from the same app instance.
    public let token: String
    /// The number of unused backup codes. One of them may be needed for the second factor.
    public let codesRemaining: Int
  }

  /// Begins a recovery by a backup code, which is spent, and sends the messages about it.
  ///
  /// An unknown name gets the response of a wrong code. Of concurrent calls with one code, one begins. A client that
  /// lost the response gets it again by the same code from the same app instance. A recovery begins only if every
  /// number and mailbox of the account can be informed: an attacker could otherwise use the messages up first.
  ///
  /// - Throws: `.notFound` if recoveries are off; `.recoveryWaits` for a right code while one is open; `.codeInvalid`;
  ///   `.rateLimited`; `.accountLocked`.
  public func start(_ username: Username, _ code: CodeGuess, by caller: Caller) async throws -> Start {
    guard let wait = context.policy.recoveryWait else { throw MFARefusal.notFound }
    let draft = PreparedRecovery(context.entropy, wait: wait)
    let (recovery, state, codes) = try await context.write(by: caller) { work in
      let recovery: Recovery
      switch try work.judgeRecoveryCode(code, for: username, draft) {
      case .again(let open):
        recovery = open
        work.wakeSockets(of: open.userID)
      case .right(let user, let hash):
        let recipients = try work.recipients(of: user)
        try work.checkMessages(to: recipients, about: user)
        recovery = try work.begin(draft, for: user, by: hash, informing: recipients)
        work.send(recovery, of: user, to: recipients)
      }
      return (recovery, recovery.state(at: work.now), try work.records.countBackupCodes(of: recovery.userID))
    }
    return Start(
      recovery: recovery, state: state, token: RecoveryToken(recovery: recovery.id).text(in: context.vault),
      codesRemaining: codes)
  }

  /// The recovery of `token`, for the app instance that began it. It may have ended.
  ///
  /// - Throws: `.codeInvalid` for any other token and caller.
  public func recovery(of token: String, for caller: Caller) async throws -> (recovery: Recovery, state: Recovery.State)
  {
    guard let token = RecoveryToken(token, in: context.vault) else { throw MFARefusal.codeInvalid(.noCode) }
    return try await context.read(by: caller) { work in
      guard let recovery = try work.records.recovery(token.recovery), recovery.binding == caller.identity.binding
      else { throw MFARefusal.codeInvalid(.noCode) }
      return (recovery, recovery.state(at: work.now))
    }
  }

  /// The open recovery of the caller's own account; `nil` if there is none.
  public func open(for caller: Caller) async throws -> Recovery? {
    try await context.read(by: caller) { work in
      let (_, user) = try work.session()
      return try work.records.unendedRecovery(of: user.id).flatMap { $0.isOpen(at: work.now) ? $0 : nil }
    }
  }

  /// Stops the recovery of the caller's own account. Any full session may do that without a recent proof: a stopped
  /// recovery can be begun again.
  ///
  /// - Throws: `.notFound` if none is open.
  public func cancel(by caller: Caller) async throws {
    try await context.write(by: caller) { work in
      let (_, user) = try work.session()
      guard try work.cancelRecovery(of: user, .session) else { throw MFARefusal.notFound }
    }
  }

  /// Stops the recovery of an account by the code in the messages to the account's numbers and mailbox.
  ///
  /// - Throws: `.codeInvalid` alike for a wrong code, an unknown name, and an account without an open recovery; the
  ///   refusal of the attempt limit.
  public func stop(_ username: Username, _ code: CodeGuess, by caller: Caller) async throws {
    try await context.write(by: caller) { work in
      let (records, now) = (work.records, work.now)
      let user = try records.user(named: username)
      let account = user?.username.key ?? username.key
      let subject = "recovery-stop:\(account):\(caller.identity.subject)"
      var limiter = try work.attemptLimiter(on: subject, account: account)
      if let refusal = limiter.refusal(at: now) { throw try work.refuseRecovery("stop", refusal, account: account) }
      limiter.count(at: now)
      var recovery = try records.unendedRecovery(of: user?.id ?? .unknownUser)
      let isOpen = recovery.map { $0.isOpen(at: now) && $0.stopFailures < Recovery.mostStopFailures } ?? false
      let stopCode = PreparedRecovery.stopCode(of: recovery?.id ?? .unknownUser, in: work.vault)
      let isRight = constantTimeEqual(Array(stopCode.utf8), Array(code.text.utf8))
      guard let user, isOpen, isRight else {
        try records.save(limiter, on: subject, account: account)
        recovery?.stopFailures += 1
        if let recovery { try records.update(recovery) }
        throw try work.refuseRecovery("stop", .codeInvalid(isOpen ? .wrong : .noCode), account: account)
      }
      limiter.release(at: now)
      try records.save(limiter, on: subject, account: account)
      _ = try work.cancelRecovery(of: user, .code)
    }
  }
}

/// Completes a recovery: its id, and a MAC that only this server can make.
struct RecoveryToken: Sendable, Hashable {
  let recovery: UUID

  init(recovery: UUID) { self.recovery = recovery }

  /// Parses `text`; `nil` unless this server made it, in exactly this form.
  init?(_ text: String, in vault: Vault) {
    guard text.utf8.count <= 128 else { return nil }
    let parts = text.split(atBytes: UInt8(ascii: "."))
    guard parts.count == 2, let id = UUID(text: String(parts[0])),
      let mac = Base64URL.decode(parts[1]), constantTimeEqual(mac, Self.mac(id, vault)),
      parts[0] == id.text
    else { return nil }
    recovery = id
  }

  func text(in vault: Vault) -> String {
    "\(recovery.text).\(Base64URL.encode(Self.mac(recovery, vault)))"
  }

  private static func mac(_ id: UUID, _ vault: Vault) -> [UInt8] {
    vault.hash(id.text, as: "recovery token")
  }
}

/// The reasons why a recovery is stopped.
enum RecoveryStopper: String {
  /// By a full session of the account.
  case session
  /// By a recipient of the message.
  case code
  case `operator`
  /// The backup codes that it was begun by were replaced or removed.
  case codesReplaced = "codes_replaced"
}

extension UnitOfWork {
  /// Stops the recovery of `user`, and returns whether one was open.
  func cancelRecovery(of user: User, _ stopper: RecoveryStopper) throws -> Bool {
    guard var recovery = try records.unendedRecovery(of: user.id), recovery.isOpen(at: now) else { return false }
    recovery.end(.cancelled, at: now)
    try records.update(recovery)
    try note(
      .recoveryCancelled, of: user,
      ["recovery=\(recovery.id.text)", "by=\(stopper.rawValue)"])
    try notify(user.id, of: .recoveryCancelled, concerning: recovery.id.text)
    return true
  }

  /// Records that a step of a recovery was refused, and returns the refusal to throw.
  ///
  /// - Parameters:
  ///   - step: `start`, `complete` or `stop`.
  ///   - cause: the reason for the history, if it is not that of `refusal`.
  ///   - account: the key of the account's name.
  func refuseRecovery(
    _ step: String, _ refusal: MFARefusal, cause: String? = nil, account: String
  ) throws -> RecordedRefusal {
    try note(.recoveryRefused, account: account, ["operation=\(step)", "reason=\(cause ?? refusal.cause)"])
    return RecordedRefusal(refusal)
  }
}

extension UUID {
  /// The id of no user and of no recovery.
  static let unknownUser = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
}
