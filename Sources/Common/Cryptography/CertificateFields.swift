internal import ByteCoding

/// The parts of a certificate (RFC 5280 section 4.1), parsed as strict DER.
struct CertificateFields: Sendable {
  struct Extension: Sendable {
    let identifier: ObjectIdentifier
    /// The octet of the BOOLEAN; `nil` if it is absent, which means FALSE.
    let critical: UInt8?
    let value: ArraySlice<UInt8>

    var isCritical: Bool { critical.map { $0 != 0 } ?? false }
  }

  /// The `TBSCertificate`, the algorithm of the signature and the signature, as encoded.
  let signedPart: ArraySlice<UInt8>
  let signatureAlgorithm: ArraySlice<UInt8>
  let signature: ArraySlice<UInt8>

  /// The content octets of the INTEGER.
  let serialNumber: ArraySlice<UInt8>
  /// The `Name` of the issuer and that of the subject, as encoded.
  let issuer: ArraySlice<UInt8>
  let subject: ArraySlice<UInt8>
  let notBefore: Timestamp
  let notAfter: Timestamp
  /// Whether the dates were read. Otherwise `notBefore` is after `notAfter`, so that the certificate is never valid.
  let hasReadableValidity: Bool
  let subjectPublicKeyInfo: ArraySlice<UInt8>
  let extensions: [Extension]

  /// Far more than any certificate has: Apple's have fewer than ten. Each is compared with all before it.
  static let mostExtensions = 64

  /// - Parameter isOfDevice: Whether dates that cannot be read and a version below 3 are accepted.
  init(der: [UInt8], isOfDevice: Bool = false) throws(CryptographyError) {
    do throws(ASN1Error) {
      self = try Self.read(der, isOfDevice: isOfDevice)
    } catch {
      throw .malformedCertificate("\(error)")
    }
  }

  private static func read(_ der: [UInt8], isOfDevice: Bool) throws(ASN1Error) -> CertificateFields {
    var file = ASN1Reader(der)
    var certificate = try file.enter(.sequence)
    try file.end()
    let signedPart = try certificate.next(.sequence)
    let algorithm = try certificate.next(.sequence)
    let signature = try certificate.bitString()
    try certificate.end()
    return try CertificateFields(
      signedPart: signedPart, algorithm: algorithm.encoding, signature: signature, isOfDevice: isOfDevice)
  }

  private init(
    signedPart: ASN1Reader.Element, algorithm: ArraySlice<UInt8>, signature: ArraySlice<UInt8>, isOfDevice: Bool
  ) throws(ASN1Error) {
    self.signedPart = signedPart.encoding
    signatureAlgorithm = algorithm
    self.signature = signature
    var signed = ASN1Reader(signedPart.content)
    let version = try Self.version(in: &signed)
    serialNumber = try signed.next(.integer).content
    guard try signed.next(.sequence).encoding == algorithm else {
      throw .malformed("the signature's algorithm differs from the one that is signed")
    }
    issuer = try signed.next(.sequence).encoding
    let validity = try Self.validity(signed.next(.sequence), isOfDevice: isOfDevice)
    (notBefore, notAfter) = validity ?? Self.never
    hasReadableValidity = validity != nil
    subject = try signed.next(.sequence).encoding
    subjectPublicKeyInfo = try signed.next(.sequence).encoding
    // Unique identifiers, [1] and [2], are deprecated and ignored.
    _ = try signed.nextIfPresent(ASN1Tag(octet: 0x81))
    _ = try signed.nextIfPresent(ASN1Tag(octet: 0x82))
    extensions = try Self.extensions(in: &signed)
    try signed.end()
    guard extensions.isEmpty || version == 3 || isOfDevice else {
      throw .malformed("it has extensions, and is of version \(version)")
    }
  }

  /// No instant is within these dates.
  private static let never = (
    notBefore: Timestamp(seconds: 253_402_300_799), notAfter: Timestamp(seconds: -62_135_596_800)
  )

  /// The two dates; `nil` if they cannot be read, which is an error unless the certificate is of a device.
  private static func validity(
    _ element: ASN1Reader.Element, isOfDevice: Bool
  ) throws(ASN1Error) -> (notBefore: Timestamp, notAfter: Timestamp)? {
    do throws(ASN1Error) {
      var dates = ASN1Reader(element.content)
      let (start, end) = (try dates.time(), try dates.time())
      try dates.end()
      return (start, end)
    } catch {
      guard isOfDevice else { throw error }
      return nil
    }
  }

  /// 1, 2 or 3 (RFC 5280 section 4.1.2.1).
  private static func version(in signed: inout ASN1Reader) throws(ASN1Error) -> Int {
    guard signed.nextTag == .context(0) else { return 1 }
    var wrapper = try signed.enter(.context(0))
    let number = try wrapper.unsignedInteger()
    try wrapper.end()
    guard number <= 2 else { throw .malformed("its version is none of 1, 2 and 3") }
    return number + 1
  }

  private static func extensions(in signed: inout ASN1Reader) throws(ASN1Error) -> [Extension] {
    guard signed.nextTag == .context(3) else { return [] }
    var wrapper = try signed.enter(.context(3))
    var list = try wrapper.enter(.sequence)
    try wrapper.end()
    var extensions: [Extension] = []
    while !list.isAtEnd {
      guard extensions.count < mostExtensions else {
        throw .malformed("it has more than \(mostExtensions) extensions")
      }
      var item = try list.enter(.sequence)
      let identifier = try item.objectIdentifier()
      let critical = try item.nextIfPresent(.boolean)
      guard critical.map({ $0.content.count == 1 }) ?? true else {
        throw .malformed("the extension \(identifier) is critical or not by other than one octet")
      }
      let value = try item.octetString()
      try item.end()
      guard !extensions.contains(where: { $0.identifier == identifier }) else {
        throw .malformed("the extension \(identifier) occurs twice")
      }
      extensions.append(Extension(identifier: identifier, critical: critical?.content.first, value: value))
    }
    return extensions
  }
}
