/// Checks JSON texts strictly against RFC 8259.
///
/// General decoders accept more: other encodings than UTF-8, a trailing comma, and two members of one name, of which
/// decoders choose different ones. A check before such a decoder makes the result unambiguous.
public enum JSONGrammar {
  /// Arrays and objects within each other; a text with more is refused.
  public static let deepest = 64

  /// Whether `bytes` are one JSON text in UTF-8 without a byte order mark, whose objects have each name once.
  ///
  /// Names are compared after their escapes are decoded, as Swift compares strings: by canonical equivalence.
  public static func accepts(_ bytes: [UInt8]) -> Bool {
    // Decoding replaces malformed UTF-8 and so changes the text. `String(validating:as:)` is newer than the supported
    // platforms.
    guard String(decoding: bytes, as: UTF8.self).utf8.elementsEqual(bytes) else { return false }
    var reader = Reader(bytes: bytes)
    return reader.readText()
  }
}

/// Reads one text from its first byte to its last. Each function moves `index` to the byte after the part that it has
/// read.
private struct Reader {
  let bytes: [UInt8]
  private var index = 0
  /// The arrays and objects that are not closed yet, each with the names that it has so far; `nil` for an array.
  private var open: [Set<String>?] = []

  init(bytes: [UInt8]) { self.bytes = bytes }

  private var next: UInt8? { index < bytes.count ? bytes[index] : nil }

  private mutating func skipSpace() {
    while let byte = next, [0x20, 0x09, 0x0A, 0x0D].contains(byte) { index += 1 }
  }

  private mutating func take(_ byte: UInt8) -> Bool {
    guard next == byte else { return false }
    index += 1
    return true
  }

  private mutating func take(_ word: StaticString) -> Bool {
    for position in 0..<word.utf8CodeUnitCount where !take(word.utf8Start[position]) { return false }
    return true
  }

  mutating func readText() -> Bool {
    skipSpace()
    guard readValue() else { return false }
    // There is no recursion, so deep nesting needs no stack.
    while !open.isEmpty {
      let isObject = open[open.count - 1] != nil
      skipSpace()
      if take(isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) {
        open.removeLast()
        continue
      }
      guard take(UInt8(ascii: ",")), !isObject || readName() else { return false }
      skipSpace()
      guard readValue() else { return false }
    }
    skipSpace()
    return index == bytes.count
  }

  /// Reads a value. Of an array or object with elements, reads only up to and including its first value.
  private mutating func readValue() -> Bool {
    while true {
      let opens = next == UInt8(ascii: "[") || next == UInt8(ascii: "{")
      guard !opens || open.count < JSONGrammar.deepest else { return false }
      switch next {
      case UInt8(ascii: "["):
        index += 1
        skipSpace()
        if take(UInt8(ascii: "]")) { return true }
        open.append(nil)
      case UInt8(ascii: "{"):
        index += 1
        skipSpace()
        if take(UInt8(ascii: "}")) { return true }
        open.append([])
        guard readName() else { return false }
      case UInt8(ascii: "\""): return readString() != nil
      case UInt8(ascii: "t"): return take("true")
      case UInt8(ascii: "f"): return take("false")
      case UInt8(ascii: "n"): return take("null")
      default: return readNumber()
      }
    }
  }

  /// Reads a member's name and its colon, and keeps the name for the innermost object.
  private mutating func readName() -> Bool {
    skipSpace()
    guard next == UInt8(ascii: "\""), let name = readString(),
      open[open.count - 1]?.insert(name).inserted == true
    else { return false }
    skipSpace()
    guard take(UInt8(ascii: ":")) else { return false }
    skipSpace()
    return true
  }

  private mutating func readNumber() -> Bool {
    _ = take(UInt8(ascii: "-"))
    if !take(UInt8(ascii: "0")), !readDigits() { return false }
    if take(UInt8(ascii: ".")), !readDigits() { return false }
    if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
      if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
      return readDigits()
    }
    return true
  }

  private mutating func readDigits() -> Bool {
    let start = index
    while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { index += 1 }
    return index > start
  }

  /// Reads a string from its quotation mark on and returns its content; `nil` if it is malformed.
  private mutating func readString() -> String? {
    index += 1
    var text = ""
    var start = index
    while let byte = next {
      switch byte {
      case UInt8(ascii: "\""):
        text += String(decoding: bytes[start..<index], as: UTF8.self)
        index += 1
        return text
      case UInt8(ascii: "\\"):
        text += String(decoding: bytes[start..<index], as: UTF8.self)
        index += 1
        guard let scalar = readEscape() else { return nil }
        text.unicodeScalars.append(scalar)
        start = index
      case 0..<0x20: return nil
      default: index += 1
      }
    }
    return nil
  }

  /// Reads an escape sequence after its backslash. Half of a surrogate pair is malformed.
  private mutating func readEscape() -> Unicode.Scalar? {
    guard let byte = next else { return nil }
    index += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
    case UInt8(ascii: "b"): return "\u{08}"
    case UInt8(ascii: "f"): return "\u{0C}"
    case UInt8(ascii: "n"): return "\n"
    case UInt8(ascii: "r"): return "\r"
    case UInt8(ascii: "t"): return "\t"
    case UInt8(ascii: "u"): break
    default: return nil
    }
    guard let unit = readUnit() else { return nil }
    guard (0xD800...0xDBFF).contains(unit) else { return Unicode.Scalar(unit) }
    guard take("\\u"), let low = readUnit(), (0xDC00...0xDFFF).contains(low) else { return nil }
    return Unicode.Scalar(0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00))
  }

  /// Reads four hexadecimal digits.
  private mutating func readUnit() -> UInt32? {
    guard index + 4 <= bytes.count else { return nil }
    var unit: UInt32 = 0
    for byte in bytes[index..<index + 4] {
      guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue else { return nil }
      unit = unit << 4 | UInt32(digit)
    }
    index += 4
    return unit
  }
}
