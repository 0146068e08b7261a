public import Cryptography

/// A key in the secure hardware of a genuine Android device, and what its attestation said.
public struct AttestedAndroidKey: Sendable, Hashable {
  /// X9.62, uncompressed, 65 bytes.
  public let publicKey: [UInt8]
  /// The package of the app that the key belongs to.
  public let package: String
  /// SHA-256 of the certificates that signed the app, 32 bytes each.
  public let signers: [[UInt8]]
  /// Where the key lives: the trusted environment or StrongBox.
  public let securityLevel: KeyDescription.SecurityLevel
  /// Whether the system is the maker's, or one of an allowed key.
  public let bootState: RootOfTrust.VerifiedBootState
  /// SHA-256 of the key that signed the system.
  public let bootKey: [UInt8]
  /// The month of the security patches at the time of the attestation; `nil` if the device does not report it.
  public let patchLevel: PatchLevel?
  /// How the attestation key came into the device.
  public let provisioning: KeyProvisioning
  /// The serial numbers of the certificates, leaf first, to look them up in later status lists.
  public let serialNumbers: [[UInt8]]

  /// The name of the key: SHA-256 of its X9.63 form, 32 bytes.
  public var keyID: [UInt8] { SHA256.hash(publicKey) }

  /// Creates a key from stored values. Only stores call this, for keys that `AndroidAttestationVerifier` returned.
  public init(
    publicKey: [UInt8], package: String, signers: [[UInt8]], securityLevel: KeyDescription.SecurityLevel,
    bootState: RootOfTrust.VerifiedBootState, bootKey: [UInt8], patchLevel: PatchLevel?,
    provisioning: KeyProvisioning, serialNumbers: [[UInt8]]
  ) {
    self.publicKey = publicKey
    self.package = package
    self.signers = signers
    self.securityLevel = securityLevel
    self.bootState = bootState
    self.bootKey = bootKey
    self.patchLevel = patchLevel
    self.provisioning = provisioning
    self.serialNumbers = serialNumbers
  }

  /// The public key made ready for verification. Worth keeping: making it costs more than using it.
  public func makePublicKey() throws(CryptographyError) -> P256PublicKey { try P256PublicKey(x963: publicKey) }

  /// The serial number of a certificate of the key's chain that `list` has, and why it is revoked; `nil` if none is.
  public func revocation(in list: AndroidStatusList) -> (serial: String, reason: String)? {
    for serial in serialNumbers {
      if let reason = list.reason(forSerial: serial) { return (AndroidStatusList.text(ofSerial: serial), reason) }
    }
    return nil
  }
}
