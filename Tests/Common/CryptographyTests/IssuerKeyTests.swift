import ByteCoding
import Cryptography
import Testing

@Suite("Keys of issuers")
struct IssuerKeyTests {
  private static func certificate(_ curve: ECPrivateKey.Curve, digest: SignatureDigest) throws -> (
    Certificate, IssuerKey
  ) {
    let key = try ECPrivateKey(curve)
    let name = DistinguishedName(.commonName("Issuer"))
    let template = CertificateTemplate(
      subject: name, subjectPublicKeyInfo: key.spki, notBefore: Timestamp(seconds: 0), notAfter: Timestamp(seconds: 9))
    let root = try template.selfSigned(with: key)
    return (try template.signed(by: root, key: key, digest: digest), try IssuerKey(spki: key.spki))
  }

  @Test(
    "A key on a curve verifies with either digest", arguments: ECPrivateKey.Curve.allCases, SignatureDigest.allCases)
  func curves(_ curve: ECPrivateKey.Curve, _ digest: SignatureDigest) throws {
    let (certificate, key) = try Self.certificate(curve, digest: digest)
    #expect(key.kind == .curve(curve))
    #expect(key.signed(certificate))
    #expect(certificate.hasKnownSignatureAlgorithm)
    let other = try IssuerKey(spki: ECPrivateKey(curve).spki)
    #expect(!other.signed(certificate))
    var changed = certificate.der
    changed[changed.count - 1] ^= 1
    #expect(try !key.signed(Certificate(der: changed)))
  }

  @Test("An RSA key verifies SHA-256, and no key verifies a signature of another kind")
  func rsa() throws {
    let certificate = try #require(try Certificate.certificates(pem: Self.rsaPEM).first)
    let key = try IssuerKey(spki: certificate.subjectPublicKeyInfo)
    #expect(key.kind == .rsa(bits: 2048))
    #expect(key.signed(certificate))
    var changed = certificate.der
    changed[changed.count - 1] ^= 1
    #expect(try !key.signed(Certificate(der: changed)))
    let (other, otherKey) = try Self.certificate(.p256, digest: .sha256)
    #expect(!key.signed(other))
    #expect(!otherKey.signed(certificate))
  }

  @Test("Other keys are refused")
  func refuses() throws {
    let spki = try ECPrivateKey(.p256).spki
    var offCurve = spki
    offCurve[90] ^= 1
    let modulus = { (bytes: Int, exponent: [UInt8]) in
      DER.sequence(
        DER.sequence(DER.objectIdentifier(try #require(ObjectIdentifier("1.2.840.113549.1.1.1"))), DER.null),
        DER.bitString(
          DER.sequence(
            DER.integer(magnitude: [0x80] + [UInt8](repeating: 1, count: bytes - 1)), DER.integer(magnitude: exponent)))
      )
    }
    #expect(try IssuerKey(spki: modulus(512, [1, 0, 1])).kind == .rsa(bits: 4096))
    let sizes = try [513, 127, 2048].map { try modulus($0, [1, 0, 1]) }
    let longExponent = try modulus(256, [UInt8](repeating: 0x81, count: 255))
    for other in [[], [0x30], Array(spki.dropLast()), offCurve, longExponent] + sizes {
      #expect(throws: CryptographyError.self) { try IssuerKey(spki: other) }
    }
  }

  @Test("The tags of explicit elements have one encoding", arguments: [0, 1, 30, 31, 127, 128, 709, 16383, 2_000_000])
  func explicitTags(_ number: Int) throws {
    let encoding = DER.explicit(number, DER.integer(5))
    var reader = ASN1Reader(encoding)
    let element = try reader.nextExplicit()
    #expect(element.number == number)
    var content = element.content
    #expect(try content.unsignedInteger() == 5)
    try content.end()
    try reader.end()
    for count in encoding.indices {
      var prefix = ASN1Reader(encoding.prefix(count))
      #expect(throws: ASN1Error.self) { try prefix.nextExplicit() }
    }
  }

  @Test(
    "Other encodings of a tag are refused",
    arguments: [
      [0xBF, 0x1E, 0x00], [0xBF, 0x80, 0x7F, 0x00], [0xBF, 0xFF, 0xFF, 0xFF, 0x7F, 0x00], [0x9F, 0x1F, 0x00],
      [0x30, 0x00], [0x81, 0x00], [0xA1, 0x80, 0x00, 0x00], [0xBF, 0x1F, 0x81, 0x00], [0xBF],
    ] as [[UInt8]])
  func refusesTags(_ bytes: [UInt8]) {
    var reader = ASN1Reader(bytes)
    #expect(throws: ASN1Error.self) { try reader.nextExplicit() }
  }

  @Test("An integer of 64 bits is read, and its other encodings are refused")
  func integers() throws {
    for number: UInt64 in [0, 127, 128, 65537, .max >> 1, .max] {
      var reader = ASN1Reader(DER.integer(number))
      #expect(try reader.unsignedInteger64() == number)
    }
    for bytes: [UInt8] in [
      [2, 0], [2, 1, 0x80], [2, 2, 0, 1], [2, 9, 1, 0, 0, 0, 0, 0, 0, 0, 0], [2, 10, 0, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0],
    ] {
      var reader = ASN1Reader(bytes)
      #expect(throws: ASN1Error.self) { try reader.unsignedInteger64() }
    }
    var large = ASN1Reader(DER.integer(.max))
    #expect(throws: ASN1Error.self) { try large.unsignedInteger() }
  }

  static let rsaPEM = """
    -----BEGIN CERTIFICATE-----
    MIIC/TCCAeWgAwIBAgIUY74N7fzcdokgs/K2DGPQ4ENgPv4wDQYJKoZIhvcNAQEL
    BQAwDjEMMAoGA1UEAwwDUlNBMB4XDTI2MTEyNTEzMjI1N1oXDTQ2MTEyMDEzMjI1
    N1owDjEMMAoGA1UEAwwDUlNBMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKC
    AQEAtqBCrCwvPgXHChyZ1FWT+ToBw0fjkt5ezz7O9Nfs/+HOZ30RMLC7mdExDB5u
    DEBF9uFyjm6eVx/gsLW6eAY+7Oighzub2LKExz4btAIt7WF/1VPGc3A+pKqNeiOc
    gKiAgDW2SUtOJGkM+skSKScLWtcrbdFsbjh+ZDxyxQpnT0r0L9HYTgkzGz+SMvN6
    WvikJY6KmRHDC0UWxYIdxm/RunjJ5OVIaB6uScXb6O+PSlpb6kZD6zqZhiNg7/kk
    qF1VzmXE1I5NqjwbJWnEW1RonqZ+tNxDodn04PeaqOH7AtFY30unjarkJ9slx4WJ
    F9XExA9wvgb2jVRopD/Mi6EbPQIDAQABo1MwUTAdBgNVHQ4EFgQUeCk067fYREo6
    7/an8VUF6VfitBMwHwYDVR0jBBgwFoAUeCk067fYREo67/an8VUF6VfitBMwDwYD
    VR0TAQH/BAUwAwEB/zANBgkqhkiG9w0BAQsFAAOCAQEAjZdXY7Hw6YYn05WexuT0
    r4cfzAxUncLCZldBG3+uylHjBKs7jP6t7LP5vm5vq8tAFURjPv6u/doHWEWCIKxB
    TJWjK71IJlMHk52Z9w/8040LZTsMBwbLEok+esAK9qBDsRtkviagp5g3ehVF9xK2
    vqwQMJhL8JKHAQoEbammhMlA8R32c6RmTMEHYkjngTse7Hx9PHb2tMkQEc62KiMt
    WBvtaHfAGl/zkky+lMkcv7CWzcHNZTLZbnhcb8bttHhsMk4mKqjvHpVfSgpqPVDM
    eb519+kvNYXe0gwcqqKkAY5Op2wFl65Bzj5Jxz2yMUf2erqWELgWgtR3chO3g0KG
    TA==
    -----END CERTIFICATE-----
    """
}
