internal import ByteCoding
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

  /// The most fields that a query may have.
  private static let mostFields = 64
  /// The longest name of a field that is kept, in bytes. The protocols know no longer one.
  private static let longestName = 64

  /// The fields of a query; `nil` if a name occurs twice (RFC 6749, section 3.1), or there are more than 64 fields. A field
  /// whose name is not of ASCII characters, 64 at most, or whose value is not UTF-8, is left out: unknown ones are to be
  /// ignored (section 4.1.2).
  ///
  /// Anybody can write a query. It is split and its names are compared as bytes: comparing a `String` takes time with the
  /// square of its combining marks, and takes different bytes for one name.
  static func decode(_ query: String) -> [String: String]? {
    var fields: [String: String] = [:]
    var names: Set<[UInt8]> = []
    let pairs = query.split(atBytes: UInt8(ascii: "&"), maxSplits: mostFields, omittingEmptySubsequences: true)
    guard pairs.count <= mostFields else { return nil }
    for pair in pairs {
      let parts = pair.split(atBytes: UInt8(ascii: "="), maxSplits: 1)
      guard let name = decodeText(parts[0]) else { continue }
      guard names.insert(Array(name.utf8)).inserted else { return nil }
      guard name.utf8.count <= longestName, name.utf8.allSatisfy({ $0 < 0x80 }) else { continue }
      fields[name] = decodeText(parts.count == 2 ? parts[1] : "")
    }
    return fields
  }

  /// The values of the fields called `name`, of the first 64 fields of a query.
  static func values(of name: String, in query: String) -> [String] {
    query.split(atBytes: UInt8(ascii: "&"), maxSplits: mostFields, omittingEmptySubsequences: true).prefix(mostFields)
      .compactMap { pair in
        let parts = pair.split(atBytes: UInt8(ascii: "="), maxSplits: 1)
        guard let found = decodeText(parts[0]), found.isIdentical(to: name) else { return nil }
        return decodeText(parts.count == 2 ? parts[1] : "")
      }
  }

  private static func decodeText(_ text: Substring) -> String? {
    let bytes = text.utf8.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 }
    return String(decoding: bytes, as: UTF8.self).removingPercentEncoding
  }
}
