internal import ByteCoding

/// What the history says of one decision.
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
  /// A code was asked for and not sent: too many were, or there is nobody to send it to.
  case codeWithheld = "code.withheld"
  case codeAccepted = "code.accepted"
  case codeRefused = "code.refused"
  case codeBraked = "code.braked"
  case totpOffered = "totp.offered"
  case totpConfirmed = "totp.confirmed"
  case totpRemoved = "totp.removed"
  case emailConfirmed = "email.confirmed"
  case backupCodesMade = "backup_codes.made"
  case backupCodeSpent = "backup_code.spent"
  case securityKeyRegistered = "security_key.registered"
  case securityKeyRenamed = "security_key.renamed"
  case securityKeyRemoved = "security_key.removed"
  case securityKeyAccepted = "security_key.accepted"
  case securityKeyRefused = "security_key.refused"
  /// A right signature whose count did not grow.
  case securityKeyCloned = "security_key.clone_suspected"
  case deviceTrusted = "device.trusted"
  case trustRevoked = "trust.revoked"
  case trustUsed = "trust.used"
  case trustRefused = "trust.refused"
  case sessionRefreshed = "session.refreshed"
  case sessionRevoked = "session.revoked"
  case refreshReused = "session.refresh_reused"
  case refreshRefused = "session.refresh_refused"
  /// An app instance used what another one is bound to: a session, a token or a device.
  case bindingRefused = "binding.refused"
  /// A session asked for what it has no right to.
  case accessRefused = "access.refused"
  case pushStarted = "push.started"
  case pushApproved = "push.approved"
  case pushDenied = "push.denied"
  case pushRefused = "push.refused"
  case userLocked = "user.locked"
  case userUnlocked = "user.unlocked"
  case roleChanged = "user.role_changed"
  case factorReset = "factor.reset"
}

extension AuditRecords {
  /// Appends to the chain, in the transaction of what it tells of.
  func note(
    _ event: AuditEvent, by caller: Caller, account: String?, _ detail: [String] = [], at now: Timestamp
  ) throws {
    try note(
      event, actor: caller.identity.subject, requestID: caller.requestID, account: account, detail, at: now)
  }

  func note(
    _ event: AuditEvent, actor: String, requestID: String, account: String?, _ detail: [String] = [], at now: Timestamp
  ) throws {
    let last = try lastAuditEntry()
    try append(
      AuditEntry(
        sequence: (last?.sequence ?? 0) + 1, at: Timestamp(milliseconds: now.milliseconds), requestID: requestID,
        actor: actor, account: account, event: event.rawValue, detail: detail.joined(separator: " "),
        previous: last?.hash ?? AuditEntry.origin))
  }
}
