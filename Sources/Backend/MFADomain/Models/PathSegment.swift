/// A part of a path between two slashes, which some operations of REST take a name from.
enum PathSegment {
  /// The rule for names that are new.
  static let rule = "is not . or .., and has no / or \\ and no % before two hexadecimal digits"

  /// Whether a path can have `text`, escaped. As a part of a path, `.` and `..` mean another path; proxies refuse an escaped
  /// slash or backslash, and an escape of an escape, since the next one may read them in another way.
  static func carries(_ text: String) -> Bool {
    guard text != ".", text != ".." else { return false }
    let bytes = Array(text.utf8)
    return !bytes.indices.contains { index in
      switch bytes[index] {
      case UInt8(ascii: "/"), UInt8(ascii: "\\"): true
      case UInt8(ascii: "%"):
        bytes[index...].dropFirst().prefix(2).count(where: { UnicodeScalar($0).properties.isASCIIHexDigit }) == 2
      default: false
      }
    }
  }
}
