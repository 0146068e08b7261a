public import ByteCoding
public import Foundation

/// What operators read about accounts, and the end of their sessions.
extension Administration {
  /// How an operator names an account.
  public enum AccountReference: Sendable, Hashable {
    case name(Username)
    /// The id, which cannot be taken for that of an account with a similar name.
    case id(UUID)
  }

  /// A limit on attempts at an account.
  public struct Lockout: Sendable, Hashable {
    /// What was attempted.
    public let purpose: AttemptPurpose
    /// The failures since the last success.
    public let failures: Int
    public let lastUse: Timestamp
    /// Whether attempts are refused now.
    public let isLocked: Bool
    /// When attempts are possible again; `nil` if only an operator ends the lock, and where nothing is locked.
    public let until: Timestamp?
  }

  /// An account with all that belongs to it. No value is secret.
  public struct Details: Sendable, Hashable {
    public let account: Account
    /// The newest first, only those that have not ended, at most `mostOfEach`.
    public let sessions: [LoginSession]
    /// At most `mostOfEach`.
    public let trust: [TrustedDevice]
    public let keys: [SecurityKey]
    public let tokens: [OATHToken]
    /// Whether an authenticator app is set up, and since when.
    public let authenticatorSince: Timestamp?
    public let hasEmail: Bool
    /// The identity providers that the account is connected to.
    public let identities: [FederatedIdentity]
    public let lockouts: [Lockout]
    /// The recovery that is open.
    public let recovery: Recovery?
    /// The devices that get push notifications.
    public let pushDevices: [DeviceID]
    /// When `recovery`, sessions and locks were compared with the clock.
    public let at: Timestamp
  }

  /// The maximum number of sessions, trusted devices and lockouts of one account that are returned.
  public static let mostOfEach = 50

  /// The account with all that belongs to it.
  ///
  /// - Throws: `.notFound`
  public func details(of account: AccountReference, by actor: Actor) async throws -> Details {
    try await context.read(by: actor) { work in
      try work.admit()
      let user = try work.user(account)
      let (records, now) = (work.records, work.now)
      let sessions = try records.sessions(of: user.id).filter { $0.isLive(at: now) }
      let totp = try records.totp(of: user.id)
      return Details(
        account: try Self.account(of: user, in: work),
        sessions: Array(sessions.reversed().prefix(Self.mostOfEach)),
        trust: Array(try records.trustedDevices(of: user.id, at: now).prefix(Self.mostOfEach)),
        keys: try records.securityKeys(of: user.id), tokens: try records.tokens(of: user.id),
        authenticatorSince: totp?.confirmedAt, hasEmail: try records.email(of: user.id) != nil,
        identities: try records.federatedIdentities(of: user.id),
        lockouts: try records.limiters(onAccount: user.username.key, atMost: Self.mostOfEach).compactMap {
          Lockout($0.limiter, on: $0.subject, at: now)
        },
        recovery: try records.unendedRecovery(of: user.id).flatMap { $0.isOpen(at: now) ? $0 : nil },
        pushDevices: try records.pushAddresses(of: user.id).map(\.deviceID), at: now)
    }
  }

  /// The name of the account with this id.
  ///
  /// - Throws: `.notFound`
  public func name(of id: UUID, by actor: Actor) async throws -> Username {
    try await context.read(by: actor) { work in
      try work.admit()
      return try work.user(.id(id)).username
    }
  }

  /// Ends all sessions of the account. Its devices must sign in again, and get no push notifications until then.
  ///
  /// - Returns: The account, and how many sessions were open.
  /// - Throws: `.notFound`
  @discardableResult
  public func endSessions(of username: Username, by actor: Actor) async throws -> (user: User, count: Int) {
    try await context.write(by: actor) { work in
      try work.admit()
      let user = try work.user(.name(username))
      let count = try work.records.sessions(of: user.id).count { $0.isLive(at: work.now) }
      try work.endSessions(of: user.id)
      try work.note(.sessionRevoked, of: user, ["count=\(count)", "reason=operator"])
      work.wakeSockets(of: user.id)
      return (user, count)
    }
  }
}

extension UnitOfWork {
  /// - Throws: `.notFound`
  fileprivate func user(_ account: Administration.AccountReference) throws -> User {
    let user =
      switch account {
      case .name(let name): try records.user(named: name)
      case .id(let id): try records.user(id)
      }
    guard let user else { throw MFARefusal.notFound }
    return user
  }
}

extension Administration.Lockout {
  /// `nil` for a limit without failures.
  fileprivate init?(_ limiter: AttemptLimiter, on subject: String, at now: Timestamp) {
    guard limiter.failuresInARow > 0 else { return nil }
    let refusal = limiter.refusal(at: now)
    let wait: Duration? =
      switch refusal {
      case .accountLocked(let wait): wait
      case .rateLimited(let wait): wait
      default: nil
      }
    self.init(
      purpose: AttemptPurpose(ofSubject: subject), failures: limiter.failuresInARow, lastUse: limiter.lastUse,
      isLocked: refusal != nil, until: wait.map { now.advanced(by: $0) })
  }
}

/// What a limit of attempts is about, by the first word of its subject.
public enum AttemptPurpose: String, Sendable, Hashable, CaseIterable {
  case secondFactor = "mfa"
  case smsCode = "sms"
  case emailCode = "email"
  case linkCode = "link"
  case recoveryCode = "recovery"
  case recoveryStart = "recovery-start"
  case recoveryStop = "recovery-stop"
  /// A subject of another version.
  case other

  init(ofSubject subject: String) {
    let word = subject.prefix { $0 != ":" }
    self = AttemptPurpose.allCases.first { $0.rawValue.hasBytes(of: String(word)) } ?? .other
  }
}
