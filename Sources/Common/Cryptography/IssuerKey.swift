internal import COpenSSL

/// The public key of a certificate that signs others: on P-256 or P-384, or RSA.
///
/// For verifiers that walk a chain by the position of its certificates. `ChainValidator` builds the path itself.
public final class IssuerKey: Sendable {
  /// The kinds of keys that are accepted.
  public enum Kind: Sendable, Hashable {
    /// An elliptic curve.
    case curve(ECPrivateKey.Curve)
    /// RSA with a modulus of this many bits.
    case rsa(bits: Int)
  }

  /// The sizes of an RSA modulus in bits. The key of an unknown certificate costs time: there is an upper limit, too.
  public static let modulusBits = 1024...4096

  /// The kind of the key.
  public let kind: Kind
  /// The key as `SubjectPublicKeyInfo`.
  public let spki: [UInt8]
  private let key: PKey

  /// Parses the key of a certificate.
  ///
  /// - Throws: `malformedPublicKey` for any other kind of key, and for one with a modulus of another size.
  public init(spki: [UInt8]) throws(CryptographyError) {
    guard let (key, kind) = Self.onCurve(spki) ?? Self.rsa(spki) else {
      throw .malformedPublicKey("not a key on P-256 or P-384, or an RSA key of \(Self.modulusBits) bits")
    }
    self.key = key
    self.kind = kind
    self.spki = spki
  }

  /// Whether this key signed `certificate`: ECDSA with SHA-256 or SHA-384, or RSA (PKCS #1 version 1.5) with SHA-256.
  ///
  /// The algorithm in the certificate has to be one of the key's kind. Nothing else of the certificate is checked.
  public func signed(_ certificate: Certificate) -> Bool {
    let fields = certificate.fields
    guard let algorithm = CertificateSignatureAlgorithm(fields.signatureAlgorithm), algorithm.fits(kind) else {
      return false
    }
    return key.isValid(fields.signature, for: fields.signedPart, digest: algorithm.digest)
  }

  // OpenSSL needs several times as long to parse a SubjectPublicKeyInfo as to take the point out of it.
  private static func onCurve(_ spki: [UInt8]) -> (PKey, Kind)? {
    for (curve, name) in [(ECPrivateKey.Curve.p256, "prime256v1"), (.p384, "secp384r1")] {
      guard let point = curve.point(inSPKI: spki) else { continue }
      return PKey(point: point, curve: name).map { ($0, .curve(curve)) }
    }
    return nil
  }

  /// A verification takes time in proportion to the exponent, so it has 32 bits at most. All real ones are 65537. Under
  /// an exponent of 1 anyone could sign, and an even one is no exponent of RSA.
  private static func hasSoundExponent(_ key: PKey) -> Bool {
    var exponent: OpaquePointer?
    defer { BN_free(exponent) }
    guard key.withPointer({ EVP_PKEY_get_bn_param($0, OSSL_PKEY_PARAM_RSA_E, &exponent) }) == 1 else { return false }
    return (2...32).contains(BN_num_bits(exponent)) && BN_is_odd(exponent) == 1
  }

  private static func rsa(_ spki: [UInt8]) -> (PKey, Kind)? {
    guard let key = PKey(spki: spki[...]), key.withPointer({ EVP_PKEY_is_a($0, "RSA") == 1 }) else { return nil }
    let bits = Int(key.withPointer { EVP_PKEY_get_bits($0) })
    guard modulusBits.contains(bits), hasSoundExponent(key) else { return nil }
    return (key, .rsa(bits: bits))
  }
}

extension Certificate {
  /// The `Name` of the issuer, as encoded.
  public var issuerName: [UInt8] { Array(fields.issuer) }
  /// The `Name` of the subject, as encoded.
  public var subjectName: [UInt8] { Array(fields.subject) }

  /// An extension as it was received.
  public struct ReceivedExtension: Sendable {
    /// The identifier of the extension.
    public let identifier: ObjectIdentifier
    /// The octet that says whether it is critical; `nil` if absent. DER has no other octet than 255 here.
    public let critical: UInt8?
    /// The content of the OCTET STRING.
    public let value: [UInt8]
    /// Whether a verifier that does not know the extension must refuse the certificate.
    public var isCritical: Bool { critical.map { $0 != 0 } ?? false }
  }

  /// The extensions in the order of the certificate.
  public var extensions: [ReceivedExtension] {
    fields.extensions.map {
      ReceivedExtension(identifier: $0.identifier, critical: $0.critical, value: Array($0.value))
    }
  }

  /// Whether the certificate is signed by an algorithm that `IssuerKey` verifies.
  public var hasKnownSignatureAlgorithm: Bool { CertificateSignatureAlgorithm(fields.signatureAlgorithm) != nil }

  /// Whether the certificate is signed by an algorithm for keys of the kind of `key`.
  public func hasSignatureAlgorithm(for key: IssuerKey) -> Bool {
    CertificateSignatureAlgorithm(fields.signatureAlgorithm)?.fits(key.kind) ?? false
  }
}

/// The algorithm of a certificate's signature.
private struct CertificateSignatureAlgorithm {
  let digest: DigestAlgorithm
  private let isRSA: Bool

  /// Parses an `AlgorithmIdentifier`; `nil` for an unknown one.
  ///
  /// The parameters of ECDSA are absent by RFC 5758 and those of RSA are NULL by RFC 4055. Android devices have written
  /// both the other way round; either says the same.
  init?(_ encoding: ArraySlice<UInt8>) {
    guard let parsed = try? Self.parse(encoding), parsed.parameters == nil || parsed.parameters == [5, 0] else {
      return nil
    }
    switch parsed.identifier {
    case .ecdsaWithSHA256: (digest, isRSA) = (.sha256, false)
    case .ecdsaWithSHA384: (digest, isRSA) = (.sha384, false)
    case .rsaWithSHA256: (digest, isRSA) = (.sha256, true)
    default: return nil
    }
  }

  func fits(_ kind: IssuerKey.Kind) -> Bool {
    switch kind {
    case .curve: !isRSA
    case .rsa: isRSA
    }
  }

  private static func parse(
    _ encoding: ArraySlice<UInt8>
  ) throws(ASN1Error) -> (identifier: ObjectIdentifier, parameters: ArraySlice<UInt8>?) {
    var outer = ASN1Reader(encoding)
    var algorithm = try outer.enter(.sequence)
    let identifier = try algorithm.objectIdentifier()
    let parameters = algorithm.isAtEnd ? nil : try algorithm.next().encoding
    try algorithm.end()
    return (identifier, parameters)
  }
}

extension ECPrivateKey.Curve {
  /// The X9.62 point, uncompressed, of a `SubjectPublicKeyInfo` on this curve; `nil` for other keys.
  fileprivate func point(inSPKI spki: [UInt8]) -> [UInt8]? {
    let (prefix, size) = self == .p256 ? (ECPrivateKey.prefixP256, 64) : (ECPrivateKey.prefixP384, 96)
    guard spki.count == prefix.count + size, spki.starts(with: prefix) else { return nil }
    return [0x04] + spki.suffix(size)
  }
}
