internal import ByteCoding
internal import Foundation

extension UnitOfWork where Initiator == Caller {
  /// Completes the recovery of `token`, for an enrolment that follows in the same transaction, and queues the messages
  /// about it.
  ///
  /// It removes all devices of the account, its trust and its sessions, since what was lost may be in other hands. The
  /// second factor stays: a person who found the backup code has not given it.
  ///
  /// - Parameter known: the device with the id that is enrolled.
  /// - Throws: `RecordedRefusal`
  func completeRecovery(_ token: String, _ username: Username, replacing known: Device?, of user: User?) throws {
    let recovery = try RecoveryToken(token, in: vault).flatMap { try records.recovery($0.recovery) }
    let fault = fault(of: recovery, for: user, replacing: known)
    let account = user?.username.key ?? username.key
    guard fault == nil, var recovery, let user else {
      let fault = fault ?? .refusal(.codeInvalid(.noCode))
      throw try refuseRecovery("complete", fault.refusal, cause: fault.cause, account: account)
    }
    let recipients = try recipients(of: user)
    recovery.end(.completed, at: now)
    try records.update(recovery)
    let name = recovery.id.text
    // The devices are removed: see `notify`.
    try notify(user.id, of: .recoveryCompleted, concerning: name)
    for device in try records.devices(of: user.id) {
      try remove(device, of: user)
      try notify(user.id, of: .deviceRemoved, concerning: device.id.text)
    }
    try records.removeTrustedDevices(of: user.id, boundTo: nil)
    try records.removeNetworks(of: user.id)
    try endSessions(of: user.id)
    try note(.recoveryCompleted, of: user, ["recovery=\(name)"])
    for recipient in recipients {
      // A day later the message is of no use.
      send(
        OutgoingMessage(
          destination: recipient.destination, content: .recoveryCompleted, lifetime: .seconds(86400),
          languages: Languages(tag: user.language)))
    }
  }

  private func fault(of recovery: Recovery?, for user: User?, replacing known: Device?) -> CompletionRefusal? {
    guard policy.recoveryWait != nil, let recovery, let user, recovery.userID == user.id else {
      return .refusal(.codeInvalid(.noCode))
    }
    guard recovery.binding == caller.identity.binding else { return .boundElsewhere }
    switch recovery.state(at: now) {
    case .completed, .cancelled, .expired: return .ended(recovery.state(at: now))
    case .waiting: return .refusal(.recoveryWaits(retryAfter: recovery.readyAt.since(now)))
    case .ready: break
    }
    guard user.lockedAt == nil else { return .refusal(.accountLocked(retryAfter: nil)) }
    guard known == nil || known?.userID == user.id else { return .refusal(.deviceExists) }
    return nil
  }
}

/// The reason why a recovery is not completed: the refusal for the client, and the cause for the history.
private enum CompletionRefusal {
  case refusal(MFARefusal)
  /// The caller is not the app instance that began it. It gets the refusal of a wrong token.
  case boundElsewhere
  /// It has ended, in this state.
  case ended(Recovery.State)

  var refusal: MFARefusal {
    switch self {
    case .refusal(let refusal): refusal
    case .boundElsewhere: .codeInvalid(.noCode)
    case .ended(.expired): .codeExpired
    case .ended: .codeInvalid(.used)
    }
  }

  var cause: String {
    switch self {
    case .refusal(let refusal): refusal.cause
    case .boundElsewhere: SignInRejection.attestedKey.rawValue
    case .ended(let state): state.rawValue
    }
  }
}
