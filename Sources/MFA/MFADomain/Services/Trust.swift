public import ByteCoding

/// The state of a user's second factor, and the devices that are spared it.
public struct Trust: Sendable {
  let context: DomainContext

  public init(_ context: DomainContext) { self.context = context }

  public struct Status: Sendable, Hashable {
    public let enabledAt: Timestamp?
    public let backupCodesRemaining: Int
    public let trustedDevices: Int
    public let securityKeys: Int
    /// Whether the calling session must still give the second factor.
    public let isChallengeRequired: Bool
    /// Whether this app instance is trusted.
    public let isDeviceTrusted: Bool
    /// What the second factor may be given by.
    public let methods: [SecondFactorMethod]
    public let requirement: Requirement?
    public let allowsBiometricGate: Bool
  }

  public func status(for caller: Caller) async throws -> Status {
    let now = context.clock.now()
    return try await context.store.read { [policy = context.policy] records in
      let (session, user) = try records.session(of: caller, scope: .pending, at: now)
      let hasAuthenticator = try records.totp(of: user.id)?.confirmedAt != nil
      let keys = try records.securityKeys(of: user.id)
      let trusted = try records.trustedDevices(of: user.id, at: now)
      let codes = hasAuthenticator ? try records.countBackupCodes(of: user.id) : 0
      let hasEmail = try records.email(of: user.id) != nil
      // Codes by e-mail and on paper belong to the authenticator.
      let byCode: [SecondFactorMethod] = [.totp] + (hasEmail ? [.email] : []) + (codes > 0 ? [.backup] : [])
      let byKey: [SecondFactorMethod] = keys.isEmpty || policy.relyingParty == nil ? [] : [.securityKey]
      return Status(
        enabledAt: try records.secondFactorSince(of: user.id), backupCodesRemaining: codes,
        trustedDevices: trusted.count, securityKeys: keys.count,
        isChallengeRequired: session.scope == .pending,
        isDeviceTrusted: trusted.contains { $0.binding == session.binding },
        methods: (hasAuthenticator ? byCode : []) + byKey,
        requirement: policy.requirement(for: user, at: now), allowsBiometricGate: policy.allowsBiometricGate)
    }
  }

  public func devices(for caller: Caller) async throws -> [TrustedDevice] {
    let now = context.clock.now()
    return try await context.store.read { records in
      try records.trustedDevices(of: records.session(of: caller, at: now).user.id, at: now)
    }
  }

  /// - Throws: `.notFound` for another user's device as for none.
  public func revoke(_ id: Int64, by caller: Caller) async throws {
    let now = context.clock.now()
    let userID = try await context.store.write { [policy = context.policy] records in
      let (_, user) = try records.freshSession(of: caller, maximumAge: policy.freshProof, at: now)
      guard try records.removeTrustedDevice(id, of: user.id) else { throw MFARefusal.notFound }
      try records.note(.trustRevoked, by: caller, account: user.username.key, ["trusted=\(id)"], at: now)
      _ = try records.append(.trustRevoked, to: user.id, concerning: String(id), at: now)
      return user.id
    }
    context.hub.notify(for: userID)
  }
}
