import ByteCoding
import Testing

@Suite struct EightBytesTests {
  /// Each byte at each position, between bytes near the limits of the tests.
  private static let groups: [[UInt8]] = {
    let others: [UInt8] = [0x00, 0x1F, 0x20, 0x22, 0x2C, 0x2D, 0x5B, 0x61, 0x7A, 0x7F, 0x80, 0xFF]
    return others.flatMap { other in
      (0..<8).flatMap { place in
        (UInt8.min...UInt8.max).map { byte in
          var bytes = [UInt8](repeating: other, count: 8)
          bytes[place] = byte
          return bytes
        }
      }
    }
  }()

  private static func firstIndex(in bytes: [UInt8], _ test: (EightBytes) -> UInt64) -> Int? {
    let result = bytes.withUnsafeBufferPointer { test(EightBytes($0, at: 0)) }
    return result == 0 ? nil : EightBytes.first(in: result)
  }

  @Test("The first byte below a limit is found", arguments: [1, 0x20, 0x30, 0x80] as [UInt8])
  func below(_ limit: UInt8) {
    for bytes in Self.groups {
      #expect(Self.firstIndex(in: bytes) { $0.isLess(than: limit) } == bytes.firstIndex { $0 < limit }, "\(bytes)")
    }
  }

  @Test("The first byte of one value is found", arguments: [0, 0x22, 0x7F, 0x80, 0xFF] as [UInt8])
  func equal(_ byte: UInt8) {
    for bytes in Self.groups {
      #expect(Self.firstIndex(in: bytes) { $0.isEqual(to: byte) } == bytes.firstIndex(of: byte), "\(bytes)")
    }
  }

  @Test("Bytes that are not ASCII, and those that few names have, are found exactly")
  func exact() {
    for bytes in Self.groups {
      let (others, unusual) = bytes.withUnsafeBufferPointer { bytes in
        (EightBytes(bytes, at: 0).isNotASCII, EightBytes(bytes, at: 0).isUnusualInName)
      }
      for (place, byte) in bytes.enumerated() {
        let mark: UInt64 = 0x80 << UInt64(8 * place)
        let character = Character(Unicode.Scalar(byte))
        let isUsual = character.isASCII && (character.isLetter || character.isNumber || character == "-")
        #expect((others & mark != 0) == (byte >= 0x80), "\(bytes)")
        #expect((unusual & mark != 0) == !isUsual, "\(bytes)")
      }
    }
  }

  @Test("Only the letters A to Z become lowercase")
  func lowercase() {
    for bytes in Self.groups {
      let word = bytes.withUnsafeBufferPointer { EightBytes($0, at: 0).lowercase }
      let lowercase = bytes.map { (0x41...0x5A).contains($0) ? $0 + 0x20 : $0 }
      // Without their type, the compiler tries numbers for seconds.
      let letters: [UInt8] = (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64(8 * $0)) }
      #expect(letters == lowercase, "\(bytes)")
    }
  }

  @Test("Fewer than eight bytes are followed by zeros", arguments: 0...9)
  func short(_ count: Int) {
    let bytes = (0..<count).map { UInt8(0x61 + $0) }
    let word = bytes.withUnsafeBufferPointer { EightBytes(prefixOf: $0).lowercase }
    for place in 0..<8 {
      #expect(UInt8(truncatingIfNeeded: word >> UInt64(8 * place)) == (place < count ? bytes[place] : 0))
    }
  }

  @Test("Bytes are loaded from any place")
  func places() {
    let bytes = Array(UInt8(0)...32)
    for place in 0...bytes.count - 8 {
      let index = bytes.withUnsafeBufferPointer { EightBytes.first(in: EightBytes($0, at: place).isEqual(to: 8)) }
      #expect(index == ((1...8).contains(place) ? 8 - place : 8), "\(place)")
    }
  }
}
