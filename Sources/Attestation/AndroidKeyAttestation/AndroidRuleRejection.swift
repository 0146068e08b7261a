public import ByteCoding

/// One rule that an attestation breaks, with the values that show it. Positions count from the leaf, which is 0.
public enum AndroidRuleRejection: Error, Sendable, Hashable {
  /// The text is neither PEM nor a JSON array of base64.
  case malformedChain(reason: String)
  /// There are fewer or more certificates than `AndroidCertificateChain.lengths`.
  case chainLength(Int)
  /// The certificates have more bytes than `AndroidCertificateChain.maximumSize`.
  case chainSize(Int)
  /// A certificate is not the DER that is accepted.
  case malformedCertificate(Int, reason: String)

  /// The certificate names another issuer than the next one.
  case nameChaining(Int)
  /// The key of the next certificate, or of the root itself, did not sign the certificate.
  case signature(Int, reason: String)
  /// The last certificate is a root with a key that is not pinned.
  case rootUnknown
  /// The last certificate is no root, and no pinned key signed it.
  case rootMissing
  /// A certificate between leaf and root names itself as its issuer. Only a root does.
  case selfIssued(Int)
  /// An issuer is no authority. The attestation certificate of a factory need not be one if the root's key signed its
  /// issuer.
  case issuerIsNoAuthority(Int)
  /// A certificate is for a key that belongs to the code in a virtual machine, which its owner chooses.
  case virtualMachine(Int)
  /// More authorities are below an issuer than it allows.
  case pathLength(Int, allowed: Int)
  /// A certificate has a critical extension that is not known here; the text is its identifier.
  case criticalExtension(Int, identifier: String)
  /// The validity of an issuer has not begun.
  case notYetValid(Int, notBefore: Timestamp, at: Timestamp)
  /// The validity of an issuer of a remotely provisioned chain is over.
  case expired(Int, notAfter: Timestamp, at: Timestamp)
  /// The status list has the certificate's serial number, here in hex.
  case revoked(Int, serial: String, reason: String)

  /// The leaf has no attestation extension.
  case attestationExtensionMissing
  /// Another certificate than the leaf has an attestation extension.
  case attestationExtension(Int)
  /// The extension does not have the structure that Google describes.
  case malformedKeyDescription(reason: String)
  /// The device attested another challenge.
  case challengeDiffers(expected: [UInt8], found: [UInt8])
  /// The attestation or the key is in software.
  case softwareSecurityLevel
  /// The attestation was made elsewhere than where the key is.
  case securityLevelsDiffer(attestation: KeyDescription.SecurityLevel, key: KeyDescription.SecurityLevel)
  /// The key is in less secure hardware than the policy requires.
  case securityLevelTooLow(found: KeyDescription.SecurityLevel, required: KeyDescription.SecurityLevel)
  /// The hardware does not say that it generated the key; `found` is the origin that it reports.
  case originNotGenerated(found: UInt64?)
  /// The hardware does not say that the key may sign.
  case purposeWithoutSign(found: [UInt64])
  /// The hardware does not say how the device was started.
  case noRootOfTrust
  /// The boot loader is unlocked.
  case deviceUnlocked
  /// Nothing verified the system that was started.
  case bootUnverified
  /// The verification of the system failed.
  case bootFailed
  /// The system is signed by a key of the device's owner that the policy does not allow.
  case bootSelfSigned(key: [UInt8])
  /// The policy requires a patch level, and the device reports none.
  case patchLevelUnknown
  /// The security patches are older than the policy requires.
  case patchLevelTooOld(found: PatchLevel, required: PatchLevel)
  /// The system does not say which app asked.
  case appMissing
  /// The app that asked has another name.
  case packageDiffers(found: [String], expected: String)
  /// Another key signed the app.
  case signerDiffers(found: [[UInt8]])
  /// The attested key is not a point on P-256.
  case keyIsNotP256
  /// The policy requires a remotely provisioned attestation key.
  case notRemotelyProvisioned(KeyProvisioning)
}

extension AndroidRuleRejection {
  /// The rule that is broken.
  public var step: AndroidAttestationStep {
    switch self {
    case .malformedChain, .chainLength, .chainSize, .malformedCertificate: .format
    case .nameChaining: .nameChaining
    case .signature: .signatures
    case .rootUnknown, .rootMissing: .root
    case .selfIssued, .issuerIsNoAuthority, .virtualMachine, .pathLength, .criticalExtension: .authorities
    case .notYetValid, .expired: .validity
    case .revoked: .revocation
    case .attestationExtensionMissing, .attestationExtension: .attestationExtension
    case .malformedKeyDescription: .keyDescription
    case .challengeDiffers: .challenge
    case .softwareSecurityLevel, .securityLevelsDiffer, .securityLevelTooLow: .securityLevel
    case .originNotGenerated: .origin
    case .purposeWithoutSign: .purpose
    case .noRootOfTrust, .deviceUnlocked, .bootUnverified, .bootFailed, .bootSelfSigned: .boot
    case .patchLevelUnknown, .patchLevelTooOld: .patchLevel
    case .appMissing, .packageDiffers, .signerDiffers: .app
    case .keyIsNotP256: .key
    case .notRemotelyProvisioned: .provisioning
    }
  }

  /// The stable word for the rejection in logs and reports, with the position of the certificate if it is about one.
  public var code: String {
    switch self {
    case .malformedChain: "malformed_chain"
    case .chainLength: "chain_length"
    case .chainSize: "chain_size"
    case .malformedCertificate(let position, _): "malformed_certificate[\(position)]"
    case .nameChaining(let position): "name_chaining[\(position)]"
    case .signature(let position, _): "signature[\(position)]"
    case .rootUnknown: "root_unknown"
    case .rootMissing: "root_missing_and_not_signed_by_a_known_root"
    case .selfIssued(let position): "self_issued[\(position)]"
    case .issuerIsNoAuthority(let position): "issuer_is_not_a_ca[\(position)]"
    case .virtualMachine(let position): "virtual_machine_certificate[\(position)]"
    case .pathLength(let position, _): "path_length[\(position)]"
    case .criticalExtension(let position, _): "critical_extension[\(position)]"
    case .notYetValid(let position, _, _): "not_yet_valid[\(position)]"
    case .expired(let position, _, _): "expired[\(position)]"
    case .revoked(let position, _, _): "revoked[\(position)]"
    case .attestationExtensionMissing: "attestation_extension_missing"
    case .attestationExtension(let position): "attestation_extension[\(position)]"
    case .malformedKeyDescription: "malformed_key_description"
    case .challengeDiffers: "challenge_differs"
    case .softwareSecurityLevel: "software_security_level"
    case .securityLevelsDiffer: "security_levels_differ"
    case .securityLevelTooLow: "security_level_too_low"
    case .originNotGenerated: "origin_not_generated_in_hardware"
    case .purposeWithoutSign: "purpose_without_sign"
    case .noRootOfTrust: "no_root_of_trust_in_hardware"
    case .deviceUnlocked: "device_unlocked"
    case .bootUnverified: "boot_unverified"
    case .bootFailed: "boot_failed"
    case .bootSelfSigned: "boot_selfsigned"
    case .patchLevelUnknown: "patch_level_unknown"
    case .patchLevelTooOld: "patch_level_too_old"
    case .appMissing: "app_missing"
    case .packageDiffers: "package_differs"
    case .signerDiffers: "signer_differs"
    case .keyIsNotP256: "key_is_not_P-256"
    case .notRemotelyProvisioned: "not_remotely_provisioned"
    }
  }
}

/// Why an attestation is not accepted: every rule that it breaks, in the order of `AndroidAttestationStep`.
public struct AndroidAttestationRejection: Error, Sendable, Hashable {
  /// The broken rules, at least one.
  public let rules: [AndroidRuleRejection]

  init(_ rules: [AndroidRuleRejection]) { self.rules = rules }
  init(_ rule: AndroidRuleRejection) { rules = [rule] }

  /// Whether another policy could accept the chain.
  public var isByPolicyAlone: Bool {
    rules.allSatisfy { rule in
      switch rule.step {
      case .securityLevel, .boot, .patchLevel, .app, .provisioning: true
      case .format, .nameChaining, .signatures, .root, .authorities, .validity, .revocation, .attestationExtension,
        .keyDescription, .challenge, .origin, .purpose, .key:
        false
      }
    }
  }

  /// The words for the broken rules, for logs.
  public var codes: [String] { rules.map(\.code) }
}

extension AndroidAttestationRejection: CustomStringConvertible {
  public var description: String { rules.map(\.description).joined(separator: "; ") }
}
