internal import ByteCoding
internal import MFAWire

/// JSON text for building documents. Members keep their order.
struct JSONDocument: Sendable, Hashable {
  let text: String

  static func object(_ members: [(String, JSONDocument)]) -> JSONDocument {
    JSONDocument(
      text: "{" + members.map { JSONText.quote($0.0) + ":" + $0.1.text }.joined(separator: ",") + "}")
  }

  static func array(_ elements: [JSONDocument]) -> JSONDocument {
    JSONDocument(text: "[" + elements.map(\.text).joined(separator: ",") + "]")
  }

  static func string(_ text: String) -> JSONDocument { JSONDocument(text: JSONText.quote(text)) }
  static func number(_ number: Int) -> JSONDocument { JSONDocument(text: String(number)) }
  static func bool(_ value: Bool) -> JSONDocument { JSONDocument(text: value ? "true" : "false") }
}

extension JSONDocument {
  /// Creates the JSON Schema 2020-12 form of `schema`.
  init(_ schema: JSONSchema) {
    switch schema {
    case .string(let minLength, let maxLength, let pattern, let format, let example):
      var members: [(String, JSONDocument)] = [("type", .string("string"))]
      if let minLength { members.append(("minLength", .number(minLength))) }
      if let maxLength { members.append(("maxLength", .number(maxLength))) }
      if let pattern { members.append(("pattern", .string(pattern))) }
      if let format { members.append(("format", .string(format))) }
      if let example { members.append(("examples", .array([.string(example)]))) }
      self = .object(members)
    case .constant(let text): self = .object([("const", .string(text))])
    case .oneOf(let texts): self = .object([("type", .string("string")), ("enum", .array(texts.map { .string($0) }))])
    case .integer(let minimum, let maximum):
      var members: [(String, JSONDocument)] = [("type", .string("integer"))]
      if let minimum { members.append(("minimum", .number(minimum))) }
      if let maximum { members.append(("maximum", .number(maximum))) }
      self = .object(members)
    case .boolean: self = .object([("type", .string("boolean"))])
    case .array(let element): self = .object([("type", .string("array")), ("items", JSONDocument(element))])
    case .nullable(let schema):
      self = .object([("anyOf", .array([JSONDocument(schema), .object([("type", .string("null"))])]))])
    case .reference(let name): self = .object([("$ref", .string("#/components/schemas/\(name)"))])
    case .object(let properties): self = Self.object(properties)
    }
  }

  private static func object(_ properties: [JSONSchema.Property]) -> JSONDocument {
    let required = properties.filter(\.isRequired).map { JSONDocument.string($0.name) }
    var members: [(String, JSONDocument)] = [
      ("type", .string("object")), ("properties", .object(properties.map { ($0.name, described($0)) })),
    ]
    if !required.isEmpty { members.append(("required", .array(required))) }
    return .object(members)
  }

  private static func described(_ property: JSONSchema.Property) -> JSONDocument {
    let schema = JSONDocument(property.schema)
    guard !property.summary.isEmpty else { return schema }
    return JSONDocument(
      text: "{\"description\":\(JSONText.quote(property.summary)),\(schema.text.dropFirst())")
  }
}
