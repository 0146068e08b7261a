internal import Transport

/// `/v1/openapi.json`: the OpenAPI 3.1 document of the admin server. It is made from the operations themselves, so it
/// cannot become outdated.
public struct OpenAPIResource: AdminResource {
  private let described: [AdminOperation]
  private let version: String
  private let asksForToken: Bool

  /// - Parameters:
  ///   - resources: All other resources of the same server.
  ///   - version: The version of the gate.
  ///   - asksForToken: Whether the server requires a token.
  public init(describing resources: [any AdminResource], version: String, asksForToken: Bool) {
    described = resources.flatMap(\.operations)
    self.version = version
    self.asksForToken = asksForToken
  }

  private static let path = "/v1/openapi.json"
  private static let summary = "Describes the operations of this server (OpenAPI 3.1)."

  public var operations: [AdminOperation] {
    let answers = AdminAnswers(200, schema: .document)
    let own = AdminOperation("GET", Self.path, Self.summary, answers: answers) { _ throws(AdminError) in
      .json(["": ""])
    }
    let document = OpenAPIDocument(operations: described + [own], version: version, asksForToken: asksForToken).content
    return [
      AdminOperation("GET", Self.path, Self.summary, answers: answers) { _ throws(AdminError) in .json(document) }
    ]
  }
}

/// The OpenAPI document for a list of operations.
struct OpenAPIDocument {
  let operations: [AdminOperation]
  let version: String
  let asksForToken: Bool

  var content: JSONContent {
    var paths: [String: [String: JSONContent]] = [:]
    for operation in operations {
      paths[operation.path, default: [:]][operation.method.lowercased()] = entry(operation)
    }
    let schemas = AnswerSchema.allCases.map { ($0.rawValue, $0.content) } + [("Refusal", Self.refusal)]
    var components: [String: JSONContent] = [
      "schemas": .object(Dictionary(schemas, uniquingKeysWith: { first, _ in first }))
    ]
    if asksForToken { components["securitySchemes"] = ["token": ["type": "http", "scheme": "bearer"]] }
    return [
      "openapi": "3.1.0",
      "info": ["title": "sallyport admin server", "version": .text(version)],
      "paths": .object(paths.mapValues(JSONContent.object)),
      "components": .object(components),
      "security": asksForToken ? [["token": []]] : [],
    ]
  }

  private static let refusal: JSONContent = [
    "type": "object", "required": ["error", "code"], "additionalProperties": false,
    "properties": [
      "error": ["type": "string", "description": "A message for people."],
      "code": ["type": "string", "description": "A stable code for programs."],
      "hint": ["type": "string", "description": "What to do."],
    ],
  ]

  private func entry(_ operation: AdminOperation) -> JSONContent {
    let path = operation.path.split(separator: "/").filter { $0.hasPrefix("{") }.map { $0.dropFirst().dropLast() }
    let inPath = path.map { name in
      Self.content(of: name == "key" ? .keyName("key") : AdminParameter(String(name)), in: "path")
    }
    let inQuery = operation.parameters.map { Self.content(of: $0, in: "query") }
    return [
      "operationId": .text(Self.identifier(of: operation)), "summary": .text(operation.summary),
      "parameters": .list(inPath + inQuery), "responses": responses(of: operation),
    ]
  }

  /// Returns an operation id such as `getV1KeysKey`.
  private static func identifier(of operation: AdminOperation) -> String {
    let words = operation.path.split { !$0.isLetter && !$0.isNumber }
    return operation.method.lowercased() + words.map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
  }

  private static func content(of parameter: AdminParameter, in place: String) -> JSONContent {
    [
      "name": .text(parameter.name), "in": .text(place), "required": .flag(place == "path"), "schema": parameter.schema,
    ]
  }

  private func responses(of operation: AdminOperation) -> JSONContent {
    var responses: [String: JSONContent] = [:]
    for status in operation.answers.refusals + [400, 421] + (asksForToken ? [401] : [])
      + (operation.method == "GET" ? [] : [403])
    {
      responses["\(status)"] = [
        "description": "Refused.",
        "content": ["application/json": ["schema": ["$ref": "#/components/schemas/Refusal"]]],
      ]
    }
    let types = operation.answers.types.map { type in
      (type, ["schema": type == "application/json" ? operation.answers.content : ["type": "string"]])
        as (String, JSONContent)
    }
    for status in operation.answers.statuses {
      responses["\(status)"] = [
        "description": .text(operation.summary),
        "content": .object(Dictionary(types, uniquingKeysWith: { first, _ in first })),
      ]
    }
    return .object(responses)
  }
}

/// The possible answers of an operation, in addition to those of all operations.
public struct AdminAnswers: Sendable, Hashable {
  /// The statuses of successful answers.
  public var statuses: [Int]
  public var types: [String]
  /// The statuses of the operation's own refusals.
  public var refusals: [Int]
  /// The schema of a JSON answer; `nil` if there is none.
  public var schema: AnswerSchema?

  /// Creates answers in JSON with `schema`, unless other types are given.
  public init(
    _ statuses: Int..., schema: AnswerSchema? = nil, types: [String] = ["application/json"], refusals: [Int] = []
  ) {
    self.statuses = statuses
    self.schema = schema
    self.types = types
    self.refusals = refusals
  }
}

extension AdminAnswers {
  fileprivate var content: JSONContent { schema?.reference ?? ["type": "object"] }
}

/// JSON that can be written as Swift literals.
enum JSONContent: Sendable, Encodable {
  case text(String)
  case number(Int)
  case flag(Bool)
  case list([JSONContent])
  case object([String: JSONContent])

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .text(let text): try container.encode(text)
    case .number(let number): try container.encode(number)
    case .flag(let flag): try container.encode(flag)
    case .list(let elements): try container.encode(elements)
    case .object(let members): try container.encode(members)
    }
  }
}

extension JSONContent: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  init(stringLiteral text: String) { self = .text(text) }
  init(integerLiteral number: Int) { self = .number(number) }
  init(booleanLiteral flag: Bool) { self = .flag(flag) }
  init(arrayLiteral elements: JSONContent...) { self = .list(elements) }
  init(dictionaryLiteral members: (String, JSONContent)...) {
    self = .object(Dictionary(members, uniquingKeysWith: { first, _ in first }))
  }
}
