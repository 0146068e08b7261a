import ByteCoding
import Testing

@Suite("Hex")
struct HexTests {
  @Test("Every byte is encoded as two lowercase digits and decoded from either case")
  func roundTripsBytes() {
    for byte in UInt8.min...UInt8.max {
      let text = Hex.encode([byte])
      #expect(text == (byte < 16 ? "0" : "") + String(byte, radix: 16))
      #expect(Hex.decode(text) == [byte])
      #expect(Hex.decode(text.uppercased()) == [byte])
    }
  }

  @Test("Encoding and decoding are inverse at every length", arguments: 0..<70)
  func roundTrips(_ count: Int) {
    let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 151 &+ 7) }
    #expect(Hex.encode(bytes).utf8.count == 2 * count)
    #expect(Hex.decode(Hex.encode(bytes)) == bytes)
  }

  @Test(
    "The examples of RFC 4648 are encoded",
    arguments: [("", ""), ("f", "66"), ("fo", "666f"), ("foobar", "666f6f626172")])
  func examples(_ example: (text: String, hex: String)) {
    #expect(Hex.encode(Array(example.text.utf8)) == example.hex)
  }

  @Test(
    "E-025 Text other than pairs of digits is refused",
    arguments: ["0", "abc", "+5", "0x00", " 00", "00 ", "0g", "é0", "00\n"])
  func refuses(_ text: String) { #expect(Hex.decode(text) == nil) }

  @Test("A lowercase text is decoded; a digit in uppercase is refused, like each other character")
  func lowercase() {
    for byte in UInt8.min...UInt8.max {
      let text = "0" + String(Unicode.Scalar(byte))
      let isDigit = (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte)
      #expect(Hex.decode(lowercase: text) == (isDigit ? Hex.decode(text) : nil), "\(text)")
    }
    #expect(Hex.decode(lowercase: "00fF") == nil)
    #expect(Hex.decode(lowercase: "000") == nil)
    #expect(Hex.decode(lowercase: "") == [])
  }
}
