internal import COpenSSL

/// A private key that signs certificates and messages: elliptic curves P-256 and P-384.
public final class ECPrivateKey: Sendable {
  /// The curve of a key.
  public enum Curve: Sendable, Hashable, CaseIterable {
    /// NIST P-256 (secp256r1).
    case p256
    /// NIST P-384 (secp384r1).
    case p384
  }

  /// The curve of this key.
  public let curve: Curve
  /// The public key as `SubjectPublicKeyInfo` (RFC 5480).
  public let spki: [UInt8]
  let key: PKey

  /// A new key.
  public convenience init(_ curve: Curve) throws(CryptographyError) {
    OpenSSLErrors.clear()
    guard let handle = sallyport_generate_ec(curve == .p256 ? "P-256" : "P-384") else {
      throw .operationFailed("key generation", reason: OpenSSLErrors.take())
    }
    try self.init(key: PKey(owning: handle))
  }

  /// The first private key in `pkcs8PEM`, not encrypted.
  public convenience init(pkcs8PEM: String) throws(CryptographyError) {
    try self.init(key: PKey(pkcs8PEM: pkcs8PEM))
  }

  /// The same key as `key`.
  public convenience init(_ key: P256PrivateKey) throws(CryptographyError) { try self.init(key: key.key) }

  private init(key: PKey) throws(CryptographyError) {
    self.key = key
    let spki = try key.spki()
    switch spki.count {
    case Self.prefixP256.count + 64 where spki.starts(with: Self.prefixP256): curve = .p256
    case Self.prefixP384.count + 96 where spki.starts(with: Self.prefixP384): curve = .p384
    default: throw .malformedPrivateKey("not a key on P-256 or P-384")
    }
    self.spki = spki
  }

  /// The public key in X9.62 form: 0x04, x, y; 65 or 97 bytes.
  public var x963: [UInt8] { [0x04] + spki.suffix(curve == .p256 ? 64 : 96) }

  /// The key in PKCS #8 without encryption, as PEM. A secret.
  public var pkcs8PEM: String {
    get throws(CryptographyError) { try key.pkcs8PEM() }
  }

  /// An ECDSA signature of `message`, which is hashed here with `digest`, in DER.
  public func signature(for message: [UInt8], digest: SignatureDigest) throws(CryptographyError) -> [UInt8] {
    try key.signature(for: message, digest: digest.algorithm)
  }

  // Up to the 04 of the point, all of it has fixed lengths.
  static let prefixP256: [UInt8] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01,  // id-ecPublicKey
    0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07,  // prime256v1
    0x03, 0x42, 0x00, 0x04,
  ]
  static let prefixP384: [UInt8] = [
    0x30, 0x76, 0x30, 0x10, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01,  // id-ecPublicKey
    0x06, 0x05, 0x2B, 0x81, 0x04, 0x00, 0x22,  // secp384r1
    0x03, 0x62, 0x00, 0x04,
  ]
}

/// The hash under an ECDSA signature.
public enum SignatureDigest: Sendable, Hashable, CaseIterable {
  /// SHA-256.
  case sha256
  /// SHA-384.
  case sha384

  var algorithm: DigestAlgorithm {
    switch self {
    case .sha256: .sha256
    case .sha384: .sha384
    }
  }

  /// The `AlgorithmIdentifier` of ECDSA with this hash, whose parameters are absent (RFC 5758 section 3.2).
  var signatureAlgorithm: [UInt8] {
    DER.sequence(DER.objectIdentifier(self == .sha256 ? .ecdsaWithSHA256 : .ecdsaWithSHA384))
  }
}
