import ByteCoding
import Cryptography
import Testing

@Suite("Requests for certificates, and the extension of ACME")
struct RequestTests {
  @Test("OpenSSL reads a request with its names and verifies it", arguments: ECPrivateKey.Curve.allCases)
  func request(curve: ECPrivateKey.Curve) throws {
    let key = try ECPrivateKey(curve)
    let request = try CertificateRequestTemplate(
      extensions: [.subjectAlternativeNames(dns: ["gate.example", "api.example"], addresses: [])]
    ).signed(with: key)
    let seen = try Self.read(request)
    #expect(seen.succeeded && seen.output.contains("verify OK"), "\(seen.output)")
    #expect(seen.output.contains("DNS:gate.example, DNS:api.example"), "\(seen.output)")
    // The failing twin: another name under the same signature.
    let place = try #require(request.firstRange(of: Array("gate.example".utf8))).lowerBound
    var changed = request
    changed[place] = UInt8(ascii: "h")
    let broken = try Self.read(changed)
    #expect(!broken.output.contains("verify OK"), "\(broken.output)")
  }

  private static func read(_ request: [UInt8]) throws -> (succeeded: Bool, output: String) {
    try withFolder { folder in
      try write(request, to: "\(folder)/request.der")
      return try OpenSSLProgram.run(
        "req", "-inform", "DER", "-in", "\(folder)/request.der", "-verify", "-noout", "-text")
    }
  }

  @Test("The extension of a challenge is critical (RFC 8737 section 3)")
  func acmeIdentifier() throws {
    let key = try ECPrivateKey(.p256)
    var template = CertificateTemplate(
      subject: DistinguishedName(.commonName("challenge")), subjectPublicKeyInfo: key.spki, notBefore: .now(),
      notAfter: .now().advanced(by: .seconds(60)))
    template.extensions = [.acmeIdentifier([UInt8](repeating: 7, count: 32))]
    let pem = try template.selfSigned(with: key).pem
    let seen = try withFolder { folder in
      try write(pem.utf8, to: "\(folder)/challenge.pem")
      return try OpenSSLProgram.run("x509", "-in", "\(folder)/challenge.pem", "-noout", "-text")
    }
    #expect(seen.output.contains(/1\.3\.6\.1\.5\.5\.7\.1\.31: critical/), "\(seen.output)")
  }

  @Test("The issuer's key identifier is read; an issuer that is named in another way has none")
  func authorityKeyIdentifier() throws {
    let key = try ECPrivateKey(.p256)
    var template = CertificateTemplate(
      subject: DistinguishedName(.commonName("leaf")), subjectPublicKeyInfo: key.spki, notBefore: .now(),
      notAfter: .now().advanced(by: .seconds(60)))
    template.extensions = [.authorityKeyIdentifier([1, 2, 3])]
    #expect(try template.selfSigned(with: key).authorityKeyIdentifier == [1, 2, 3])
    let oid = try #require(ObjectIdentifier("2.5.29.35"))
    // Without the identifier, with the serial number of the issuer's certificate, and malformed.
    for content: [UInt8] in [[0x30, 0], [0x30, 3, 0x82, 1, 5], [0x30, 9, 0x80]] {
      template.extensions = [CertificateExtension(oid, value: content)]
      #expect(try template.selfSigned(with: key).authorityKeyIdentifier == nil)
    }
  }
}
