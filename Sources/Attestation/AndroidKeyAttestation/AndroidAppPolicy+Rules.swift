// The conditions of a policy. They hold for a new attestation, and for a stored key when the policy has changed since.
extension AndroidAppPolicy {
  /// How a key that was attested for this package breaks the policy; nothing if it does not.
  public func brokenRules(by key: AttestedAndroidKey) -> [AndroidRuleRejection] {
    broken(by: key.securityLevel) + broken(by: key.bootState, signedBy: key.bootKey)
      + (broken(by: key.patchLevel) ?? []) + broken(bySigners: key.signers) + (broken(by: key.provisioning) ?? [])
  }

  func broken(by level: KeyDescription.SecurityLevel) -> [AndroidRuleRejection] {
    let required = minimumSecurityLevel.level
    return level < required ? [.securityLevelTooLow(found: level, required: required)] : []
  }

  func broken(by state: RootOfTrust.VerifiedBootState, signedBy key: [UInt8]) -> [AndroidRuleRejection] {
    switch state {
    case .verified: []
    case .selfSigned: allowedBootKeys.contains(key) ? [] : [.bootSelfSigned(key: key)]
    case .unverified: [.bootUnverified]
    case .failed: [.bootFailed]
    }
  }

  /// `nil` if the policy does not ask.
  func broken(by level: PatchLevel?) -> [AndroidRuleRejection]? {
    guard let required = minimumPatchLevel else { return nil }
    guard let level else { return [.patchLevelUnknown] }
    return level < required ? [.patchLevelTooOld(found: level, required: required)] : []
  }

  func broken(bySigners digests: [[UInt8]]) -> [AndroidRuleRejection] {
    signers.isDisjoint(with: digests) ? [.signerDiffers(found: digests)] : []
  }

  /// `nil` if the policy does not ask.
  func broken(by provisioning: KeyProvisioning) -> [AndroidRuleRejection]? {
    guard requiresRemoteProvisioning else { return nil }
    return provisioning == .remote ? [] : [.notRemotelyProvisioned(provisioning)]
  }
}
