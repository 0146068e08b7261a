import Testing

@testable import TransportEngine

@Suite struct ByteSetTests {
  static let alphanumerics = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

  @Test(
    "A set contains exactly the characters of its grammar",
    arguments: [
      (ByteSet.token, "!#$%&'*+-.^_`|~"),
      (ByteSet.path, "-._~!$&'()*+,;=:@/"),
      (ByteSet.sentPath, "-._~!$&'()*+,;=:@/[]^|"),
      (ByteSet.query, "-._~!$&'()*+,;=:@/?[]^`{|}"),
      (ByteSet.unreserved, "-._~"),
      (ByteSet.hostName, "-._"),
    ])
  func membership(set: ByteSet, punctuation: String) {
    let expected = Set((Self.alphanumerics + punctuation).utf8)
    let actual = Set((UInt8.min...UInt8.max).filter(set.contains))
    #expect(actual == expected)
  }

  @Test("Field content is tab, space, visible ASCII and all bytes outside ASCII")
  func fieldContent() {
    let refused = Set((UInt8.min...UInt8.max).filter { !$0.isFieldContent })
    #expect(refused == Set(0x00...0x08).union(0x0A...0x1F).union([0x7F]))
  }

  @Test("A hexadecimal digit has the same value as in the standard library")
  func hexDigits() {
    for byte in UInt8.min...UInt8.max {
      let character = Character(Unicode.Scalar(byte))
      #expect(byte.hexDigitValue.map(Int.init) == (byte < 0x80 ? character.hexDigitValue : nil))
      #expect(byte.isDigit == ("0"..."9" ~= character))
    }
  }
}
