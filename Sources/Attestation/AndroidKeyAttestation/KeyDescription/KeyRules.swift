internal import Cryptography

// The rules about what the device says. Of the two lists only the hardware's proves something about the key;
// the system's is needed for the name of the app, which the hardware does not know.
extension AndroidAttestationVerifier {
  func brokenChallenge(of claim: AndroidClaim, _ description: KeyDescription) -> [AndroidRuleRejection] {
    guard description.challenge != claim.challenge else { return [] }
    return [.challengeDiffers(expected: claim.challenge, found: description.challenge)]
  }

  func brokenSecurityLevel(_ description: KeyDescription) -> [AndroidRuleRejection] {
    let (attestation, key) = (description.attestationSecurityLevel, description.keyMintSecurityLevel)
    var broken: [AndroidRuleRejection] = []
    let isSoftware = attestation == .software || key == .software
    if isSoftware { broken.append(.softwareSecurityLevel) }
    if attestation != key { broken.append(.securityLevelsDiffer(attestation: attestation, key: key)) }
    return isSoftware ? broken : broken + policy.broken(by: min(attestation, key))
  }

  func brokenOrigin(_ hardware: AuthorizationList) -> [AndroidRuleRejection] {
    let origin = hardware.number(.origin)
    return origin == KeyOrigin.generated ? [] : [.originNotGenerated(found: origin)]
  }

  func brokenPurpose(_ hardware: AuthorizationList) -> [AndroidRuleRejection] {
    let purposes = hardware.numbers(.purpose)
    return purposes.contains(KeyPurpose.sign) ? [] : [.purposeWithoutSign(found: purposes)]
  }

  func brokenBoot(_ hardware: AuthorizationList) -> [AndroidRuleRejection] {
    guard let root = hardware.rootOfTrust else { return [.noRootOfTrust] }
    return (root.isDeviceLocked ? [] : [.deviceUnlocked])
      + policy.broken(by: root.verifiedBootState, signedBy: root.verifiedBootKey)
  }

  func brokenPatchLevel(_ hardware: AuthorizationList) -> [AndroidRuleRejection]? {
    policy.broken(by: hardware.number(.osPatchLevel).flatMap(PatchLevel.init(reported:)))
  }

  func brokenApp(_ software: AuthorizationList) -> [AndroidRuleRejection] {
    guard let application = software.applicationID else { return [.appMissing] }
    var broken: [AndroidRuleRejection] = []
    if !application.packages.contains(where: { $0.name.elementsEqual(policy.package.utf8) }) {
      broken.append(.packageDiffers(found: application.packages.map(\.text), expected: policy.package))
    }
    return broken + policy.broken(bySigners: application.signatureDigests)
  }
}

/// The values of the tag `origin` (KeyMint, `KeyOrigin.aidl`).
private enum KeyOrigin {
  /// The key was made by the hardware and never left it.
  static let generated: UInt64 = 0
}

/// The values of the tag `purpose` (KeyMint, `KeyPurpose.aidl`).
private enum KeyPurpose {
  static let sign: UInt64 = 2
}
