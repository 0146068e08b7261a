import ByteCoding
import Cryptography
import Testing

/// RFC 6979 appendix A.2.5: a key on P-256 and its signatures with SHA-256.
private enum RFC6979 {
  static let x = "60fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6"
  static let y = "7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299"
  static let n = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"
  static let r = "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716"
  static let s = "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8"
  static let message = Array("sample".utf8)

  static var point: [UInt8] { get throws { try [4] + bytes(x) + bytes(y) } }
  static var key: P256PublicKey { get throws { try P256PublicKey(x963: point) } }
}

private func bytes(_ hex: String) throws -> [UInt8] { try #require(Hex.decode(hex)) }

/// Returns the DER encoding of a signature with the positive numbers `r` and `s`.
private func signature(_ r: [UInt8], _ s: [UInt8]) -> [UInt8] {
  DER.sequence(DER.integer(magnitude: r), DER.integer(magnitude: s))
}

@Suite("Public keys on P-256")
struct PublicKeyTests {
  @Test(
    "The signatures of RFC 6979 are valid",
    arguments: [
      ("sample", RFC6979.r, RFC6979.s),
      (
        "test", "f1abb023518351cd71d881567b1ea663ed3efcf6c5132b354f28d3b0b7d38367",
        "019f4113742a2b14bd25926b49c649155f267e60d3814b4c0cc84250e46f0083"
      ),
    ])
  func verifies(_ example: (message: String, r: String, s: String)) throws {
    let signature = signature(try bytes(example.r), try bytes(example.s))
    #expect(try RFC6979.key.isValidSignature(signature, for: Array(example.message.utf8)))
    #expect(try !RFC6979.key.isValidSignature(signature, for: Array(example.message.utf8) + [0]))
    #expect(try !P256PrivateKey().publicKey.isValidSignature(signature, for: Array(example.message.utf8)))
  }

  @Test("The negated signature of the same message is valid too, so a signature identifies nothing")
  func isMalleable() throws {
    let negated = try difference(bytes(RFC6979.n), bytes(RFC6979.s))
    #expect(try RFC6979.key.isValidSignature(signature(bytes(RFC6979.r), negated), for: RFC6979.message))
  }

  @Test("Every other encoding of a valid signature is refused")
  func isStrict() throws {
    let (r, s, n) = (try bytes(RFC6979.r), try bytes(RFC6979.s), try bytes(RFC6979.n))
    let (first, second) = (DER.integer(magnitude: r), DER.integer(magnitude: s))
    let zero = DER.integer(0)
    let encodings: [String: [UInt8]] = [
      "empty": [], "raw": r + s, "trailing byte": signature(r, s) + [0],
      "third number": DER.sequence(first, second, zero),
      "one number": DER.sequence(first), "long length": [0x30, 0x81] + signature(r, s).dropFirst(),
      "indefinite length": DER.indefinite(.sequence, first, second),
      "negative numbers": DER.sequence(DER.element(.integer, r), DER.element(.integer, s)),
      "leading zeros": DER.sequence(DER.element(.integer, [0, 0] + r), second),
      "long length inside": DER.sequence([0x02, 0x81] + first.dropFirst(), second),
      "set": DER.set(of: [first, second]),
      "r is zero": DER.sequence(zero, second), "s is zero": DER.sequence(first, zero),
      "s is the order": signature(r, n), "octets": DER.sequence(DER.octetString(r), DER.octetString(s)),
    ]
    #expect(try RFC6979.key.isValidSignature(signature(r, s), for: RFC6979.message))
    for (name, encoding) in encodings {
      #expect(try !RFC6979.key.isValidSignature(encoding, for: RFC6979.message), "\(name)")
    }
  }

  @Test("A key returns its point and its SubjectPublicKeyInfo unchanged")
  func keepsForms() throws {
    let key = try P256PrivateKey().publicKey
    #expect(key.spki.count == 91)
    #expect(try P256PublicKey(spki: key.spki) == key)
    #expect(try P256PublicKey(x963: key.x963) == key)
    #expect(try P256PublicKey(x963: key.x963).x963 == key.x963)
  }

  @Test("Bytes other than an uncompressed point on the curve are refused")
  func refusesPoints() throws {
    let point = try RFC6979.point
    var offCurve = point
    offCurve[64] ^= 1
    let prime = try bytes("ffffffff00000001000000000000000000000000ffffffffffffffffffffffff")
    let points: [[UInt8]] = [
      [], [0], [4], point.dropLast(), point + [0], [3] + point[1..<33], [2] + point[1...], [6] + point[1...], offCurve,
      [4] + [UInt8](repeating: 0, count: 64), [4] + prime + point[33...], [4] + [UInt8](repeating: 0xFF, count: 64),
    ]
    for point in points {
      #expect(throws: CryptographyError.self, "\(Hex.encode(point))") { try P256PublicKey(x963: point) }
    }
  }

  @Test("A SubjectPublicKeyInfo of another key type or encoding is refused")
  func refusesOtherKeys() throws {
    let spki = try RFC6979.key.spki
    let others = [
      [], spki.dropLast(), spki + [0], try ECPrivateKey(.p384).spki, try RFC6979.point,
      [0x30, 0x81] + spki.dropFirst(),
    ]
    for other in others { #expect(throws: CryptographyError.self) { try P256PublicKey(spki: Array(other)) } }
  }

  @Test("Many threads verify with one key concurrently")
  func isShared() async throws {
    let key = try RFC6979.key
    let valid = try signature(bytes(RFC6979.r), bytes(RFC6979.s))
    let results = await withTaskGroup(of: Bool.self, returning: [Bool].self) { group in
      for index in 0..<200 {
        group.addTask {
          key.isValidSignature(valid, for: index % 2 == 0 ? RFC6979.message : []) == (index % 2 == 0)
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(results.count == 200 && results.allSatisfy { $0 })
  }

  /// Returns `a` - `b` for big-endian numbers of the same length, where `a` is greater than `b`.
  private func difference(_ a: [UInt8], _ b: [UInt8]) -> [UInt8] {
    var borrow = 0
    let digits = zip(a, b).reversed().map { first, second -> UInt8 in
      let digit = Int(first) - Int(second) - borrow
      borrow = digit < 0 ? 1 : 0
      return UInt8(digit + borrow * 256)
    }
    return digits.reversed()
  }
}
