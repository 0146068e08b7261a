public import ByteCoding
public import Cryptography

/// Mints the chain of an attested key, under a root of its own or under given issuers. It is valid unless something is
/// changed: every part of it can be.
public struct AndroidMint: Sendable {
  /// The package of the app.
  public static let package = "com.example.app"
  /// SHA-256 of the certificate that signed the app.
  public static let signer = SHA256.hash(Array("the signer of com.example.app".utf8))
  /// The challenge.
  public static let challenge = [UInt8](repeating: 7, count: 32)
  /// The instant at which chains are valid.
  public static let instant = Timestamp(seconds: 1_780_000_000)

  /// The identifier of the attestation extension.
  public static let attestationExtension = "1.3.6.1.4.1.11129.2.1.17"

  /// What the device says about the key.
  public var description: MintedKeyDescription
  /// Leaf, attestation certificate, authorities, root. The attestation extension of the leaf is made of `description`.
  public var certificates: [MintedCertificate]
  /// Whether the root is left out of the chain.
  public var omitsRoot = false
  /// Whether the leaf has the attestation extension.
  public var attests = true

  /// A factory chain of four certificates: in two of three genuine ones the batch's key is certified with P-384.
  public static func factory() throws(CryptographyError) -> AndroidMint {
    let root = try Self.root()
    return try AndroidMint(issuers: [
      certificate([5: "6f0e7a0c", 12: "TEE"], .p256, MintedCertificate.authority(), days: 3650),
      certificate([5: "c2f1b7a9", 12: "TEE"], .p384, MintedCertificate.authority(), days: 3650), root,
    ])
  }

  /// A remotely provisioned chain of five certificates.
  public static func remote() throws(CryptographyError) -> AndroidMint {
    let root = try Self.root()
    return try AndroidMint(issuers: [
      certificate([10: "TEE", 3: "0d1f"], .p256, MintedCertificate.authority(), days: 30),
      certificate([10: "Google LLC", 3: "Droid CA3"], .p256, MintedCertificate.authority(), days: 60),
      certificate([10: "Google LLC", 3: "Droid CA2"], .p384, MintedCertificate.authority(pathLength: 2), days: 3650),
      root,
    ])
  }

  private init(issuers: [MintedCertificate]) throws(CryptographyError) {
    try self.init(
      key: ECPrivateKey(.p256), issuers: issuers,
      description: MintedKeyDescription(challenge: Self.challenge, package: Self.package, signer: Self.signer))
  }

  /// The chain of `key`, described by `description`, below `issuers`: the attestation certificate first, the root last.
  public init(key: ECPrivateKey, issuers: [MintedCertificate], description: MintedKeyDescription) {
    // Devices write these dates, and the serial number 1.
    var leaf = MintedCertificate(
      subject: MintedCertificate.name([3: "Android Keystore Key"]), key: key,
      extensions: [MintedCertificate.encodedExtension("2.5.29.15", critical: 0xFF, DER.bitString([0x80], unused: 7))],
      around: Self.instant, days: 0)
    (leaf.notBefore, leaf.notAfter) = (Timestamp(seconds: 0), Timestamp(seconds: 2_461_449_600))
    leaf.serialNumber = [1]
    certificates = [leaf] + issuers
    self.description = description
  }

  private static func root() throws(CryptographyError) -> MintedCertificate {
    try certificate([5: "a1b2c3d4"], .p384, MintedCertificate.authority(), days: 7300)
  }

  /// A certificate with a new key.
  public static func certificate(
    _ name: KeyValuePairs<Int, String>, _ curve: ECPrivateKey.Curve, _ extensions: [[UInt8]], days: Int64
  ) throws(CryptographyError) -> MintedCertificate {
    MintedCertificate(
      subject: MintedCertificate.name(name), key: try ECPrivateKey(curve), extensions: extensions, around: instant,
      days: days)
  }

  /// The root's key as `SubjectPublicKeyInfo`.
  public var rootKey: [UInt8] { certificates[certificates.count - 1].key.spki }

  /// The leaf's private key.
  public var key: ECPrivateKey { certificates[0].key }

  /// The DER of each certificate, leaf first.
  public func chain() throws(CryptographyError) -> [[UInt8]] {
    var certificates = self.certificates
    if attests {
      let value = description.encoded
      certificates[0].extensions.append(MintedCertificate.encodedExtension(Self.attestationExtension, value))
    }
    var chain: [[UInt8]] = []
    for index in certificates.indices {
      chain.append(try certificates[index].signed(by: certificates[min(index + 1, certificates.count - 1)]))
    }
    return omitsRoot ? chain.dropLast() : chain
  }

  /// The certificates as PEM.
  public func pem() throws(CryptographyError) -> String {
    var text = ""
    for der in try chain() { text += try Certificate(der: der).pem }
    return text
  }

  /// The root's certificate as PEM.
  public func rootPEM() throws(CryptographyError) -> String {
    let root = certificates[certificates.count - 1]
    return try Certificate(der: root.signed(by: root)).pem
  }
}
