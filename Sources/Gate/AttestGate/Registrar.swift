public import AppAttest
public import ByteCoding
internal import Cryptography

/// The registration request of an iOS device, not yet decoded.
public struct RegistrationClaim: Sendable, Hashable {
  /// The members of a registration, of any platform.
  public enum Name: String, Sendable, Hashable, CaseIterable { case keyID = "keyId", attestation, nonce, chain }

  /// The key id in base64, as `generateKey()` returns it. Like the attestation in any form that
  /// `Base64.decode(anyForm:)` accepts.
  public let keyID: String
  /// The attestation object in base64, as `attestKey` returns it.
  public let attestation: String
  public let nonce: String

  public init(keyID: String, attestation: String, nonce: String) {
    self.keyID = keyID
    self.attestation = attestation
    self.nonce = nonce
  }
}

/// A key that is in the registry.
public struct RegisteredKey: Sendable, Hashable {
  public let keyID: KeyID
  public let app: AppName
  /// Whether the same request had registered the key before. Its answer may have been lost.
  public let isRepetition: Bool
}

/// Registers each key once and permanently.
public struct Registrar: Sendable {
  /// The maximum distance between now and the creation of a receipt, in either direction.
  public static let receiptFreshness = Duration.seconds(300)
  /// The difference between the gate's clock and Apple's that shows nothing.
  private static let mostDeviation = Duration.seconds(30)

  let apps: AllowedApps
  private let verifier: AttestationVerifier
  let android: AndroidVerification
  private let challenges: Challenges
  let registry: any KeyRegistry
  let limiter: VerificationLimiter
  let clock: WallClock
  private let witness: ClockWitness
  private let enforcement: AttestationKeyEnforcement?
  let stopwatch: Stopwatch

  /// Creates a registrar. `verifier` must know the same apps as `apps`. `witness` keeps what registrations show about
  /// `clock`. `enforcement` revokes keys because of a registration; `nil` revokes none.
  public init(
    apps: AllowedApps, verifier: AttestationVerifier, android: AndroidVerification = AndroidVerification(),
    challenges: Challenges, registry: any KeyRegistry,
    limiter: VerificationLimiter = VerificationLimiter(width: 1), clock: WallClock = .system,
    witness: ClockWitness = ClockWitness(), enforcement: AttestationKeyEnforcement? = nil, stopwatch: Stopwatch = .none
  ) {
    self.apps = apps
    self.verifier = verifier
    self.android = android
    self.challenges = challenges
    self.registry = registry
    self.limiter = limiter
    self.clock = clock
    self.witness = witness
    self.enforcement = enforcement
    self.stopwatch = stopwatch
  }

  /// Verifies the claim, then spends its nonce and stores its key in one transaction. A refused claim spends nothing.
  ///
  /// Repeating the same request changes nothing and succeeds again at any time, as long as the key is not revoked and
  /// the configuration accepts it. A device can attest a key only once, so a lost answer must not make the key
  /// unusable.
  public func register(_ claim: RegistrationClaim) async throws(Denial) -> RegisteredKey {
    guard apps.serves(.ios) else { throw apps.isEmpty ? .notConfigured : .platformNotConfigured(.ios) }
    let (keyID, attestation, nonce) = try Self.read(claim)
    return try await limiter.holding { () throws(Denial) in
      let request = RegistrationRequest(nonce: nonce, attestationDigest: AttestationDigest(of: attestation))
      if let earlier = try await repetition(of: request, for: keyID) { return earlier }
      return try await store(over: nonce) { now throws(Denial) in
        try verified(attestation, of: keyID, request: request, at: now)
      }
    }
  }

  /// Verifies a key by `verify`, in its turn, then spends `nonce` and stores the key.
  func store(
    over nonce: Nonce, _ verify: (_ now: Timestamp) throws(Denial) -> Registration
  ) async throws(Denial) -> RegisteredKey {
    let now = clock.now()
    try await challenges.require(nonce, at: now)
    let registration = try await limiter.inTurn { () throws(Denial) in try verify(now) }
    let outcome = try await stopwatch.time(.register) { () async throws(Denial) in
      try await Denial.onStoreError { () throws(StoreError) in try await registry.register(registration) }
    }
    let key = registration.key
    switch outcome {
    case .inserted:
      await enforcement?.enforce(after: key)
      try await refuseListed(key)
      return RegisteredKey(keyID: key.keyID, app: key.app, isRepetition: false)
    case .sameRequest: return RegisteredKey(keyID: key.keyID, app: key.app, isRepetition: true)
    case .revoked: throw .keyRevoked(key.app)
    case .nonceSpent: throw .nonceUsed
    case .keyExists: throw .keyExists
    }
  }

  private static func read(
    _ claim: RegistrationClaim
  ) throws(Denial) -> (keyID: KeyID, attestation: [UInt8], nonce: Nonce) {
    guard let keyID = KeyID(received: claim.keyID) else {
      throw .valueMalformed(.keyID, rule: "must be the base64 of 32 bytes")
    }
    guard let attestation = Base64.decode(anyForm: claim.attestation), !attestation.isEmpty else {
      throw .valueMalformed(.attestation, rule: "must be base64")
    }
    guard let nonce = Nonce(text: claim.nonce) else { throw .nonceMalformed }
    return (keyID, attestation, nonce)
  }

  func repetition(of request: RegistrationRequest, for keyID: KeyID) async throws(Denial) -> RegisteredKey? {
    let record = try await Denial.onStoreError { () throws(StoreError) in try await registry.record(of: keyID) }
    guard let record, record.request == request else { return nil }
    guard record.revokedAt == nil else { throw .keyRevoked(record.key.app) }
    try apps.check(record.key, category: record.key.validationCategory)
    return RegisteredKey(keyID: keyID, app: record.key.app, isRepetition: true)
  }

  private func verified(
    _ attestation: [UInt8], of keyID: KeyID, request: RegistrationRequest, at now: Timestamp
  ) throws(Denial) -> Registration {
    let proof: VerifiedAttestation
    do throws(AttestationRejection) {
      proof = try stopwatch.time(.attestation) { () throws(AttestationRejection) in
        try proven(try AttestationObject(attestation), of: keyID, request: request, at: now)
      }
    } catch {
      throw .attestationRefused(error)
    }
    let (key, created) = (DeviceKey(proof.key), proof.receipt.creationTime)
    let isFresh = Self.isFresh(created, at: now)
    // A gate whose clock is ahead has issued the nonce, by that clock, long after Apple made the receipt.
    if !isFresh, now > created, created.since(request.nonce.issuedAt) > .zero - Self.mostDeviation {
      throw .receiptTooOld(created: created, now: now)
    }
    witness.note(created: created, at: now, isFresh: isFresh)
    guard isFresh else { throw .receiptNotFresh(created: created, now: now) }
    try apps.check(key, category: key.validationCategory)
    return Registration(key: key, receipt: proof.receipt.bytes, request: request, registeredAt: now)
  }

  /// Verifies `attestation` at `now`. If the dates alone refuse it, verifies it at the creation of its receipt, so that
  /// the caller finds a clock that is days away.
  private func proven(
    _ attestation: AttestationObject, of keyID: KeyID, request: RegistrationRequest, at now: Timestamp
  ) throws(AttestationRejection) -> VerifiedAttestation {
    let hash = request.nonce.clientDataHash
    do throws(AttestationRejection) {
      return try verifier.verify(attestation, keyID: keyID, clientDataHash: hash, at: now)
    } catch {
      let created = attestation.receipt.creationTime
      guard error.isOfDates, !Self.isFresh(created, at: now),
        let proof = try? verifier.verify(attestation, keyID: keyID, clientDataHash: hash, at: created)
      else { throw error }
      return proof
    }
  }

  private static func isFresh(_ created: Timestamp, at now: Timestamp) -> Bool {
    (.zero - receiptFreshness...receiptFreshness).contains(now.since(created))
  }
}

extension AttestationRejection {
  /// Whether the attestation could be valid at another instant.
  fileprivate var isOfDates: Bool {
    switch self {
    case .untrustedChain(let chain), .receipt(.untrustedChain(let chain)): chain.isOfDates
    case .receipt(.expired): true
    case .receipt, .notCBOR, .unexpectedMembers, .unexpectedFormat, .unexpectedCertificateCount, .malformedCertificate,
      .malformedAuthenticatorData, .unexpectedLeafKey, .nonceMissing, .malformedNonce, .nonceMismatch, .keyIDMismatch,
      .rpIDMismatch, .counterNotZero, .unknownEnvironment, .environmentNotAllowed, .credentialIDMismatch,
      .credentialKeyMismatch:
      false
    }
  }
}

extension ChainRejection {
  fileprivate var isOfDates: Bool {
    switch self {
    case .notYetValid, .expired: true
    case .untrusted, .issuerIsNoAuthority, .leafIsAuthority, .leafMustNotSign, .criticalExtension, .unreadableExtension,
      .strayCertificate, .unexpectedLength, .operationFailed:
      false
    }
  }
}
