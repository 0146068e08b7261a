internal import ByteCoding

/// The kind of a decision that the history records.
public enum AuditEvent: String, Sendable, Hashable, CaseIterable {
  case deviceEnrolled = "device.enrolled"
  case deviceReenrolled = "device.reenrolled"
  case enrolmentRefused = "enrolment.refused"
  case deviceUnenrolled = "device.unenrolled"
  case deviceUpgraded = "device.upgraded"
  case deviceDowngraded = "device.downgraded"
  case linkCodeMade = "link_code.made"
  /// A device that was removed asked for a challenge.
  case challengeRefused = "challenge.refused"
  case signatureAccepted = "signature.accepted"
  case signatureRefused = "signature.refused"
  case codeSent = "code.sent"
  /// A requested code was not sent: too many were, or it has no recipient.
  case codeWithheld = "code.withheld"
  case codeAccepted = "code.accepted"
  case codeRefused = "code.refused"
  case codeThrottled = "code.braked"
  case totpOffered = "totp.offered"
  case totpConfirmed = "totp.confirmed"
  case totpRemoved = "totp.removed"
  /// A further authenticator app of a user.
  case appOffered = "app.offered"
  case appAdded = "app.added"
  case appRenamed = "app.renamed"
  /// The first app is named `first`.
  case appRemoved = "app.removed"
  /// An operator has imported tokens.
  case tokensImported = "tokens.imported"
  case tokenAssigned = "token.assigned"
  case tokenUnassigned = "token.unassigned"
  case tokenRemoved = "token.removed"
  /// Two codes in a row have shown the counter or the clock of an authenticator.
  case tokenResynchronised = "token.resynchronised"
  case emailConfirmed = "email.confirmed"
  case backupCodesMade = "backup_codes.made"
  case backupCodeSpent = "backup_code.spent"
  case securityKeyRegistered = "security_key.registered"
  case securityKeyRenamed = "security_key.renamed"
  case securityKeyRemoved = "security_key.removed"
  case securityKeyAccepted = "security_key.accepted"
  case securityKeyRefused = "security_key.refused"
  /// A valid signature whose count did not grow.
  case securityKeyCloned = "security_key.clone_suspected"
  /// A valid signature of a key whose eligibility for backup has changed since its registration.
  case securityKeyChanged = "security_key.changed"
  /// The account was connected to a user of the identity provider.
  case identityConnected = "identity.connected"
  case identityDisconnected = "identity.disconnected"
  /// An ID token has begun a session.
  case identityAccepted = "identity.accepted"
  case identityRefused = "identity.refused"
  case deviceTrusted = "device.trusted"
  case trustRevoked = "trust.revoked"
  case trustUsed = "trust.used"
  case trustRefused = "trust.refused"
  /// A trusted device had to give the second factor.
  case trustSteppedUp = "trust.stepped_up"
  case sessionRefreshed = "session.refreshed"
  case sessionRevoked = "session.revoked"
  case refreshReused = "session.refresh_reused"
  case refreshRefused = "session.refresh_refused"
  /// An app instance used a session, a token or a device that is bound to another instance.
  case bindingRefused = "binding.refused"
  /// A session asked for an operation that it has no right to.
  case accessRefused = "access.refused"
  case pushStarted = "push.started"
  case pushApproved = "push.approved"
  case pushDenied = "push.denied"
  case pushRefused = "push.refused"
  /// A device has reported another address at a push service.
  case pushAddressRegistered = "push.registered"
  /// An address at a push service was removed.
  case pushAddressRemoved = "push.unregistered"
  case userLocked = "user.locked"
  case userUnlocked = "user.unlocked"
  case roleChanged = "user.role_changed"
  case factorReset = "factor.reset"
  case recoveryStarted = "recovery.started"
  /// The start, the completion or the stop of a recovery was refused.
  case recoveryRefused = "recovery.refused"
  case recoveryCancelled = "recovery.cancelled"
  case recoveryCompleted = "recovery.completed"
  /// Further refusals of one kind, as one entry with their number: see `RefusalTally`.
  case refusalsRepeated = "refusals.repeated"
  /// The first entry under a new key of the history.
  case historyKeyed = "history.keyed"
}

/// The initiator of an operation, as the history names it.
protocol HistoryActor: Sendable {
  /// The attested key of the client, or the operator.
  var historyName: String { get }
  /// The id of the request that started the operation.
  var requestID: String { get }
}

extension Caller: HistoryActor {
  var historyName: String { identity.subject }
}

/// An initiator that the history knows by name only: the backend itself, or the actor of an earlier entry.
struct NamedActor: HistoryActor {
  let historyName: String
  let requestID: String

  /// The backend itself, for its own work.
  static let backend = NamedActor(historyName: "mfa-backend", requestID: "")
}

extension AuditRecords {
  /// Appends an entry to the chain, in the transaction of the decision that it records.
  ///
  /// Refusals that repeat are counted: the first ones of a window stand in the history in full, see `RefusalTally`.
  func note(
    _ event: AuditEvent, by actor: some HistoryActor, account: String?, _ detail: [String] = [], at now: Timestamp
  ) throws {
    try inHistoryTurn { try $0.noteNow(event, by: actor, account: account, detail, at: now) }
  }

  private func noteNow(
    _ event: AuditEvent, by actor: some HistoryActor, account: String?, _ detail: [String], at now: Timestamp
  ) throws {
    if event.isRefusal {
      let kind = RefusalTally.Kind(
        actor: actor.historyName, account: try account.flatMap { try isAccount($0) ? $0 : nil },
        event: event.rawValue, reason: detail.filter(\.saysReason).joined(separator: " "))
      guard try countRefusal(kind, requestID: actor.requestID, at: now) else { return }
    }
    try write(event, by: actor, account: account, detail, at: now)
  }

  /// Counts one more refusal, and returns whether it gets an entry of its own.
  private func countRefusal(_ kind: RefusalTally.Kind, requestID: String, at now: Timestamp) throws -> Bool {
    var tally = RefusalTally(kind: kind, since: now, count: 0, lastRequestID: requestID)
    if let known = try refusalTally(kind) {
      if known.isOver(at: now) { try close(known, at: now) } else { tally = known }
    }
    tally.count += 1
    tally.lastRequestID = requestID
    try save(tally)
    return tally.unwritten == 0
  }

  /// Appends one entry for the refusals of a window that have no entry yet, and removes the tally.
  func close(_ tally: RefusalTally, at now: Timestamp) throws {
    try removeRefusalTally(tally.kind)
    guard tally.unwritten > 0 else { return }
    let reason = tally.kind.reason.isEmpty ? [] : [tally.kind.reason]
    try write(
      .refusalsRepeated, by: NamedActor(historyName: tally.kind.actor, requestID: tally.lastRequestID),
      account: tally.kind.account,
      ["event=\(tally.kind.event)"] + reason + ["count=\(tally.unwritten)", "since=\(tally.since)"], at: now)
  }

  private func write(
    _ event: AuditEvent, by actor: some HistoryActor, account: String?, _ detail: [String], at now: Timestamp
  ) throws {
    guard let keys = historyKeys else { throw MFAStoreError(reason: "the key of the history is not open") }
    let last = try lastAuditEntry()
    // An entry under the older key would break the chain.
    guard (last?.keyNumber ?? 0) <= keys.newest else {
      throw MFAStoreError(reason: "the history has a newer key than this process: restart it")
    }
    try append(
      AuditEntry(
        sequence: (last?.sequence ?? 0) + 1, at: Timestamp(milliseconds: now.milliseconds),
        requestID: actor.requestID, actor: actor.historyName, account: account, event: event.rawValue,
        detail: detail.joined(separator: " "), previous: last?.hash ?? AuditEntry.origin, keyNumber: keys.newest),
      with: keys)
  }

  fileprivate func append(_ entry: AuditEntry, with keys: HistoryKeys) throws {
    guard let hash = keys.hash(of: entry) else { throw MFAStoreError(reason: "no key of the history has its number") }
    try append(entry, hash: hash)
  }

  /// Appends the first entry under the newest of `keys`, and returns its number.
  ///
  /// It belongs in the transaction that makes the key. Its hash covers the hash of the entry before it, and so the
  /// whole history up to then, with a key or without.
  func beginHistoryKey(_ keys: HistoryKeys, at now: Timestamp) throws -> Int64 {
    let last = try lastAuditEntry()
    let entry = AuditEntry(
      sequence: (last?.sequence ?? 0) + 1, at: Timestamp(milliseconds: now.milliseconds),
      requestID: NamedActor.backend.requestID,
      actor: NamedActor.backend.historyName, account: nil, event: AuditEvent.historyKeyed.rawValue,
      detail: "key=\(keys.newest) before=\(last?.sequence ?? 0)", previous: last?.hash ?? AuditEntry.origin,
      keyNumber: keys.newest)
    try append(entry, with: keys)
    return entry.sequence
  }
}

extension AuditEvent {
  /// Whether an operator may want to look at it: a refusal, or a sign of a copied key or token.
  public var isWarning: Bool {
    isRefusal || [.refusalsRepeated, .refreshReused, .securityKeyCloned, .securityKeyChanged].contains(self)
  }

  /// Whether it is a refusal. Any admitted client can cause refusals without limit, at any account.
  var isRefusal: Bool {
    switch self {
    case .enrolmentRefused, .challengeRefused, .signatureRefused, .codeWithheld, .codeRefused, .codeThrottled,
      .trustRefused, .refreshRefused, .bindingRefused, .accessRefused, .pushRefused, .recoveryRefused,
      .securityKeyRefused, .identityRefused:
      true
    case .deviceEnrolled, .deviceReenrolled, .deviceUnenrolled, .deviceUpgraded, .deviceDowngraded, .linkCodeMade,
      .signatureAccepted, .codeSent, .codeAccepted, .totpOffered, .totpConfirmed, .totpRemoved, .emailConfirmed,
      .backupCodesMade, .backupCodeSpent, .deviceTrusted, .trustRevoked, .trustUsed, .trustSteppedUp, .sessionRefreshed,
      .sessionRevoked, .refreshReused, .pushStarted, .pushApproved, .pushDenied, .pushAddressRegistered,
      .pushAddressRemoved, .userLocked, .userUnlocked,
      .roleChanged, .factorReset, .recoveryStarted, .recoveryCancelled, .recoveryCompleted, .refusalsRepeated,
      .historyKeyed, .securityKeyRegistered, .securityKeyRenamed, .securityKeyRemoved, .securityKeyAccepted,
      .securityKeyCloned, .securityKeyChanged, .identityConnected, .identityDisconnected, .identityAccepted,
      .appOffered, .appAdded, .appRenamed, .appRemoved, .tokensImported, .tokenAssigned, .tokenUnassigned,
      .tokenRemoved, .tokenResynchronised:
      false
    }
  }
}

extension String {
  /// Whether this part of an entry's detail is one of the backend's fixed words. Device ids are texts of the caller.
  fileprivate var saysReason: Bool {
    ["reason=", "operation=", "channel=", "factor="].contains(where: hasPrefix)
  }
}
