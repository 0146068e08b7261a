import ByteCoding
import Cryptography
import Testing

@Suite("Private keys on P-256")
struct PrivateKeyTests {
  @Test("A signature is valid under the key's own public key only")
  func signs() throws {
    let (key, other) = (try P256PrivateKey(), try P256PrivateKey())
    for length in [0, 1, 32, 1000] {
      let message = [UInt8](repeating: 9, count: length)
      let signature = try key.signature(for: message)
      #expect(signature.count <= 72)
      #expect(key.publicKey.isValidSignature(signature, for: message))
      #expect(!other.publicKey.isValidSignature(signature, for: message))
    }
  }

  @Test("A signature for JOSE has r and s with 32 bytes each, also if they begin with zeros")
  func fixedWidth() throws {
    let key = try P256PrivateKey()
    var beganWithZero = false
    for number in 0..<1000 {
      let message = Array("\(number)".utf8)
      let signature = try key.es256Signature(for: message)
      #expect(signature.count == 64)
      beganWithZero = beganWithZero || signature[0] == 0 || signature[32] == 0
      let der = DER.sequence(
        DER.integer(magnitude: Array(signature[..<32])), DER.integer(magnitude: Array(signature[32...])))
      #expect(key.publicKey.isValidSignature(der, for: message))
      #expect(!key.publicKey.isValidSignature(der, for: message + [0]))
    }
    // One signature in 128 begins with a zero in r or s.
    #expect(beganWithZero)
  }

  @Test("Many threads sign with one key concurrently")
  func concurrentSigning() async throws {
    let key = try P256PrivateKey()
    await withTaskGroup(of: Bool.self) { group in
      for number in 0..<64 {
        group.addTask {
          let message = Array("\(number)".utf8)
          guard let signature = try? key.es256Signature(for: message) else { return false }
          let der = DER.sequence(
            DER.integer(magnitude: Array(signature[..<32])), DER.integer(magnitude: Array(signature[32...])))
          return key.publicKey.isValidSignature(der, for: message)
        }
      }
      for await isValid in group { #expect(isValid) }
    }
  }

  @Test("A key is encoded and decoded as PEM and as DER")
  func roundTrips() throws {
    let key = try P256PrivateKey()
    #expect(try P256PrivateKey(pkcs8PEM: key.pkcs8PEM).publicKey == key.publicKey)
    #expect(try P256PrivateKey(pkcs8DER: key.pkcs8DER).publicKey == key.publicKey)
    #expect(try key.pkcs8PEM.hasPrefix("-----BEGIN PRIVATE KEY-----\n"))
  }

  @Test("Two new keys differ")
  func isNew() throws { #expect(try P256PrivateKey().publicKey != P256PrivateKey().publicKey) }

  @Test("Input other than an unencrypted P-256 key in PKCS #8 is refused without a passphrase prompt")
  func refuses() throws {
    let key = try P256PrivateKey()
    let (der, pem) = (try key.pkcs8DER, try key.pkcs8PEM)
    for other in [[], der.dropLast(), der + [0], key.publicKey.spki] {
      #expect(throws: CryptographyError.self) { try P256PrivateKey(pkcs8DER: Array(other)) }
    }
    let texts = ["", "key", String(pem.dropLast(40)), try ECPrivateKey(.p384).pkcs8PEM, Self.encrypted]
    for text in texts { #expect(throws: CryptographyError.self) { try P256PrivateKey(pkcs8PEM: text) } }
  }

  @Test("An error about a key does not contain the key")
  func keepsSecrets() throws {
    let pem = try ECPrivateKey(.p384).pkcs8PEM
    let error = #expect(throws: CryptographyError.self) { try P256PrivateKey(pkcs8PEM: pem) }
    let description = try #require(error?.description)
    for line in pem.split(separator: "\n") where !line.hasPrefix("-") { #expect(!description.contains(line)) }
  }

  /// A key that is encrypted with the passphrase "secret".
  private static let encrypted = """
    -----BEGIN ENCRYPTED PRIVATE KEY-----
    MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAib5kI/a3l/ngICCAAw
    DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEMkCkR5hCbM+soTbRfDlHecEgZDq
    X23CiNruET4NM4meD+XVGVpHmFDJbQMJA03DJpnsRJLgTuoEpU0IKobtbSxKk3KH
    Cocl2OnzTGXVHH0BOlpxrzO7QczW/M903DBWdhDrrFdyJOFn8OfEeS2SAiyLr8mB
    Ecwe8jpMJaVIOJ98DJBKiwLrDgkjAY4NwPafuozMnRwAeSqxqcKYOevIddtdPTY=
    -----END ENCRYPTED PRIVATE KEY-----
    """
}
