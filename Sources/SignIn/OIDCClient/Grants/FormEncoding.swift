internal import Foundation

/// `application/x-www-form-urlencoded`, as bodies and queries have it (RFC 6749, appendix B).
enum FormEncoding {
  /// The fields in their order.
  static func encode(_ fields: [(String, String)]) -> String {
    fields.map { "\(encode($0.0))=\(encode($0.1))" }.joined(separator: "&")
  }

  /// Every byte but those that need no escape in any of the two places.
  static func encode(_ text: String) -> String {
    text.utf8.reduce(into: "") { result, byte in
      switch UnicodeScalar(byte) {
      case "a"..."z", "A"..."Z", "0"..."9", "-", ".", "_", "~": result.unicodeScalars.append(UnicodeScalar(byte))
      default:
        result += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
      }
    }
  }

  /// The fields of a query; `nil` if a name occurs twice (RFC 6749, section 3.1) or an escape is malformed.
  static func decode(_ query: String) -> [String: String]? {
    var fields: [String: String] = [:]
    for pair in query.split(separator: "&") {
      let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = decodeText(parts[0]), let value = decodeText(parts.count == 2 ? parts[1] : ""),
        fields.updateValue(value, forKey: name) == nil
      else { return nil }
    }
    return fields
  }

  private static func decodeText(_ text: Substring) -> String? {
    text.replacing("+", with: " ").removingPercentEncoding
  }
}
