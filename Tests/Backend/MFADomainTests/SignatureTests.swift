import ByteCoding
import MFADomain
import Testing

/// Verifies the example of RFC 6979, appendix A.2.5: P-256 with SHA-256 and the message "sample".
@Suite("ECDSA signatures")
struct SignatureTests {
  private static let x = "60FED4BA255A9D31C961EB74C6356D68C049B8923B61FA6CE669622E60F29FB6"
  private static let y = "7903FE1008B8BC99A41AE9E95628BC64F2F1B20C2D7E9F5177A3C294D4462299"
  private static let r = "EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716"
  private static let s = "F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8"

  private static func bytes(_ parts: String...) throws -> [UInt8] {
    try #require(Hex.decode(parts.joined().lowercased()))
  }

  private static func key() throws -> DevicePublicKey { try DevicePublicKey(bytes: bytes("04", x, y)) }

  @Test("A-141 the signature of the RFC is valid, raw and in DER")
  func right() throws {
    let message = Array("sample".utf8)
    #expect(try Self.key().verifies(Self.bytes(Self.r, Self.s), of: message))
    // Both numbers have their highest bit set, so DER prefixes each with a zero byte.
    let der = try Self.bytes("3046022100", Self.r, "022100", Self.s)
    #expect(try Self.key().verifies(der, of: message))
  }

  static let invalidSignatures: [(String, [String])] = [
    ("numbers in the other order", [s, r]), ("no r", [String(repeating: "00", count: 32), s]),
    ("no s", [r, String(repeating: "00", count: 32)]), ("a byte short", [String(r.dropLast(2)), s]),
    ("no bytes", []), ("DER without its zeros", ["30440220", r, "0220", s]),
    ("DER with a trailing byte", ["3046022100", r, "022100", s, "00"]),
    ("DER with a length too large", ["3047022100", r, "022100", s]),
    (
      "r greater than the order of the curve",
      ["FFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551", s]
    ),
  ]

  @Test("A-141 a signature with any change is invalid", arguments: invalidSignatures)
  func wrong(_ name: String, _ parts: [String]) throws {
    let signature = try #require(Hex.decode(parts.joined().lowercased()))
    #expect(try Self.key().verifies(signature, of: Array("sample".utf8)) == false, "\(name)")
  }

  @Test("A-141 a valid signature is invalid for another message")
  func otherMessage() throws {
    #expect(try Self.key().verifies(Self.bytes(Self.r, Self.s), of: Array("test".utf8)) == false)
  }
}
