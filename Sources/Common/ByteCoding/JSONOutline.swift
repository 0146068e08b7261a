/// The parts of a JSON text that say how large a decoder's result will be, without a judgement of whether it is JSON.
///
/// A decoder makes many objects of few bytes, and keeps names in dictionaries of `String`, whose hash takes time with the
/// square of a name's combining marks. So the parts are counted and bounded first, and the decoder decides afterwards. It
/// reads a text once, from front to back, and never traps.
public struct JSONOutline: Sequence, IteratorProtocol {
  /// One part. Ranges are those of the text between two quotation marks, as it is written.
  public enum Part: Sendable, Hashable {
    /// An array or an object begins.
    case opening
    /// An array or an object ends.
    case closing
    /// Another element or member follows.
    case comma
    /// A text before a colon.
    case name(Range<Int>)
    /// Any other text.
    case text(Range<Int>)
  }

  private let bytes: [UInt8]
  private var index = 0

  /// Reads `bytes`, from the first.
  public init(_ bytes: [UInt8]) { self.bytes = bytes }

  public mutating func next() -> Part? {
    while index < bytes.count {
      let byte = bytes[index]
      index += 1
      switch byte {
      case UInt8(ascii: "["), UInt8(ascii: "{"): return .opening
      case UInt8(ascii: "]"), UInt8(ascii: "}"): return .closing
      case UInt8(ascii: ","): return .comma
      case UInt8(ascii: "\""):
        let text = takeText()
        while index < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[index]) { index += 1 }
        guard index < bytes.count, bytes[index] == UInt8(ascii: ":") else { return .text(text) }
        index += 1
        return .name(text)
      default: continue
      }
    }
    return nil
  }

  /// Takes the text whose first quotation mark was read, and its last one. A text that does not end has all that is left.
  private mutating func takeText() -> Range<Int> {
    let start = index
    while index < bytes.count, bytes[index] != UInt8(ascii: "\"") {
      index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
    }
    index = Swift.min(index, bytes.count)
    defer { index = Swift.min(index + 1, bytes.count) }
    return start..<index
  }

  /// Whether no object of `bytes` has a name twice, with escapes decoded: readers take different ones of its values.
  ///
  /// Names are compared as bytes. Time and memory grow with the length of the text, whatever names it has.
  public static func hasNamesOnce(_ bytes: [UInt8]) -> Bool {
    // Those of the objects that are not closed yet; an array has none.
    var open: [JSONNames] = []
    for part in JSONOutline(bytes) {
      switch part {
      case .opening: open.append(JSONNames())
      case .closing: _ = open.popLast()
      case .name(let range) where !open.isEmpty:
        guard open[open.count - 1].insert(bytes[range]) else { return false }
      case .name, .text, .comma: continue
      }
    }
    return true
  }
}

/// The names of one object, to find one that it has twice.
///
/// It keeps hashes of 64 bits, under a key that is another one in each process: a sender cannot choose two names of one
/// hash, and a large object takes little memory.
public struct JSONNames: Sendable {
  private var hashes: Set<Int> = []

  public init() {}

  /// Inserts a name, as it is written between its quotation marks. Returns `false` if the object has it already.
  public mutating func insert(_ written: ArraySlice<UInt8>) -> Bool {
    var hasher = Hasher()
    if written.contains(UInt8(ascii: "\\")) {
      Self.decoded(Array(written)).withUnsafeBytes { hasher.combine(bytes: $0) }
    } else {
      written.withUnsafeBytes { hasher.combine(bytes: $0) }
    }
    return hashes.insert(hasher.finalize()).inserted
  }

  /// The bytes of a name whose escapes are decoded as far as they are well-formed.
  private static func decoded(_ written: [UInt8]) -> [UInt8] {
    var name: [UInt8] = []
    var index = 0
    while index < written.count {
      let byte = written[index]
      index += 1
      var end = index
      guard byte == UInt8(ascii: "\\"), let scalar = JSONEscape.scalar(in: written, at: &end) else {
        name.append(byte)
        continue
      }
      index = end
      name += UTF8.encode(scalar).map { Array($0) } ?? []
    }
    return name
  }
}

/// The escape sequences of JSON (RFC 8259 section 7).
enum JSONEscape {
  /// Reads the sequence after its backslash, from `index` on, and moves `index` behind it.
  ///
  /// - Returns: `nil` for any other sequence, such as half of a surrogate pair. Then `index` may have moved.
  static func scalar(in bytes: [UInt8], at index: inout Int) -> Unicode.Scalar? {
    guard index < bytes.count else { return nil }
    let byte = bytes[index]
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
    guard let unit = unit(in: bytes, at: &index) else { return nil }
    guard (0xD800...0xDBFF).contains(unit) else { return Unicode.Scalar(unit) }
    guard bytes[index...].starts(with: "\\u".utf8) else { return nil }
    index += 2
    guard let low = self.unit(in: bytes, at: &index), (0xDC00...0xDFFF).contains(low) else { return nil }
    return Unicode.Scalar(0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00))
  }

  /// Reads four hexadecimal digits.
  private static func unit(in bytes: [UInt8], at index: inout Int) -> UInt32? {
    guard index + 4 <= bytes.count else { return nil }
    var unit: UInt32 = 0
    for byte in bytes[index..<index + 4] {
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): unit = unit << 4 | UInt32(byte - UInt8(ascii: "0"))
      case UInt8(ascii: "a")...UInt8(ascii: "f"): unit = unit << 4 | UInt32(byte - UInt8(ascii: "a") + 10)
      case UInt8(ascii: "A")...UInt8(ascii: "F"): unit = unit << 4 | UInt32(byte - UInt8(ascii: "A") + 10)
      default: return nil
      }
    }
    index += 4
    return unit
  }
}
