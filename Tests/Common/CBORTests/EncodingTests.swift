import CBOR
import TestSupport
import Testing

@Suite("CBOR encoding")
struct EncodingTests {
  @Test("Keys are sorted by their encoded bytes (RFC 8949 section 4.2.1)")
  func sortsKeys() {
    let keys: [CBORValue] = [.boolean(false), .array([-1]), .array([100]), "z", "aa", -1, 100, 10]
    let map = CBORValue.map(CBORMap(keys.map { CBORMap.Pair($0, 0) }))
    let sorted: [CBORValue] = [10, 100, -1, "z", "aa", .array([100]), .array([-1]), .boolean(false)]
    // Without its type, the compiler tries literals for many seconds.
    let pairs: [UInt8] = sorted.flatMap { $0.encoded + [0] }
    #expect(map.encoded == [0xA8] + pairs)
  }

  @Test("The encoding does not depend on the order of pairs", arguments: 0..<20)
  func isDeterministic(_ seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let pairs = (0..<12).map { CBORMap.Pair(.unsigned(UInt64($0) * 37), .unsigned(UInt64($0))) }
    #expect(
      CBORValue.map(CBORMap(pairs.shuffled(using: &generator))).encoded == CBORValue.map(CBORMap(pairs)).encoded)
  }

  @Test("Every length is encoded with the shortest head", arguments: [0, 1, 23, 24, 255, 256, 65535, 65536])
  func writesShortestHeads(_ count: Int) throws {
    let head = count < 24 ? 1 : count < 256 ? 2 : count < 65536 ? 3 : 5
    let limits = CBORLimits(bytes: 1 << 20)
    for value in [CBORValue.bytes(Array(repeating: 7, count: count)), .text(String(repeating: "a", count: count))] {
      #expect(value.encoded.count == head + count)
      #expect(try CBORValue(decoding: value.encoded, limits: limits) == value)
    }
  }

  @Test("An encoded value is decoded and encoded again to the same bytes", arguments: 0..<300)
  func roundTrips(_ seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let value = CBORValue.random(depth: 4, using: &generator)
    let limits = CBORLimits(bytes: 1 << 20, items: 1 << 20)
    #expect(try CBORValue(decoding: value.encoded, limits: limits).encoded == value.encoded)
  }

  @Test("Floats are encoded in the shortest width that preserves the value", arguments: 0..<300)
  func writesShortestFloats(_ seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let double = Double(bitPattern: generator.next())
    let single = Double(Float(bitPattern: UInt32(truncatingIfNeeded: generator.next())))
    for number in [double, single] where !number.isNaN {
      let encoded = CBORValue.float(number).encoded
      #expect(try CBORValue(decoding: encoded) == .float(number))
      #expect(encoded.count <= (number == Double(Float(number)) ? 5 : 9))
    }
  }

  @Test("Every half-precision float is decoded and encoded to the same bits")
  func roundTripsHalves() throws {
    for bits in UInt16.min...UInt16.max {
      let bytes = [0xF9, UInt8(bits >> 8), UInt8(truncatingIfNeeded: bits)]
      let isOtherNaN = bits & 0x7C00 == 0x7C00 && bits & 0x3FF != 0 && bits != 0x7E00
      #expect((try? CBORValue(decoding: bytes).encoded) == (isOtherNaN ? nil : bytes))
    }
  }
}

extension CBORValue {
  static func random(depth: Int, using generator: inout SeededGenerator) -> CBORValue {
    let number = generator.next() >> UInt64.random(in: 0..<64, using: &generator)
    switch Int.random(in: 0..<(depth == 0 ? 8 : 11), using: &generator) {
    case 0: return .unsigned(number)
    case 1: return .negative(number)
    case 2: return .bytes((0..<Int(number % 40)).map { UInt8($0) })
    case 3: return .text(String("\u{6c34}aé\u{10151}".shuffled(using: &generator)))
    case 4: return .boolean(number % 2 == 0)
    case 5: return .null
    case 6: return .undefined
    case 7: return .float(Double(number) / 8)
    case 8: return .array((0..<number % 5).map { _ in random(depth: depth - 1, using: &generator) })
    case 9: return .tagged(number | 0x20, random(depth: depth - 1, using: &generator))
    default:
      return .map(
        CBORMap((0..<number % 5).map { CBORMap.Pair(.unsigned($0), random(depth: depth - 1, using: &generator)) }))
    }
  }
}
