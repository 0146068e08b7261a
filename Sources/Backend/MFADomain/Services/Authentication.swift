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

  /// A client's response to a challenge.
  public struct SignedChallenge: Sendable {
    public let challengeID: UUID
    public let username: Username
    public let deviceID: DeviceID
    /// By the key of the device, over the nonce of the challenge.
    public let signature: [UInt8]

    public init(challengeID: UUID, username: Username, deviceID: DeviceID, signature: [UInt8]) {
      self.challengeID = challengeID
      self.username = username
      self.deviceID = deviceID
      self.signature = signature
    }
  }

  /// Returns a challenge for the device, and sends a code to its number if it signs in by codes.
  ///
  /// An unknown user or device gets a challenge as well, made and stored in the same way, that no key can answer.
  ///
  /// - Throws: `.boundElsewhere` for a device that is bound to another app instance; `.deviceNotEnrolled` for a device
  ///   that the caller had enrolled and that was removed.
  public func challenge(
    _ username: Username, _ deviceID: DeviceID, for caller: Caller
  ) async throws -> (method: MFAMethod, challenge: DeviceChallenge) {
    let (id, nonce) = (context.entropy.uuid(), context.entropy.bytes(32))
    let code = codes.draft(for: username, caller)
    return try await context.write(by: caller, excluding: .rows) { work in
      let challenge = DeviceChallenge(
        id: id, username: username.key, deviceID: deviceID, nonce: nonce, binding: caller.identity.binding,
        createdAt: work.now, expiresAt: work.now.advanced(by: DeviceChallenge.lifetime))
      let device = try work.records.device(deviceID)
      let owner = try device.flatMap { try work.records.user($0.userID) }
      if let device, device.binding != caller.identity.binding {
        throw MFARefusal.boundElsewhere(account: owner?.username.key ?? username.key)
      }
      if device?.removedAt != nil {
        let refusal = MFARefusal.deviceNotEnrolled
        try work.note(
          .challengeRefused, account: owner?.username.key,
          ["device=\(deviceID.text)", "reason=\(refusal.cause)"])
        throw RecordedRefusal(refusal)
      }
      try work.records.insert(challenge)
      guard let device, owner?.isNamed(username) == true else { return (.secureEnclave, challenge) }
      if device.method == .smsOTP, work.policy.admits(device) {
        // Codes are counted over many rows.
        try work.records.excludeWriters()
        try work.sendWithSignIn(
          code, to: owner?.lockedAt == nil ? device : nil, account: owner?.username.key ?? username.key,
          language: owner?.language)
      }
      return (device.method, challenge)
    }
  }

  /// Begins a session by the right response to a challenge, which is spent.
  ///
  /// - Throws: `.authenticationFailed` alike for a wrong user, device, challenge or signature, and for a challenge
  ///   that is expired or spent; `.accountLocked`.
  public func verify(
    _ response: SignedChallenge, trustToken: String?, by caller: Caller
  ) async throws -> SessionTokens {
    let now = context.clock.now()
    let asked = try await context.read(by: caller, at: now) { work in
      (
        challenge: try work.records.challenge(response.challengeID),
        device: try work.records.device(response.deviceID)
      )
    }
    let key = asked.device?.publicKey
    // The signature is verified in every case, so that the time does not reveal what is missing.
    let isSigned = (key ?? .decoy).verifies(response.signature, of: asked.challenge?.nonce ?? Self.noNonce)
    let fault = Self.fault(in: response, to: asked.challenge, from: asked.device, by: caller)
    guard fault == nil, isSigned, let key else {
      let fault = fault ?? (key == nil ? .deviceWithoutKey : .signature)
      try await context.write(by: caller, at: now, excluding: .rows) { work in
        try work.records.countFailure(ofChallenge: response.challengeID)
        try work.noteRefused(response, fault.rawValue)
      }
      throw MFARefusal.authenticationFailed(fault)
    }
    let trust = trustToken.map { TrustProof(token: $0, binding: caller.identity.binding, in: context.vault) }
    // Trust is judged over many rows.
    let others: WriteExclusion = trust == nil && !context.policy.watchesNetworks ? .rows : .writers
    let (session, user) = try await context.write(by: caller, at: now, excluding: others) { work in
      try work.begin(by: response, of: key, trust)
    }
    return try await sessions.tokens(for: session, of: user)
  }

  /// The first fault of a response, apart from its signature, as far as it is visible before the challenge is spent.
  private static func fault(
    in response: SignedChallenge, to challenge: DeviceChallenge?, from device: Device?, by caller: Caller
  ) -> SignInRejection? {
    guard let challenge else { return .challengeUnknown }
    guard challenge.username == response.username.key, challenge.deviceID == response.deviceID else {
      return .challengeOfAnother
    }
    guard let device, device.removedAt == nil else { return .deviceUnknown }
    guard challenge.binding == caller.identity.binding, device.binding == caller.identity.binding else {
      return .attestedKey
    }
    return device.publicKey == nil ? .deviceWithoutKey : nil
  }

  private static let noNonce = [UInt8](repeating: 0, count: 32)
}

extension UnitOfWork where Initiator == Caller {
  /// Spends the challenge and begins the session.
  ///
  /// - Parameter key: the key that the signature was verified with. The device may have another one by now.
  /// - Throws: `RecordedRefusal`
  fileprivate func begin(
    by response: Authentication.SignedChallenge, of key: DevicePublicKey, _ trust: TrustProof?
  ) throws -> (LoginSession, User) {
    func refuse(_ refusal: MFARefusal) throws -> RecordedRefusal {
      try noteRefused(response, refusal.cause)
      return RecordedRefusal(refusal)
    }
    guard var device = try records.device(response.deviceID), device.removedAt == nil, device.publicKey == key,
      let user = try records.user(device.userID)
    else { throw try refuse(.authenticationFailed(.deviceChanged)) }
    guard user.isNamed(response.username) else { throw try refuse(.authenticationFailed(.deviceOfAnother)) }
    guard try records.spend(challenge: response.challengeID, at: now) else {
      throw try refuse(.authenticationFailed(records.challenge(response.challengeID).unspendable(at: now)))
    }
    guard user.lockedAt == nil else { throw try refuse(.accountLocked(retryAfter: nil)) }
    guard policy.admits(device) else { throw try refuse(.authenticationFailed(.unlock)) }
    device.lastUsed = now
    // From here on the device's row is locked, so its sign-ins count their sessions one after the other.
    try records.save(device)
    let scope = try scope(after: trust, for: user, on: device)
    let method = policy.reference(ofKeyBoundTo: caller.identity.binding)
    let session = try beginSession(of: user, on: device, scope: scope, methods: [method])
    try note(.signatureAccepted, of: user, ["device=\(response.deviceID.text)"])
    return (session, user)
  }

  fileprivate func noteRefused(_ response: Authentication.SignedChallenge, _ reason: String) throws {
    try note(
      .signatureRefused, account: try records.accountKey(of: response.username),
      ["device=\(response.deviceID.text)", "reason=\(reason)"])
  }
}

extension DeviceChallenge? {
  /// The reason why it cannot be spent at `now`.
  fileprivate func unspendable(at now: Timestamp) -> SignInRejection {
    guard let challenge = self else { return .challengeUnknown }
    if challenge.isUsed { return .challengeUsed }
    return now < challenge.expiresAt ? .challengeExhausted : .challengeExpired
  }
}
