import ByteCoding
import CBOR
import Testing

@Suite("CBOR decoding")
struct DecodingTests {
  /// The examples of RFC 8949 appendix A with definite lengths.
  static let examples: [(String, CBORValue)] = [
    ("00", 0), ("01", 1), ("0a", 10), ("17", 23), ("1818", 24), ("1819", 25), ("1864", 100), ("1903e8", 1000),
    ("1a000f4240", 1_000_000), ("1b000000e8d4a51000", 1_000_000_000_000), ("1bffffffffffffffff", .unsigned(.max)),
    ("3bffffffffffffffff", .negative(.max)), ("20", -1), ("29", -10), ("3863", -100), ("3903e7", -1000),
    ("c249010000000000000000", .tagged(2, .bytes([1, 0, 0, 0, 0, 0, 0, 0, 0]))),
    ("f90000", .float(0)), ("f98000", .float(-0.0)), ("f93c00", .float(1)), ("fb3ff199999999999a", .float(1.1)),
    ("f93e00", .float(1.5)), ("f97bff", .float(65504)), ("fa47c35000", .float(100_000)),
    ("fa7f7fffff", .float(3.4028234663852886e+38)), ("fb7e37e43c8800759c", .float(1.0e+300)),
    ("f90001", .float(5.960464477539063e-8)), ("f90400", .float(0.00006103515625)), ("f9c400", .float(-4)),
    ("fbc010666666666666", .float(-4.1)), ("f97c00", .float(.infinity)), ("f9fc00", .float(-.infinity)),
    ("f4", .boolean(false)), ("f5", .boolean(true)), ("f6", .null), ("f7", .undefined),
    ("c074323031332d30332d32315432303a30343a30305a", .tagged(0, "2013-03-21T20:04:00Z")),
    ("c11a514b67b0", .tagged(1, 1_363_896_240)), ("d74401020304", .tagged(23, .bytes([1, 2, 3, 4]))),
    ("c600", .tagged(6, 0)), ("d284404040f6", .tagged(18, .array([.bytes([]), .bytes([]), .bytes([]), .null]))),
    ("d41820", .tagged(20, 32)), ("d818456449455446", .tagged(24, .bytes([0x64, 0x49, 0x45, 0x54, 0x46]))),
    ("40", .bytes([])), ("4401020304", .bytes([1, 2, 3, 4])), ("60", ""), ("6161", "a"), ("6449455446", "IETF"),
    ("62225c", "\"\\"), ("62c3bc", "\u{fc}"), ("63e6b0b4", "\u{6c34}"), ("64f0908591", "\u{10151}"),
    ("80", .array([])), ("83010203", .array([1, 2, 3])),
    ("8301820203820405", .array([1, .array([2, 3]), .array([4, 5])])), ("a0", .map([:])),
    ("a201020304", .map([1: 2, 3: 4])), ("a26161016162820203", .map(["a": 1, "b": .array([2, 3])])),
    ("826161a161626163", .array(["a", .map(["b": "c"])])),
  ]

  @Test("The examples of the RFC are decoded and encoded again to the same bytes", arguments: examples)
  func readsExamples(_ example: (encoding: String, value: CBORValue)) throws {
    let bytes = try #require(Hex.decode(example.encoding))
    #expect(try CBORValue(decoding: bytes) == example.value)
    #expect(example.value.encoded == bytes)
  }

  @Test("The reader of items accepts what the decoder accepts", arguments: examples)
  func readsItems(_ example: (encoding: String, value: CBORValue)) throws {
    let bytes = try #require(Hex.decode(example.encoding))
    var reader = CBORItemReader(bytes, range: bytes.indices)
    var items: [CBORItem] = []
    while !reader.isAtEnd { items.append(try reader.next()) }
    #expect(items.allSatisfy { $0.isShortest })
    if case .tagged(let tag, _) = example.value { #expect(items.first?.content == .tag(tag)) }
  }

  @Test("The reader of items knows every tag of one byte")
  func readsTags() throws {
    for tag in 0..<24 as Range<UInt8> {
      var reader = CBORItemReader([0xC0 | tag, 0x00], range: 0..<2)
      let item = try reader.next()
      #expect(item.content == .tag(UInt64(tag)) && item.head == 1 && item.isShortest)
    }
  }

  @Test("The only accepted encoding of NaN is decoded and encoded")
  func readsNaN() throws {
    guard case .float(let number) = try CBORValue(decoding: [0xF9, 0x7E, 0x00]) else {
      Issue.record("not read as a float")
      return
    }
    #expect(number.isNaN)
    #expect(CBORValue.float(.nan).encoded == [0xF9, 0x7E, 0x00])
  }

  @Test("The first item of several is decoded with its length, as strictly as a single item", arguments: examples)
  func readsFirst(_ example: (encoding: String, value: CBORValue)) throws {
    let bytes = try #require(Hex.decode(example.encoding))
    let found = try CBORValue.first(in: bytes + [0xFF, 0x00])
    #expect(found.value == example.value && found.count == bytes.count)
    // Also from a slice that does not start at index 0.
    #expect(try CBORValue.first(in: ([0xFF] + bytes)[1...]).count == bytes.count)
    for length in 0..<bytes.count { #expect(throws: CBORError.self) { try CBORValue.first(in: bytes[..<length]) } }
    #expect(throws: CBORError.notShortest(offset: 0)) { try CBORValue.first(in: [0x18, 0x17]) }
    #expect(throws: CBORError.tooLong(3, limit: 2)) {
      try CBORValue.first(in: [0, 0, 0], limits: CBORLimits(bytes: 2))
    }
  }

  static let refusals: [(String, CBORError)] = [
    ("", .truncated(offset: 0)),
    // Encodings longer than necessary: numbers, negative numbers, strings, arrays, maps, tags, floats.
    ("1817", .notShortest(offset: 0)), ("1900ff", .notShortest(offset: 0)), ("1a0000ffff", .notShortest(offset: 0)),
    ("1b00000000ffffffff", .notShortest(offset: 0)), ("3800", .notShortest(offset: 0)),
    ("580100", .notShortest(offset: 0)), ("780161", .notShortest(offset: 0)), ("980100", .notShortest(offset: 0)),
    ("b8010000", .notShortest(offset: 0)), ("d80100", .notShortest(offset: 0)),
    ("fa3f800000", .notShortest(offset: 0)), ("fb3ff8000000000000", .notShortest(offset: 0)),
    ("fb47efffffe0000000", .notShortest(offset: 0)), ("f97e01", .notShortest(offset: 0)),
    ("811817", .notShortest(offset: 1)),
    // Indefinite lengths, and a break byte without a start.
    ("5f42010243030405ff", .indefiniteLength(offset: 0)), ("7f6161ff", .indefiniteLength(offset: 0)),
    ("9fff", .indefiniteLength(offset: 0)), ("bfff", .indefiniteLength(offset: 0)),
    ("ff", .indefiniteLength(offset: 0)),
    ("81ff", .indefiniteLength(offset: 1)), ("a1016161ff", .trailingBytes(offset: 4)),
    // A repeated key of any type, adjacent to the first one or not.
    ("a201000100", .duplicateKey(offset: 3)), ("a3616101616202616103", .duplicateKey(offset: 7)),
    ("a2810100810100", .duplicateKey(offset: 4)),
    // Values that RFC 8949 reserves or has not assigned.
    ("1c", .malformed(offset: 0)), ("3d", .malformed(offset: 0)), ("5e", .malformed(offset: 0)),
    ("dc00", .malformed(offset: 0)), ("fe", .malformed(offset: 0)), ("f0", .malformed(offset: 0)),
    ("f818", .malformed(offset: 0)), ("c6", .truncated(offset: 1)), ("d806", .notShortest(offset: 0)),
    ("f8ff", .malformed(offset: 0)), ("8100fc", .trailingBytes(offset: 2)),
    // Text that is not UTF-8: a lone continuation byte, an overlong form, a surrogate, a truncated character, a code
    // point above U+10FFFF.
    ("6180", .invalidText(offset: 0)), ("62c080", .invalidText(offset: 0)), ("63eda080", .invalidText(offset: 0)),
    ("61c3", .invalidText(offset: 0)), ("64f4908080", .invalidText(offset: 0)),
    // Lengths beyond the end of the input. The third one makes `cbor_load` access 2 GB.
    ("4401", .truncated(offset: 0)), ("6461", .truncated(offset: 0)), ("9b0000000010000000", .notShortest(offset: 0)),
    ("9a10000000", .truncated(offset: 0)),
    ("9bffffffffffffffff", .truncated(offset: 0)), ("bb7fffffffffffffff", .truncated(offset: 0)),
    ("5bffffffffffffffff", .truncated(offset: 0)), ("7bffffffffffffffff", .truncated(offset: 0)),
    ("8201", .truncated(offset: 0)), ("a101", .truncated(offset: 0)), ("c1", .truncated(offset: 1)),
    ("0000", .trailingBytes(offset: 1)), ("a000", .trailingBytes(offset: 1)),
  ]

  @Test("An encoding that violates a rule is refused with the rule and the offset", arguments: refusals)
  func refuses(_ example: (encoding: String, error: CBORError)) throws {
    let bytes = try #require(Hex.decode(example.encoding))
    #expect(throws: example.error) { try CBORValue(decoding: bytes) }
  }

  @Test(
    "Floats of every width are accepted if the caller allows them, alone and inside other items",
    arguments: ["f93c00", "fa3f800000", "fb3ff0000000000000", "f97e01", "fa7fc00000", "fb47efffffe0000000"])
  func readsAnyWidth(_ encoding: String) throws {
    let bytes = try #require(Hex.decode(encoding))
    for framed in [bytes, [0x81] + bytes, [0xA1, 0x61, 0x78] + bytes, [0xD8, 0x18] + bytes] {
      #expect(throws: Never.self) { try CBORValue(decoding: framed, floats: .any) }
      #expect(try CBORValue.first(in: framed + [0], floats: .any).count == framed.count)
    }
    if case .float(let number) = try CBORValue(decoding: bytes, floats: .any), !number.isNaN {
      #expect(number == 1 || number == Double(Float.greatestFiniteMagnitude))
    }
  }

  @Test(
    "If floats of any width are allowed, all other rules stay in force",
    arguments: refusals.filter { !["f9", "fa", "fb"].contains($0.0.prefix(2)) })
  func keepsOtherRules(_ example: (encoding: String, error: CBORError)) throws {
    let bytes = try #require(Hex.decode(example.encoding))
    #expect(throws: example.error) { try CBORValue(decoding: bytes, floats: .any) }
  }

  @Test("Keys that look alike but differ in their bytes are different keys")
  func comparesKeysAsBytes() throws {
    // "K" and the Kelvin sign, which compare as equal in Swift strings.
    let map = try CBORValue(decoding: [0xA2, 0x61, 0x4B, 0x01, 0x63, 0xE2, 0x84, 0xAA, 0x02])
    guard case .map(let pairs) = map else {
      Issue.record("not read as a map")
      return
    }
    #expect(pairs["K"] == 1)
    #expect(pairs["\u{212A}"] == 2)
    #expect(pairs["k"] == nil)
  }

  @Test("An input of the maximum length is accepted, one byte more is refused")
  func boundsBytes() throws {
    let limits = CBORLimits(bytes: 10)
    #expect(try CBORValue(decoding: CBORValue.bytes(Array(repeating: 0, count: 9)).encoded, limits: limits) != .null)
    #expect(throws: CBORError.tooLong(11, limit: 10)) {
      try CBORValue(decoding: CBORValue.bytes(Array(repeating: 0, count: 10)).encoded, limits: limits)
    }
  }

  @Test("Nesting to the maximum depth is accepted, one level more is refused", arguments: [0x81, 0xC1] as [UInt8])
  func boundsDepth(_ nesting: UInt8) throws {
    let limits = CBORLimits(depth: 3)
    #expect(try CBORValue(decoding: Array(repeating: nesting, count: 3) + [0], limits: limits) != .null)
    #expect(throws: CBORError.tooDeep(offset: 4)) {
      try CBORValue(decoding: Array(repeating: nesting, count: 4) + [0], limits: limits)
    }
    #expect(throws: CBORError.tooDeep(offset: 9)) { try CBORValue(decoding: Array(repeating: nesting, count: 16384)) }
  }

  @Test("The maximum number of items is accepted, one more is refused")
  func boundsItems() throws {
    let limits = CBORLimits(items: 4)
    #expect(try CBORValue(decoding: [0x83, 0, 0, 0], limits: limits) == .array([0, 0, 0]))
    #expect(throws: CBORError.tooManyItems(limit: 4)) { try CBORValue(decoding: [0x84, 0, 0, 0, 0], limits: limits) }
    #expect(throws: CBORError.tooManyItems(limit: 4)) {
      try CBORValue(decoding: [0xA2, 0, 0, 1, 1], limits: limits)
    }
  }
}
