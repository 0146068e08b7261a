/// Signed data of the Cryptographic Message Syntax (RFC 5652 section 5), parsed but not verified.
///
/// The parser accepts the part of the syntax that current signers use: content inside, one signer named by issuer and
/// serial number, ECDSA with SHA-256 or SHA-384, with or without signed attributes, in DER or with BER's indefinite
/// lengths. It refuses everything else, including unsigned attributes and revocation lists, so that no byte is
/// ignored.
public struct SignedData: Sendable {
  /// The signed content, joined if it was in segments.
  public let content: [UInt8]
  /// All certificates in their order.
  public let certificates: [Certificate]
  /// The one of `certificates` that the signer names.
  public let signer: Certificate

  private let digest: DigestAlgorithm
  private let signedAttributes: SignedAttributes?
  private let signature: ArraySlice<UInt8>

  /// Parses one `ContentInfo` with signed data and no further bytes.
  public init(_ bytes: [UInt8]) throws(CMSRejection) {
    let fields = try SignedDataFields(bytes)
    guard fields.type == .signedData else { throw .unexpectedContentType(fields.type) }
    guard fields.version == 1 else { throw .unexpectedVersion(fields.version) }
    guard fields.contentType == .data else { throw .unexpectedContentType(fields.contentType) }
    guard fields.signers.count == 1 else { throw .unexpectedSignerCount(fields.signers.count) }
    let info = fields.signers[0]
    guard info.version == 1 else { throw .unexpectedVersion(info.version) }
    guard fields.digestAlgorithms.count == 1, fields.digestAlgorithms[0].means(info.digestAlgorithm) else {
      throw .unexpectedDigestAlgorithms
    }

    content = fields.content
    digest = try info.digest()
    signature = info.signature
    signedAttributes = try info.signedAttributes.map { encoding throws(CMSRejection) in
      try SignedAttributes(encoding, contentType: fields.contentType)
    }
    certificates = try fields.certificates.map { der throws(CMSRejection) in try Self.certificate(der) }
    signer = try Self.signer(named: info, among: certificates)
  }

  /// Whether the signer signed the content. A `ChainValidator` verifies the identity of the signer.
  public var hasValidSignature: Bool {
    guard let signedAttributes else { return isSigned(content) }
    return signedAttributes.messageDigest == digest.hash(content) && isSigned(signedAttributes.signedEncoding)
  }

  /// The certificates other than the signer's.
  public var otherCertificates: [Certificate] { certificates.filter { $0 != signer } }

  private func isSigned(_ message: [UInt8]) -> Bool {
    guard let key = PKey(of: signer), key.isOnEllipticCurve else { return false }
    return key.isValid(signature, for: message, digest: digest)
  }

  private static func certificate(_ der: ArraySlice<UInt8>) throws(CMSRejection) -> Certificate {
    do throws(CryptographyError) {
      return try Certificate(der: Array(der))
    } catch {
      throw .malformedCertificate(error)
    }
  }

  private static func signer(
    named info: SignerInfoFields, among certificates: [Certificate]
  ) throws(CMSRejection) -> Certificate {
    let named = Set(certificates).filter {
      $0.fields.issuer == info.issuer && $0.fields.serialNumber == info.serialNumber
    }
    guard named.count == 1, let signer = named.first else { throw .signerCertificateMissing }
    return signer
  }
}

extension AlgorithmIdentifier {
  /// Whether `other` is the same digest: no parameters and NULL say the same (RFC 5754 section 2).
  fileprivate func means(_ other: AlgorithmIdentifier) -> Bool {
    identifier == other.identifier && (parameters ?? Self.null) == (other.parameters ?? Self.null)
  }
}

extension SignerInfoFields {
  /// The digest, if the signature's algorithm is ECDSA with the same.
  fileprivate func digest() throws(CMSRejection) -> DigestAlgorithm {
    let suites: [(digest: ObjectIdentifier, signature: ObjectIdentifier, algorithm: DigestAlgorithm)] = [
      (.sha256, .ecdsaWithSHA256, .sha256), (.sha384, .ecdsaWithSHA384, .sha384),
    ]
    guard let suite = suites.first(where: { $0.digest == digestAlgorithm.identifier }) else {
      throw .unsupportedDigest(digestAlgorithm.identifier)
    }
    guard suite.signature == signatureAlgorithm.identifier else {
      throw .unsupportedSignature(signatureAlgorithm.identifier)
    }
    // RFC 5754: the parameters of SHA-2 are absent or NULL, those of ECDSA are absent.
    guard digestAlgorithm.parameters == nil || digestAlgorithm.parameters == AlgorithmIdentifier.null else {
      throw .unexpectedParameters(digestAlgorithm.identifier)
    }
    guard signatureAlgorithm.parameters == nil else { throw .unexpectedParameters(signatureAlgorithm.identifier) }
    return suite.algorithm
  }
}

/// The attributes that are signed instead of the content (RFC 5652 section 5.4). They include the digest of the
/// content.
private struct SignedAttributes: Sendable {
  let messageDigest: [UInt8]
  /// The attributes as they are signed: a SET, independent of the tag in the message.
  let signedEncoding: [UInt8]

  /// `encoding` is the whole `[0]` element.
  init(_ encoding: ArraySlice<UInt8>, contentType: ObjectIdentifier) throws(CMSRejection) {
    let attributes: [(type: ObjectIdentifier, value: ASN1Reader.Element)]
    do throws(ASN1Error) {
      attributes = try Self.read(encoding)
    } catch {
      throw .malformed(error)
    }
    let types = attributes.filter { $0.type == .contentTypeAttribute }.map(\.value)
    let digests = attributes.filter { $0.type == .messageDigestAttribute }.map(\.value)
    guard types.count == 1, digests.count == 1, types[0].tag == .objectIdentifier, digests[0].tag == .octetString,
      ObjectIdentifier(encoded: Array(types[0].content)) == contentType
    else { throw .malformedAttributes }
    messageDigest = Array(digests[0].content)
    signedEncoding = [ASN1Tag.set.octet] + encoding.dropFirst()
  }

  private static func read(
    _ encoding: ArraySlice<UInt8>
  ) throws(ASN1Error) -> [(type: ObjectIdentifier, value: ASN1Reader.Element)] {
    var wrapper = ASN1Reader(encoding)
    var list = try wrapper.enter(.context(0))
    var attributes: [(ObjectIdentifier, ASN1Reader.Element)] = []
    while !list.isAtEnd {
      var attribute = try list.enter(.sequence)
      let type = try attribute.objectIdentifier()
      var values = try attribute.enter(.set)
      try attribute.end()
      attributes.append((type, try values.next()))
      // Of the attributes that are read, each has one value.
      if type == .contentTypeAttribute || type == .messageDigestAttribute { try values.end() }
    }
    return attributes
  }
}
