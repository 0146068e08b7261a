/// JSON strings (RFC 8259 section 7).
public enum JSONText {
  /// `text` in quotation marks, on one line: quotation marks, backslashes and control characters are escaped, and so are
  /// U+2028 and U+2029, which some readers take for ends of lines.
  public static func quote(_ text: some StringProtocol) -> String {
    var result = "\""
    for scalar in text.unicodeScalars { append(scalar, to: &result) }
    return result + "\""
  }

  private static func append(_ scalar: Unicode.Scalar, to result: inout String) {
    switch scalar {
    case "\"": result += "\\\""
    case "\\": result += "\\\\"
    case "\n": result += "\\n"
    case "\r": result += "\\r"
    case "\t": result += "\\t"
    case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}", "\u{2028}", "\u{2029}":
      let digits = String(scalar.value, radix: 16)
      result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    default: result.unicodeScalars.append(scalar)
    }
  }

  /// An object with string values alone, its members in the given order.
  public static func object(_ members: KeyValuePairs<String, String>) -> String {
    "{" + members.map { quote($0.key) + ":" + quote($0.value) }.joined(separator: ",") + "}"
  }
}
