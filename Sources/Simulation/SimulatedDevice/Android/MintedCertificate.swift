public import ByteCoding
public import Cryptography

/// The content of a minted certificate. Everything may be wrong: nothing is checked.
public struct MintedCertificate: Sendable {
  /// The subject's key, which signs the certificate below.
  public var key: ECPrivateKey
  /// The key in the certificate as `SubjectPublicKeyInfo`; that of `key` unless set.
  public var subjectPublicKeyInfo: [UInt8]
  /// The content of the INTEGER.
  public var serialNumber: [UInt8]
  /// The `Name` of the subject, encoded.
  public var subject: [UInt8]
  /// The `Name` of the issuer, encoded; the subject of the next certificate unless set.
  public var issuer: [UInt8]?
  /// The first instant of validity.
  public var notBefore: Timestamp
  /// The last instant of validity.
  public var notAfter: Timestamp
  /// The `Version` in its tag, encoded: 3 unless set.
  public var version = DER.context(0, DER.integer(2))
  /// The content of the `Validity`, encoded, instead of the two instants.
  public var validity: [UInt8]?
  /// The extensions, encoded.
  public var extensions: [[UInt8]]
  /// The parameters of the signature's algorithm, encoded; none unless set, as RFC 5758 says.
  public var algorithmParameters: [UInt8] = []
  /// Changes the signature.
  public var damagesSignature = false
  /// The DER of a finished certificate, which is used as it is; `nil` for one that `signed(by:)` makes.
  public var finished: [UInt8]?

  /// Creates a certificate that is valid for `days` days around `instant`.
  public init(subject: [UInt8], key: ECPrivateKey, extensions: [[UInt8]], around instant: Timestamp, days: Int64) {
    self.subject = subject
    self.key = key
    self.extensions = extensions
    subjectPublicKeyInfo = key.spki
    serialNumber = [0x40] + SecureRandom.bytes(15)
    notBefore = Timestamp(seconds: instant.seconds - days * 43200)
    notAfter = Timestamp(seconds: instant.seconds + days * 43200)
  }

  /// A finished certificate with its key, which may issue others.
  public init(_ certificate: Certificate, key: ECPrivateKey) {
    self.key = key
    subject = certificate.subjectName
    issuer = certificate.issuerName
    subjectPublicKeyInfo = certificate.subjectPublicKeyInfo
    serialNumber = certificate.serialNumber
    (notBefore, notAfter) = (certificate.notBefore, certificate.notAfter)
    extensions = []
    finished = certificate.der
  }

  /// The DER of the certificate, signed by `issuer` unless it is finished.
  public func signed(by issuer: MintedCertificate) throws(CryptographyError) -> [UInt8] {
    if let finished { return finished }
    let isP384 = issuer.key.curve == .p384
    let identifier = isP384 ? "1.2.840.10045.4.3.3" : "1.2.840.10045.4.3.2"
    let algorithm = DER.sequence(Self.identifier(identifier), algorithmParameters)
    let body = DER.sequence(
      version, DER.element(.integer, serialNumber), algorithm, self.issuer ?? issuer.subject,
      DER.sequence(validity ?? DER.time(notBefore) + DER.time(notAfter)), subject, subjectPublicKeyInfo,
      extensions.isEmpty ? [] : DER.context(3, DER.sequence(of: extensions)))
    var signature = try issuer.key.signature(for: body, digest: isP384 ? .sha384 : .sha256)
    if damagesSignature { signature[signature.count - 1] ^= 1 }
    return DER.sequence(body, algorithm, DER.bitString(signature))
  }

  /// An encoded `Extension`. `critical` is the octet of the BOOLEAN.
  public static func encodedExtension(_ identifier: String, critical: UInt8? = nil, _ value: [UInt8]) -> [UInt8] {
    DER.sequence(
      self.identifier(identifier), critical.map { DER.element(.boolean, [$0]) } ?? [], DER.octetString(value))
  }

  /// The extensions of an authority.
  public static func authority(_ isAuthority: Bool = true, pathLength: UInt64? = nil) -> [[UInt8]] {
    [
      encodedExtension(
        "2.5.29.19", critical: 0xFF,
        DER.sequence(isAuthority ? DER.boolean(true) : [], pathLength.map(DER.integer) ?? [])),
      encodedExtension(
        "2.5.29.15", critical: 0xFF, DER.bitString([isAuthority ? 0x04 : 0x80], unused: isAuthority ? 2 : 7)),
    ]
  }

  /// The extensions that name the keys of subject and issuer, as Google's authorities write them.
  public static func keyIdentifiers(of key: ECPrivateKey, under issuer: ECPrivateKey) -> [[UInt8]] {
    let own = CertificateTemplate.keyIdentifier(of: key.spki)
    let above = CertificateTemplate.keyIdentifier(of: issuer.spki)
    return [
      encodedExtension("2.5.29.14", DER.octetString(own)),
      encodedExtension("2.5.29.35", DER.sequence(DER.element(ASN1Tag(octet: 0x80), above))),
    ]
  }

  /// A `Name` of attributes, each with the last arc of its identifier below 2.5.4.
  public static func name(_ attributes: KeyValuePairs<Int, String>) -> [UInt8] {
    DER.sequence(
      of: attributes.map { arc, text in
        DER.set(of: [DER.sequence(identifier("2.5.4.\(arc)"), DER.utf8String(text))])
      })
  }

  private static func identifier(_ dotted: String) -> [UInt8] {
    guard let identifier = ObjectIdentifier(dotted) else { preconditionFailure("no identifier: \(dotted)") }
    return DER.objectIdentifier(identifier)
  }
}
