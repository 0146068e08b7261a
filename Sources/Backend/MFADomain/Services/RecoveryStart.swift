internal import ByteCoding
internal import Foundation

/// The random parts of a recovery, drawn before it is decided whether one begins.
struct PreparedRecovery: Sendable {
  let id: UUID
  let guessID: UUID
  /// How long the recovery waits.
  let wait: Duration

  init(_ entropy: Entropy, wait: Duration) {
    (id, guessID) = (entropy.uuid(), entropy.uuid())
    self.wait = wait
  }

  /// The code that stops the recovery with this id. It is derived from the id and not stored, so that it can be sent
  /// again.
  static func stopCode(of id: UUID, in vault: Vault) -> String {
    BackupCode.derive { vault.hash(id.text, String($0), as: "recovery stop") }
  }
}

/// A recipient of messages about a recovery: a number or a mailbox.
struct Recipient: Sendable {
  let destination: OutgoingMessage.Destination
  let channel: OneTimeCode.Channel
  let target: CodeTarget
}

/// The result of a guess at a backup code.
enum RecoveryGuess {
  /// It is an unused code of `user`, with this hash.
  case right(user: User, hash: [UInt8])
  /// It began this recovery, from the same app instance.
  case again(Recovery)
}

extension UnitOfWork {
  /// Each number of the account's devices, once, and its mailbox.
  func recipients(of user: User) throws -> [Recipient] { try recipients(of: user) { throw $0 } }

  /// Each number of the account's devices, once, and its mailbox.
  ///
  /// - Parameter didFail: called for a number or an address that cannot be opened. If it does not throw, the recipient
  ///   is left out.
  func recipients(of user: User, didFail: (any Error) throws -> Void) throws -> [Recipient] {
    var recipients: [Recipient] = []
    var numbers: Set<String> = []
    for device in try records.devices(of: user.id) {
      guard let sealed = device.phoneNumber else { continue }
      let number: PhoneNumber
      do {
        number = try PhoneNumber(vault.openText(sealed, for: Enrolment.phonePlace(device.id)))
      } catch {
        try didFail(error)
        continue
      }
      guard numbers.insert(number.text).inserted else { continue }
      let target = CodeTarget(number.text, isConfirmed: device.hasProvedNumber, in: vault)
      recipients.append(Recipient(destination: .phone(number), channel: .sms, target: target))
    }
    if let sealed = try records.email(of: user.id) {
      do {
        let address = try EmailAddress(trusted: vault.openText(sealed, for: EmailCodes.place(user.id)))
        let target = CodeTarget(address.key, isConfirmed: true, in: vault)
        recipients.append(Recipient(destination: .email(address), channel: .email, target: target))
      } catch {
        try didFail(error)
      }
    }
    return recipients
  }

  /// Queues the message that `recovery` waits, in the language of its account: another person may have begun it.
  func send(_ recovery: Recovery, of user: User, to recipients: [Recipient]) {
    let content = OutgoingMessage.Content.recoveryStarted(
      stopCode: PreparedRecovery.stopCode(of: recovery.id, in: vault), readyAt: recovery.readyAt)
    for recipient in recipients {
      send(
        OutgoingMessage(
          destination: recipient.destination, content: content, lifetime: recovery.readyAt.since(now),
          languages: Languages(tag: user.language)))
    }
  }
}

extension UnitOfWork where Initiator == Caller {
  /// Counts a guess at a backup code and compares it.
  ///
  /// It counts against the name as this app instance sees it, and against the name as all see it within an hour; never
  /// against the limits of the account's own devices. The lookups are the same for an unknown name.
  ///
  /// - Throws: `RecordedRefusal`
  func judgeRecoveryCode(_ code: CodeGuess, for username: Username, _ draft: PreparedRecovery) throws -> RecoveryGuess {
    let user = try records.user(named: username)
    let account = user?.username.key ?? username.key
    let subject = "recovery-start:\(account):\(caller.identity.subject)"
    var limiter = try attemptLimiter(on: subject, account: account)
    func refuse(_ refusal: MFARefusal) throws -> RecordedRefusal {
      try refuseRecovery("start", refusal, account: account)
    }
    if let refusal = limiter.refusal(at: now) { throw try refuse(refusal) }
    // Rows among the link codes, which outsiders can guess at as well. No guess fits these rows.
    let guesses = "recovery-guess:\(account)"
    let nothing = vault.hash(guesses, as: "no target")
    if let end = try room(below: Recovery.mostGuessesInAnHour, for: guesses, to: nothing, .link) {
      throw try refuse(.rateLimited(retryAfter: end.since(now)))
    }
    limiter.count(at: now)
    let id = user?.id ?? .unknownUser
    let hash = Authenticator.hash(code.text, of: id, vault)
    let hasApp = try records.totp(of: id)?.confirmedAt != nil
    let hasTokens = try !records.tokens(of: id).isEmpty
    let isUnused = try records.hasBackupCode(hash, of: id)
    let isSpent = try records.isSpentBackupCode(hash, of: id)
    let recovery = try records.unendedRecovery(of: id).flatMap { $0.isOpen(at: now) ? $0 : nil }
    if let recovery, recovery.began(by: hash, from: caller) { return .again(recovery) }
    guard let user, hasApp || hasTokens, isUnused else {
      try records.save(limiter, on: subject, account: account)
      try records.insert(
        OneTimeCode(
          id: draft.guessID, subject: guesses, channel: .link, hash: nothing, target: nothing, createdAt: now,
          expiresAt: now, isClaimed: true, isSpent: true))
      throw try refuse(.codeInvalid(isSpent ? .used : .wrong))
    }
    guard user.lockedAt == nil else { throw try refuse(.accountLocked(retryAfter: nil)) }
    if let recovery { throw try refuse(.recoveryWaits(retryAfter: recovery.expiresAt.since(now))) }
    limiter.release(at: now)
    try records.save(limiter, on: subject, account: account)
    return .right(user: user, hash: hash)
  }

  /// Checks whether a message to every recipient is within the limits.
  ///
  /// - Throws: `RecordedRefusal` with `.rateLimited`
  func checkMessages(to recipients: [Recipient], about user: User) throws {
    let tally = SendTally(caller, context)
    var ends: [Timestamp?] = []
    for recipient in recipients {
      let count = recipients.count { $0.channel == recipient.channel }
      ends.append(try sendRoom(tally, for: count, recipient.channel))
      ends.append(
        try room(
          below: OneTimeCode.mostInAnHour, for: Self.messageSubject(user), to: recipient.target.hash,
          recipient.channel))
    }
    guard let end = ends.compactMap(\.self).max() else { return }
    throw try refuseRecovery("start", .rateLimited(retryAfter: end.since(now)), account: user.username.key)
  }

  /// Spends the backup code with `hash`, and inserts the recovery.
  ///
  /// - Throws: `MFARefusal.codeInvalid` if the code was spent meanwhile.
  func begin(
    _ draft: PreparedRecovery, for user: User, by hash: [UInt8], informing recipients: [Recipient]
  ) throws -> Recovery {
    if var old = try records.unendedRecovery(of: user.id) {
      old.end(.expired, at: old.expiresAt)
      try records.update(old)
    }
    let readyAt = now.advanced(by: draft.wait)
    let recovery = Recovery(
      id: draft.id, userID: user.id, binding: caller.identity.binding, address: caller.identity.clientAddress,
      codeHash: hash, startedAt: now, readyAt: readyAt, expiresAt: readyAt.advanced(by: Recovery.window))
    guard try records.spendBackupCode(hash, of: user.id, at: now) else { throw MFARefusal.codeInvalid(.used) }
    try records.insert(recovery)
    try countMessages(to: recipients, about: user)
    let name = recovery.id.text
    let phones = recipients.count { $0.channel == .sms }
    try note(
      .recoveryStarted, of: user,
      [
        "recovery=\(name)", "ready=\(readyAt.wholeSecond)", "sms=\(phones)", "email=\(recipients.count - phones)",
      ])
    try notify(user.id, of: .recoveryStarted, concerning: name)
    return recovery
  }

  /// Counts a message to each recipient as a code. An attacker could otherwise cause more messages in this way than by
  /// asking for codes.
  private func countMessages(to recipients: [Recipient], about user: User) throws {
    for recipient in recipients {
      let tally = SendTally(caller, context)
      try countSend(tally, recipient.channel)
      try records.insert(
        OneTimeCode(
          id: context.entropy.uuid(), subject: Self.messageSubject(user), channel: recipient.channel,
          hash: tally.noTarget, target: recipient.target.hash, createdAt: now, expiresAt: now, isClaimed: true,
          isSpent: true))
    }
  }

  private static func messageSubject(_ user: User) -> String { "recovery-notice:\(user.id.text)" }
}

extension Recovery {
  /// Whether `caller` began it by the code with `hash`. Debug builds share one binding, so they cannot be told apart.
  fileprivate func began(by hash: [UInt8], from caller: Caller) -> Bool {
    hash == codeHash && binding == caller.identity.binding && binding != .debugBuild
  }
}
