internal import ByteCoding
public import Foundation

/// Signing in with the key of a device.
public struct Authentication: Sendable {
  let premises: Premises
  let codes: TextedCodes
  let sessions: Sessions

  public init(_ premises: Premises) {
    self.premises = premises
    codes = TextedCodes(premises)
    sessions = Sessions(premises)
  }

  /// A challenge for the device; and a code to its number if that is how it signs in.
  ///
  /// A user or device that is not known gets one as well, made and kept in the same way, that nobody can answer. Two
  /// things are told apart, and only to an app instance that has attested itself: a device that is bound to another
  /// instance, and one that the caller itself had enrolled and that has been removed.
  public func challenge(
    _ username: Username, _ deviceID: DeviceID, for caller: Caller
  ) async throws -> (method: MFAMethod, challenge: Challenge) {
    let now = premises.clock.now()
    let challenge = Challenge(
      id: premises.entropy.uuid(), username: username.key, deviceID: deviceID, nonce: premises.entropy.bytes(32),
      binding: caller.identity.binding, createdAt: now, expiresAt: now.advanced(by: Challenge.lifetime))
    let code = codes.draft(for: username, caller)
    let (method, message) = try await premises.store.write { [codes] records in
      let device = try records.device(deviceID)
      if let device, device.binding != caller.identity.binding { throw Refusal.boundElsewhere }
      if device?.removedAt != nil { throw Refusal.deviceNotEnrolled }
      let owner = try device.flatMap { try records.user($0.userID) }
      try records.insert(challenge)
      guard let device, owner?.username == username else { return (MFAMethod.secureEnclave, OutgoingMessage?.none) }
      guard device.method == .smsOTP else { return (device.method, nil) }
      return (device.method, try codes.sendWithSignIn(code, to: device, in: records, at: now))
    }
    if let message { premises.outbox.send(message) }
    return (method, challenge)
  }

  /// A session for the right answer to a challenge, which is used up by it.
  ///
  /// - Throws: `.authenticationFailed` alike for a wrong user, device, challenge or signature, and for a challenge that is
  ///   too old or used.
  public func verify(
    _ signature: [UInt8], of challengeID: UUID, _ username: Username, _ deviceID: DeviceID, trustToken: String?,
    by caller: Caller
  ) async throws -> SessionTokens {
    let now = premises.clock.now()
    let asked = try await premises.store.read { records in
      (challenge: try records.challenge(challengeID), device: try records.device(deviceID))
    }
    let matches =
      asked.challenge?.username == username.key && asked.challenge?.deviceID == deviceID
      && asked.challenge?.binding == caller.identity.binding && asked.device?.binding == caller.identity.binding
    let key = asked.device?.publicKey
    // Checked whatever has been found, so that what is missing does not show in the time.
    let isSigned = (key ?? .nobody).verifies(signature, of: asked.challenge?.nonce ?? Self.noNonce)
    guard matches, isSigned, let key else {
      try await countFailure(of: challengeID, username, deviceID, by: caller, at: now)
      throw Refusal.authenticationFailed
    }
    return try await begin(challengeID, username, deviceID, key, trustToken: trustToken, by: caller, at: now)
  }

  private static let noNonce = [UInt8](repeating: 0, count: 32)

  private func countFailure(
    of challengeID: UUID, _ username: Username, _ deviceID: DeviceID, by caller: Caller, at now: Timestamp
  ) async throws {
    try await premises.store.write { records in
      try records.countFailure(ofChallenge: challengeID)
      try records.note(
        .signatureRefused, by: caller, account: username.key, ["device=\(deviceID.text)"], at: now)
    }
  }

  /// The key may have been replaced since it was read, so it is compared again where nothing changes any more.
  private func begin(
    _ challengeID: UUID, _ username: Username, _ deviceID: DeviceID, _ key: DevicePublicKey, trustToken: String?,
    by caller: Caller, at now: Timestamp
  ) async throws -> SessionTokens {
    let trust = trustToken.map { TrustProof(token: $0, binding: caller.identity.binding, in: premises.vault) }
    let (session, user) = try await premises.store.write { [sessions, policy = premises.policy] records in
      guard var device = try records.device(deviceID), device.removedAt == nil, device.publicKey == key,
        let user = try records.user(device.userID), user.username == username,
        try records.spend(challenge: challengeID, at: now)
      else { throw Refusal.authenticationFailed }
      guard user.lockedAt == nil else { throw Refusal.accountLocked(retryAfter: nil) }
      device.lastUsed = now
      try records.save(device)
      let scope = try records.scope(after: trust, for: user, policy, at: now)
      // A debug build has no attested key that would vouch for where its own is kept (RFC 8176).
      let method = caller.identity.binding == .debugBuild ? "swk" : "hwk"
      let session = sessions.begin(for: user, device: device, caller: caller, scope: scope, methods: [method])
      try records.insert(session)
      try records.note(.signatureAccepted, by: caller, account: username.key, ["device=\(deviceID.text)"], at: now)
      return (session, user)
    }
    return try await sessions.tokens(for: session, of: user)
  }
}
