public import ByteCoding
internal import Foundation

/// What operators do to accounts, by command or by an admin's session. All of it stands in the history.
public struct Administration: Sendable {
  let context: DomainContext

  public init(_ context: DomainContext) { self.context = context }

  /// Who does it.
  public enum Actor: Sendable {
    /// An operator with the keys and the database: on the machine itself.
    case command(name: String)
    /// The bearer of a session, who must be an admin with a second factor proved lately.
    case session(Caller)
  }

  /// How long a code that an operator gives out lives: long enough to be told over the telephone and typed in.
  public static let codeLifetime = Duration.seconds(1800)

  public struct Account: Sendable, Hashable {
    public let user: User
    public let devices: [Device]
    public let secondFactorSince: Timestamp?
    public let backupCodesRemaining: Int
    public let trustedDevices: Int
    public let securityKeys: Int
  }

  /// Accounts by the keys of their names, after the one of `name` in whatever case it is written. Who asks on after the
  /// last of each page sees every account that was there from the first page on, and each once.
  public func accounts(after name: Username?, atMost count: Int, by actor: Actor) async throws -> [Account] {
    let now = context.clock.now()
    return try await context.store.read { records in
      try records.admit(actor, context.policy, at: now)
      return try records.users(after: name?.key ?? "", atMost: max(1, min(count, 200))).map {
        try Self.account(of: $0.user, in: records, at: now)
      }
    }
  }

  private static func account(of user: User, in records: any Records, at now: Timestamp) throws -> Account {
    Account(
      user: user, devices: try records.devices(of: user.id),
      secondFactorSince: try records.secondFactorSince(of: user.id),
      backupCodesRemaining: try records.countBackupCodes(of: user.id),
      trustedDevices: try records.trustedDevices(of: user.id, at: now).count,
      securityKeys: try records.securityKeys(of: user.id).count)
  }

  /// Refuses everything that the account asks for, and ends its sessions, until it is unlocked.
  public func lock(_ username: Username, by actor: Actor) async throws {
    try await change(username, by: actor, .userLocked, .locked) { user, records, now in
      var locked = user
      locked.lockedAt = now
      try records.update(locked)
      try records.endSessions(of: user.id, at: now)
    }
  }

  /// Lifts an operator's lock, and the brakes of all factors.
  public func unlock(_ username: Username, by actor: Actor) async throws {
    try await change(username, by: actor, .userUnlocked, .unlocked) { user, records, _ in
      var unlocked = user
      unlocked.lockedAt = nil
      try records.update(unlocked)
      try records.releaseAttemptLimiters(of: user)
    }
  }

  /// Removes all devices, the second factor and all trust, ends the sessions, and returns a code that lets the user
  /// bring a device in: for a user who has lost theirs and whom the operator knows. Lost devices may be in other
  /// hands, so none of the old ones stays; one that is still there comes in by the code as well.
  public func resetFactors(_ username: Username, by actor: Actor) async throws -> String {
    let (code, id) = (BackupCode.make(context.entropy), context.entropy.uuid())
    let vault = context.vault
    try await change(username, by: actor, .factorReset, .mfaDisabled) { user, records, now in
      try records.removeTOTP(of: user.id)
      try records.removeSecurityKeys(of: user.id)
      try records.replaceBackupCodes(of: user.id, with: [])
      try records.saveEmail(nil, of: user.id)
      try records.removeTrustedDevices(of: user.id, boundTo: nil)
      try records.removeNetworks(of: user.id)
      for device in try records.devices(of: user.id) {
        try records.remove(device, of: user, at: now)
        _ = try records.append(.deviceRemoved, to: user.id, concerning: device.id.text, at: now)
      }
      try records.endSessions(of: user.id, at: now)
      try records.releaseAttemptLimiters(of: user)
      _ = try records.cancelRecovery(of: user, .operator, actor.name, actor.requestID, at: now)
      try Linking.void(.user, for: user, in: records)
      try Linking.insert(
        code, id, from: .operator, for: user, lifetime: Self.codeLifetime, vault, in: records, at: now)
    }
    return code
  }

  /// Removes a device of the account, as its user would.
  public func removeDevice(_ deviceID: DeviceID, of username: Username, by actor: Actor) async throws {
    try await change(username, by: actor, .deviceUnenrolled, .deviceRemoved, concerning: deviceID.text) {
      user, records, now in
      guard let device = try records.device(deviceID), device.userID == user.id, device.removedAt == nil else {
        throw MFARefusal.notFound
      }
      try records.remove(device, of: user, at: now)
    }
  }

  /// Lets the account do all of this by its sessions, or no longer.
  public func setAdmin(_ isAdmin: Bool, _ username: Username, by actor: Actor) async throws {
    try await change(username, by: actor, .roleChanged, nil) { user, records, now in
      var changed = user
      if isAdmin != user.isAdmin { changed.adminSince = isAdmin ? now : nil }
      changed.isAdmin = isAdmin
      try records.update(changed)
    }
  }

  /// What the history says of the account, or of all: the newest first, from before the entry numbered `sequence` on.
  public func history(
    of username: Username?, before sequence: Int64?, atMost count: Int, by actor: Actor
  ) async throws -> [AuditEntry] {
    let now = context.clock.now()
    return try await context.store.read { records in
      try records.admit(actor, context.policy, at: now)
      return try records.auditEntries(
        before: sequence ?? .max, account: username?.key, atMost: max(1, min(count, 1000)))
    }
  }

  private func change(
    _ username: Username, by actor: Actor, _ event: AuditEvent, _ notice: Notice.Kind?, concerning: String? = nil,
    _ body: @escaping @Sendable (User, any Records, Timestamp) throws -> Void
  ) async throws {
    let now = context.clock.now()
    let userID = try await context.store.write { [policy = context.policy] records in
      try records.admit(actor, policy, at: now)
      guard let user = try records.user(named: username) else { throw MFARefusal.notFound }
      try body(user, records, now)
      try records.note(
        event, actor: actor.name, requestID: actor.requestID, account: user.username.key,
        concerning.map { ["device=\($0)"] } ?? [], at: now)
      if let notice { _ = try records.append(notice, to: user.id, concerning: concerning, at: now) }
      return user.id
    }
    context.hub.notify(for: userID)
  }
}

extension Administration.Actor {
  var name: String {
    switch self {
    case .command(let name): "operator:\(name)"
    case .session(let caller): caller.identity.subject
    }
  }

  var requestID: String {
    switch self {
    case .command: "command"
    case .session(let caller): caller.requestID
    }
  }
}

extension SessionRecords where Self: UserRecords & NoticeRecords & AttemptLimiterRecords {
  /// - Throws: unless the actor is on the machine, or an admin whose session has proved two factors lately.
  func admit(_ actor: Administration.Actor, _ policy: Policy, at now: Timestamp) throws {
    guard case .session(let caller) = actor else { return }
    let (session, user) = try session(of: caller, at: now)
    guard user.isAdmin else { throw MFARefusal.forbidden }
    guard session.methods.contains("mfa") else { throw MFARefusal.secondFactorRequired }
    guard now.since(session.authenticatedAt) <= policy.freshProof else {
      throw MFARefusal.freshProofRequired(maximumAge: policy.freshProof)
    }
  }

  fileprivate func releaseAttemptLimiters(of user: User) throws {
    try removeAttemptLimiters(onAccount: user.username.key)
  }
}
