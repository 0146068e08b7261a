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

  /// Appends `prefix` and `name` in quotation marks. Both are ASCII without quotation marks, backslashes and control
  /// characters, which is not checked again.
  public static func append(_ name: StaticString, after prefix: StaticString, to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "\""))
    if prefix.utf8CodeUnitCount > 0 {
      bytes.append(contentsOf: UnsafeBufferPointer(start: prefix.utf8Start, count: prefix.utf8CodeUnitCount))
    }
    bytes.append(contentsOf: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
    bytes.append(UInt8(ascii: "\""))
  }

  /// Appends a member after others: a comma, `name`, a colon and `text` in quotation marks. The name is as in
  /// `append(_:after:to:)`.
  public static func appendMember(_ name: StaticString, _ text: String, to bytes: inout [UInt8]) {
    var text = text
    text.withUTF8 { text in
      guard isPlain(text) else {
        bytes.append(UInt8(ascii: ","))
        append(name, after: "", to: &bytes)
        bytes.append(contentsOf: [UInt8(ascii: ":"), UInt8(ascii: "\"")])
        appendEscaped(text, to: &bytes)
        bytes.append(UInt8(ascii: "\""))
        return
      }
      bytes.append(addingCapacity: name.utf8CodeUnitCount + text.count + 6) { line in
        line.append(UInt8(ascii: ","))
        line.append(UInt8(ascii: "\""))
        line.append(name)
        line.append(UInt8(ascii: "\""))
        line.append(UInt8(ascii: ":"))
        line.append(UInt8(ascii: "\""))
        line.append(text)
        line.append(UInt8(ascii: "\""))
      }
    }
  }

  /// The same with a number.
  public static func appendMember(_ name: StaticString, _ number: Int64, to bytes: inout [UInt8]) {
    bytes.append(addingCapacity: name.utf8CodeUnitCount + 4) { line in
      line.append(UInt8(ascii: ","))
      line.append(UInt8(ascii: "\""))
      line.append(name)
      line.append(UInt8(ascii: "\""))
      line.append(UInt8(ascii: ":"))
    }
    append(number, to: &bytes)
  }

  /// Removes a string from the beginning of `bytes`, which `append` wrote, and returns its text; `nil` if they begin
  /// otherwise.
  public static func takeString(from bytes: inout ArraySlice<UInt8>) -> String? {
    guard bytes.first == UInt8(ascii: "\"") else { return nil }
    var text: [UInt8] = []
    var rest = bytes.dropFirst()
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "\""):
        bytes = rest
        return String(decoding: text, as: UTF8.self)
      case UInt8(ascii: "\\"):
        guard let scalar = takeEscape(from: &rest) else { return nil }
        text += String(scalar).utf8
      default: text.append(byte)
      }
    }
    return nil
  }

  /// Removes the rest of an escape sequence after its backslash.
  private static func takeEscape(from bytes: inout ArraySlice<UInt8>) -> Unicode.Scalar? {
    switch bytes.popFirst().map(Unicode.Scalar.init) {
    case "n": return "\n"
    case "r": return "\r"
    case "t": return "\t"
    case "u":
      let digits = String(decoding: bytes.prefix(4), as: UTF8.self)
      bytes = bytes.dropFirst(4)
      return UInt32(digits, radix: 16).flatMap(Unicode.Scalar.init)
    case let character: return character
    }
  }

  /// Appends `number` in decimal digits.
  public static func append(_ number: Int64, to bytes: inout [UInt8]) {
    if number < 0 { bytes.append(UInt8(ascii: "-")) }
    DecimalDigits.append(number.magnitude, to: &bytes)
  }

  /// Returns an object whose values are strings, with its members in the given order.
  public static func object(_ members: KeyValuePairs<String, String>) -> String {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(256)
    for (name, value) in members {
      bytes.append(UInt8(ascii: bytes.isEmpty ? "{" : ","))
      append(name, to: &bytes)
      bytes.append(UInt8(ascii: ":"))
      append(value, to: &bytes)
    }
    if bytes.isEmpty { bytes.append(UInt8(ascii: "{")) }
    bytes.append(UInt8(ascii: "}"))
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Returns whether `utf8` is printable ASCII without a character to escape, as almost every text is.
  private static func isPlain(_ utf8: UnsafeBufferPointer<UInt8>) -> Bool {
    var start = 0
    while start + 8 <= utf8.count {
      guard isPlain(EightBytes(utf8, at: start)) else { return false }
      start += 8
    }
    guard start < utf8.count else { return true }
    // The last eight bytes, some of which are known.
    if utf8.count >= 8 { return isPlain(EightBytes(utf8, at: utf8.count - 8)) }
    return utf8.allSatisfy(isPlain)
  }

  @inline(__always)
  private static func isPlain(_ bytes: EightBytes) -> Bool {
    bytes.isNotASCII | bytes.isLess(than: 0x20) | bytes.isEqual(to: 0x7F) | bytes.isEqual(to: UInt8(ascii: "\""))
      | bytes.isEqual(to: UInt8(ascii: "\\")) == 0
  }

  @inline(__always)
  private static func isPlain(_ byte: UInt8) -> Bool {
    byte >= 0x20 && byte < 0x7F && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
  }

  /// Copies whole runs, since most text contains no character to escape.
  private static func appendEscaped(_ utf8: UnsafeBufferPointer<UInt8>, to bytes: inout [UInt8]) {
    if isPlain(utf8) {
      bytes.append(contentsOf: utf8)
      return
    }
    var runStart = 0
    var index = 0
    while index < utf8.count {
      let byte = utf8[index]
      if isPlain(byte) {
        index += 1
        continue
      }
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

  /// Returns the character at `index` and its length if it must be escaped. `utf8` is well-formed, and the character is
  /// no printable ASCII but `"` or `\`.
  private static func escaped(at index: Int, in utf8: UnsafeBufferPointer<UInt8>) -> (scalar: UInt32, length: Int)? {
    switch utf8[index] {
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
