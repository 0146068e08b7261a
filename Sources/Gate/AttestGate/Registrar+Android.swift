public import AndroidKeyAttestation
internal import AppAttest
internal import ByteCoding
public import Cryptography

/// The registration request of an Android device, not yet decoded.
public struct AndroidRegistrationClaim: Sendable, Hashable {
  /// The certificates in base64, leaf first, as `KeyStore.getCertificateChain` returns them.
  public let chain: [String]
  public let nonce: String

  public init(chain: [String], nonce: String) {
    self.chain = chain
    self.nonce = nonce
  }
}

/// What chains of Android devices are verified against.
public struct AndroidVerification: Sendable {
  let roots: [IssuerKey]
  let revocations: RevokedCertificates
  let signatures = VerifiedSignatureCache()
  let report: @Sendable (Revocation) -> Void

  /// - Parameters:
  ///   - roots: The trusted keys; Google's unless given.
  ///   - revocations: The certificates that count as revoked.
  ///   - report: Called after the revocation of a registered key was stored. It must not wait.
  public init(
    roots: [IssuerKey] = GoogleRoots.all, revocations: RevokedCertificates = .notChecked,
    report: @escaping @Sendable (Revocation) -> Void = { _ in }
  ) {
    self.roots = roots
    self.revocations = revocations
    self.report = report
  }

  /// A revocation because a certificate of a key's chain is revoked.
  public struct Revocation: Sendable, Hashable {
    public let key: KeyHash
    public let app: AppName
    /// The serial number of the certificate.
    public let serial: String
    /// Why the certificate is revoked.
    public let reason: String

    /// Returns `nil` unless `list` has a certificate of the chain of `key`.
    public init?(of key: DeviceKey, by list: AndroidStatusList) {
      guard case .android(let attested) = key.attestation, let entry = attested.revocation(in: list) else { return nil }
      self.key = KeyHash(of: key.keyID)
      (app, serial, reason) = (key.app, entry.serial, entry.reason)
    }
  }
}

extension Registrar {
  /// Verifies the chain, then spends its nonce and stores its key in one transaction. A refused claim spends nothing.
  ///
  /// Repeating the same request changes nothing and succeeds again, as with App Attest. A key whose chain is listed as
  /// revoked while it is stored is registered, revoked and refused.
  public func register(_ claim: AndroidRegistrationClaim) async throws(Denial) -> RegisteredKey {
    guard apps.serves(.android) else { throw apps.isEmpty ? .notConfigured : .platformNotConfigured(.android) }
    let (encoded, nonce) = try Self.read(claim)
    return try await limiter.holding { () throws(Denial) in
      let chain = try await limiter.inTurn { () throws(Denial) in try Self.chain(encoded) }
      let request = RegistrationRequest(nonce: nonce, attestationDigest: AttestationDigest(of: Array(encoded.joined())))
      // A leaf without a key on P-256 has no name, and is refused below.
      if let publicKey = try? P256PublicKey(spki: chain.leaf.subjectPublicKeyInfo),
        let earlier = try await repetition(of: request, for: KeyID(ofPublicKey: publicKey.x963))
      {
        return earlier
      }
      return try await store(over: nonce) { now throws(Denial) in try verified(chain, request: request, at: now) }
    }
  }

  /// Revokes and refuses `key`, which has just been stored, if the present list has a certificate of its chain.
  ///
  /// The chain was verified by the list of that time. A list that arrived since may have been compared with the
  /// registered keys before this one was among them.
  func refuseListed(_ key: DeviceKey) async throws(Denial) {
    guard let list = android.revocations.configured?.current?.list,
      let revocation = AndroidVerification.Revocation(of: key, by: list)
    else { return }
    let isStored = try await Denial.onStoreError { () throws(StoreError) in
      try await registry.revoke(key.keyID, at: clock.now())
    }
    if isStored { android.report(revocation) }
    throw .keyRevoked(key.app)
  }

  private static func read(_ claim: AndroidRegistrationClaim) throws(Denial) -> (chain: [[UInt8]], nonce: Nonce) {
    var encoded: [[UInt8]] = []
    for text in claim.chain {
      guard let bytes = Base64.decode(anyForm: text), !bytes.isEmpty else {
        throw .valueMalformed(.chain, rule: "must have the base64 of a certificate as each element")
      }
      encoded.append(bytes)
    }
    guard let nonce = Nonce(text: claim.nonce) else { throw .nonceMalformed }
    return (encoded, nonce)
  }

  private static func chain(_ encoded: [[UInt8]]) throws(Denial) -> AndroidCertificateChain {
    do throws(AndroidAttestationRejection) {
      return try AndroidCertificateChain(encoded)
    } catch {
      throw .androidAttestationRefused(error)
    }
  }

  private func verified(
    _ chain: AndroidCertificateChain, request: RegistrationRequest, at now: Timestamp
  ) throws(Denial) -> Registration {
    let list = try android.revocations.list(at: now)
    let key = try stopwatch.time(.attestation) { () throws(Denial) in
      try attested(chain, challenge: request.nonce.bytes, list, at: now)
    }
    let device = DeviceKey(key, environment: apps.androidEnvironment)
    try apps.check(device, category: nil)
    return Registration(key: device, request: request, registeredAt: now)
  }

  /// The key, by the first policy that the chain fulfils among those of the packages that it names. Apps that share a
  /// user of the system are in one attestation. For a chain of other apps any policy will do: each refuses it.
  private func attested(
    _ chain: AndroidCertificateChain, challenge: [UInt8], _ list: AndroidStatusList?, at now: Timestamp
  ) throws(Denial) -> AttestedAndroidKey {
    let packages = chain.packageNames
    let policies = apps.android(at: now)
    let named = policies.filter { packages.contains(Array($0.package.utf8)) }
    var denial: Denial?
    for policy in named.isEmpty ? Array(policies.prefix(1)) : named {
      do throws(AndroidAttestationRejection) {
        return try AndroidAttestationVerifier(
          policy: policy, roots: android.roots, remembering: android.signatures
        ).verify(chain, challenge: challenge, statusList: list, at: now)
      } catch {
        denial = denial ?? .androidAttestationRefused(error)
        // No other policy would accept it, and each would verify the signatures of up to ten certificates.
        guard error.isByPolicyAlone else { break }
      }
    }
    throw denial ?? .platformNotConfigured(.android)
  }
}
