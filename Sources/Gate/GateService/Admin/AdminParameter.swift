/// A query parameter of an operation of the admin server.
public struct AdminParameter: Sendable {
  public let name: String
  /// The JSON schema of its value in the OpenAPI document.
  let schema: JSONContent
  /// Whether a query may have it more than once.
  let isRepeatable: Bool

  init(
    _ name: String, schema: JSONContent = ["type": "string", "minLength": 1], isRepeatable: Bool = false
  ) {
    self.name = name
    self.schema = schema
    self.isRepeatable = isRepeatable
  }

  /// Where the next page begins.
  static let after = AdminParameter("after")

  /// The maximum number of elements of a page.
  static let limit = AdminParameter(
    "limit", schema: ["type": "integer", "minimum": 1, "maximum": 1000, "default": 100])

  /// The hash of a key, or its beginning.
  static func keyName(_ name: String) -> AdminParameter {
    AdminParameter(
      name,
      schema: ["type": "string", "pattern": .text("^[A-Za-z0-9_-]{\(KeyName.leastLength),\(KeyName.length)}$")])
  }

  /// One of `words`.
  static func choice(_ name: String, of words: [String]) -> AdminParameter {
    AdminParameter(name, schema: ["enum": .list(words.map(JSONContent.text))])
  }
}
