internal import AndroidKeyAttestation
public import AppAttest
public import ByteCoding
public import Cryptography

/// Admits a device that signs a fresh nonce with its attested key: by an assertion of App Attest, or by a signature of a
/// key in Android's key store.
public struct AssertionRule: AdmissionRule {
  private let apps: AllowedApps
  private let challenges: Challenges
  private let registry: any KeyRegistry
  private let window: CounterWindow
  private let known: PublicKeyCache
  private let decoy: AttestedKey?
  private let stopwatch: Stopwatch

  /// - Parameters:
  ///   - window: How far below the greatest counter an unused counter is still accepted; see `CounterWindow`.
  ///   - recentKeys: The cache keeps at least this many recently used public keys, and at most twice as many.
  /// - Throws: `CryptographyError` if OpenSSL cannot create the decoy key.
  public init(
    apps: AllowedApps, challenges: Challenges, registry: any KeyRegistry, window: CounterWindow = .none,
    recentKeys: Int = 4096, stopwatch: Stopwatch = .none
  ) throws(CryptographyError) {
    self.apps = apps
    self.challenges = challenges
    self.registry = registry
    self.window = window
    self.stopwatch = stopwatch
    known = PublicKeyCache(registry: registry, capacity: recentKeys)
    decoy = try PublicKeyCache.Key.decoy()
  }

  /// Removes a key from memory after it was changed in the registry.
  public func forget(_ keyID: KeyID) { known.forget(keyID) }

  /// Removes every key from memory, after any of them may have changed in the registry.
  public func forgetAll() { known.forgetAll() }

  /// Verifies the whole proof before it spends anything, so a wrong signature cannot burn the nonce of another
  /// client. Then the registry spends the nonce, advances the counter and checks the revocation in one transaction.
  public func evaluate(_ claim: AdmissionClaim, at now: Timestamp) async throws(Denial) -> Principal? {
    guard !claim.assertion.isAbsent else { return nil }
    guard !apps.isEmpty else { throw .notConfigured }
    let (keyID, proof, nonce) = try read(claim.assertion)
    try await challenges.require(nonce, at: now)
    let device = try await verified(proof, of: keyID, over: nonce, at: now)
    try await spend(
      KeyUse(keyID: keyID, counter: device.counter, nonce: nonce, window: window, at: now), for: device.app)
    return .device(device)
  }

  /// What `X-App-Assert-Data` contains.
  private enum Proof {
    /// Of App Attest.
    case assertion(Assertion)
    /// Of Android, in DER.
    case signature([UInt8])

    /// Every DER signature begins with it, and no assertion does, which is a CBOR map.
    static let beginningOfSignature: UInt8 = 0x30
  }

  private func read(
    _ claim: AssertionClaim
  ) throws(Denial) -> (keyID: KeyID, proof: Proof, nonce: Nonce) {
    let texts = try (claim.value(of: .keyID), claim.value(of: .data), claim.value(of: .nonce))
    guard let keyID = KeyID(received: texts.0) else {
      throw .partMalformed(.keyID, rule: "must be the base64 of 32 bytes")
    }
    guard let bytes = Base64.decode(anyForm: texts.1) else { throw .partMalformed(.data, rule: "must be base64") }
    guard let nonce = Nonce(text: texts.2) else { throw .nonceMalformed }
    if apps.serves(.android), bytes.first == Proof.beginningOfSignature { return (keyID, .signature(bytes), nonce) }
    do throws(AssertionRejection) {
      return (keyID, .assertion(try Assertion(bytes)), nonce)
    } catch {
      throw .assertionMalformed(error)
    }
  }

  private func verified(
    _ proof: Proof, of keyID: KeyID, over nonce: Nonce, at now: Timestamp
  ) async throws(Denial) -> DevicePrincipal {
    let remembered = known.recall(keyID)
    let (key, isRegistered) =
      if let remembered { (remembered, true) } else { try await read(keyID) }
    let evidence: DevicePrincipal.Evidence
    do throws(Denial) {
      evidence = try check(proof, by: key, over: nonce)
    } catch {
      // The duration of a refusal must not reveal which keys are registered. Every refusal therefore costs a lookup,
      // the construction of a public key and a verification. An admission with a cached key costs only the
      // verification.
      if remembered != nil { _ = try await read(keyID) }
      throw isRegistered ? error : .unknownKey
    }
    guard isRegistered else { throw .unknownKey }
    let device = DevicePrincipal(
      key.attested, hash: key.hash, evidence: evidence, risk: apps.shownRisk(key.risk, of: key.attested))
    // The configuration may have changed since the registration, and the app may have been reinstalled from another
    // source.
    try apps.check(key.attested, category: device.category)
    if apps.judgesRisk {
      try apps.check(key.risk, of: key.attested, registeredAt: key.registeredAt, at: now)
    }
    return device
  }

  /// Verifies one signature, whatever the platforms of proof and key are. A key never verifies the proof of another
  /// platform, even if the signature is its own.
  private func check(
    _ proof: Proof, by key: PublicKeyCache.Key, over nonce: Nonce
  ) throws(Denial) -> DevicePrincipal.Evidence {
    switch (proof, key.attested.attestation) {
    case (.assertion(let assertion), .appAttest(let attested)):
      do throws(AssertionRejection) {
        try verify(assertion, by: attested, key.publicKey, over: nonce)
      } catch {
        throw .assertionRefused(error, key.attested.app)
      }
      // From iOS 27 on, the assertion reports the source.
      return .appAttest(
        counter: assertion.counter,
        category: assertion.extensions?.validationCategory ?? attested.validationCategory)
    case (.signature(let signature), .android(let attested)):
      do throws(AndroidKeyProofRejection) {
        try verify(signature, by: key.publicKey, over: nonce)
      } catch {
        throw .androidProofRefused(error, key.attested.app)
      }
      return .android(attested)
    case (.assertion(let assertion), .android):
      if let standIn = Self.standIn(for: key.attested) {
        try? verify(assertion, by: standIn, key.publicKey, over: nonce)
      }
    case (.signature(let signature), .appAttest):
      try? verify(signature, by: key.publicKey, over: nonce)
    }
    throw .platformMismatch(key.attested.app)
  }

  /// A key of App Attest with the public key of `key`, so that an assertion with its name is verified with all steps of
  /// one for an unknown key: the verifier refuses a key of another name before it verifies a signature.
  static func standIn(for key: DeviceKey) -> AttestedKey? {
    AppID(teamID: "0000000000", bundleID: "decoy").map {
      AttestedKey(keyID: key.keyID, publicKey: key.publicKey, appID: $0, environment: .development)
    }
  }

  // Each verification is measured by itself: a refusal without one has no such step.

  /// The registry compares the counter in the statement that advances it.
  private func verify(
    _ assertion: Assertion, by key: AttestedKey, _ publicKey: P256PublicKey, over nonce: Nonce
  ) throws(AssertionRejection) {
    try stopwatch.time(.assertion) { () throws(AssertionRejection) in
      _ = try AssertionVerifier().verify(
        assertion, by: key, publicKey: publicKey, clientDataHash: nonce.clientDataHash, after: .zero)
    }
  }

  private func verify(
    _ signature: [UInt8], by publicKey: P256PublicKey, over nonce: Nonce
  ) throws(AndroidKeyProofRejection) {
    try stopwatch.time(.assertion) { () throws(AndroidKeyProofRejection) in
      try AndroidKeyProof.verify(signature, nonce: nonce.bytes, by: publicKey)
    }
  }

  /// Reads the key `keyID` from the registry; returns the decoy key if it is not registered.
  private func read(_ keyID: KeyID) async throws(Denial) -> (key: PublicKeyCache.Key, isRegistered: Bool) {
    guard let decoy else { throw .unknownKey }
    return try await Denial.onStoreError { () async throws(StoreError) in
      try await known.read(keyID, decoy: DeviceKey(decoy), timedBy: stopwatch)
    }
  }

  private func spend(_ use: KeyUse, for app: AppName) async throws(Denial) {
    let admittance = try await stopwatch.time(.admit) { () async throws(Denial) in
      try await Denial.onStoreError { () throws(StoreError) in try await registry.admit(use) }
    }
    switch admittance {
    case .admitted: return
    case .nonceSpent: throw .nonceUsed
    case .counterReplayed(let stored): throw .counterReplayed(use.counter ?? .zero, stored: stored, app)
    case .revoked: throw .keyRevoked(app)
    case .unknownKey:
      known.forget(use.keyID)
      throw .unknownKey
    }
  }
}
