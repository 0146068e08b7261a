public import ByteCoding

/// The state of a user's second factor, and the trusted devices, which may skip it.
public struct Trust: Sendable {
  let context: DomainContext

  public init(_ context: DomainContext) { self.context = context }

  /// The state of the second factor of one account.
  public struct Status: Sendable, Hashable {
    /// When the second factor was set up; `nil` without one.
    public let enabledAt: Timestamp?
    public let backupCodesRemaining: Int
    public let trustedDevices: Int
    public let securityKeys: Int
    /// Whether the calling session must still give the second factor.
    public let isChallengeRequired: Bool
    /// Whether this app instance is trusted.
    public let isDeviceTrusted: Bool
    /// The methods that the second factor may be given by.
    public let methods: [SecondFactorMethod]
    public let requirement: Requirement?
    public let allowsBiometricGate: Bool
  }

  /// Returns the state of the caller's second factor, also to a session that has yet to give it.
  public func status(for caller: Caller) async throws -> Status {
    try await context.read(by: caller) { work in
      let (session, user) = try work.session(scope: .pending)
      let (records, policy) = (work.records, work.policy)
      let hasAuthenticator =
        try records.totp(of: user.id)?.confirmedAt != nil || !records.tokens(of: user.id).isEmpty
      let keys = try records.securityKeys(of: user.id)
      let trusted = try records.trustedDevices(of: user.id, at: work.now)
      let codes = hasAuthenticator ? try records.countBackupCodes(of: user.id) : 0
      let hasEmail = try records.email(of: user.id) != nil
      // E-mail codes and backup codes belong to the authenticator.
      let byCode: [SecondFactorMethod] = [.totp] + (hasEmail ? [.email] : []) + (codes > 0 ? [.backup] : [])
      let byKey: [SecondFactorMethod] = keys.isEmpty || policy.relyingParty == nil ? [] : [.securityKey]
      return Status(
        enabledAt: try records.secondFactorSince(of: user.id), backupCodesRemaining: codes,
        trustedDevices: trusted.count, securityKeys: keys.count,
        isChallengeRequired: session.scope == .pending,
        isDeviceTrusted: trusted.contains { $0.binding == session.binding },
        methods: (hasAuthenticator ? byCode : []) + byKey,
        requirement: policy.requirement(for: user, at: work.now), allowsBiometricGate: policy.allowsBiometricGate)
    }
  }

  /// The trusted devices of the caller's account.
  public func devices(for caller: Caller) async throws -> [TrustedDevice] {
    try await context.read(by: caller) { work in
      try work.records.trustedDevices(of: work.session().user.id, at: work.now)
    }
  }

  /// Ends the trust of a device, for a session with a recent proof.
  ///
  /// - Throws: `.notFound` for an unknown device and for a device of another user.
  public func revoke(_ id: Int64, by caller: Caller) async throws {
    try await context.write(by: caller) { work in
      let (_, user) = try work.freshSession()
      guard try work.records.removeTrustedDevice(id, of: user.id) else { throw MFARefusal.notFound }
      try work.note(.trustRevoked, of: user, ["trusted=\(id)"])
      try work.notify(user.id, of: .trustRevoked, concerning: String(id))
    }
  }
}
