internal import ByteCoding
public import MFADomain
public import MFAWire

/// The operations of admins on accounts.
struct AdministrationController {
  let administration: Administration

  var operations: [Operation] { [users, lock, unlock, reset, removeDevice, history] }

  /// The number of accounts or entries in one response.
  private static let page = 100

  private static let ofAdmins: [RefusalCode] = [
    .invalidRequest, .sessionRequired, .boundElsewhere, .accountLocked, .forbidden, .secondFactorRequired,
    .freshProofRequired, .notFound,
  ]

  private var users: Operation {
    Operation(
      MFAOperations.accounts, "Lists accounts by name, up to 100 per response.", access: .admin,
      refusals: Self.ofAdmins
    ) { request, caller in
      let accounts = try await administration.accounts(
        after: request.after, atMost: Self.page, by: .session(caller))
      return AccountList(
        users: accounts.map(AccountList.Entry.init),
        next: accounts.count < Self.page ? nil : accounts.last.map { Administration.cursor(after: $0.user) })
    }
  }

  private var lock: Operation {
    Operation(
      MFAOperations.lockAccount, "Locks an account and revokes its sessions.", access: .admin,
      refusals: Self.ofAdmins
    ) { request, caller in
      try await administration.lock(Username(request.username), by: .session(caller))
      return RevokeResponse(message: "Account locked")
    }
  }

  private var unlock: Operation {
    Operation(
      MFAOperations.unlockAccount, "Unlocks an account and resets its lockouts.", access: .admin,
      refusals: Self.ofAdmins
    ) { request, caller in
      try await administration.unlock(Username(request.username), by: .session(caller))
      return RevokeResponse(message: "Account unlocked")
    }
  }

  private var reset: Operation {
    Operation(
      MFAOperations.resetAccount, "Removes the second factor and returns a code to enrol a device.",
      access: .admin, refusals: Self.ofAdmins
    ) { request, caller in
      ResetResponse(
        temporaryCode: try await administration.resetFactors(Username(request.username), by: .session(caller)),
        expiresIn: Int(Administration.codeLifetime.components.seconds))
    }
  }

  private var removeDevice: Operation {
    Operation(
      MFAOperations.removeDevice, "Removes a device of an account.", access: .admin,
      refusals: Self.ofAdmins
    ) { request, caller in
      try await administration.removeDevice(
        DeviceID(request.deviceId), of: Username(request.username), by: .session(caller))
      return RevokeResponse(message: "Device removed")
    }
  }

  private var history: Operation {
    Operation(
      MFAOperations.accountHistory,
      "The history of an account, newest first, up to 100 entries per response.",
      access: .admin, refusals: Self.ofAdmins
    ) { request, caller in
      let entries = try await administration.history(
        of: Username(request.username), before: request.before, atMost: Self.page, by: .session(caller))
      return History(
        entries: entries.map(History.Entry.init), next: entries.count < Self.page ? nil : entries.last?.sequence)
    }
  }
}

extension AccountList.Entry {
  /// The account as administrators see it.
  public init(_ account: Administration.Account) {
    self.init(
      username: account.user.username.text, createdAt: account.user.createdAt.wire,
      locked: account.user.lockedAt != nil, admin: account.user.isAdmin, devices: account.devices.map(\.id.text),
      mfaEnabled: account.secondFactorSince != nil, backupCodesRemaining: account.backupCodesRemaining,
      trustedDevices: account.trustedDevices, securityKeys: account.securityKeys)
  }
}

extension History.Entry {
  /// The entry as administrators see it.
  public init(_ entry: AuditEntry) {
    self.init(
      sequence: entry.sequence, at: entry.at.wire, event: entry.event, detail: entry.detail, actor: entry.actor,
      requestId: entry.requestID)
  }
}
