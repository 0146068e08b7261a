public import ByteCoding

/// The content of a new certificate. Signing it makes a `Certificate`.
public struct CertificateTemplate: Sendable {
  /// The version of a certificate.
  public enum Version: Sendable, Hashable {
    /// Without extensions, as `openssl x509 -req` issues by default.
    case v1
    /// Version 3, with extensions.
    case v3
  }

  /// The version of the certificate.
  public var version = Version.v3
  /// Big-endian, positive; 16 random bytes unless set.
  public var serialNumber: [UInt8]
  /// The name of the certificate's owner.
  public var subject: DistinguishedName
  /// The subject's key as `SubjectPublicKeyInfo`.
  public var subjectPublicKeyInfo: [UInt8]
  /// The first instant of validity. Both ends are included; fractions of a second are dropped.
  public var notBefore: Timestamp
  /// The last instant of validity.
  public var notAfter: Timestamp
  /// In the order of the certificate; left out in version 1.
  public var extensions: [CertificateExtension] = []

  /// Creates a template without extensions.
  public init(subject: DistinguishedName, subjectPublicKeyInfo: [UInt8], notBefore: Timestamp, notAfter: Timestamp) {
    self.subject = subject
    self.subjectPublicKeyInfo = subjectPublicKeyInfo
    self.notBefore = notBefore
    self.notAfter = notAfter
    serialNumber = [0x40] + SecureRandom.bytes(15)
  }

  /// The certificate, signed by the subject's own `key`.
  public func selfSigned(with key: ECPrivateKey) throws(CryptographyError) -> Certificate {
    try Certificate(der: der(issuerName: subject.encoded, key: key, digest: key.curve.digest))
  }

  /// Returns the certificate, signed by `issuer` with its private key `key`. The digest is that of the key's curve
  /// unless given.
  ///
  /// The rights of the issuer are not checked, because tests need certificates that must be refused.
  public func signed(
    by issuer: Certificate, key: ECPrivateKey, digest: SignatureDigest? = nil
  ) throws(CryptographyError) -> Certificate {
    let name = Array(issuer.fields.subject)
    return try Certificate(der: der(issuerName: name, key: key, digest: digest ?? key.curve.digest))
  }

  /// The name of `subjectPublicKeyInfo` in key identifier extensions: 20 bytes (RFC 7093 section 2, method 1).
  public static func keyIdentifier(of subjectPublicKeyInfo: [UInt8]) -> [UInt8] {
    Array(SHA256.hash(subjectPublicKeyInfo).prefix(20))
  }

  private func der(
    issuerName: [UInt8], key: ECPrivateKey, digest: SignatureDigest
  ) throws(CryptographyError) -> [UInt8] {
    let body = toBeSigned(issuerName: issuerName, digest: digest)
    let signature = try key.signature(for: body, digest: digest)
    return DER.sequence(body, digest.signatureAlgorithm, DER.bitString(signature))
  }

  /// The `TBSCertificate` (RFC 5280 section 4.1).
  private func toBeSigned(issuerName: [UInt8], digest: SignatureDigest) -> [UInt8] {
    DER.sequence(
      version == .v1 ? [] : DER.context(0, DER.integer(2)),
      DER.integer(magnitude: serialNumber),
      digest.signatureAlgorithm,
      issuerName,
      DER.sequence(DER.time(notBefore), DER.time(notAfter)),
      subject.encoded,
      subjectPublicKeyInfo,
      version == .v1 || extensions.isEmpty ? [] : DER.context(3, DER.sequence(of: extensions.map(\.encoded))))
  }
}

extension ECPrivateKey.Curve {
  /// The digest of the curve's own strength.
  var digest: SignatureDigest {
    switch self {
    case .p256: .sha256
    case .p384: .sha384
    }
  }
}

extension Certificate {
  /// The subject's key as `SubjectPublicKeyInfo`, DER.
  public var subjectPublicKeyInfo: [UInt8] { Array(fields.subjectPublicKeyInfo) }

  /// The key identifier in the certificate (RFC 5280 section 4.2.1.2): an OCTET STRING of fewer than 128 bytes.
  public var subjectKeyIdentifier: [UInt8]? {
    guard let value = extensionValue(oid: "2.5.29.14"), value.count > 2, value[0] == 0x04,
      Int(value[1]) == value.count - 2
    else { return nil }
    return Array(value.dropFirst(2))
  }
}
