internal import ByteCoding
internal import Foundation

/// The random parts of a recovery, drawn before it is decided whether one begins.
struct RecoveryDraft: Sendable {
  let caller: Caller
  let id: UUID
  let guessID: UUID

  init(_ caller: Caller, _ context: DomainContext) {
    let entropy = context.entropy
    self.caller = caller
    (id, guessID) = (entropy.uuid(), entropy.uuid())
  }

  /// The code that stops the recovery with this id. It is made of the id and stands nowhere, so that it can be told
  /// again.
  static func stopCode(of id: UUID, in vault: Vault) -> String {
    BackupCode.derive { vault.hash(id.uuidString.lowercased(), String($0), as: "recovery stop") }
  }
}

/// A recipient of notices about a recovery, other than the account's devices.
struct Recipient: Sendable {
  let destination: OutgoingMessage.Destination
  let channel: OneTimeCode.Channel
  let target: CodeTarget

  /// Each number of the account's devices, once, and its mailbox.
  static func all(of user: User, _ vault: Vault, in records: some DeviceRecords & FactorRecords) throws -> [Recipient] {
    var recipients: [Recipient] = []
    var numbers: Set<String> = []
    for device in try records.devices(of: user.id) {
      guard let sealed = device.phoneNumber else { continue }
      let number = try PhoneNumber(vault.openText(sealed, for: Enrolment.phonePlace(device.id)))
      guard numbers.insert(number.text).inserted else { continue }
      let target = CodeTarget(number.text, isConfirmed: device.hasProvedNumber, in: vault)
      recipients.append(Recipient(destination: .phone(number), channel: .sms, target: target))
    }
    if let sealed = try records.email(of: user.id) {
      let address = try EmailAddress(trusted: vault.openText(sealed, for: EmailCodes.place(user.id)))
      let target = CodeTarget(address.key, isConfirmed: true, in: vault)
      recipients.append(Recipient(destination: .email(address), channel: .email, target: target))
    }
    return recipients
  }
}

/// What a guess at a code on paper has come to.
enum RecoveryGuess {
  /// It is one of `user`'s, unused, with this hash.
  case right(user: User, hash: [UInt8])
  /// It began this recovery, from the same app instance.
  case again(Recovery)
}

extension RecoveryRecords
where Self: UserRecords & FactorRecords & AttemptLimiterRecords & CodeRecords & AuditRecords & NoticeRecords {
  /// Counts a guess and looks at it. What comes back refused has been counted, and is to be committed.
  ///
  /// It counts against the name as this app instance sees it, and against the name as all see it within an hour: never
  /// against what the account's own devices sign in by. All that is looked up for a name that is known is looked up for
  /// one that is not.
  func judgeRecoveryCode(
    _ code: CodeGuess, for username: Username, _ draft: RecoveryDraft, _ vault: Vault, at now: Timestamp
  ) throws -> Result<RecoveryGuess, MFARefusal> {
    let (caller, account) = (draft.caller, username.key)
    let subject = "recovery-start:\(account):\(caller.identity.subject)"
    var limiter = try limiter(on: subject) ?? AttemptLimiter(at: now)
    func refuse(_ refusal: MFARefusal) throws -> Result<RecoveryGuess, MFARefusal> {
      try noteRefusedRecovery("start", refusal.cause, by: caller, account: account, at: now)
      return .failure(refusal)
    }
    if let refusal = limiter.refusal(at: now) { return try refuse(refusal) }
    // Rows among the link codes, which are guessed at from outside as well; no guess fits them.
    let guesses = "recovery-guess:\(account)"
    let nothing = vault.hash(guesses, as: "no target")
    let end = try room(
      below: Recovery.mostGuessesInAnHour, within: .seconds(3600), for: guesses, to: nothing, .link, at: now)
    if let end { return try refuse(.rateLimited(retryAfter: end.since(now))) }
    limiter.count(at: now)
    let user = try user(named: username)
    let id = user?.id ?? .unknownUser
    let hash = Authenticator.hash(code.text, of: id, vault)
    let isSetUp = try totp(of: id)?.confirmedAt != nil
    let isUnused = try hasBackupCode(hash, of: id)
    let isSpent = try isSpentBackupCode(hash, of: id)
    let recovery = try unendedRecovery(of: id).flatMap { $0.isOpen(at: now) ? $0 : nil }
    if let recovery, recovery.began(by: hash, from: caller) { return .success(.again(recovery)) }
    guard let user, isSetUp, isUnused else {
      try save(limiter, on: subject, account: account)
      try insert(
        OneTimeCode(
          id: draft.guessID, subject: guesses, channel: .link, hash: nothing, target: nothing, createdAt: now,
          expiresAt: now, isClaimed: true, isSpent: true))
      return try refuse(.codeInvalid(isSpent ? .used : .wrong))
    }
    guard user.lockedAt == nil else { return try refuse(.accountLocked(retryAfter: nil)) }
    if let recovery { return try refuse(.recoveryWaits(retryAfter: recovery.expiresAt.since(now))) }
    limiter.release(at: now)
    try save(limiter, on: subject, account: account)
    return .success(.right(user: user, hash: hash))
  }

  /// Why the recipients cannot all be told; `nil` if they can.
  func refusalOfBeginning(
    _ recipients: [Recipient], for user: User, _ draft: RecoveryDraft, _ context: DomainContext, at now: Timestamp
  ) throws -> MFARefusal? {
    let tally = SendTally(draft.caller, context)
    var ends: [Timestamp?] = []
    for recipient in recipients {
      let count = recipients.count { $0.channel == recipient.channel }
      ends.append(try sendRoom(tally, for: count, recipient.channel, context.policy, at: now))
      ends.append(
        try room(
          below: OneTimeCode.mostInAnHour, within: .seconds(3600), for: Self.noticeSubject(user),
          to: recipient.target.hash, recipient.channel, at: now))
    }
    guard let end = ends.compactMap(\.self).max() else { return nil }
    let refusal = MFARefusal.rateLimited(retryAfter: end.since(now))
    try noteRefusedRecovery("start", refusal.cause, by: draft.caller, account: user.username.key, at: now)
    return refusal
  }

  /// Uses the code with `hash` up, and begins.
  func begin(
    _ draft: RecoveryDraft, for user: User, by hash: [UInt8], wait: Duration, _ told: [Recipient],
    _ context: DomainContext, at now: Timestamp
  ) throws -> Recovery {
    if var old = try unendedRecovery(of: user.id) {
      old.end(.expired, at: old.expiresAt)
      try update(old)
    }
    let readyAt = now.advanced(by: wait)
    let recovery = Recovery(
      id: draft.id, userID: user.id, binding: draft.caller.identity.binding,
      address: draft.caller.identity.clientAddress, codeHash: hash, startedAt: now, readyAt: readyAt,
      expiresAt: readyAt.advanced(by: Recovery.window))
    guard try spendBackupCode(hash, of: user.id, at: now) else { throw MFARefusal.codeInvalid(.used) }
    try insert(recovery)
    try countNotices(to: told, for: user, by: draft.caller, context, at: now)
    let name = recovery.id.uuidString.lowercased()
    let phones = told.count { $0.channel == .sms }
    try note(
      .recoveryStarted, by: draft.caller, account: user.username.key,
      [
        "recovery=\(name)", "ready=\(readyAt.wholeSecond)", "sms=\(phones)",
        "email=\(told.count - phones)",
      ], at: now)
    _ = try append(.recoveryStarted, to: user.id, concerning: name, at: now)
    return recovery
  }

  /// Counts a message to each recipient as a code: an attacker could otherwise cause more messages in this way than
  /// by asking for codes.
  private func countNotices(
    to recipients: [Recipient], for user: User, by caller: Caller, _ context: DomainContext, at now: Timestamp
  ) throws {
    for recipient in recipients {
      let tally = SendTally(caller, context)
      try countSend(tally, recipient.channel, at: now)
      try insert(
        OneTimeCode(
          id: context.entropy.uuid(), subject: Self.noticeSubject(user), channel: recipient.channel,
          hash: tally.noTarget, target: recipient.target.hash, createdAt: now, expiresAt: now, isClaimed: true,
          isSpent: true))
    }
  }

  private static func noticeSubject(_ user: User) -> String { "recovery-notice:\(user.id.uuidString.lowercased())" }
}

extension Recovery {
  /// Whether the code with `hash` began it, and `caller` gave it. Debug builds share what they are told apart by, so
  /// none is told again.
  fileprivate func began(by hash: [UInt8], from caller: Caller) -> Bool {
    hash == codeHash && binding == caller.identity.binding && binding != .debugBuild
  }
}

extension Recovery {
  /// What its recipients are told, as long as it waits.
  func notices(to recipients: [Recipient], _ vault: Vault, at now: Timestamp) -> [OutgoingMessage] {
    let content = OutgoingMessage.Content.recoveryStarted(
      stopCode: RecoveryDraft.stopCode(of: id, in: vault), readyAt: readyAt)
    return recipients.map {
      OutgoingMessage(destination: $0.destination, content: content, lifetime: readyAt.since(now))
    }
  }
}
