public import Foundation

/// A JSON value that can be compared with a literal.
public enum JSONValue: Sendable, Hashable, Decodable {
  case null
  case bool(Bool)
  case number(Double)
  case string(String)
  case array([JSONValue])
  case object([String: JSONValue])

  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let value = try? container.decode(Bool.self) {
      self = .bool(value)
    } else if let value = try? container.decode(Double.self) {
      self = .number(value)
    } else if let value = try? container.decode(String.self) {
      self = .string(value)
    } else if let value = try? container.decode([JSONValue].self) {
      self = .array(value)
    } else {
      self = .object(try container.decode([String: JSONValue].self))
    }
  }

  public init(_ data: Data) throws { self = try JSONDecoder().decode(JSONValue.self, from: data) }

  public subscript(_ key: String) -> JSONValue? {
    if case .object(let members) = self { members[key] } else { nil }
  }

  public subscript(_ index: Int) -> JSONValue? {
    if case .array(let elements) = self, elements.indices.contains(index) { elements[index] } else { nil }
  }

  public var text: String? { if case .string(let text) = self { text } else { nil } }
  public var count: Int? { if case .array(let elements) = self { elements.count } else { nil } }
  /// The members of an object; `nil` for another kind of value.
  public var members: [String: JSONValue]? { if case .object(let members) = self { members } else { nil } }
  public var keys: Set<String> { Set((members ?? [:]).keys) }
  public var int: Int? { if case .number(let number) = self { Int(number) } else { nil } }

  /// The value as JSON text, with the members ordered by name.
  public var encoded: String {
    switch self {
    case .null: "null"
    case .bool(let value): value ? "true" : "false"
    case .number(let value): value == value.rounded() ? String(Int64(value)) : String(value)
    case .string(let value):
      // A string can always be encoded.
      String(decoding: (try? JSONEncoder().encode(value)) ?? Data(), as: UTF8.self)
    case .array(let elements): "[" + elements.map(\.encoded).joined(separator: ",") + "]"
    case .object(let members):
      "{"
        + members.sorted { $0.key < $1.key }.map { JSONValue.string($0.key).encoded + ":" + $0.value.encoded }
        .joined(separator: ",") + "}"
    }
  }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral, ExpressibleByNilLiteral
{
  public init(stringLiteral value: String) { self = .string(value) }
  public init(booleanLiteral value: Bool) { self = .bool(value) }
  public init(integerLiteral value: Int) { self = .number(Double(value)) }
  public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
  public init(dictionaryLiteral elements: (String, JSONValue)...) {
    self = .object(Dictionary(elements, uniquingKeysWith: { _, last in last }))
  }
  public init(nilLiteral: ()) { self = .null }
}
