import CBOR
import TestSupport
import Testing

@Suite("CBOR: random and damaged input")
struct GarbageTests {
  @Test("Random bytes are refused, or encoded again to the same bytes except for the order of keys", arguments: 0..<20)
  func survivesRandomBytes(_ seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    for _ in 0..<500 {
      let bytes = (0..<Int.random(in: 0...40, using: &generator)).map { _ in
        UInt8.random(in: 0...255, using: &generator)
      }
      guard let value = try? CBORValue(decoding: bytes) else { continue }
      #expect(value.encoded.sorted() == bytes.sorted())
    }
  }

  @Test("A damaged encoding is refused or decodes to a different value", arguments: 0..<100)
  func survivesDamage(_ seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let value = CBORValue.random(depth: 4, using: &generator)
    let bytes = value.encoded
    for offset in bytes.indices.prefix(400) {
      var damaged = bytes
      damaged[offset] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
      guard let other = try? CBORValue(decoding: damaged) else { continue }
      #expect(other.encoded != bytes)
    }
  }

  @Test("A prefix of an encoding is refused", arguments: 0..<50)
  func refusesPrefixes(_ seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let bytes = CBORValue.random(depth: 4, using: &generator).encoded
    for count in 0..<min(bytes.count, 1000) {
      #expect(throws: CBORError.self) { try CBORValue(decoding: bytes.prefix(count)) }
    }
  }
}
