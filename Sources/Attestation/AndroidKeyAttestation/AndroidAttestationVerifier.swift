public import ByteCoding
public import Cryptography

/// Decides whether a chain of certificates proves that a key is in the secure hardware of a genuine Android device and
/// belongs to a configured app.
///
/// Pure: time, roots, policy and status list are arguments. It neither knows nonces nor stores anything, except for the
/// signatures of Google's authorities, which many chains share.
///
/// The chain is verified by position, not by a path builder: those refuse one genuine chain in ten.
public struct AndroidAttestationVerifier: Sendable {
  let policy: AndroidAppPolicy
  let roots: [IssuerKey]
  let signatures: VerifiedSignatureCache

  /// - Parameters:
  ///   - policy: what a key has to prove.
  ///   - roots: the pinned keys; `GoogleRoots.all` for real devices.
  ///   - signatures: where signatures of authorities are remembered. Verifiers may share one.
  public init(
    policy: AndroidAppPolicy, roots: [IssuerKey] = GoogleRoots.all,
    remembering signatures: VerifiedSignatureCache = VerifiedSignatureCache()
  ) {
    self.policy = policy
    self.roots = roots
    self.signatures = signatures
  }

  /// The key that `chain` proves, at `instant`.
  ///
  /// - Parameters:
  ///   - challenge: what the device was to attest; on the gate's path the 32 bytes of the nonce.
  ///   - statusList: the revoked certificates. Without it revocation is not checked.
  /// - Throws: all rules that are broken.
  public func verify(
    _ chain: AndroidCertificateChain, challenge: [UInt8], statusList: AndroidStatusList?, at instant: Timestamp
  ) throws(AndroidAttestationRejection) -> AttestedAndroidKey {
    let claim = AndroidClaim(
      chain: chain.ending(at: roots), challenge: challenge, statusList: statusList, instant: instant)
    let broken = AndroidAttestationStep.allCases.flatMap { check($0, of: claim) ?? [] }
    guard broken.isEmpty else { throw AndroidAttestationRejection(broken) }
    remember(claim.chain)
    return try verifiedKey(of: claim)
  }

  /// Checks one rule, independently of the others. Returns how it is broken, nothing if it holds, and `nil` if the
  /// values that it compares are missing: then another rule is broken, the caller gave no status list, or the policy
  /// does not ask.
  func check(_ step: AndroidAttestationStep, of claim: AndroidClaim) -> [AndroidRuleRejection]? {
    switch step {
    case .format: []  // there would be no chain otherwise
    case .nameChaining: brokenNames(of: claim.chain)
    case .signatures: brokenSignatures(of: claim.chain)
    case .root: brokenRoot(of: claim.chain)
    case .authorities: brokenAuthorities(of: claim.chain)
    case .validity: brokenValidity(of: claim)
    case .revocation: claim.statusList.map { revoked(claim.chain, by: $0) }
    case .attestationExtension: misplacedExtensions(of: claim.chain)
    case .keyDescription: claim.unreadableDescription
    case .challenge: claim.description.map { brokenChallenge(of: claim, $0) }
    case .securityLevel: claim.description.map(brokenSecurityLevel)
    case .origin: claim.description.map { brokenOrigin($0.hardwareEnforced) }
    case .purpose: claim.description.map { brokenPurpose($0.hardwareEnforced) }
    case .boot: claim.description.map { brokenBoot($0.hardwareEnforced) }
    case .patchLevel: claim.description.flatMap { brokenPatchLevel($0.hardwareEnforced) }
    case .app: claim.description.map { brokenApp($0.softwareEnforced) }
    case .key: claim.publicKey == nil ? [.keyIsNotP256] : []
    case .provisioning: brokenProvisioning(of: claim.chain)
    }
  }

  private func verifiedKey(of claim: AndroidClaim) throws(AndroidAttestationRejection) -> AttestedAndroidKey {
    // Both are there, since the rules about them hold.
    guard let description = claim.description, let root = description.hardwareEnforced.rootOfTrust else {
      throw AndroidAttestationRejection(.attestationExtensionMissing)
    }
    guard let publicKey = claim.publicKey else { throw AndroidAttestationRejection(.keyIsNotP256) }
    return AttestedAndroidKey(
      publicKey: publicKey.x963, package: policy.package,
      signers: description.softwareEnforced.applicationID?.signatureDigests ?? [],
      securityLevel: description.keyMintSecurityLevel, bootState: root.verifiedBootState,
      bootKey: root.verifiedBootKey,
      patchLevel: description.hardwareEnforced.number(.osPatchLevel).flatMap(PatchLevel.init(reported:)),
      provisioning: claim.chain.provisioning, serialNumbers: claim.chain.certificates.map(\.serialNumber))
  }
}

/// A chain and the expected values.
struct AndroidClaim {
  let chain: AndroidCertificateChain
  let challenge: [UInt8]
  let statusList: AndroidStatusList?
  let instant: Timestamp

  /// What the leaf says about the key; `nil` if it says nothing that can be read.
  let description: KeyDescription?
  /// Why the extension cannot be read; `nil` if there is none.
  let unreadableDescription: [AndroidRuleRejection]?
  /// The leaf's key; `nil` unless it is a point on P-256.
  let publicKey: P256PublicKey?

  init(chain: AndroidCertificateChain, challenge: [UInt8], statusList: AndroidStatusList?, instant: Timestamp) {
    self.chain = chain
    self.challenge = challenge
    self.statusList = statusList
    self.instant = instant
    publicKey = try? P256PublicKey(spki: chain.leaf.subjectPublicKeyInfo)
    guard let value = chain.leaf.extensionValue(oid: KeyDescription.extensionIdentifier) else {
      (description, unreadableDescription) = (nil, nil)
      return
    }
    do throws(ASN1Error) {
      (description, unreadableDescription) = (try KeyDescription(value), [])
    } catch {
      (description, unreadableDescription) = (nil, [.malformedKeyDescription(reason: "\(error)")])
    }
  }
}
