internal import ByteCoding

/// What the history says of one decision.
public enum AuditEvent: String, Sendable, Hashable, CaseIterable {
  case deviceEnrolled = "device.enrolled"
  case deviceReenrolled = "device.reenrolled"
  case deviceUnenrolled = "device.unenrolled"
  case deviceUpgraded = "device.upgraded"
  case deviceDowngraded = "device.downgraded"
  case linkCodeMade = "link_code.made"
  case challengeIssued = "challenge.issued"
  case signatureAccepted = "signature.accepted"
  case signatureRefused = "signature.refused"
  case codeSent = "code.sent"
  case codeAccepted = "code.accepted"
  case codeRefused = "code.refused"
  case codeBraked = "code.braked"
  case totpOffered = "totp.offered"
  case totpConfirmed = "totp.confirmed"
  case totpRemoved = "totp.removed"
  case emailConfirmed = "email.confirmed"
  case backupCodesMade = "backup_codes.made"
  case backupCodeSpent = "backup_code.spent"
  case deviceTrusted = "device.trusted"
  case trustRevoked = "trust.revoked"
  case trustUsed = "trust.used"
  case sessionRefreshed = "session.refreshed"
  case sessionRevoked = "session.revoked"
  case refreshReused = "session.refresh_reused"
  case pushStarted = "push.started"
  case pushApproved = "push.approved"
  case pushDenied = "push.denied"
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
