import CBOR

extension FuzzTarget {
  static let cbor = FuzzTarget(
    name: "cbor", words: ["\u{18}", "\u{19}", "\u{1A}", "\u{1B}"], seeds: { CBORInvariants.seeds },
    accepts: CBORInvariants.check)
}

/// An accepted item has one encoding, except for the order of a map's pairs.
enum CBORInvariants {
  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    let lenient = try? CBORValue(decoding: input, floats: .any)
    guard let value = try? CBORValue(decoding: input) else {
      try require(lenient.map(holdsFloat) ?? true, "an item that only the lenient decoder accepts contains a float")
      return false
    }
    // NaN does not equal itself, but its encoding does.
    try require(lenient?.encoded == value.encoded, "the strict and the lenient decoder give the same value")
    try require(inOrder(value) == input, "an accepted item is written again unchanged, with its pairs in order")
    let canonical = value.encoded
    try require(canonical.count == input.count, "sorting keeps the length")
    try require((try? CBORValue(decoding: canonical))?.encoded == canonical, "a written item is accepted and sorted")
    try require((try? CBORValue(decoding: input + [0])) == nil, "no byte may follow an item")
    try require((try? CBORValue(decoding: input.dropLast())) == nil, "no prefix of an item is an item")
    let strict = try? CBORValue(decoding: input, limits: CBORLimits(bytes: 256, depth: 3, items: 16))
    try require(strict.map { $0.encoded == canonical } ?? true, "limits refuse items and do not change them")
    return true
  }

  /// Returns the encoding of `value` with the pairs of maps in their original order. Independent of the library's
  /// encoder.
  static func inOrder(_ value: CBORValue) -> [UInt8] {
    switch value {
    case .unsigned(let number): head(0, number)
    case .negative(let number): head(1, number)
    case .bytes(let bytes): head(2, UInt64(bytes.count)) + bytes
    case .text(let text): head(3, UInt64(text.utf8.count)) + text.utf8
    case .array(let values): head(4, UInt64(values.count)) + values.flatMap(inOrder)
    case .map(let map): head(5, UInt64(map.count)) + map.pairs.flatMap { inOrder($0.key) + inOrder($0.value) }
    case .tagged(let tag, let value): head(6, tag) + inOrder(value)
    case .boolean(let isTrue): [isTrue ? 0xF5 : 0xF4]
    case .null: [0xF6]
    case .undefined: [0xF7]
    case .float(let number): float(number)
    }
  }

  /// Reports whether `value` is or contains a float, whose width the lenient decoder does not check.
  static func holdsFloat(_ value: CBORValue) -> Bool {
    switch value {
    case .float: true
    case .array(let values): values.contains(where: holdsFloat)
    case .map(let map): map.pairs.contains { holdsFloat($0.key) || holdsFloat($0.value) }
    case .tagged(_, let value): holdsFloat(value)
    case .unsigned, .negative, .bytes, .text, .boolean, .null, .undefined: false
    }
  }

  private static func head(_ major: UInt8, _ argument: UInt64) -> [UInt8] {
    let bytes = (0..<8).map { UInt8(truncatingIfNeeded: argument >> (56 - 8 * $0)) }
    switch argument {
    case ..<24: return [major << 5 | UInt8(argument)]
    case ..<0x100: return [major << 5 | 24] + bytes.suffix(1)
    case ..<0x1_0000: return [major << 5 | 25] + bytes.suffix(2)
    case ..<0x1_0000_0000: return [major << 5 | 26] + bytes.suffix(4)
    default: return [major << 5 | 27] + bytes
    }
  }

  /// The shortest width that Swift supports on every platform. The differential run compares half precision.
  private static func float(_ number: Double) -> [UInt8] { CBORValue.float(number).encoded }

  static var seeds: [[UInt8]] {
    let scalars: [CBORValue] = [
      0, 23, 24, 255, 256, 65536, .unsigned(.max), -1, .negative(.max), .bytes([]), .bytes([1, 2, 3]), "", "a\u{FC}",
      .float(0), .float(-0.0), .float(1.5), .float(.infinity), .float(.nan), .float(1e10), .float(1.1), .boolean(true),
      .boolean(false), .null, .undefined,
    ]
    let map = CBORMap(scalars.prefix(13).map { CBORMap.Pair($0, .array([$0])) })
    let nested = (0..<6).reduce(CBORValue.null) { value, _ in .array([value]) }
    let refused: [[UInt8]] = [
      [0x18, 0x01], [0x9F, 0x00, 0xFF], [0x5F, 0x41, 0x00, 0xFF], [0xBF, 0xFF], [0xA2, 0x00, 0x00, 0x00, 0x00],
      [0x62, 0xC3, 0x28], [0xF8, 0x20], [0xFA, 0x3F, 0xC0, 0x00, 0x00], [0x1C],
      [0x9B] + [UInt8](repeating: 0xFF, count: 8),
    ]
    let taken: [CBORValue] =
      scalars + [.array(scalars), .map(map), nested, .tagged(55799, 1), .tagged(0, "2026-01-01T00:00:00Z")]
    return taken.map(\.encoded) + refused
  }
}
