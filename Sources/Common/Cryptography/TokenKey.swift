internal import COpenSSL

/// A public key of a JWKS, given by its numbers (RFC 7518 section 6, RFC 8037), for signatures in the forms of JOSE.
public struct TokenKey: Sendable {
  /// A hash function.
  public enum Hash: Sendable, Hashable { case sha256, sha384, sha512 }

  /// An elliptic curve.
  public enum Curve: Sendable, Hashable {
    case p256, p384, p521

    fileprivate var name: String {
      switch self {
      case .p256: "prime256v1"
      case .p384: "secp384r1"
      case .p521: "secp521r1"
      }
    }

    /// The bytes of a coordinate, and of each number of a signature.
    fileprivate var width: Int {
      switch self {
      case .p256: 32
      case .p384: 48
      case .p521: 66
      }
    }
  }

  /// How a message is signed.
  public enum Scheme: Sendable, Hashable {
    /// RSA, PKCS #1 version 1.5.
    case rsa(Hash)
    /// RSA, PSS with MGF1 of the same hash, and a salt of the length of the hash (RFC 7518 section 3.5).
    case pss(Hash)
    /// ECDSA; the signature is r, then s, each with the bytes of a coordinate.
    case ecdsa(Hash)
    /// Ed25519.
    case ed25519
  }

  private enum Kind: Sendable { case rsa, curve(Curve), ed25519 }

  /// The bounds of a modulus in bytes: 2048 bits (RFC 7518 section 3.3), and 8192, because the time of a verification
  /// grows with its square.
  private static let modulusBytes = 256...1024

  private let key: PKey
  private let kind: Kind

  /// Creates an RSA key. Returns `nil` for a modulus of less than 2048 or more than 8192 bits, and for an exponent that is
  /// even, 1, or longer than four bytes.
  public init?(modulus: [UInt8], exponent: [UInt8]) {
    let (modulus, exponent) = (Array(modulus.drop { $0 == 0 }), Array(exponent.drop { $0 == 0 }))
    guard Self.modulusBytes.contains(modulus.count), (1...4).contains(exponent.count), exponent != [1],
      exponent.last.map({ $0 & 1 == 1 }) == true
    else { return nil }
    // SubjectPublicKeyInfo (RFC 3279 section 2.3.1).
    let numbers = DER.sequence(DER.integer(magnitude: modulus), DER.integer(magnitude: exponent))
    let info = DER.sequence(
      DER.sequence(DER.objectIdentifier(.rsaKey), DER.null), DER.bitString(numbers))
    guard let key = PKey(spki: info[...]) else { return nil }
    (self.key, kind) = (key, .rsa)
  }

  /// Creates a key on an elliptic curve. Returns `nil` for coordinates of another length, and for a point that is not on
  /// the curve.
  public init?(_ curve: Curve, x: [UInt8], y: [UInt8]) {
    guard x.count == curve.width, y.count == curve.width,
      let key = PKey(point: [0x04] + x + y, curve: curve.name)
    else { return nil }
    (self.key, kind) = (key, .curve(curve))
  }

  /// Creates a key of Ed25519 from its 32 bytes; `nil` for another length.
  public init?(ed25519 bytes: [UInt8]) {
    // SubjectPublicKeyInfo (RFC 8410 section 4).
    let head: [UInt8] = [0x30, 0x2A, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x03, 0x21, 0x00]
    guard bytes.count == 32, let key = PKey(spki: (head + bytes)[...]) else { return nil }
    (self.key, kind) = (key, .ed25519)
  }

  /// Whether `signature` is one of `message` by this key. `false` for a scheme of another kind of key.
  public func isValid(_ signature: [UInt8], for message: [UInt8], _ scheme: Scheme) -> Bool {
    switch (kind, scheme) {
    case (.rsa, .rsa(let hash)): return key.isValid(signature, for: message, hash.method)
    case (.rsa, .pss(let hash)): return key.isValid(signature, for: message, hash.method, pssSalt: hash.size)
    case (.curve(let curve), .ecdsa(let hash)):
      guard signature.count == 2 * curve.width else { return false }
      let parts = [signature[..<curve.width], signature[curve.width...]]
      let der = DER.sequence(of: parts.map { DER.integer(magnitude: Array($0)) })
      return key.isValid(der, for: message, hash.method)
    case (.ed25519, .ed25519): return key.isValid(signature, for: message, nil)
    default: return false
    }
  }

  /// Returns the digest of `bytes`.
  public static func digest(_ hash: Hash, of bytes: [UInt8]) -> [UInt8] { hash.algorithm.hash(bytes) }
}

extension TokenKey.Hash {
  fileprivate var algorithm: DigestAlgorithm {
    switch self {
    case .sha256: .sha256
    case .sha384: .sha384
    case .sha512: .sha512
    }
  }

  fileprivate var method: OpaquePointer { algorithm.method }

  /// The bytes of a digest.
  fileprivate var size: Int32 {
    switch self {
    case .sha256: 32
    case .sha384: 48
    case .sha512: 64
    }
  }
}

extension PKey {
  /// Whether `signature` is one of `message` by this key.
  ///
  /// - Parameters:
  ///   - method: The digest; `nil` for a key that has its own, such as Ed25519.
  ///   - salt: The length of the salt of PSS; `nil` for PKCS #1 version 1.5 and for other keys.
  fileprivate func isValid(
    _ signature: [UInt8], for message: [UInt8], _ method: OpaquePointer?, pssSalt salt: Int32? = nil
  ) -> Bool {
    OpenSSLErrors.isolated {
      guard let context = EVP_MD_CTX_new() else { return false }
      defer { EVP_MD_CTX_free(context) }
      // Of the digest's context, which frees it.
      var parameters: OpaquePointer?
      guard withPointer({ EVP_DigestVerifyInit(context, &parameters, method, nil, $0) }) == 1 else { return false }
      if let salt {
        guard EVP_PKEY_CTX_set_rsa_padding(parameters, RSA_PKCS1_PSS_PADDING) == 1,
          EVP_PKEY_CTX_set_rsa_pss_saltlen(parameters, salt) == 1,
          EVP_PKEY_CTX_set_rsa_mgf1_md(parameters, method) == 1
        else { return false }
      }
      return EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }
  }
}
