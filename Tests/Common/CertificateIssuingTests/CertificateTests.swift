import ByteCoding
import Cryptography
import Foundation
import Testing

@Suite("Issued certificates")
struct CertificateTests {
  static let now = Timestamp(seconds: 1_780_000_000)

  private func template(_ name: String, _ key: ECPrivateKey) -> CertificateTemplate {
    CertificateTemplate(
      subject: DistinguishedName(.country("DE"), .organization("Bäckerei + Söhne, \"1\""), .commonName(name)),
      subjectPublicKeyInfo: key.spki, notBefore: Self.now, notAfter: Self.now.advanced(by: .seconds(3600)))
  }

  private func root(_ curve: ECPrivateKey.Curve) throws -> (certificate: Certificate, key: ECPrivateKey) {
    let key = try ECPrivateKey(curve)
    var template = template("Root", key)
    template.extensions = [.basicConstraints(isAuthority: true), .keyUsage([.keyCertSign])]
    return (try template.selfSigned(with: key), key)
  }

  @Test("A certificate contains the fields of its template", arguments: ECPrivateKey.Curve.allCases)
  func fields(curve: ECPrivateKey.Curve) throws {
    let key = try ECPrivateKey(curve)
    var template = template("Leaf", key)
    template.serialNumber = [0xFF, 1]
    let oid = try #require(ObjectIdentifier("1.2.840.113635.100.12.15"))
    template.extensions = [CertificateExtension(oid, value: DER.null)]
    let certificate = try template.selfSigned(with: key)
    #expect(certificate.notBefore == Self.now)
    #expect(certificate.notAfter == Self.now.advanced(by: .seconds(3600)))
    #expect(certificate.serialNumber == [0, 0xFF, 1])
    #expect(certificate.subjectPublicKeyInfo == key.spki)
    #expect(certificate.extensionValue(oid: oid.description) == [5, 0])
    #expect(certificate.p256PublicKey == (curve == .p256 ? key.x963 : nil))
  }

  @Test(
    "OpenSSL reads a certificate and verifies it", arguments: ECPrivateKey.Curve.allCases, ECPrivateKey.Curve.allCases)
  func foreignReader(rootCurve: ECPrivateKey.Curve, leafCurve: ECPrivateKey.Curve) throws {
    let root = try root(rootCurve)
    let key = try ECPrivateKey(leafCurve)
    var template = template("localhost", key)
    template.extensions = [
      .basicConstraints(isAuthority: false), .keyUsage([.digitalSignature]), .extendedKeyUsage([.tlsServer]),
      .subjectAlternativeNames(
        dns: ["localhost"], addresses: [[127, 0, 0, 1], [UInt8](repeating: 0, count: 15) + [1]]),
      .authorityKeyIdentifier(CertificateTemplate.keyIdentifier(of: root.key.spki)),
      .subjectKeyIdentifier(CertificateTemplate.keyIdentifier(of: key.spki)),
    ]
    let leaf = try template.signed(by: root.certificate, key: root.key)
    try withFolder { folder in
      try write(root.certificate.pem.utf8, to: "\(folder)/root.pem")
      try write(leaf.pem.utf8, to: "\(folder)/leaf.pem")
      try write(key.pkcs8PEM.utf8, to: "\(folder)/leaf.key")
      let verified = try OpenSSLProgram.run(
        "verify", "-x509_strict", "-attime", "\(Self.now.seconds + 1)", "-purpose", "sslserver", "-verify_hostname",
        "localhost", "-CAfile", "\(folder)/root.pem", "\(folder)/leaf.pem")
      // Strict mode requires a key identifier, which this root lacks. All other checks must pass.
      #expect(verified.succeeded || verified.output.contains("Subject Key Identifier"), "\(verified.output)")
      let text = try OpenSSLProgram.run("x509", "-in", "\(folder)/leaf.pem", "-noout", "-text").output
      #expect(text.contains("DNS:localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1"))
      #expect(text.contains("CA:FALSE"))
      let fromKey = try OpenSSLProgram.run("pkey", "-in", "\(folder)/leaf.key", "-pubout").output
      let fromLeaf = try OpenSSLProgram.run("x509", "-in", "\(folder)/leaf.pem", "-noout", "-pubkey").output
      #expect(fromKey == fromLeaf)
    }
  }

  @Test("A certificate of version 1 has no extensions, like those that OpenSSL issues by default")
  func versionOne() throws {
    let root = try root(.p256)
    let key = try ECPrivateKey(.p256)
    var template = template("Debug", key)
    template.version = .v1
    template.extensions = [.basicConstraints(isAuthority: true)]
    let leaf = try template.signed(by: root.certificate, key: root.key)
    try withFolder { folder in
      try write(leaf.pem.utf8, to: "\(folder)/leaf.pem")
      let text = try OpenSSLProgram.run("x509", "-in", "\(folder)/leaf.pem", "-noout", "-text").output
      #expect(text.contains("Version: 1 (0x0)"))
      #expect(!text.contains("extensions"))
    }
    _ = try ChainValidator(roots: [root.certificate]).validate(leaf: leaf, intermediates: [], at: Self.now)
  }

  @Test("A certificate is signed with the requested digest", arguments: SignatureDigest.allCases)
  func digest(digest: SignatureDigest) throws {
    let root = try root(.p384)
    let key = try ECPrivateKey(.p256)
    let leaf = try template("Leaf", key).signed(by: root.certificate, key: root.key, digest: digest)
    _ = try ChainValidator(roots: [root.certificate]).validate(leaf: leaf, intermediates: [], at: Self.now)
    let identifier: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x03, digest == .sha256 ? 2 : 3]
    #expect(leaf.der.firstRange(of: identifier) != nil)
  }

  @Test("A certificate that is signed by another key than its issuer's is untrusted")
  func wrongKey() throws {
    let root = try root(.p256)
    let leaf = try template("Leaf", try ECPrivateKey(.p256)).signed(by: root.certificate, key: ECPrivateKey(.p256))
    #expect(throws: ChainRejection.self) {
      try ChainValidator(roots: [root.certificate]).validate(leaf: leaf, intermediates: [], at: Self.now)
    }
  }
}

@Suite("Issuing keys")
struct ECPrivateKeyTests {
  @Test("A key is restored from its PEM", arguments: ECPrivateKey.Curve.allCases)
  func roundTrip(curve: ECPrivateKey.Curve) throws {
    let key = try ECPrivateKey(curve)
    let copy = try ECPrivateKey(pkcs8PEM: key.pkcs8PEM)
    #expect(copy.curve == curve)
    #expect(copy.spki == key.spki)
    #expect(copy.x963.count == (curve == .p256 ? 65 : 97))
  }

  @Test("Keys on other curves and malformed keys are refused", arguments: ["secp521r1", "secp256k1", ""])
  func others(curve: String) throws {
    let pem =
      curve.isEmpty
      ? "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
      : try OpenSSLProgram.run("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:\(curve)").output
    #expect(throws: CryptographyError.self) { try ECPrivateKey(pkcs8PEM: pem) }
  }
}

@Suite("Signed messages")
struct SignedDataTests {
  @Test(
    "OpenSSL verifies a message in both encodings, and refuses a changed one",
    arguments: [SignedDataTemplate.Encoding.der, .ber],
    [
      1, 999, 1000, 1001, 5000,
    ])
  func foreignReader(encoding: SignedDataTemplate.Encoding, size: Int) throws {
    let key = try ECPrivateKey(.p256)
    var template = CertificateTemplate(
      subject: DistinguishedName(.commonName("Signer")), subjectPublicKeyInfo: key.spki,
      notBefore: CertificateTests.now, notAfter: CertificateTests.now.advanced(by: .seconds(3600)))
    template.extensions = [.basicConstraints(isAuthority: true), .keyUsage([.digitalSignature, .keyCertSign])]
    let signer = try template.selfSigned(with: key)
    let content = SecureRandom.bytes(size)
    var message = SignedDataTemplate(content: content, certificates: [signer])
    message.encoding = encoding
    let bytes = try message.signed(by: signer, key: key)
    #expect((bytes[1] == 0x80) == (encoding == .ber))
    try withFolder { folder in
      try write(bytes, to: "\(folder)/message")
      try write(signer.pem.utf8, to: "\(folder)/signer.pem")
      let verify = { (path: String) in
        try OpenSSLProgram.run(
          "cms", "-verify", "-binary", "-inform", "DER", "-in", path, "-CAfile", "\(folder)/signer.pem", "-purpose",
          "any", "-attime", "\(CertificateTests.now.seconds + 1)", "-out", "\(folder)/content")
      }
      #expect(try verify("\(folder)/message").succeeded)
      let found = try Data(contentsOf: URL(fileURLWithPath: "\(folder)/content"))
      #expect([UInt8](found) == content)

      // Search after the content type, id-data: a content of a single byte also occurs in the certificate.
      let type: [UInt8] = [0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x01]
      let rest = bytes[try #require(bytes.firstRange(of: type)).upperBound...]
      let start = try #require(rest.firstRange(of: content.prefix(min(size, 900)))?.lowerBound)
      var changed = bytes
      changed[start] ^= 1
      try write(changed, to: "\(folder)/changed")
      #expect(try !verify("\(folder)/changed").succeeded)
    }
  }
}
