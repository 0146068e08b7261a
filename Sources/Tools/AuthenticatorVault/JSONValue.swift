/// A JSON value that this version does not interpret. It is kept and written again.
public enum JSONValue: Sendable, Hashable {
  /// `null`.
  case null
  /// `true` or `false`.
  case bool(Bool)
  /// A number without a fraction that fits.
  case integer(Int64)
  /// Another number.
  case number(Double)
  /// A text.
  case string(String)
  /// A list.
  case array([JSONValue])
  /// Members by their names.
  case object([String: JSONValue])
}

extension JSONValue {
  /// How deep a value may stand in a text that is read. Foundation writes 512 levels and no more.
  public static let deepest = 128
}

extension JSONValue: Codable {
  /// - Throws: `VaultError.malformed` for a value that is nested deeper than `deepest`.
  public init(from decoder: any Decoder) throws {
    guard decoder.codingPath.count <= Self.deepest else {
      throw VaultError.malformed("values within values, more than \(Self.deepest) deep")
    }
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let value = try? container.decode(Bool.self) {
      self = .bool(value)
    } else if let value = try? container.decode(Int64.self) {
      self = .integer(value)
    } else if let value = try? container.decode(Double.self) {
      self = .number(value)
    } else if let value = try? container.decode(String.self) {
      self = .string(value)
    } else {
      do {
        self = .array(try container.decode([JSONValue].self))
      } catch DecodingError.typeMismatch(_, let context) where context.codingPath.count == decoder.codingPath.count {
        self = .object(try container.decode([String: JSONValue].self))
      }
    }
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .bool(let value): try container.encode(value)
    case .integer(let value): try container.encode(value)
    case .number(let value): try container.encode(value)
    case .string(let value): try container.encode(value)
    case .array(let value): try container.encode(value)
    case .object(let value): try container.encode(value)
    }
  }
}

/// The name of a JSON member, known or not.
struct MemberName: CodingKey {
  let stringValue: String
  var intValue: Int? { nil }

  init(_ name: String) { stringValue = name }
  init(stringValue: String) { self.init(stringValue) }
  init?(intValue: Int) { nil }
}

extension KeyedDecodingContainer<MemberName> {
  /// The members whose names are not in `known`.
  func others(than known: Set<String>) throws -> [String: JSONValue] {
    var found: [String: JSONValue] = [:]
    for name in allKeys where !known.contains(name.stringValue) {
      found[name.stringValue] = try decode(JSONValue.self, forKey: name)
    }
    return found
  }

  func value<Value: Decodable>(_ type: Value.Type, _ name: String) throws -> Value {
    try decode(type, forKey: MemberName(name))
  }

  func optional<Value: Decodable>(_ type: Value.Type, _ name: String) throws -> Value? {
    try decodeIfPresent(type, forKey: MemberName(name))
  }
}

extension KeyedEncodingContainer<MemberName> {
  mutating func write(_ value: some Encodable, _ name: String) throws {
    try encode(value, forKey: MemberName(name))
  }

  mutating func write(others: [String: JSONValue]) throws {
    for (name, value) in others { try encode(value, forKey: MemberName(name)) }
  }
}
