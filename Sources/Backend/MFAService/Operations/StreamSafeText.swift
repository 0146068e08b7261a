/// The stream-safe text format of Unicode (UAX #15, section 13): at most 30 combining marks in a row.
///
/// Comparing, hashing and mapping a `String` puts the marks after a character in order, and the time for that grows
/// with the square of their number: a name of some ten thousand marks costs seconds. No language needs more than a few.
enum StreamSafeText {
  /// The most combining marks in a row.
  static let mostMarks = 30

  /// Whether no text in the JSON of `bytes` has more marks in a row, as bytes or as escapes. The JSON may be malformed.
  static func accepts(json bytes: [UInt8]) -> Bool {
    bytes.withUnsafeBufferPointer { bytes in
      var (index, marks) = (0, 0)
      while index < bytes.count {
        if bytes[index] < 0x80, bytes[index] != UInt8(ascii: "\\") {
          marks = 0
          index += 1
          continue
        }
        let (value, length) = bytes[index] < 0x80 ? escape(in: bytes, at: index) : sequence(in: bytes, at: index)
        index += length
        let count = value.map(Self.marks) ?? 0
        marks = count == 0 ? 0 : marks + count
        if marks > mostMarks { return false }
      }
      return true
    }
  }

  /// The number of marks that the character with this value is decomposed to if it is a mark; otherwise 0.
  private static func marks(of value: UInt32) -> Int {
    switch value {
    // Vowel signs of Tibetan, which have the class of a letter and are decomposed to two marks.
    case 0x0F73, 0x0F75, 0x0F81: 2
    default: Unicode.Scalar(value).map { $0.properties.canonicalCombiningClass != .notReordered } == true ? 1 : 0
    }
  }

  /// The character of the escape at `index`, and its length; no character for an escape of one letter.
  private static func escape(in bytes: UnsafeBufferPointer<UInt8>, at index: Int) -> (UInt32?, length: Int) {
    guard let first = unit(in: bytes, at: index) else { return (nil, 2) }
    guard 0xD800..<0xDC00 ~= first, let second = unit(in: bytes, at: index + 6), 0xDC00..<0xE000 ~= second else {
      return (first, 6)
    }
    return (0x10000 + (first - 0xD800) << 10 + (second - 0xDC00), 12)
  }

  /// The code unit of `\uXXXX` at `index`.
  private static func unit(in bytes: UnsafeBufferPointer<UInt8>, at index: Int) -> UInt32? {
    guard index + 6 <= bytes.count, bytes[index] == UInt8(ascii: "\\"), bytes[index + 1] == UInt8(ascii: "u") else {
      return nil
    }
    var value: UInt32 = 0
    for byte in bytes[(index + 2)..<(index + 6)] {
      guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue else { return nil }
      value = value << 4 | UInt32(digit)
    }
    return value
  }

  /// The character of the UTF-8 sequence at `index`, and its length; none for a malformed one.
  private static func sequence(in bytes: UnsafeBufferPointer<UInt8>, at index: Int) -> (UInt32?, length: Int) {
    let first = bytes[index]
    let length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2
    guard first >= 0xC0, index + length <= bytes.count else { return (nil, 1) }
    var value = UInt32(first) & (0xFF >> UInt32(length + 1))
    for byte in bytes[(index + 1)..<(index + length)] {
      guard byte & 0xC0 == 0x80 else { return (nil, 1) }
      value = value << 6 | UInt32(byte & 0x3F)
    }
    return (value, length)
  }
}
