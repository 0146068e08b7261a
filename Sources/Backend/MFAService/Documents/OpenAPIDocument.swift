internal import Commands
internal import MFAWire

/// The OpenAPI 3.1 document of the operations.
struct OpenAPIDocument {
  let operations: [Operation]

  var document: JSONDocument {
    .object([
      ("openapi", .string("3.1.0")),
      (
        "info",
        .object([
          ("title", .string("MFA backend")), ("version", .string(ProjectVersion.number)),
          (
            "description",
            .string(
              "The MFA service: devices, challenges, codes and trust. Clients reach it through the gate, and prove "
                + "each request with the three X-App-Assert header fields. Every path also works without /api/v1. "
                + "A wrong method gets 405, with Allow.")
          ),
          ("license", .object([("name", .string("Apache-2.0")), ("identifier", .string("Apache-2.0"))])),
        ])
      ),
      (
        "tags",
        .array(
          OperationTag.allCases.map { tag in
            .object([("name", .string(tag.rawValue)), ("description", .string(tag.summary))])
          })
      ),
      ("servers", .array([.object([("url", .string("/api/v1"))])])),
      ("paths", paths),
      ("components", components),
    ])
  }

  private var paths: JSONDocument {
    var order: [String] = []
    var byPath: [String: [Operation]] = [:]
    for operation in operations {
      if byPath[operation.path] == nil { order.append(operation.path) }
      byPath[operation.path, default: []].append(operation)
    }
    return .object(
      order.map { path in
        (path, .object((byPath[path] ?? []).map { ($0.method.rawValue.lowercased(), Self.describe($0)) }))
      })
  }

  private static func describe(_ operation: Operation) -> JSONDocument {
    let fields = operation.parameterFields
    var members: [(String, JSONDocument)] = [
      ("operationId", .string(operation.name)), ("summary", .string(operation.summary)),
      ("tags", .array([.string(operation.tag.rawValue)])), ("security", security(of: operation.access)),
    ]
    var parameters = fields.map { parameter($0, in: operation.path) }
    if operation.sendsMessages { parameters.append(idempotencyKey) }
    if !parameters.isEmpty { members.append(("parameters", .array(parameters))) }
    if operation.method == .post {
      members.append(
        (
          "requestBody",
          .object([("required", .bool(true)), ("content", content(reference(operation.schemaNames.request)))])
        ))
    }
    members.append(("responses", responses(of: operation)))
    return .object(members)
  }

  private static var idempotencyKey: JSONDocument {
    .object([
      ("name", .string("Idempotency-Key")), ("in", .string("header")), ("required", .bool(false)),
      (
        "description",
        .string(
          "Chosen by the client, such as a UUID. A repeated request with the same key, body and session sends no second "
            + "message and gets the first answer, for a day.")
      ),
      ("schema", JSONDocument(.string(minLength: 1, maxLength: 128, pattern: "^[!-~]+$"))),
    ])
  }

  private static func parameter(_ field: JSONSchema.Property, in path: String) -> JSONDocument {
    .object([
      ("name", .string(field.name)), ("in", .string(path.contains("{\(field.name)}") ? "path" : "query")),
      ("required", .bool(field.isRequired)),
      ("schema", JSONDocument(field.schema)),
    ])
  }

  /// Through the gate, a client sends all three fields of its assertion. The gate replaces them by one field.
  private static func security(of access: Operation.Access) -> JSONDocument {
    let session: [String] = access == .attested ? [] : ["session"]
    let client: [String] = AssertionField.allCases.map(\.scheme) + session
    return .array([requirement(client), requirement(["gate"] + session)])
  }

  private static func requirement(_ schemes: [String]) -> JSONDocument {
    let members: [(String, JSONDocument)] = schemes.map { ($0, .array([])) }
    return .object(members)
  }

  private static func reference(_ name: String) -> JSONDocument {
    .object([("$ref", .string("#/components/schemas/" + name))])
  }

  private static func content(_ schema: JSONDocument) -> JSONDocument {
    .object([("application/json", .object([("schema", schema)]))])
  }

  private static func responses(of operation: Operation) -> JSONDocument {
    var codes: [Int: [String]] = [:]
    for code in operation.allRefusals where !(codes[code.status]?.contains(code.rawValue) ?? false) {
      codes[code.status, default: []].append(code.rawValue)
    }
    let success = (
      "200",
      JSONDocument.object([
        ("description", .string("Done")), ("content", content(reference(operation.schemaNames.response))),
      ])
    )
    let refusals = codes.sorted { $0.key < $1.key }.map { status, words in
      (
        String(status),
        JSONDocument.object([
          ("description", .string(words.joined(separator: ", "))), ("headers", headers(of: status)),
          ("content", content(.object([("$ref", .string("#/components/schemas/Error"))]))),
        ])
      )
    }
    return .object([success] + refusals)
  }

  /// The header fields of a refusal, in addition to those of every response.
  private static func headers(of status: Int) -> JSONDocument {
    let (text, number) = (JSONSchema.text, JSONSchema.integer(minimum: 1))
    let fields: [(String, isRequired: Bool, summary: String, schema: JSONSchema)] =
      switch status {
      case 401: [("WWW-Authenticate", true, "What the request lacks (RFC 9110, section 11.6.1).", text)]
      case 409, 423, 503: [("Retry-After", false, "Seconds.", number)]
      case 429:
        [
          ("Retry-After", true, "Seconds.", number),
          ("RateLimit", true, "The exceeded limit, and the seconds to wait (t).", text),
        ]
      default: []
      }
    return .object(
      fields.map { name, isRequired, summary, schema in
        (
          name,
          .object([
            ("description", .string(summary)), ("required", .bool(isRequired)), ("schema", JSONDocument(schema)),
          ])
        )
      })
  }

  /// The schemas of requests in a body and of responses, by the names of their types.
  private var schemas: [(String, JSONDocument)] {
    var schemas: [String: JSONDocument] = ["Error": JSONDocument(ErrorBody.schema)]
    for operation in operations {
      if operation.method == .post { schemas[operation.schemaNames.request] = JSONDocument(operation.requestSchema) }
      schemas[operation.schemaNames.response] = JSONDocument(operation.responseSchema)
    }
    return schemas.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }

  private static func headerScheme(_ name: String, _ summary: String) -> JSONDocument {
    .object([
      ("type", .string("apiKey")), ("in", .string("header")), ("name", .string(name)),
      ("description", .string(summary)),
    ])
  }

  private static var securitySchemes: [(String, JSONDocument)] {
    var schemes = AssertionField.allCases.map { ($0.scheme, headerScheme($0.rawValue, $0.summary)) }
    let identity = headerScheme(
      "X-Attest-Assertion",
      "The identity that the gate signs. The gate adds it, and removes it from what clients send.")
    schemes.append(("gate", identity))
    schemes.append(
      (
        "session",
        .object([("type", .string("http")), ("scheme", .string("bearer")), ("bearerFormat", .string("JWT"))])
      ))
    return schemes
  }

  private var components: JSONDocument {
    .object([("schemas", .object(schemas)), ("securitySchemes", .object(Self.securitySchemes))])
  }
}

extension Operation {
  /// The fields of the request that stand in the path or the query.
  var parameterFields: [JSONSchema.Property] {
    guard method != .post, case .object(let properties) = requestSchema else { return [] }
    return properties
  }

  /// The refusals of this operation and those of every operation.
  var allRefusals: [RefusalCode] {
    var all = refusals + [.notAttested, .notFound, .rateLimited, .unavailable]
    if method == .post { all += [.invalidRequest, .requestTimeout, .payloadTooLarge, .unsupportedMediaType] }
    if access != .attested { all.append(.sessionRequired) }
    if sendsMessages { all += [.idempotencyKeyReused, .requestInProgress] }
    return all
  }
}
