import ByteCoding
import Cryptography
import Testing

@Suite("Certificates")
struct CertificateTests {
  @Test("The fields of a certificate are read")
  func reads() throws {
    let key = try ECPrivateKey(.p256)
    var template = SmallPKI.template("Name, with a comma", key)
    template.serialNumber = [1, 2, 3]
    let identifier = try #require(ObjectIdentifier("1.2.840.113635.100.8.2"))
    template.extensions = [CertificateExtension(identifier, value: [0x05, 0x00])]
    let certificate = try template.selfSigned(with: key)
    #expect(certificate.subject == "CN=Name\\, with a comma")
    #expect(certificate.serialNumber == [1, 2, 3])
    #expect(certificate.notBefore == SmallPKI.start && certificate.notAfter == SmallPKI.end)
    #expect(certificate.p256PublicKey == key.x963)
    #expect(certificate.extensionValue(oid: "1.2.840.113635.100.8.2") == [0x05, 0x00])
    #expect(certificate.extensionValue(oid: "1.2.840.113635.100.8.3") == nil)
    #expect(certificate.extensionValue(oid: "no identifier") == nil)
    #expect(certificate.fingerprint == SHA256.hash(certificate.der))
    #expect(try Certificate(der: certificate.der) == certificate)
  }

  @Test("A subject is shown without control characters, quoted as in RFC 2253")
  func quotesNames() throws {
    let key = try ECPrivateKey(.p256)
    var template = SmallPKI.template("", key)
    template.subject = DistinguishedName(.country("DE"), .organization("A+B"), .commonName("\u{1B}[31mé\n"))
    #expect(try template.selfSigned(with: key).subject == "CN=\\1B[31m\\C3\\A9\\0A,O=A\\+B,C=DE")
  }

  @Test("A key on another curve is not returned as a P-256 key")
  func distinguishesCurves() throws {
    let key = try ECPrivateKey(.p384)
    #expect(try SmallPKI.template("P-384", key).selfSigned(with: key).p256PublicKey == nil)
  }

  @Test("Extensions are accepted in version 3 only", arguments: [0, 1, 3, 9, 0x80] as [UInt8])
  func refusesOtherVersions(_ number: UInt8) throws {
    let key = try ECPrivateKey(.p256)
    var template = SmallPKI.template("Version", key)
    template.extensions = [.basicConstraints(isAuthority: false)]
    var der = try template.selfSigned(with: key).der
    let version = try #require(der.firstRange(of: [0xA0, 0x03, 0x02, 0x01, 0x02]))
    #expect((try? Certificate(der: der)) != nil)
    der[version.upperBound - 1] = number
    #expect(throws: CryptographyError.self) { try Certificate(der: der) }
  }

  @Test("A certificate of version 1, as the commands of the guide make it, has no extensions")
  func readsVersion1() throws {
    let certificate = try SmallPKI(leaf: { $0.version = .v1 }).leaf
    #expect(certificate.extensionValue(oid: "2.5.29.15") == nil)
    #expect(certificate.subject == "CN=Leaf")
  }

  @Test(
    "Times are read in both forms, at the limits of their ranges",
    arguments: [
      "1950-01-01T00:00:00Z", "1999-12-31T23:59:59Z", "2000-01-01T00:00:00Z", "2049-12-31T23:59:59Z",
      "2050-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
    ])
  func readsTimes(_ text: String) throws {
    let instant = try #require(Timestamp(rfc3339: text))
    #expect(try SmallPKI(leaf: { $0.notAfter = instant }).leaf.notAfter == instant)
  }

  @Test("A certificate that is truncated at any byte or has a trailing byte is refused")
  func refusesOtherLengths() throws {
    let der = try SmallPKI().leaf.der
    for count in der.indices {
      #expect(throws: CryptographyError.self) { try Certificate(der: Array(der.prefix(count))) }
    }
    #expect(throws: CryptographyError.self) { try Certificate(der: der + [0]) }
  }

  @Test("A certificate with any byte changed is refused or no longer trusted")
  func refusesChanges() throws {
    let pki = try SmallPKI()
    let validator = ChainValidator(roots: [pki.root])
    for (offset, original) in pki.leaf.der.enumerated() {
      for value in [original ^ 1, original ^ 0x80, ~original] {
        var changed = pki.leaf.der
        changed[offset] = value
        guard let leaf = try? Certificate(der: changed) else { continue }
        #expect(throws: ChainRejection.self, "byte \(offset): \(value)") {
          try validator.validate(leaf: leaf, intermediates: [pki.intermediate], at: SmallPKI.middle)
        }
      }
    }
  }

  @Test("64 extensions are accepted, one more is refused")
  func boundsExtensions() throws {
    let extensions = try (0..<65).map {
      CertificateExtension(try #require(ObjectIdentifier("1.3.6.1.4.1.55555.\($0)")), value: [5, 0])
    }
    #expect(throws: Never.self) { try SmallPKI(leaf: { $0.extensions = Array(extensions.prefix(64)) }) }
    #expect(throws: CryptographyError.malformedCertificate("it has more than 64 extensions")) {
      try SmallPKI(leaf: { $0.extensions = extensions })
    }
  }

  @Test("A repeated extension is refused")
  func refusesRepeatedExtensions() {
    #expect(throws: CryptographyError.malformedCertificate("the extension 2.5.29.15 occurs twice")) {
      try SmallPKI(leaf: { $0.extensions.append(.keyUsage([.digitalSignature])) })
    }
  }

  @Test("The algorithm outside the signed part must equal the one inside")
  func comparesAlgorithms() throws {
    let der = try SmallPKI().leaf.der
    var reader = ASN1Reader(der)
    var parts = try reader.enter(.sequence)
    let (signed, algorithm, signature) = (try parts.next(), try parts.next(), try parts.next())
    let withNull = DER.sequence(Array(algorithm.content) + DER.null)
    #expect(DER.sequence(Array(signed.encoding), Array(algorithm.encoding), Array(signature.encoding)) == der)
    #expect(throws: CryptographyError.self) {
      try Certificate(der: DER.sequence(Array(signed.encoding), withNull, Array(signature.encoding)))
    }
  }
}

@Suite("Certificates as PEM")
struct CertificatePEMTests {
  @Test("All certificates are read in order; other blocks and the text between them are skipped")
  func reads() throws {
    let pki = try SmallPKI()
    let text = """
      the root
      \(try pki.root.pem)
      a key
      \(try pki.leafKey.pkcs8PEM)
      \(try pki.intermediate.pem)trailing text
      """
    #expect(try Certificate.certificates(pem: text) == [pki.root, pki.intermediate])
    #expect(try Certificate.certificates(pem: pki.leaf.pem) == [pki.leaf])
  }

  @Test("Text without a certificate, a damaged block and a block with other content are refused")
  func refuses() throws {
    let pem = try SmallPKI().leaf.pem
    let body = pem.split(separator: "\n").dropFirst().dropLast()
    let texts = [
      "", "no certificate", try SmallPKI().leafKey.pkcs8PEM, String(pem.dropLast(30)),
      pem + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
      "-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----\n",
      "-----BEGIN CERTIFICATE-----\n" + body.dropLast().joined(separator: "\n") + "\n-----END CERTIFICATE-----\n",
    ]
    for text in texts { #expect(throws: CryptographyError.self, "\(text)") { try Certificate.certificates(pem: text) } }
  }
}
