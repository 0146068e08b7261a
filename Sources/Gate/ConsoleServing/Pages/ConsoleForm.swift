internal import ByteCoding

/// The fields of a query or of a posted form (application/x-www-form-urlencoded).
public struct ConsoleForm: Sendable {
  /// The maximum number of fields.
  static let mostFields = 32
  /// The maximum bytes of a name, which is a key: hashing a long one with combining marks takes time with their square.
  static let mostNameBytes = 32
  /// The maximum bytes of a value.
  static let mostBytes = 512

  private let values: [String: String]

  /// Creates an empty form.
  public init() { values = [:] }

  /// Returns `nil` for more fields than allowed, repeated fields, names and values that are too long, and bytes that are not UTF-8.
  ///
  /// - Parameter mostBytes: The maximum bytes of a value.
  init?(_ text: some Sequence<UInt8>, mostBytes: Int = Self.mostBytes) {
    var values: [String: String] = [:]
    let parts = Array(text).split(separator: UInt8(ascii: "&"))
    guard parts.count <= Self.mostFields else { return nil }
    for part in parts {
      let halves = part.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = Self.decoded(halves[0]), let value = Self.decoded(halves.count == 2 ? halves[1] : []),
        name.utf8.count <= Self.mostNameBytes, value.utf8.count <= mostBytes,
        values.updateValue(value, forKey: name) == nil
      else { return nil }
    }
    self.values = values
  }

  /// Returns the value of the field `name` without spaces around it; `nil` if it is absent or empty.
  public subscript(name: String) -> String? {
    guard let value = values[name] else { return nil }
    let start = value.firstIndex { !$0.isWhitespace } ?? value.endIndex
    let end = value.lastIndex { !$0.isWhitespace }.map(value.index(after:)) ?? start
    return start < end ? String(value[start..<end]) : nil
  }

  private static func decoded(_ bytes: ArraySlice<UInt8>) -> String? {
    var decoded: [UInt8] = []
    var rest = bytes
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "+"): decoded.append(UInt8(ascii: " "))
      case UInt8(ascii: "%"):
        guard let high = rest.popFirst().flatMap(digit), let low = rest.popFirst().flatMap(digit) else { return nil }
        decoded.append(high << 4 | low)
      default: decoded.append(byte)
      }
    }
    return String(validating: decoded, as: UTF8.self)
  }

  private static func digit(_ character: UInt8) -> UInt8? {
    Character(Unicode.Scalar(character)).hexDigitValue.map(UInt8.init)
  }

  /// Returns a query with the given fields, which begins with a question mark; empty if all values are missing.
  public static func query(_ fields: [(name: String, value: String?)]) -> String {
    let parts = fields.compactMap { name, value in value.map { "\(name)=\(encoded($0))" } }
    return parts.isEmpty ? "" : "?" + parts.joined(separator: "&")
  }

  /// Returns `text` for a segment of a path or a value of a query.
  public static func encoded(_ text: String) -> String {
    text.utf8.map { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
        String(Unicode.Scalar(byte))
      default: "%" + Hex.encode([byte]).uppercased()
      }
    }.joined()
  }
}
