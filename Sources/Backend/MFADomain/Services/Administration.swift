public import ByteCoding
internal import Foundation

/// The operations of operators on accounts, by command or by an admin's session. The history records all of them.
public struct Administration: Sendable {
  let context: DomainContext

  public init(_ context: DomainContext) { self.context = context }

  /// The initiator of an operation.
  public enum Actor: Sendable {
    /// An operator with the keys and the database: on the machine itself.
    case command(name: String)
    /// The bearer of a session, who must be an admin with a recent second factor.
    case session(Caller)
  }

  /// How long an operator's code is valid: long enough to read it out over the telephone and to type it in.
  public static let codeLifetime = Duration.seconds(1800)

  /// An account and the state of its factors.
  public struct Account: Sendable, Hashable {
    public let user: User
    public let devices: [Device]
    /// When the second factor was set up; `nil` without one.
    public let secondFactorSince: Timestamp?
    public let backupCodesRemaining: Int
    public let trustedDevices: Int
    public let securityKeys: Int
  }

  /// Accounts by the stored keys of their names, after `cursor`. Paging by the `cursor(after:)` of the last account of
  /// each page returns every account that existed at the first page, once each.
  ///
  /// - Parameter count: how many to return; at most 200.
  /// - Throws: `InvalidValue` for a cursor that is no name and no stored key.
  public func accounts(after cursor: String?, atMost count: Int, by actor: Actor) async throws -> [Account] {
    try await context.read(by: actor) { work in
      try work.admit()
      return try work.records.users(after: try work.position(after: cursor), atMost: max(1, min(count, 200))).map {
        try Self.account(of: $0.user, in: work)
      }
    }
  }

  /// The value with which a list of accounts continues after `user`: the name, or the stored key if the name has
  /// another key by the rule of today. A list that continued at that other key could repeat its pages for ever.
  public static func cursor(after user: User) -> String {
    let name = try? Username(user.username.text)
    return name?.key.hasBytes(of: user.username.key) == true ? user.username.text : user.username.key
  }

  static func account(of user: User, in work: UnitOfWork<Actor>) throws -> Account {
    let records = work.records
    return Account(
      user: user, devices: try records.devices(of: user.id),
      secondFactorSince: try records.secondFactorSince(of: user.id),
      backupCodesRemaining: try records.countBackupCodes(of: user.id),
      trustedDevices: try records.trustedDevices(of: user.id, at: work.now).count,
      securityKeys: try records.securityKeys(of: user.id).count)
  }

  /// Ends the sessions of the account and refuses all its operations until it is unlocked. An account that is locked
  /// keeps the time of its lock.
  ///
  /// - Returns: The account before the change.
  @discardableResult
  public func lock(_ username: Username, by actor: Actor) async throws -> User {
    try await change(username, by: actor, .userLocked, nil) { user, work in
      // The sessions end: see `notify`.
      try work.notify(user.id, of: .locked)
      var locked = user
      locked.lockedAt = user.lockedAt ?? work.now
      try work.records.update(locked)
      try work.endSessions(of: user.id)
    }
  }

  /// The lock of an account is not the one that the caller knows.
  public struct LockHasChanged: Error {}

  /// Removes an operator's lock, and the lockouts of all factors.
  ///
  /// - Parameter condition: whether the account is as the caller knows it, judged in the transaction.
  /// - Returns: The account before the change.
  /// - Throws: `LockHasChanged` if `condition` does not hold.
  @discardableResult
  public func unlock(
    _ username: Username, by actor: Actor, where condition: @escaping @Sendable (User) -> Bool = { _ in true }
  ) async throws -> User {
    try await change(username, by: actor, .userUnlocked, .init(.unlocked)) { user, work in
      guard condition(user) else { throw LockHasChanged() }
      var unlocked = user
      unlocked.lockedAt = nil
      try work.records.update(unlocked)
      try work.records.removeAttemptLimiters(onAccount: user.username.key)
    }
  }

  /// Removes all devices, the second factor, all trust and the connection to an identity provider, ends the sessions,
  /// and returns a code that brings a device into the account. It is for a user without devices, whose identity the
  /// operator has checked.
  ///
  /// Lost devices may be in other hands, so none stays. A device that the user still has is enrolled again by the code.
  public func resetFactors(_ username: Username, by actor: Actor) async throws -> String {
    let code = LinkCode(context.entropy, from: .operator, lifetime: Self.codeLifetime)
    try await change(username, by: actor, .factorReset, nil) { user, work in
      let records = work.records
      // The devices are removed: see `notify`.
      try work.notify(user.id, of: .mfaDisabled)
      try records.removeTOTP(of: user.id)
      for token in try records.tokens(of: user.id) { _ = try work.unassign(token, notifies: false) }
      try records.removeAppOffers(of: user.id)
      try records.removeSecurityKeys(of: user.id)
      _ = try records.removeFederatedIdentities(of: user.id)
      try records.replaceBackupCodes(of: user.id, with: [])
      try records.saveEmail(nil, of: user.id)
      try records.removeTrustedDevices(of: user.id, boundTo: nil)
      try records.removeNetworks(of: user.id)
      for device in try records.devices(of: user.id) {
        try work.remove(device, of: user)
        try work.notify(user.id, of: .deviceRemoved, concerning: device.id.text)
      }
      try work.endSessions(of: user.id)
      try records.removeAttemptLimiters(onAccount: user.username.key)
      _ = try work.cancelRecovery(of: user, .operator)
      try Linking.void(.user, for: user, in: records)
      try work.insert(code, for: user)
    }
    return code.text
  }

  /// Removes a device of the account, as its user would.
  ///
  /// - Returns: The account.
  /// - Throws: `.notFound` unless the device is enrolled in the account.
  @discardableResult
  public func removeDevice(_ deviceID: DeviceID, of username: Username, by actor: Actor) async throws -> User {
    let notice = DeviceNotice(.deviceRemoved, concerning: deviceID.text)
    return try await change(username, by: actor, .deviceUnenrolled, notice) { user, work in
      guard let device = try work.records.device(deviceID), device.userID == user.id, device.removedAt == nil else {
        throw MFARefusal.notFound
      }
      try work.remove(device, of: user)
    }
  }

  /// Grants the account the right to these operations by its sessions, or withdraws it.
  ///
  /// - Returns: The account before the change.
  @discardableResult
  public func setAdmin(_ isAdmin: Bool, _ username: Username, by actor: Actor) async throws -> User {
    try await change(username, by: actor, .roleChanged, nil, ["admin=\(isAdmin)"]) { user, work in
      var changed = user
      if isAdmin != user.isAdmin { changed.adminSince = isAdmin ? work.now : nil }
      changed.isAdmin = isAdmin
      try work.records.update(changed)
    }
  }

  /// Entries of the history of the account, or of all accounts: the newest first, from before the entry numbered
  /// `sequence`.
  ///
  /// - Parameter count: how many to return; at most 1000.
  public func history(
    of username: Username?, before sequence: Int64?, atMost count: Int, by actor: Actor
  ) async throws -> [AuditEntry] {
    try await context.read(by: actor) { work in
      try work.admit()
      let account = try username.map { try work.records.accountKey(of: $0) }
      return try work.records.auditEntries(
        before: sequence ?? .max, account: account, atMost: max(1, min(count, 1000)))
    }
  }

  /// The notice of a change, and the device that it concerns.
  private struct DeviceNotice: Sendable {
    let kind: Notice.Kind
    let deviceID: String?

    init(_ kind: Notice.Kind, concerning deviceID: String? = nil) {
      self.kind = kind
      self.deviceID = deviceID
    }
  }

  /// Runs `body` on the account, records `event` and sends `notice`, in one transaction. Returns the account as it was
  /// before.
  @discardableResult
  private func change(
    _ username: Username, by actor: Actor, _ event: AuditEvent, _ notice: DeviceNotice?, _ details: [String] = [],
    _ body: @escaping @Sendable (User, UnitOfWork<Actor>) throws -> Void
  ) async throws -> User {
    try await context.write(by: actor) { work in
      try work.admit()
      guard let user = try work.records.user(named: username) else { throw MFARefusal.notFound }
      try body(user, work)
      try work.note(event, of: user, (notice?.deviceID.map { ["device=\($0)"] } ?? []) + details)
      if let notice { try work.notify(user.id, of: notice.kind, concerning: notice.deviceID) }
      work.wakeSockets(of: user.id)
      return user
    }
  }
}

extension Administration.Actor: HistoryActor {
  var historyName: String {
    switch self {
    case .command(let name): "operator:\(name)"
    case .session(let caller): caller.historyName
    }
  }

  var requestID: String {
    switch self {
    case .command: "command"
    case .session(let caller): caller.requestID
    }
  }
}

extension UnitOfWork where Initiator == Administration.Actor {
  /// The stored key after which a list continues: `cursor` itself if an account has it, otherwise the key of the name.
  ///
  /// - Throws: `InvalidValue` for a cursor that is no name and no stored key.
  func position(after cursor: String?) throws -> String {
    guard let cursor else { return "" }
    // No database has a text with a NUL.
    return try !cursor.utf8.contains(0) && records.isAccount(cursor) ? cursor : Username(cursor).key
  }

  /// Admits an operator on the machine, and an admin's session with a recent second factor. An approval by another device
  /// is one only in an account that has a second factor: otherwise that device has given no more than its key.
  ///
  /// - Throws: `.forbidden` for other sessions; `.secondFactorRequired`; `.freshProofRequired`.
  func admit() throws {
    guard case .session(let caller) = initiator else { return }
    let (session, user) = try session(of: caller)
    guard user.isAdmin else { throw MFARefusal.forbidden }
    guard session.methods.contains("mfa"), try records.secondFactorSince(of: user.id) != nil else {
      throw MFARefusal.secondFactorRequired
    }
    try checkFreshness(of: session)
  }
}
