internal import ByteCoding
public import MFADomain

/// A page of accounts: the answer of `/v1/accounts`.
public struct AccountListing: Codable, Sendable, Hashable {
  /// An account in a list.
  public struct Entry: Codable, Sendable, Hashable {
    public let id: String
    public let username: String
    public let createdAt: String
    /// When an operator locked it; `nil` if it is not locked.
    public let lockedAt: String?
    public let isAdmin: Bool
    public let devices: Int
    public let secondFactorSince: String?
    public let backupCodes: Int
    public let trustedDevices: Int
    public let securityKeys: Int
  }

  public let accounts: [Entry]
  /// The number of accounts that were read for this page.
  public let examined: Int
  /// The value of `after` for the next page; `nil` at the end.
  public let next: String?
}

/// An account with all that belongs to it: the answer of `/v1/account`. No value is secret.
public struct AccountDescription: Codable, Sendable, Hashable {
  public struct Device: Codable, Sendable, Hashable {
    public let id: String
    public let model: String
    public let method: String
    public let unlock: String?
    /// Whether the gate has verified the attestation of the app instance; not for a debug build.
    public let isAttested: Bool
    /// The hash of the attested key of the app instance, by which the gate's commands and console find it; `nil` for a
    /// debug build.
    public let gateKey: String?
    public let getsPush: Bool
    public let enrolledAt: String
    public let lastUsedAt: String?
  }

  public struct Session: Codable, Sendable, Hashable {
    public let id: String
    public let device: String?
    /// `full`, or what is missing.
    public let scope: String
    public let methods: [String]
    public let createdAt: String
    public let authenticatedAt: String
    public let expiresAt: String
  }

  /// A device that skips the second factor.
  public struct Trust: Codable, Sendable, Hashable {
    public let id: Int64
    public let name: String
    public let address: String?
    public let createdAt: String
    public let lastUsedAt: String
    public let expiresAt: String
  }

  public struct SecurityKey: Codable, Sendable, Hashable {
    public let id: String
    public let name: String
    public let createdAt: String
    public let lastUsedAt: String?
    public let isBackedUp: Bool
  }

  /// A hardware token that operators have assigned, or an authenticator app that the user has added.
  public struct Token: Codable, Sendable, Hashable {
    public let serial: String
    /// The user's name for an app that the user has added; `nil` for a token.
    public let name: String?
    public let maker: String
    public let kind: String
    public let lastUsedAt: String?
  }

  public struct Identity: Codable, Sendable, Hashable {
    public let issuer: String
    public let connectedAt: String
    public let lastUsedAt: String?
  }

  /// A limit on attempts, with at least one failure.
  public struct Lockout: Codable, Sendable, Hashable {
    /// What was attempted, such as `mfa` or `sms`.
    public let purpose: String
    public let failures: Int
    public let lastUsedAt: String
    public let isLocked: Bool
    /// When attempts are possible again; `nil` with `isLocked` if only an operator ends the lock.
    public let until: String?
  }

  public let account: AccountListing.Entry
  public let devices: [Device]
  public let sessions: [Session]
  public let trustedDevices: [Trust]
  public let securityKeys: [SecurityKey]
  public let tokens: [Token]
  public let authenticatorSince: String?
  public let hasEmail: Bool
  public let identities: [Identity]
  public let lockouts: [Lockout]
  public let recovery: RecoveryListing.Entry?
}

/// A page of open recoveries: the answer of `/v1/recoveries`.
public struct RecoveryListing: Codable, Sendable, Hashable {
  public struct Entry: Codable, Sendable, Hashable {
    /// The id of the account.
    public let account: String
    public let username: String
    /// `waiting` or `ready`.
    public let state: String
    public let startedAt: String
    public let readyAt: String
    public let expiresAt: String
    /// The address from which it was begun.
    public let address: String
  }

  public let recoveries: [Entry]
  public let next: String?
}

/// A page of the history, the newest first: the answer of `/v1/history`.
public struct HistoryListing: Codable, Sendable, Hashable {
  public struct Entry: Codable, Sendable, Hashable {
    public let sequence: Int64
    public let at: String
    /// The key of the account's name.
    public let account: String?
    public let event: String
    public let detail: String
    public let actor: String
    public let requestId: String
    /// Whether it is a refusal, or a sign of a copied key or token.
    public let isWarning: Bool
  }

  public let entries: [Entry]
  /// The number of entries that were read for this page.
  public let examined: Int
  /// The value of `before` for the next page; `nil` at the end.
  public let next: Int64?
}

/// The result of a check of the history: the answer of `/v1/history/check`.
public struct HistoryVerdict: Codable, Sendable, Hashable {
  /// Whether no fault was found.
  public let isIntact: Bool
  /// The number of entries up to the first fault.
  public let entries: Int64
  /// The hash of the last one, in hexadecimal digits.
  public let hash: String
  /// The number of entries that an older version wrote without a key.
  public let unkeyed: Int64
  /// The first fault.
  public let fault: String?
}

/// The answer to an operation that changes an account.
public struct AccountChange: Codable, Sendable, Hashable {
  public let username: String
  /// Whether the account was changed.
  public let changed: Bool

  public init(username: String, changed: Bool) { (self.username, self.changed) = (username, changed) }
}

extension AccountListing.Entry {
  init(_ account: Administration.Account) {
    let user = account.user
    self.init(
      id: user.id.text, username: user.username.text, createdAt: user.createdAt.wire, lockedAt: user.lockedAt?.wire,
      isAdmin: user.isAdmin, devices: account.devices.count, secondFactorSince: account.secondFactorSince?.wire,
      backupCodes: account.backupCodesRemaining, trustedDevices: account.trustedDevices,
      securityKeys: account.securityKeys)
  }
}

extension AccountDescription {
  /// The account for operators.
  public init(_ details: Administration.Details) {
    let pushed = Set(details.pushDevices)
    self.init(
      account: .init(details.account),
      devices: details.account.devices.map { Device($0, getsPush: pushed.contains($0.id)) },
      sessions: details.sessions.map(Session.init), trustedDevices: details.trust.map(Trust.init),
      securityKeys: details.keys.map(SecurityKey.init), tokens: details.tokens.map(Token.init),
      authenticatorSince: details.authenticatorSince?.wire, hasEmail: details.hasEmail,
      identities: details.identities.map {
        Identity(issuer: $0.subject.issuer, connectedAt: $0.createdAt.wire, lastUsedAt: $0.lastUsedAt?.wire)
      },
      lockouts: details.lockouts.map(Lockout.init),
      recovery: details.recovery.map { RecoveryListing.Entry($0, of: details.account.user, at: details.at) })
  }
}

extension AccountDescription.Device {
  fileprivate init(_ device: MFADomain.Device, getsPush: Bool) {
    let key: String? = if case .attestedKey(let hash) = device.binding { hash } else { nil }
    self.init(
      id: device.id.text, model: device.model.text, method: device.method.rawValue, unlock: device.authMethod?.rawValue,
      isAttested: device.isAttested, gateKey: key, getsPush: getsPush, enrolledAt: device.enrolledAt.wire,
      lastUsedAt: device.lastUsed?.wire)
  }
}

extension AccountDescription.Session {
  fileprivate init(_ session: LoginSession) {
    self.init(
      id: session.id.text, device: session.deviceID?.text, scope: session.scope.rawValue, methods: session.methods,
      createdAt: session.createdAt.wire, authenticatedAt: session.authenticatedAt.wire,
      expiresAt: session.expiresAt.wire)
  }
}

extension AccountDescription.Trust {
  fileprivate init(_ device: TrustedDevice) {
    self.init(
      id: device.id, name: device.name, address: device.address, createdAt: device.createdAt.wire,
      lastUsedAt: device.lastUsedAt.wire, expiresAt: device.expiresAt.wire)
  }
}

extension AccountDescription.SecurityKey {
  fileprivate init(_ key: MFADomain.SecurityKey) {
    self.init(
      id: key.id.text, name: key.name.text, createdAt: key.createdAt.wire, lastUsedAt: key.lastUsedAt?.wire,
      isBackedUp: key.isBackedUp)
  }
}

extension AccountDescription.Token {
  fileprivate init(_ token: OATHToken) {
    self.init(
      serial: token.serial.text, name: token.name?.text, maker: token.maker, kind: token.kind.rawValue,
      lastUsedAt: token.lastUsedAt?.wire)
  }
}

extension AccountDescription.Lockout {
  fileprivate init(_ lockout: Administration.Lockout) {
    self.init(
      purpose: lockout.purpose.rawValue, failures: lockout.failures, lastUsedAt: lockout.lastUse.wire,
      isLocked: lockout.isLocked, until: lockout.until?.wire)
  }
}

extension RecoveryListing.Entry {
  init(_ recovery: Recovery, of user: User, at now: Timestamp) {
    self.init(
      account: user.id.text, username: user.username.text, state: recovery.state(at: now).rawValue,
      startedAt: recovery.startedAt.wire, readyAt: recovery.readyAt.wire, expiresAt: recovery.expiresAt.wire,
      address: recovery.address)
  }
}

extension HistoryListing.Entry {
  /// The entry for operators.
  public init(_ entry: AuditEntry) {
    self.init(
      sequence: entry.sequence, at: entry.at.wire, account: entry.account, event: entry.event, detail: entry.detail,
      actor: entry.actor, requestId: entry.requestID,
      isWarning: AuditEvent(rawValue: entry.event)?.isWarning ?? false)
  }
}

extension HistoryListing {
  /// The page for operators.
  public init(_ findings: AuditFindings) {
    self.init(entries: findings.entries.map(Entry.init), examined: findings.examined, next: findings.next)
  }
}
