internal import ByteCoding
public import Foundation

/// Signing in with the key of a device.
public struct Authentication: Sendable {
  let context: DomainContext
  let codes: SMSCodes
  let sessions: Sessions

  public init(_ context: DomainContext) {
    self.context = context
    codes = SMSCodes(context)
    sessions = Sessions(context)
  }

  /// Returns a challenge for the device, and sends a code to its number if it signs in by codes.
  ///
  /// An unknown user or device gets one as well, made and stored in the same way, that no key can answer. Two cases
  /// are reported, and only to an app instance that has attested itself: a device that is bound to another instance,
  /// and one that the caller itself had enrolled and that was removed.
  public func challenge(
    _ username: Username, _ deviceID: DeviceID, for caller: Caller
  ) async throws -> (method: MFAMethod, challenge: DeviceChallenge) {
    let now = context.clock.now()
    let challenge = DeviceChallenge(
      id: context.entropy.uuid(), username: username.key, deviceID: deviceID, nonce: context.entropy.bytes(32),
      binding: caller.identity.binding, createdAt: now, expiresAt: now.advanced(by: DeviceChallenge.lifetime))
    let code = codes.draft(for: username, caller)
    let outcome = try await context.store.write {
      [context, codes] records -> Result<(MFAMethod, OutgoingMessage?), MFARefusal> in
      let device = try records.device(deviceID)
      let owner = try device.flatMap { try records.user($0.userID) }
      if let device, device.binding != caller.identity.binding {
        return .failure(.boundElsewhere(account: owner?.username.key ?? username.key))
      }
      if device?.removedAt != nil {
        try records.note(
          .challengeRefused, by: caller, account: owner?.username.key,
          ["device=\(deviceID.text)", "reason=\(MFARefusal.deviceNotEnrolled.cause)"], at: now)
        return .failure(.deviceNotEnrolled)
      }
      try records.insert(challenge)
      guard let device, owner?.isNamed(username) == true else { return .success((.secureEnclave, nil)) }
      guard device.method == .smsOTP, context.policy.admits(device) else { return .success((device.method, nil)) }
      return .success(
        (
          device.method,
          try codes.sendWithSignIn(
            code, to: owner?.lockedAt == nil ? device : nil, in: records, at: now)
        ))
    }
    let (method, message) = try outcome.get()
    if let message { context.outbox.send(message) }
    return (method, challenge)
  }

  /// A session for the right answer to a challenge, which is used up by it.
  ///
  /// - Throws: `.authenticationFailed` alike for a wrong user, device, challenge or signature, and for a challenge
  ///   that is too old or used.
  public func verify(
    _ signature: [UInt8], of challengeID: UUID, _ username: Username, _ deviceID: DeviceID, trustToken: String?,
    by caller: Caller
  ) async throws -> SessionTokens {
    let now = context.clock.now()
    let asked = try await context.store.read { records in
      (challenge: try records.challenge(challengeID), device: try records.device(deviceID))
    }
    let key = asked.device?.publicKey
    // Checked whatever has been found, so that what is missing does not show in the time.
    let isSigned = (key ?? .decoy).verifies(signature, of: asked.challenge?.nonce ?? Self.noNonce)
    let fault = Self.fault(asked.challenge, asked.device, username, deviceID, by: caller, isSigned: isSigned)
    guard fault == nil, let key else {
      let fault = fault ?? .deviceWithoutKey
      try await context.store.write { records in
        try records.countFailure(ofChallenge: challengeID)
        try records.noteRefusedSignature(fault.rawValue, username, deviceID, by: caller, at: now)
      }
      throw MFARefusal.authenticationFailed(fault)
    }
    return try await begin(challengeID, username, deviceID, key, trustToken: trustToken, by: caller, at: now)
  }

  /// What is wrong with an answer, as far as it shows before the challenge is spent.
  private static func fault(
    _ challenge: DeviceChallenge?, _ device: Device?, _ username: Username, _ deviceID: DeviceID, by caller: Caller,
    isSigned: Bool
  ) -> SignInFault? {
    guard let challenge else { return .challengeUnknown }
    guard challenge.username == username.key, challenge.deviceID == deviceID else { return .challengeOfAnother }
    guard let device, device.removedAt == nil else { return .deviceUnknown }
    guard challenge.binding == caller.identity.binding, device.binding == caller.identity.binding else {
      return .attestedKey
    }
    guard device.publicKey != nil else { return .deviceWithoutKey }
    return isSigned ? nil : .signature
  }

  private static let noNonce = [UInt8](repeating: 0, count: 32)

  /// The key may have been replaced since it was read, so it is compared again where nothing changes any more.
  private func begin(
    _ challengeID: UUID, _ username: Username, _ deviceID: DeviceID, _ key: DevicePublicKey, trustToken: String?,
    by caller: Caller, at now: Timestamp
  ) async throws -> SessionTokens {
    let trust = trustToken.map { TrustProof(token: $0, binding: caller.identity.binding, in: context.vault) }
    let outcome = try await context.store.write {
      [sessions, policy = context.policy] records -> Result<(LoginSession, User), MFARefusal> in
      func refuse(_ refusal: MFARefusal) throws -> Result<(LoginSession, User), MFARefusal> {
        try records.noteRefusedSignature(refusal.cause, username, deviceID, by: caller, at: now)
        return .failure(refusal)
      }
      guard var device = try records.device(deviceID), device.removedAt == nil, device.publicKey == key,
        let user = try records.user(device.userID)
      else { return try refuse(.authenticationFailed(.deviceChanged)) }
      guard user.isNamed(username) else { return try refuse(.authenticationFailed(.deviceOfAnother)) }
      guard try records.spend(challenge: challengeID, at: now) else {
        return try refuse(.authenticationFailed(records.challenge(challengeID).unspendable(at: now)))
      }
      guard user.lockedAt == nil else { return try refuse(.accountLocked(retryAfter: nil)) }
      guard policy.admits(device) else { return try refuse(.authenticationFailed(.unlock)) }
      device.lastUsed = now
      try records.save(device)
      let scope = try records.scope(after: trust, for: user, on: device, policy, by: caller, at: now)
      let method = policy.reference(ofKeyBoundTo: caller.identity.binding)
      let session = sessions.begin(for: user, device: device, caller: caller, scope: scope, methods: [method])
      try records.begin(session, of: user, by: caller, at: now)
      try records.note(.signatureAccepted, by: caller, account: username.key, ["device=\(deviceID.text)"], at: now)
      return .success((session, user))
    }
    let (session, user) = try outcome.get()
    return try await sessions.tokens(for: session, of: user)
  }
}

extension AuditRecords {
  fileprivate func noteRefusedSignature(
    _ reason: String, _ username: Username, _ deviceID: DeviceID, by caller: Caller, at now: Timestamp
  ) throws {
    try note(
      .signatureRefused, by: caller, account: username.key, ["device=\(deviceID.text)", "reason=\(reason)"], at: now)
  }
}

extension DeviceChallenge? {
  /// Why it cannot be spent at `now`.
  fileprivate func unspendable(at now: Timestamp) -> SignInFault {
    guard let challenge = self else { return .challengeUnknown }
    if challenge.isUsed { return .challengeUsed }
    return now < challenge.expiresAt ? .challengeExhausted : .challengeExpired
  }
}
