public import AppAttest
public import ByteCoding
public import Cryptography

/// Admits a device that signs a fresh nonce with its attested key.
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

  /// Verifies the whole assertion before it spends anything, so a wrong signature cannot burn the nonce of another
  /// client. Then the registry spends the nonce, advances the counter and checks the revocation in one transaction.
  public func evaluate(_ claim: AdmissionClaim, at now: Timestamp) async throws(Denial) -> Principal? {
    guard !claim.assertion.isAbsent else { return nil }
    guard !apps.isEmpty else { throw .notConfigured }
    let (keyID, assertion, nonce) = try Self.read(claim.assertion)
    try await challenges.require(nonce, at: now)
    let device = try await verified(assertion, of: keyID, over: nonce)
    let use = KeyUse(keyID: keyID, counter: device.counter, nonce: nonce, window: window, at: now)
    try await spend(use, for: device)
    return .device(device)
  }

  private static func read(
    _ claim: AssertionClaim
  ) throws(Denial) -> (keyID: KeyID, assertion: Assertion, nonce: Nonce) {
    let texts = try (claim.value(of: .keyID), claim.value(of: .data), claim.value(of: .nonce))
    guard let keyID = KeyID(base64: texts.0) else {
      throw .partMalformed(.keyID, rule: "must be the base64 of 32 bytes")
    }
    guard let bytes = Base64.decode(texts.1) else { throw .partMalformed(.data, rule: "must be base64") }
    guard let nonce = Nonce(text: texts.2) else { throw .nonceMalformed }
    do throws(AssertionRejection) {
      return (keyID, try Assertion(bytes), nonce)
    } catch {
      throw .assertionMalformed(error)
    }
  }

  private func verified(
    _ assertion: Assertion, of keyID: KeyID, over nonce: Nonce
  ) async throws(Denial) -> DevicePrincipal {
    let remembered = known.recall(keyID)
    let (key, isRegistered) =
      if let remembered { (remembered, true) } else { try await read(keyID) }
    do throws(AssertionRejection) {
      // The registry compares the counter in the statement that advances it.
      try stopwatch.time(.assertion) { () throws(AssertionRejection) in
        _ = try AssertionVerifier().verify(
          assertion, by: key.attested, publicKey: key.publicKey, clientDataHash: nonce.clientDataHash, after: .zero)
      }
    } catch {
      // The duration of a refusal must not reveal which keys are registered. Every refusal therefore costs a lookup,
      // the construction of a public key and a verification. An admission with a cached key costs only the
      // verification.
      if remembered != nil { _ = try await read(keyID) }
      throw isRegistered ? .assertionRefused(error, key.attested.appID) : .unknownKey
    }
    guard isRegistered else { throw .unknownKey }
    return try permitted(key.attested, by: assertion)
  }

  /// Reads the key `keyID` from the registry; returns the decoy key if it is not registered.
  private func read(_ keyID: KeyID) async throws(Denial) -> (key: PublicKeyCache.Key, isRegistered: Bool) {
    guard let decoy else { throw .unknownKey }
    return try await Denial.onStoreError { () async throws(StoreError) in
      try await known.read(keyID, decoy: decoy, timedBy: stopwatch)
    }
  }

  /// Checks the key against the current configuration, which may have changed since the registration.
  private func permitted(_ key: AttestedKey, by assertion: Assertion) throws(Denial) -> DevicePrincipal {
    // The app may have been reinstalled from another source since. From iOS 27 on, the assertion reports the source.
    let category = assertion.extensions?.validationCategory ?? key.validationCategory
    try apps.check(key, category: category)
    return DevicePrincipal(
      keyID: key.keyID, appID: key.appID, environment: key.environment, counter: assertion.counter, category: category)
  }

  private func spend(_ use: KeyUse, for device: DevicePrincipal) async throws(Denial) {
    let admittance = try await stopwatch.time(.admit) { () async throws(Denial) in
      try await Denial.onStoreError { () throws(StoreError) in try await registry.admit(use) }
    }
    switch admittance {
    case .admitted: return
    case .nonceSpent: throw .nonceUsed
    case .counterReplayed(let stored): throw .counterReplayed(use.counter, stored: stored, device.appID)
    case .revoked: throw .keyRevoked(device.appID)
    case .unknownKey:
      known.forget(use.keyID)
      throw .unknownKey
    }
  }
}
