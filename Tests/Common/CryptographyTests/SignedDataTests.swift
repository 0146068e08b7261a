import ByteCoding
import Cryptography
import Testing

/// A message of which a test can change every part.
private struct Message {
  var type = "1.2.840.113549.1.7.2"
  var version: UInt64 = 1
  var digests = [digest()]
  var contentType = "1.2.840.113549.1.7.1"
  var content: [UInt8]? = DER.octetString(Array("content".utf8))
  var certificates: [[UInt8]]
  var beforeSigners: [UInt8] = []
  var signers: [Signer]
  var trailer: [UInt8] = []

  struct Signer {
    var version: UInt64 = 1
    var issuer: [UInt8]
    var serialNumber: [UInt8]
    var digest = Message.digest()
    /// The encoded attributes, sorted.
    var signedAttributes: [[UInt8]] = []
    var algorithm = Message.signature()
    var signature: [UInt8] = []
    var trailer: [UInt8] = []

    var encoded: [UInt8] {
      DER.sequence(
        DER.integer(version), DER.sequence(issuer, DER.integer(magnitude: serialNumber)), digest,
        signedAttributes.isEmpty ? [] : DER.element(.context(0), Array(signedAttributes.joined())), algorithm,
        DER.octetString(signature), trailer)
    }
  }

  static func identifier(_ dotted: String) -> [UInt8] {
    ObjectIdentifier(dotted).map(DER.objectIdentifier) ?? []
  }

  static func digest(_ dotted: String = "2.16.840.1.101.3.4.2.1", _ parameters: [UInt8] = DER.null) -> [UInt8] {
    DER.sequence(identifier(dotted), parameters)
  }

  static func signature(_ dotted: String = "1.2.840.10045.4.3.2", _ parameters: [UInt8] = []) -> [UInt8] {
    DER.sequence(identifier(dotted), parameters)
  }

  static func attribute(_ dotted: String, _ values: [UInt8]...) -> [UInt8] {
    DER.sequence(identifier(dotted), DER.set(of: values))
  }

  var encoded: [UInt8] {
    let signed = DER.sequence(
      DER.integer(version), DER.set(of: digests),
      DER.sequence(Self.identifier(contentType), content.map { DER.context(0, $0) } ?? []),
      DER.context(0, Array(certificates.joined())), beforeSigners, DER.set(of: signers.map(\.encoded)))
    return DER.sequence(Self.identifier(type), DER.context(0, signed)) + trailer
  }
}

@Suite("Signed data")
struct SignedDataTests {
  private let pki: SmallPKI
  private let content = Array("content".utf8)

  init() throws { pki = try SmallPKI() }

  /// Returns a valid message.
  private func message() throws -> Message {
    var certificate = ASN1Reader(pki.leaf.der)
    var parts = try certificate.enter(.sequence)
    var signed = try parts.enter(.sequence)
    for _ in 0..<3 { _ = try signed.next() }
    let issuer = Array(try signed.next().encoding)
    var signer = Message.Signer(issuer: issuer, serialNumber: pki.leaf.serialNumber)
    signer.signature = try pki.leafKey.signature(for: content, digest: .sha256)
    return Message(certificates: [pki.leaf, pki.intermediate].map(\.der), signers: [signer])
  }

  private func altered(_ alter: (inout Message) throws -> Void) throws -> [UInt8] {
    var message = try message()
    try alter(&message)
    return message.encoded
  }

  @Test("The content, the certificates and the signer's certificate are read")
  func reads() throws {
    let signedData = try SignedData(message().encoded)
    #expect(signedData.content == content)
    #expect(signedData.signer == pki.leaf)
    #expect(signedData.certificates == [pki.leaf, pki.intermediate])
    #expect(signedData.otherCertificates == [pki.intermediate])
    #expect(signedData.hasValidSignature)
  }

  @Test("DER and BER are accepted, with content of any length", arguments: [0, 1, 999, 1000, 1001, 5000])
  func readsBothEncodings(_ count: Int) throws {
    let content = [UInt8](repeating: 7, count: count)
    for encoding in [SignedDataTemplate.Encoding.der, .ber] {
      var template = SignedDataTemplate(content: content, certificates: [pki.intermediate, pki.leaf])
      template.encoding = encoding
      let bytes = try template.signed(by: pki.leaf, key: pki.leafKey)
      let signedData = try SignedData(bytes)
      #expect(signedData.content == content)
      #expect(signedData.signer == pki.leaf)
      #expect(signedData.hasValidSignature)
    }
  }

  @Test("A signature by another key, over other content or with another digest is not valid")
  func refusesSignatures() throws {
    let others = [
      try ECPrivateKey(.p256).signature(for: content, digest: .sha256),
      try pki.leafKey.signature(for: content + [0], digest: .sha256),
      try pki.leafKey.signature(for: content, digest: .sha384),
      [], [0x30, 0x00],
    ]
    for signature in others {
      #expect(try !SignedData(altered { $0.signers[0].signature = signature }).hasValidSignature)
    }
  }

  @Test("SHA-384 is accepted if the digest and the signature algorithm both use it")
  func acceptsSHA384() throws {
    let digest = Message.digest("2.16.840.1.101.3.4.2.2")
    let bytes = try altered {
      $0.digests = [digest]
      $0.signers[0].digest = digest
      $0.signers[0].algorithm = Message.signature("1.2.840.10045.4.3.3")
      $0.signers[0].signature = try pki.leafKey.signature(for: content, digest: .sha384)
    }
    #expect(try SignedData(bytes).hasValidSignature)
    #expect(throws: CMSRejection.self) {
      try SignedData(altered { $0.signers[0].algorithm = Message.signature("1.2.840.10045.4.3.3") })
    }
  }

  @Test(
    "The parameters of the digest algorithm may be absent, in the message and in the signer", arguments: [true, false],
    [true, false])
  func acceptsAbsentParameters(inMessage: Bool, inSigner: Bool) throws {
    let digest = Message.digest("2.16.840.1.101.3.4.2.1", [])
    let bytes = try altered {
      if inMessage { $0.digests = [digest] }
      if inSigner { $0.signers[0].digest = digest }
    }
    #expect(try SignedData(bytes).hasValidSignature)
  }

  @Test("A message with one invalid part is refused with the reason")
  func refuses() throws {
    let (sha1, sha256) = (ObjectIdentifier("1.3.14.3.2.26"), ObjectIdentifier("2.16.840.1.101.3.4.2.1"))
    let ecdsa = ObjectIdentifier("1.2.840.10045.4.3.2")
    let refusals: [(CMSRejection, (inout Message) -> Void)] = [
      (
        .unexpectedContentType(try #require(ObjectIdentifier("1.2.840.113549.1.7.3"))),
        { $0.type = "1.2.840.113549.1.7.3" }
      ),
      (.unexpectedContentType(try #require(ObjectIdentifier("1.2.3"))), { $0.contentType = "1.2.3" }),
      (.unexpectedVersion(3), { $0.version = 3 }),
      (.unexpectedVersion(3), { $0.signers[0].version = 3 }),
      (.unexpectedSignerCount(0), { $0.signers = [] }),
      (.unexpectedSignerCount(2), { $0.signers.append($0.signers[0]) }),
      (.unexpectedDigestAlgorithms, { $0.digests = [] }),
      (.unexpectedDigestAlgorithms, { $0.digests.append($0.digests[0]) }),
      (.unexpectedDigestAlgorithms, { $0.digests = [Message.digest("2.16.840.1.101.3.4.2.2")] }),
      (.unexpectedDigestAlgorithms, { $0.digests = [Message.digest("2.16.840.1.101.3.4.2.1", DER.integer(0))] }),
      (
        .unsupportedDigest(try #require(sha1)),
        {
          $0.digests = [Message.digest("1.3.14.3.2.26")]
          $0.signers[0].digest = Message.digest("1.3.14.3.2.26")
        }
      ),
      (
        .unsupportedSignature(try #require(ObjectIdentifier("1.2.840.10045.2.1"))),
        { $0.signers[0].algorithm = Message.signature("1.2.840.10045.2.1") }
      ),
      (
        .unexpectedParameters(try #require(ecdsa)),
        { $0.signers[0].algorithm = Message.signature("1.2.840.10045.4.3.2", DER.null) }
      ),
      (
        .unexpectedParameters(try #require(sha256)),
        {
          $0.digests = [Message.digest("2.16.840.1.101.3.4.2.1", DER.integer(0))]
          $0.signers[0].digest = $0.digests[0]
        }
      ),
      (.signerCertificateMissing, { $0.certificates.removeFirst() }),
      (.signerCertificateMissing, { $0.signers[0].serialNumber = [1] }),
      (.malformed(.trailingBytes(1)), { $0.trailer = [0] }),
    ]
    for (rejection, alter) in refusals {
      #expect(throws: rejection) { try SignedData(altered(alter)) }
    }
  }

  @Test("Unsigned parts are refused: revocation lists, unsigned attributes, other certificate formats")
  func refusesUnsignedParts() throws {
    let additions: [(inout Message) -> Void] = [
      { $0.beforeSigners = DER.element(.context(1), []) },
      { $0.signers[0].trailer = DER.element(.context(1), Message.attribute("1.2.3", DER.null)) },
      { $0.certificates.append(DER.element(.context(1), [])) },
      { $0.certificates.append(DER.sequence()) },
      { $0.content = nil },
      { $0.content = DER.octetString([]) + DER.null },
    ]
    for alter in additions { #expect(throws: CMSRejection.self) { try SignedData(altered(alter)) } }
  }
}

@Suite("Signed attributes")
struct SignedAttributesTests {
  private let pki: SmallPKI
  private let content = Array("content".utf8)
  private let contentType = Message.attribute("1.2.840.113549.1.9.3", Message.identifier("1.2.840.113549.1.7.1"))

  init() throws { pki = try SmallPKI() }

  private var digest: [UInt8] { Message.attribute("1.2.840.113549.1.9.4", DER.octetString(SHA256.hash(content))) }

  private func signedData(_ attributes: [[UInt8]]) throws -> SignedData {
    var certificate = ASN1Reader(pki.leaf.der)
    var parts = try certificate.enter(.sequence)
    var signed = try parts.enter(.sequence)
    for _ in 0..<3 { _ = try signed.next() }
    var signer = Message.Signer(issuer: Array(try signed.next().encoding), serialNumber: pki.leaf.serialNumber)
    signer.signedAttributes = attributes
    signer.signature = try pki.leafKey.signature(for: DER.set(of: attributes), digest: .sha256)
    return try SignedData(Message(certificates: [pki.leaf.der], signers: [signer]).encoded)
  }

  @Test("If signed attributes are present, the signature covers them, and they contain the digest of the content")
  func verifies() throws {
    #expect(try signedData([contentType, digest]).hasValidSignature)
    let time = Message.attribute("1.2.840.113549.1.9.5", DER.time(SmallPKI.middle))
    #expect(try signedData([contentType, time, digest]).hasValidSignature)
    let other = Message.attribute("1.2.840.113549.1.9.4", DER.octetString(SHA256.hash(content + [0])))
    #expect(try !signedData([contentType, other]).hasValidSignature)
  }

  @Test("Signed attributes without the content type or the digest, or with one of them twice, are refused")
  func refuses() throws {
    let otherType = Message.attribute("1.2.840.113549.1.9.3", Message.identifier("1.2.3"))
    let two = Message.attribute(
      "1.2.840.113549.1.9.4", DER.octetString(SHA256.hash(content)), DER.octetString([]))
    let wrongKind = Message.attribute("1.2.840.113549.1.9.4", DER.null)
    let lists = [
      [contentType], [digest], [contentType, contentType, digest], [contentType, digest, digest], [otherType, digest],
      [contentType, two], [contentType, wrongKind],
    ]
    for attributes in lists { #expect(throws: CMSRejection.self) { try signedData(attributes) } }
  }
}
