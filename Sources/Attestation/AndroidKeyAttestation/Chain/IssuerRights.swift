internal import Cryptography

/// What the extensions of an issuer allow it (RFC 5280 sections 4.2.1.3 and 4.2.1.9).
struct IssuerRights {
  /// Whether the certificate may issue others: by basicConstraints, and by keyUsage if there is one.
  let isAuthority: Bool
  /// Whether there is a basicConstraints, of either content. Certificates that a device makes for apps' keys have none.
  let statesConstraints: Bool
  /// How many authorities may be below this one; `nil` for any number.
  let pathLength: Int?

  init(_ certificate: Certificate) {
    let constraints = certificate.extensionValue(oid: "2.5.29.19").flatMap { try? Self.basicConstraints($0) }
    let signsCertificates = certificate.extensionValue(oid: "2.5.29.15").map(Self.includesCertificateSignatures) ?? true
    isAuthority = constraints?.isAuthority == true && signsCertificates
    statesConstraints = constraints != nil
    pathLength = constraints?.pathLength
  }

  private static func basicConstraints(
    _ value: [UInt8]
  ) throws(ASN1Error) -> (isAuthority: Bool, pathLength: Int?) {
    var file = ASN1Reader(value)
    var fields = try file.enter(.sequence)
    try file.end()
    let octet = fields.nextTag == .boolean ? try fields.booleanOctet() : 0
    guard [0, 1, 0xFF].contains(octet) else { throw .malformed("cA is the octet \(octet)") }
    let pathLength = fields.isAtEnd ? nil : try fields.unsignedInteger()
    try fields.end()
    return (octet != 0, pathLength)
  }

  /// Whether bit 5, keyCertSign, is set in the BIT STRING.
  private static func includesCertificateSignatures(_ value: [UInt8]) -> Bool {
    var file = ASN1Reader(value)
    guard let content = try? file.next(.bitString).content, file.isAtEnd, content.count >= 2 else { return false }
    return content[content.startIndex + 1] & 0x04 != 0
  }
}

extension Certificate {
  /// The first critical extension that is not known here; `nil` if there is none.
  var unknownCriticalExtension: ObjectIdentifier? {
    extensions.first { $0.isCritical && !Self.knownExtensions.contains($0.identifier) }?.identifier
  }

  private static let knownExtensions = Set(
    ["2.5.29.15", "2.5.29.19", KeyDescription.extensionIdentifier].compactMap(ObjectIdentifier.init))
}
