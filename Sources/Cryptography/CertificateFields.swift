internal import ByteCoding

/// What is where in a certificate (RFC 5280 section 4.1), read as strict DER.
struct CertificateFields: Sendable {
  struct Extension: Sendable {
    let identifier: ObjectIdentifier
    let isCritical: Bool
    let value: ArraySlice<UInt8>
  }

  /// The content octets of the INTEGER.
  let serialNumber: ArraySlice<UInt8>
  /// The `Name` of the issuer and that of the subject, as encoded.
  let issuer: ArraySlice<UInt8>
  let subject: ArraySlice<UInt8>
  let notBefore: Timestamp
  let notAfter: Timestamp
  let subjectPublicKeyInfo: ArraySlice<UInt8>
  let extensions: [Extension]

  init(der: [UInt8]) throws(CryptographyError) {
    do throws(ASN1Error) {
      self = try Self.read(der)
    } catch {
      throw .malformedCertificate("\(error)")
    }
  }

  private static func read(_ der: [UInt8]) throws(ASN1Error) -> CertificateFields {
    var file = ASN1Reader(der)
    var certificate = try file.enter(.sequence)
    try file.end()
    var signed = try certificate.enter(.sequence)
    let algorithm = try certificate.next(.sequence)
    _ = try certificate.bitString()
    try certificate.end()
    return try CertificateFields(signed: &signed, outerAlgorithm: algorithm.encoding)
  }

  private init(signed: inout ASN1Reader, outerAlgorithm: ArraySlice<UInt8>) throws(ASN1Error) {
    _ = try signed.nextIfPresent(.context(0))  // the version
    serialNumber = try signed.next(.integer).content
    guard try signed.next(.sequence).encoding == outerAlgorithm else {
      throw .malformed("the signature's algorithm differs from the one that is signed")
    }
    issuer = try signed.next(.sequence).encoding
    var validity = try signed.enter(.sequence)
    notBefore = try validity.time()
    notAfter = try validity.time()
    try validity.end()
    subject = try signed.next(.sequence).encoding
    subjectPublicKeyInfo = try signed.next(.sequence).encoding
    // Unique identifiers, [1] and [2], are deprecated and mean nothing here.
    _ = try signed.nextIfPresent(ASN1Tag(octet: 0x81))
    _ = try signed.nextIfPresent(ASN1Tag(octet: 0x82))
    extensions = try Self.extensions(in: &signed)
    try signed.end()
  }

  private static func extensions(in signed: inout ASN1Reader) throws(ASN1Error) -> [Extension] {
    guard signed.nextTag == .context(3) else { return [] }
    var wrapper = try signed.enter(.context(3))
    var list = try wrapper.enter(.sequence)
    try wrapper.end()
    var extensions: [Extension] = []
    while !list.isAtEnd {
      var item = try list.enter(.sequence)
      let identifier = try item.objectIdentifier()
      let isCritical = try item.nextIfPresent(.boolean).map { $0.content != [0] } ?? false
      let value = try item.octetString()
      try item.end()
      guard !extensions.contains(where: { $0.identifier == identifier }) else {
        throw .malformed("the extension \(identifier) occurs twice")
      }
      extensions.append(Extension(identifier: identifier, isCritical: isCritical, value: value))
    }
    return extensions
  }
}
