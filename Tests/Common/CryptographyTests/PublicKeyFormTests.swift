import ByteCoding
import Testing

@testable import Cryptography

/// What OpenSSL computes for the key of a stranger, before anything is trusted.
@Suite("Forms of public keys")
struct PublicKeyFormTests {
  /// P-256 with its parameters in place of its name: `openssl ecparam -name prime256v1 -param_enc explicit -genkey`.
  private static let explicit = """
    MIIBSzCCAQMGByqGSM49AgEwgfcCAQEwLAYHKoZIzj0BAQIhAP////8AAAABAAAAAAAAAAAAAAAA////////////////MFsEIP////8AAAABAAAA\
    AAAAAAAAAAAA///////////////8BCBaxjXYqjqT57PrvVV2mIa8ZR0GsMxTsPY7zjw+J9JgSwMVAMSdNgiG5wSTamZ44ROdJreBn36QBEEEaxfR\
    8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9QIhAP////8AAAAA//////////+85vqt\
    pxeehPO5ysL8YyVRAgEBA0IABDAL13VebQYCo3UbboWs+pdzpWUbpb6H7+S/9Lf0TiPLfrtpk9ZQYLWdwsDqlm1by4ZdKvK+PbdPeRzGehQW4jA=
    """

  private static func key() throws -> [UInt8] { try #require(Base64.decode(explicit)) }

  private static func certificate(of key: [UInt8]) throws -> Certificate {
    let signer = try ECPrivateKey(.p256)
    let template = CertificateTemplate(
      subject: DistinguishedName(.commonName("Stranger")), subjectPublicKeyInfo: key, notBefore: SmallPKI.start,
      notAfter: SmallPKI.end)
    return try template.selfSigned(with: signer)
  }

  @Test("A curve that is given by its parameters is refused before OpenSSL reads it (RFC 5480 section 2.1.1)")
  func parameters() throws {
    let key = try Self.key()
    #expect(PublicKeyForm.fault(of: key[...]) == "its key is on a curve without a name")
    // OpenSSL would read this one.
    #expect(PKey(spki: key[...]) == nil)
    #expect(throws: CryptographyError.malformedCertificate("its key is on a curve without a name")) {
      try X509Handle(Self.certificate(of: key))
    }
  }

  @Test("Parameters of a curve under another identifier are refused, too")
  func otherIdentifier() throws {
    var key = try Self.key()
    // SM2, which has one byte more.
    let place = try #require(key.firstIndex(of: 0x2A))
    key.replaceSubrange(place - 1..<place + 7, with: [8, 0x2A, 0x81, 0x1C, 0xCF, 0x55, 0x01, 0x82, 0x2D])
    for position in [3, 7] { key[position] += 1 }
    #expect(PublicKeyForm.fault(of: key[...]) == "its key is of the unknown kind 1.2.156.10197.1.301")
    #expect(PKey(spki: key[...]) == nil)
  }

  @Test("Keys on named curves and RSA keys are read")
  func known() throws {
    for curve in ECPrivateKey.Curve.allCases {
      #expect(PKey(spki: try ECPrivateKey(curve).spki[...]) != nil)
    }
    let certificate = try #require(try Certificate.certificates(pem: IssuerKeyTests.rsaPEM).first)
    #expect(PublicKeyForm.fault(of: certificate.subjectPublicKeyInfo[...]) == nil)
  }

  @Test("A malformed key says so")
  func malformed() {
    for bytes in [[], [0x30], [0x30, 0], [0x30, 2, 0x30, 0]] as [[UInt8]] {
      #expect(PublicKeyForm.fault(of: bytes[...])?.hasPrefix("its key is malformed: ") == true)
    }
  }
}
