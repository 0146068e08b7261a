internal import ByteCoding

/// The fields of a log line after its message, in order.
///
/// Lines of requests and sessions use this type instead of swift-log's dictionaries, which cost several times as much
/// to fill, hash and sort. It keeps the bytes that a line of JSON has, so that each value is read once. A handler that
/// does not know the type gets one metadata value, `fields`, with `description` as its text.
public struct LogFields: Sendable, CustomStringConvertible {
  /// The members of a JSON object, each with a comma in front of it.
  private(set) var json: [UInt8] = []

  public init() { json.reserveCapacity(448) }

  /// Adds a text; does nothing for `nil`.
  public mutating func append(_ name: StaticString, _ text: String?) {
    guard let text else { return }
    guard !ReservedNames.contains(name) else {
      begin(name)
      JSONText.append(text, to: &json)
      return
    }
    JSONText.appendMember(name, text, to: &json)
  }

  /// Adds fields that were rendered before.
  public mutating func append(_ fields: LogFields) { json += fields.json }

  /// Adds a number, limited to the range of `Int64`; does nothing for `nil`.
  @inlinable
  public mutating func append(_ name: StaticString, _ number: (some BinaryInteger)?) {
    if let number { append(name, integer: Int64(clamping: number)) }
  }

  @usableFromInline
  mutating func append(_ name: StaticString, integer: Int64) {
    guard !ReservedNames.contains(name) else {
      begin(name)
      JSONText.append(integer, to: &json)
      return
    }
    JSONText.appendMember(name, integer, to: &json)
  }

  public mutating func append(_ name: StaticString, _ flag: Bool) {
    begin(name)
    json.append(contentsOf: flag ? "true".utf8 : "false".utf8)
  }

  private mutating func begin(_ name: StaticString) {
    json.append(UInt8(ascii: ","))
    JSONText.append(name, after: ReservedNames.contains(name) ? ReservedNames.prefix : "", to: &json)
    json.append(UInt8(ascii: ":"))
  }

  /// The fields with their values as text.
  var texts: [(name: String, text: String)] {
    var rest = json[...]
    var texts: [(String, String)] = []
    while rest.popFirst() != nil {
      let name = JSONText.takeString(from: &rest) ?? ""
      rest = rest.dropFirst()
      if let text = JSONText.takeString(from: &rest) {
        texts.append((name, text))
      } else {
        let word = rest.prefix { $0 != UInt8(ascii: ",") }
        rest = rest[word.endIndex...]
        texts.append((name, String(decoding: word, as: UTF8.self)))
      }
    }
    return texts
  }

  /// `name=value`, separated by spaces.
  public var description: String { texts.map { "\($0)=\($1)" }.joined(separator: " ") }
}

/// The names of a line's own members. A field with one of them gets a prefix, so that it replaces none.
enum ReservedNames {
  static let prefix: StaticString = "metadata."

  static func contains(_ name: String) -> Bool {
    switch name {
    case "time", "level", "logger", "message": true
    default: false
    }
  }

  /// The same without a comparison of texts for almost all names.
  static func contains(_ name: StaticString) -> Bool {
    (4...7).contains(name.utf8CodeUnitCount) && [0x6C, 0x6D, 0x74].contains(name.utf8Start.pointee)
      && contains(name.description)
  }
}
