/// JSON strings and numbers (RFC 8259 sections 6 and 7).
public enum JSONText {
  /// Returns `text` in quotation marks, on one line. Quotation marks, backslashes and control characters are escaped,
  /// and so are U+2028 and U+2029, which some readers treat as ends of lines.
  public static func quote(_ text: String) -> String {
    var bytes: [UInt8] = []
    append(text, to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Appends the result of `quote` to `bytes`, as UTF-8.
  public static func append(_ text: String, to bytes: inout [UInt8]) {
    var text = text
    bytes.append(UInt8(ascii: "\""))
    text.withUTF8 { appendEscaped($0, to: &bytes) }
    bytes.append(UInt8(ascii: "\""))
  }

  /// Appends `number` in decimal digits.
  public static func append(_ number: Int64, to bytes: inout [UInt8]) {
    if number < 0 { bytes.append(UInt8(ascii: "-")) }
    DecimalDigits.append(number.magnitude, width: 1, to: &bytes)
  }

  /// Returns an object whose values are strings, with its members in the given order.
  public static func object(_ members: KeyValuePairs<String, String>) -> String {
    "{" + members.map { quote($0.key) + ":" + quote($0.value) }.joined(separator: ",") + "}"
  }

  /// Copies whole runs, since most text contains no character to escape.
  private static func appendEscaped(_ utf8: UnsafeBufferPointer<UInt8>, to bytes: inout [UInt8]) {
    var runStart = 0
    var index = 0
    while index < utf8.count {
      guard let (scalar, length) = escaped(at: index, in: utf8) else {
        index += 1
        continue
      }
      bytes.append(contentsOf: UnsafeBufferPointer(rebasing: utf8[runStart..<index]))
      bytes += escape(scalar).utf8
      index += length
      runStart = index
    }
    bytes.append(contentsOf: UnsafeBufferPointer(rebasing: utf8[runStart...]))
  }

  /// Returns the character at `index` and its length if it must be escaped. `utf8` is well-formed.
  private static func escaped(at index: Int, in utf8: UnsafeBufferPointer<UInt8>) -> (scalar: UInt32, length: Int)? {
    switch utf8[index] {
    case 0x20, 0x21, 0x23...0x5B, 0x5D...0x7E: nil
    case 0...0x7F: (UInt32(utf8[index]), 1)
    // U+0080 to U+009F.
    case 0xC2 where index + 1 < utf8.count && utf8[index + 1] < 0xA0: (UInt32(utf8[index + 1]), 2)
    // U+2028 and U+2029.
    case 0xE2 where index + 2 < utf8.count && utf8[index + 1] == 0x80 && utf8[index + 2] & 0xFE == 0xA8:
      (0x2000 | UInt32(utf8[index + 2] & 0x3F), 3)
    default: nil
    }
  }

  private static func escape(_ scalar: UInt32) -> String {
    switch scalar {
    case 0x22: return "\\\""
    case 0x5C: return "\\\\"
    case 0x0A: return "\\n"
    case 0x0D: return "\\r"
    case 0x09: return "\\t"
    default:
      let digits = String(scalar, radix: 16)
      return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    }
  }
}
