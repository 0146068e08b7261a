import ByteCoding
import Cryptography
import Testing

@Suite("Keys of a JWKS")
struct TokenKeyTests {
  private static let message = Array(TokenKeySamples.message.utf8)
  private static let exponent: [UInt8] = [1, 0, 1]

  private static func number(_ text: String) -> [UInt8] { Base64URL.decode(text) ?? [] }

  private static func key(_ sample: TokenKeySamples.Sample) -> TokenKey? {
    switch sample.algorithm.prefix(2) {
    case "RS", "PS": TokenKey(modulus: number(TokenKeySamples.modulus), exponent: exponent)
    case "ES":
      TokenKey(
        sample.algorithm == "ES256" ? .p256 : sample.algorithm == "ES384" ? .p384 : .p521, x: number(sample.x),
        y: number(sample.y))
    default: TokenKey(ed25519: number(sample.x))
    }
  }

  private static func scheme(_ name: String) -> TokenKey.Scheme {
    let hash: TokenKey.Hash = name.hasSuffix("256") ? .sha256 : name.hasSuffix("384") ? .sha384 : .sha512
    return switch name.prefix(2) {
    case "RS": .rsa(hash)
    case "PS": .pss(hash)
    case "ES": .ecdsa(hash)
    default: .ed25519
    }
  }

  @Test(
    "Signatures of another implementation are valid for their message and scheme alone", arguments: TokenKeySamples.all)
  func samples(_ sample: TokenKeySamples.Sample) throws {
    let key = try #require(Self.key(sample))
    let signature = Self.number(sample.signature)
    #expect(key.isValid(signature, for: Self.message, Self.scheme(sample.algorithm)))
    #expect(!key.isValid(signature, for: Self.message + [0], Self.scheme(sample.algorithm)))
    #expect(!key.isValid(signature, for: [], Self.scheme(sample.algorithm)))
    for other in TokenKeySamples.all where other.algorithm != sample.algorithm {
      #expect(!key.isValid(signature, for: Self.message, Self.scheme(other.algorithm)), "\(other.algorithm)")
    }
  }

  @Test("A signature with one bit changed, a byte more or less, or no byte is invalid", arguments: TokenKeySamples.all)
  func changed(_ sample: TokenKeySamples.Sample) throws {
    let key = try #require(Self.key(sample))
    let scheme = Self.scheme(sample.algorithm)
    let signature = Self.number(sample.signature)
    for index in [0, signature.count / 2, signature.count - 1] {
      var changed = signature
      changed[index] ^= 1
      #expect(!key.isValid(changed, for: Self.message, scheme))
    }
    for other in [[], signature + [0], [0] + signature, Array(signature.dropLast())] {
      #expect(!key.isValid(other, for: Self.message, scheme))
    }
    #expect(!key.isValid([UInt8](repeating: 0, count: signature.count), for: Self.message, scheme))
  }

  @Test("A short or long modulus and an exponent of 1, even or long make no key")
  func weakRSA() {
    let modulus = Self.number(TokenKeySamples.modulus)
    for other in [[], Array(modulus.dropLast()), [UInt8](repeating: 0xFF, count: 1025)] {
      #expect(TokenKey(modulus: other, exponent: Self.exponent) == nil)
    }
    for other in [[], [0], [1], [0, 1], [2], [1, 0, 0], [1, 0, 0, 0, 1]] as [[UInt8]] {
      #expect(TokenKey(modulus: modulus, exponent: other) == nil)
    }
    #expect(TokenKey(modulus: [0] + modulus, exponent: [0] + Self.exponent) != nil)
  }

  @Test("A point that is not on the curve, and coordinates of another length make no key")
  func weakPoints() throws {
    let sample = try #require(TokenKeySamples.all.first { $0.algorithm == "ES256" })
    let (x, y) = (Self.number(sample.x), Self.number(sample.y))
    #expect(TokenKey(.p256, x: x, y: y) != nil)
    #expect(TokenKey(.p256, x: y, y: x) == nil)
    #expect(TokenKey(.p256, x: [0] + x, y: y) == nil)
    #expect(TokenKey(.p256, x: Array(x.dropLast()), y: y) == nil)
    #expect(TokenKey(.p384, x: x, y: y) == nil)
    #expect(TokenKey(.p256, x: [], y: []) == nil)
    #expect(TokenKey(ed25519: x + [0]) == nil && TokenKey(ed25519: []) == nil)
  }
}
