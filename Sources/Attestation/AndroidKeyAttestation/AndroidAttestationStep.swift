/// The rules of an Android key attestation, in the order in which they are checked.
///
/// The raw values are stable: reports name a rule that holds by them. A rule that does not hold is named by the code of
/// its rejection.
public enum AndroidAttestationStep: String, Sendable, Hashable, CaseIterable {
  /// There are 2 to 10 certificates of at most 64 KiB, and each can be parsed.
  case format
  /// The issuer that each certificate names is the next one.
  case nameChaining = "name_chaining"
  /// The key of the next certificate signed each one.
  case signatures
  /// The chain ends at a pinned key.
  case root
  /// The issuers are authorities; some attestation certificates of factories need not be.
  case authorities
  /// The certificates are valid at the instant, as far as their dates count.
  case validity
  /// No certificate is in the status list.
  case revocation
  /// The attestation extension is in the leaf and in no other certificate.
  case attestationExtension = "attestation_extension"
  /// The extension has the structure that Google describes.
  case keyDescription = "key_description"
  /// The device attested the challenge.
  case challenge
  /// Attestation and key are in the same secure hardware, and it is secure enough.
  case securityLevel = "security_level"
  /// The key was generated in the hardware.
  case origin
  /// The key is one for signatures.
  case purpose
  /// The boot loader was locked and started a system that is allowed.
  case boot
  /// The system's security patches are as new as the policy requires; checked if it does.
  case patchLevel = "patch_level"
  /// The app that asked is the one of the policy, by package and signer.
  case app
  /// The key is on P-256.
  case key
  /// The attestation key was provisioned remotely; checked if the policy requires it.
  case provisioning
}
