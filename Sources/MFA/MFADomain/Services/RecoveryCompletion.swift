internal import ByteCoding
internal import Foundation

extension AccountRecovery {
  /// Completes the recovery of `token`, for an enrolment that follows in the same transaction: removes all devices of
  /// the account, its trust and its sessions, since what was lost may be in other hands. The second factor stays: a
  /// person who found the backup code has not got past it.
  ///
  /// - Parameter known: the device that has the id that is to be enrolled.
  ///
  /// - Returns: what is to be sent; or a refusal that leaves its line in the history, so it is to be committed.
  static func complete(
    _ token: String, _ username: Username, replacing known: Device?, of user: User?, by caller: Caller,
    _ context: DomainContext, in records: any Records, at now: Timestamp
  ) throws -> Result<[OutgoingMessage], MFARefusal> {
    let recovery = try RecoveryToken(token, in: context.vault).flatMap { try records.recovery($0.recovery) }
    let fault = fault(of: recovery, for: user, replacing: known, by: caller, context.policy, at: now)
    guard fault == nil, var recovery, let user else {
      let fault = fault ?? .refusal(.codeInvalid(.noCode))
      try records.noteRefusedRecovery("complete", fault.cause, by: caller, account: username.key, at: now)
      return .failure(fault.refusal)
    }
    let told = try Recipient.all(of: user, context.vault, in: records)
    recovery.end(.completed, at: now)
    try records.update(recovery)
    for device in try records.devices(of: user.id) {
      try records.remove(device, of: user, at: now)
      _ = try records.append(.deviceRemoved, to: user.id, concerning: device.id.text, at: now)
    }
    try records.removeTrustedDevices(of: user.id, boundTo: nil)
    try records.removeNetworks(of: user.id)
    try records.endSessions(of: user.id, at: now)
    let name = recovery.id.uuidString.lowercased()
    try records.note(.recoveryCompleted, by: caller, account: user.username.key, ["recovery=\(name)"], at: now)
    _ = try records.append(.recoveryCompleted, to: user.id, concerning: name, at: now)
    return .success(
      told.map {
        OutgoingMessage(destination: $0.destination, content: .recoveryCompleted, lifetime: noticeLifetime)
      })
  }

  /// How long the notice that an account was recovered is worth sending.
  private static let noticeLifetime = Duration.seconds(86400)

  /// Why a recovery is not completed: what the outside is told, and what the history.
  private enum Fault {
    case refusal(MFARefusal)
    /// Another app instance than the one that began it, which is told no more than of a wrong token.
    case boundElsewhere
    /// It has ended, as this says.
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
      case .boundElsewhere: SignInFault.attestedKey.rawValue
      case .ended(let state): state.rawValue
      }
    }
  }

  private static func fault(
    of recovery: Recovery?, for user: User?, replacing known: Device?, by caller: Caller, _ policy: Policy,
    at now: Timestamp
  ) -> Fault? {
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
