internal import ByteCoding

extension AndroidRuleRejection: CustomStringConvertible {
  /// The reason as a sentence, and what to do where the reader can do something. Logs contain `code`.
  public var description: String {
    switch self {
    case .malformedChain(let reason): "the chain cannot be read: \(reason)"
    case .chainLength(let count):
      "the chain has \(count) certificates, not \(AndroidCertificateChain.lengths.lowerBound) to "
        + "\(AndroidCertificateChain.lengths.upperBound): send all that KeyStore.getCertificateChain returns"
    case .chainSize(let size):
      "the certificates have \(size) bytes, where \(AndroidCertificateChain.maximumSize) are allowed"
    case .malformedCertificate(let position, let reason): "certificate \(position): \(reason)"
    case .nameChaining(let position):
      "certificate \(position) names another issuer than certificate \(position + 1): send the chain in its order, "
        + "leaf first"
    case .signature(let position, let reason): "the signature of certificate \(position) is not valid: \(reason)"
    case .rootUnknown:
      "the last certificate is a root with a key that is not trusted: a chain in software, or a forged one"
    case .rootMissing: "the last certificate is no root, and no trusted root signed it: send the whole chain"
    case .selfIssued(let position):
      "certificate \(position) is its own issuer, and not the last one: send the root once, or not at all"
    case .issuerIsNoAuthority(let position):
      "certificate \(position) issued another one and is no authority by its basicConstraints and keyUsage"
    case .virtualMachine(let position):
      "certificate \(position) is for a key in a virtual machine, whose code its owner chooses"
    case .pathLength(let position, let allowed):
      "certificate \(position) allows \(allowed) authorities below it, and has \(position - 1)"
    case .criticalExtension(let position, let identifier):
      "certificate \(position) has the critical extension \(identifier), which is not known here"
    case .notYetValid(let position, let notBefore, let instant):
      "certificate \(position) is valid from \(notBefore), not yet at \(instant)"
    case .expired(let position, let notAfter, let instant):
      "certificate \(position) was valid until \(notAfter), no longer at \(instant): the device gets newer ones when it "
        + "is online"
    case .revoked(let position, let serial, let reason):
      "certificate \(position) is revoked: serial number \(serial), \(reason)"
    case .attestationExtensionMissing:
      "the first certificate has no attestation extension \(KeyDescription.extensionIdentifier): the key was made "
        + "without setAttestationChallenge, or the chain is not sent leaf first"
    case .attestationExtension(let position):
      "certificate \(position) has an attestation extension, too: an attested key signed those before it"
    case .notRemotelyProvisioned(let found):
      "the attestation key is not provisioned remotely (\(found.rawValue)), which the policy requires"
    case .malformedKeyDescription(let reason): "the key description: \(reason)"
    case .challengeDiffers(let expected, let found):
      "the challenge is \(Base64.encode(found)), not \(Base64.encode(expected)): another challenge was attested"
    case .softwareSecurityLevel: "the attestation or the key is in software, which proves nothing"
    case .securityLevelsDiffer(let attestation, let key):
      "the attestation was made in \(attestation.name), and the key is in \(key.name)"
    case .securityLevelTooLow(let found, let required):
      "the key is in \(found.name), and the policy requires \(required.name)"
    case .originNotGenerated(let found):
      "the hardware reports the origin \(found.map(String.init) ?? "not at all"), not 0, generated"
    case .purposeWithoutSign(let found) where found.isEmpty:
      "the hardware reports no purpose of the key: make the key with PURPOSE_SIGN"
    case .purposeWithoutSign(let found):
      "the hardware allows the purposes \(found.map(String.init).joined(separator: ", ")), not 2: make the key with "
        + "PURPOSE_SIGN"
    case .noRootOfTrust: "the hardware does not report how the device was started"
    case .deviceUnlocked: "the boot loader is unlocked: any system may run"
    case .bootUnverified: "the system was not verified when the device was started"
    case .bootFailed: "the verification of the system failed when the device was started"
    case .bootSelfSigned(let key):
      "the system is signed by \(Hex.encode(key)), not by the maker of the device: allow this boot key, or refuse"
    case .patchLevelUnknown: "the hardware does not report the patch level, which the policy requires"
    case .patchLevelTooOld(let found, let required):
      "the security patches are of \(found), and the policy requires \(required): update the device"
    case .appMissing: "the system does not report the app that asked for the attestation"
    case .packageDiffers(let found, let expected):
      "the key is one of \(Self.list(found)), not of \(expected)"
    case .signerDiffers(let found):
      "the app is signed by \(Self.list(found.map { Hex.encode($0) })), which the policy does not name"
    case .keyIsNotP256: "the key is not on P-256: make it with the curve secp256r1"
    }
  }

  private static func list(_ items: [String]) -> String {
    items.isEmpty ? "nothing" : items.prefix(3).joined(separator: ", ") + (items.count > 3 ? " …" : "")
  }
}

extension AndroidAttestationStep {
  /// The rule as a sentence.
  public var rule: String {
    switch self {
    case .format: "there are 2 to 10 certificates of at most 64 KiB, and each is DER"
    case .nameChaining: "each certificate names the next one as its issuer"
    case .signatures: "the key of the next certificate signed each one"
    case .root: "the chain ends at a trusted key, whose certificate may be left out"
    case .authorities: "the issuers above the attestation certificate are authorities, and only the last one is a root"
    case .validity: "the issuers are valid at the time; the end counts if the key is remotely provisioned"
    case .revocation: "no certificate is in the status list"
    case .attestationExtension: "the attestation extension is in the first certificate and in no other"
    case .keyDescription: "the extension is a key description, and nothing else"
    case .challenge: "the device attested the challenge"
    case .securityLevel: "attestation and key are in the same secure hardware, and it is secure enough"
    case .origin: "the hardware generated the key"
    case .purpose: "the hardware lets the key sign"
    case .boot: "the boot loader is locked, and the system is the maker's or one that is allowed"
    case .patchLevel: "the security patches are as new as the policy requires"
    case .app: "the app has the package and a signer of the policy"
    case .key: "the key is on P-256"
    case .provisioning: "the attestation key was provisioned remotely"
    }
  }
}
