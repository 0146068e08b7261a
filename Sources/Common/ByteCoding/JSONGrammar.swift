/// Checks JSON texts strictly against RFC 8259.
///
/// General decoders accept more: other encodings than UTF-8, a trailing comma, and two members of one name, of which
/// decoders choose different ones. A check before such a decoder makes the result unambiguous.
public enum JSONGrammar {
  /// Arrays and objects within each other; a text with more is refused.
  public static let deepest = 64
  /// The maximum number of bytes of a name, after its escapes are decoded.
  public static let longestName = 256

  /// How much a text may have. A text with more is refused, before any of it is decoded.
  public struct Limits: Sendable, Hashable {
    /// The maximum number of members of each object.
    public var members: Int
    /// The maximum number of values in the whole text, arrays and objects included.
    public var values: Int

    /// Creates limits.
    public init(members: Int, values: Int) { (self.members, self.values) = (members, values) }

    /// 1,000 members of an object and any number of values: for texts whose size is limited.
    public static let standard = Limits(members: 1000, values: .max)
    /// 64 members of an object and 256 values: for what a client sends before it has proved anything.
    public static let request = Limits(members: 64, values: 256)
    /// No limit: for documents from trusted places, whose size is limited.
    public static let none = Limits(members: .max, values: .max)
  }

  /// Whether `bytes` are one JSON text in UTF-8 without a byte order mark, whose objects have each name once, within
  /// `limits`.
  ///
  /// Names are compared as bytes after their escapes are decoded: `a` and `\u0061` are one name. They are ASCII and
  /// have at most `longestName` bytes. Decoders keep names as `String`, whose hash and equality normalize: for names
  /// outside ASCII that takes time with the square of the number of combining marks, and makes one name of two (`K` and
  /// the Kelvin sign). No format that is read here has such names.
  public static func accepts(_ bytes: [UInt8], within limits: Limits = .standard) -> Bool {
    // Decoding replaces malformed UTF-8 and so changes the text. `String(validating:as:)` is newer than the supported
    // platforms.
    guard String(decoding: bytes, as: UTF8.self).utf8.elementsEqual(bytes) else { return false }
    var reader = Reader(bytes: bytes, limits: limits)
    return reader.readText()
  }
}

/// Reads one text from its first byte to its last. Each function moves `index` to the byte after the part that it has
/// read.
private struct Reader {
  let bytes: [UInt8]
  let limits: JSONGrammar.Limits
  private var index = 0
  private var values = 0
  /// The arrays and objects that are not closed yet, each with the names that it has so far; `nil` for an array.
  ///
  /// The seed of the hashes differs in each process, so no sender can choose names with equal hashes.
  private var open: [Set<[UInt8]>?] = []

  init(bytes: [UInt8], limits: JSONGrammar.Limits) { (self.bytes, self.limits) = (bytes, limits) }

  private var next: UInt8? { index < bytes.count ? bytes[index] : nil }

  private mutating func skipSpace() {
    while let byte = next, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D { index += 1 }
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
      guard !opens || open.count < JSONGrammar.deepest, values < limits.values else { return false }
      values += 1
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
      case UInt8(ascii: "\""): return skipString()
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
    guard next == UInt8(ascii: "\""), open[open.count - 1].map({ $0.count < limits.members }) == true,
      let name = readNameText(), open[open.count - 1]?.insert(name).inserted == true
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

  /// Reads a name from its quotation mark on and returns its bytes; `nil` if it is malformed, too long or not ASCII.
  private mutating func readNameText() -> [UInt8]? {
    index += 1
    var name: [UInt8] = []
    while let byte = next, name.count <= JSONGrammar.longestName {
      index += 1
      switch byte {
      case UInt8(ascii: "\""): return name
      case UInt8(ascii: "\\"):
        guard let scalar = JSONEscape.scalar(in: bytes, at: &index), scalar.isASCII else { return nil }
        name.append(UInt8(truncatingIfNeeded: scalar.value))
      case 0..<0x20, 0x80...: return nil
      default: name.append(byte)
      }
    }
    return nil
  }

  /// Reads a string that is a value, from its quotation mark on. Returns `false` if it is malformed.
  private mutating func skipString() -> Bool {
    index += 1
    while let byte = next {
      index += 1
      switch byte {
      case UInt8(ascii: "\""): return true
      case UInt8(ascii: "\\"): guard JSONEscape.scalar(in: bytes, at: &index) != nil else { return false }
      case 0..<0x20: return false
      default: break
      }
    }
    return false
  }
}
