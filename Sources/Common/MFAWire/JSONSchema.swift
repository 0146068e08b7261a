/// The schema of a JSON value, in the terms of JSON Schema 2020-12.
public indirect enum JSONSchema: Sendable, Hashable {
  /// A string. `minLength` and `maxLength` count characters; `pattern` is an ECMA 262 expression; `format` and
  /// `example` are informative.
  case string(
    minLength: Int? = nil, maxLength: Int? = nil, pattern: String? = nil, format: String? = nil, example: String? = nil)
  /// Exactly this string.
  case constant(String)
  /// One of these strings.
  case oneOf([String])
  /// An integer between `minimum` and `maximum`, both included.
  case integer(minimum: Int? = nil, maximum: Int? = nil)
  /// `true` or `false`.
  case boolean
  /// An array whose elements have the given schema.
  case array(JSONSchema)
  /// A value of the given schema, or `null`.
  case nullable(JSONSchema)
  /// An object with these properties. Other properties are ignored.
  case object([Property])
  /// A schema defined elsewhere in the document, by its name under `#/components/schemas`.
  case reference(String)

  /// A property of an object.
  public struct Property: Sendable, Hashable {
    /// The name of the property.
    public let name: String
    /// The schema of the value.
    public let schema: JSONSchema
    /// Whether the property must be present.
    public let isRequired: Bool
    /// The description in the generated documents; may be empty.
    public let summary: String

    /// A property that must be present.
    public static func required(_ name: String, _ schema: JSONSchema, _ summary: String = "") -> Property {
      Property(name: name, schema: schema, isRequired: true, summary: summary)
    }

    /// A property that may be absent.
    public static func optional(_ name: String, _ schema: JSONSchema, _ summary: String = "") -> Property {
      Property(name: name, schema: schema, isRequired: false, summary: summary)
    }
  }

  /// A string without further rules.
  public static let text = JSONSchema.string()
}

/// A value that is sent or received as JSON and has a JSON schema.
public protocol WireValue: Codable, Sendable {
  /// The schema of this value, from which the OpenAPI and OpenRPC documents are generated.
  static var schema: JSONSchema { get }
}

/// A field that is always present in the JSON and may be `null`.
@propertyWrapper
public struct Nullable<Value: Codable & Sendable & Hashable>: Codable, Sendable, Hashable {
  /// The value; `nil` is encoded as `null`.
  public var wrappedValue: Value?

  /// Creates the field.
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
