/// What a JSON value must look like, in the words of JSON Schema 2020-12.
public indirect enum JSONSchema: Sendable, Hashable {
  /// `minLength` and `maxLength` count characters; `pattern` is an ECMA 262 expression; `format` and `example` inform.
  case string(
    minLength: Int? = nil, maxLength: Int? = nil, pattern: String? = nil, format: String? = nil, example: String? = nil)
  case constant(String)
  case oneOf([String])
  case integer(minimum: Int? = nil, maximum: Int? = nil)
  case boolean
  case array(JSONSchema)
  case nullable(JSONSchema)
  case object([Property])
  case reference(String)

  public struct Property: Sendable, Hashable {
    public let name: String
    public let schema: JSONSchema
    public let isRequired: Bool
    public let summary: String

    public static func required(_ name: String, _ schema: JSONSchema, _ summary: String = "") -> Property {
      Property(name: name, schema: schema, isRequired: true, summary: summary)
    }

    public static func optional(_ name: String, _ schema: JSONSchema, _ summary: String = "") -> Property {
      Property(name: name, schema: schema, isRequired: false, summary: summary)
    }
  }

  public static let text = JSONSchema.string()
}

/// A value that crosses the wire as JSON, and can say how it looks there.
public protocol WireValue: Codable, Sendable {
  static var schema: JSONSchema { get }
}

/// A field that is always present and may be `null`.
@propertyWrapper
public struct Nullable<Value: Codable & Sendable & Hashable>: Codable, Sendable, Hashable {
  public var wrappedValue: Value?

  public init(wrappedValue: Value?) { self.wrappedValue = wrappedValue }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    wrappedValue = container.decodeNil() ? nil : try container.decode(Value.self)
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    if let wrappedValue { try container.encode(wrappedValue) } else { try container.encodeNil() }
  }
}
