/// An extension for a new certificate (RFC 5280 section 4.2).
public struct CertificateExtension: Sendable, Hashable {
  /// The object identifier of the extension.
  public var identifier: ObjectIdentifier
  /// Whether a verifier that does not know the extension must refuse the certificate.
  public var isCritical: Bool
  /// The content of the OCTET STRING.
  public var value: [UInt8]

  /// Creates an extension from the DER of its value.
  public init(_ identifier: ObjectIdentifier, isCritical: Bool = false, value: [UInt8]) {
    self.identifier = identifier
    self.isCritical = isCritical
    self.value = value
  }

  /// Critical: whether the subject may issue certificates, and how many authorities may follow it.
  public static func basicConstraints(isAuthority: Bool, pathLength: Int? = nil) -> CertificateExtension {
    let authority = isAuthority ? DER.boolean(true) : []
    let length = pathLength.map { DER.integer(UInt64($0)) } ?? []
    return CertificateExtension(.basicConstraints, isCritical: true, value: DER.sequence(authority, length))
  }

  /// Creates the critical extension with the usages of the key.
  public static func keyUsage(_ usage: KeyUsage) -> CertificateExtension {
    // Bit 0 is the highest bit of the octet, and DER omits the zeros after the last set bit.
    let unused = UInt8(usage.rawValue.trailingZeroBitCount % 8)
    return CertificateExtension(.keyUsage, isCritical: true, value: DER.bitString([usage.rawValue], unused: unused))
  }

  /// Creates the extension for the purposes of the key (RFC 5280 section 4.2.1.12).
  public static func extendedKeyUsage(_ purposes: [ObjectIdentifier]) -> CertificateExtension {
    CertificateExtension(.extendedKeyUsage, value: DER.sequence(of: purposes.map(DER.objectIdentifier)))
  }

  /// The names that a server's certificate is good for: DNS names (ASCII) and addresses (4 or 16 bytes).
  public static func subjectAlternativeNames(dns: [String], addresses: [[UInt8]]) -> CertificateExtension {
    let names = dns.map { DER.element(ASN1Tag(octet: 0x82), Array($0.utf8)) }
    let numbers = addresses.map { DER.element(ASN1Tag(octet: 0x87), $0) }
    return CertificateExtension(.subjectAlternativeName, value: DER.sequence(of: names + numbers))
  }

  /// Creates the extension with the identifier of the certificate's key (RFC 5280 section 4.2.1.2).
  public static func subjectKeyIdentifier(_ identifier: [UInt8]) -> CertificateExtension {
    CertificateExtension(.subjectKeyIdentifier, value: DER.octetString(identifier))
  }

  /// Creates the extension with the identifier of the issuer's key (RFC 5280 section 4.2.1.1).
  public static func authorityKeyIdentifier(_ identifier: [UInt8]) -> CertificateExtension {
    let content = DER.element(ASN1Tag(octet: 0x80), identifier)
    return CertificateExtension(.authorityKeyIdentifier, value: DER.sequence(content))
  }

  /// Critical: the SHA-256 digest of a key authorization, with which a server answers a TLS-ALPN-01 challenge (RFC 8737
  /// section 3).
  public static func acmeIdentifier(_ digest: [UInt8]) -> CertificateExtension {
    CertificateExtension(.acmeIdentifier, isCritical: true, value: DER.octetString(digest))
  }

  /// The DER of the `Extension`.
  var encoded: [UInt8] {
    DER.sequence(
      DER.objectIdentifier(identifier), isCritical ? DER.boolean(true) : [], DER.octetString(value))
  }
}

/// The purposes of a key (RFC 5280 section 4.2.1.3), except for the ninth bit, which is not in use.
public struct KeyUsage: OptionSet, Sendable, Hashable {
  public let rawValue: UInt8
  /// Creates a set of usages from the first byte of the BIT STRING.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// Signatures other than those of certificates and revocation lists.
  public static let digitalSignature = KeyUsage(rawValue: 0x80)
  /// Signatures that the signer cannot deny later.
  public static let nonRepudiation = KeyUsage(rawValue: 0x40)
  /// Encryption of keys.
  public static let keyEncipherment = KeyUsage(rawValue: 0x20)
  /// Encryption of data.
  public static let dataEncipherment = KeyUsage(rawValue: 0x10)
  /// Signatures of certificates.
  public static let keyCertSign = KeyUsage(rawValue: 0x04)
  /// Signatures of revocation lists.
  public static let crlSign = KeyUsage(rawValue: 0x02)
}
