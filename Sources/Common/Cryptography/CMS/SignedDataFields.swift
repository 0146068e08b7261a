/// Where the parts of a `ContentInfo` with signed data are (RFC 5652 sections 3 and 5.1).
///
/// The frame may be BER, as signers that stream write it; certificates, algorithms and the signer's part are DER.
struct SignedDataFields {
  let type: ObjectIdentifier
  let version: Int
  let digestAlgorithms: [AlgorithmIdentifier]
  let contentType: ObjectIdentifier
  let content: [UInt8]
  let certificates: [ArraySlice<UInt8>]
  let signers: [SignerInfoFields]

  init(_ bytes: [UInt8]) throws(CMSRejection) {
    do throws(ASN1Error) {
      self = try Self.read(bytes)
    } catch {
      throw .malformed(error)
    }
  }

  private static func read(_ bytes: [UInt8]) throws(ASN1Error) -> SignedDataFields {
    var file = ASN1Reader(bytes, rules: .ber)
    var info = try file.enter(.sequence)
    try file.end()
    let type = try info.objectIdentifier()
    var wrapper = try info.enter(.context(0))
    try info.end()
    var signed = try wrapper.enter(.sequence)
    try wrapper.end()
    return try SignedDataFields(type: type, signed: &signed)
  }

  private init(type: ObjectIdentifier, signed: inout ASN1Reader) throws(ASN1Error) {
    self.type = type
    version = try signed.unsignedInteger()
    var digests = try signed.enter(.set)
    digestAlgorithms = try digests.all { reader throws(ASN1Error) in try AlgorithmIdentifier(&reader) }
    var encapsulated = try signed.enter(.sequence)
    contentType = try encapsulated.objectIdentifier()
    var wrapper = try encapsulated.enter(.context(0))
    try encapsulated.end()
    content = try wrapper.segmentedOctetString()
    try wrapper.end()
    var embedded = try signed.enter(.context(0))
    certificates = try embedded.all { reader throws(ASN1Error) in try reader.next(.sequence).encoding }
    // Revocation lists, [1], would be here. No signature covers them, so they are refused.
    var infos = try signed.enter(.set)
    signers = try infos.all { reader throws(ASN1Error) in try SignerInfoFields(&reader) }
    try signed.end()
  }
}

/// The parts of a `SignerInfo` (RFC 5652 section 5.3).
struct SignerInfoFields {
  let version: Int
  let issuer: ArraySlice<UInt8>
  let serialNumber: ArraySlice<UInt8>
  let digestAlgorithm: AlgorithmIdentifier
  /// The whole `[0]` element.
  let signedAttributes: ArraySlice<UInt8>?
  let signatureAlgorithm: AlgorithmIdentifier
  let signature: ArraySlice<UInt8>

  init(_ reader: inout ASN1Reader) throws(ASN1Error) {
    var info = try reader.enter(.sequence, rules: .der)
    version = try info.unsignedInteger()
    var identifier = try info.enter(.sequence)
    issuer = try identifier.next(.sequence).encoding
    serialNumber = try identifier.next(.integer).content
    try identifier.end()
    digestAlgorithm = try AlgorithmIdentifier(&info)
    signedAttributes = try info.nextIfPresent(.context(0))?.encoding
    signatureAlgorithm = try AlgorithmIdentifier(&info)
    signature = try info.octetString()
    // Unsigned attributes, [1], would be here.
    try info.end()
  }
}

/// An algorithm and its parameters, which are DER (RFC 5280 section 4.1.1.2).
struct AlgorithmIdentifier: Hashable {
  static let null: ArraySlice<UInt8> = [0x05, 0x00]

  let identifier: ObjectIdentifier
  let parameters: ArraySlice<UInt8>?

  init(_ reader: inout ASN1Reader) throws(ASN1Error) {
    var algorithm = try reader.enter(.sequence, rules: .der)
    identifier = try algorithm.objectIdentifier()
    parameters = algorithm.isAtEnd ? nil : try algorithm.next().encoding
    try algorithm.end()
  }
}

extension ASN1Reader {
  /// Everything up to the end, read by `read`.
  fileprivate mutating func all<Value>(
    _ read: (inout ASN1Reader) throws(ASN1Error) -> Value
  ) throws(ASN1Error) -> [Value] {
    var values: [Value] = []
    while !isAtEnd { values.append(try read(&self)) }
    return values
  }

  /// An OCTET STRING in one piece, or in segments that are in one piece each (X.690 section 8.7.3).
  fileprivate mutating func segmentedOctetString() throws(ASN1Error) -> [UInt8] {
    guard nextTag == .constructedOctetString else { return Array(try octetString()) }
    var segments = try enter(.constructedOctetString)
    var content: [UInt8] = []
    while !segments.isAtEnd { content += try segments.octetString() }
    return content
  }
}
