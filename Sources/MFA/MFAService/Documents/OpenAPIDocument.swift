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
          ("title", .string("MFA backend")), ("version", .string("1")),
          (
            "description",
            .string(
              "The MFA service: devices, challenges, codes and trust. Every path also works without /api/v1. "
                + "A wrong method gets 405, with Allow.")
          ),
        ])
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
      ("security", .array([security(of: operation.access)])),
    ]
    if !fields.isEmpty { members.append(("parameters", .array(fields.map { parameter($0, in: operation.path) }))) }
    if operation.method == .post {
      members.append(
        (
          "requestBody",
          .object([("required", .bool(true)), ("content", content(JSONDocument(operation.requestSchema)))])
        ))
    }
    members.append(("responses", responses(of: operation)))
    return .object(members)
  }

  private static func parameter(_ field: JSONSchema.Property, in path: String) -> JSONDocument {
    .object([
      ("name", .string(field.name)), ("in", .string(path.contains("{\(field.name)}") ? "path" : "query")),
      ("required", .bool(field.isRequired)),
      ("schema", JSONDocument(field.schema)),
    ])
  }

  private static func security(of access: Operation.Access) -> JSONDocument {
    .object(
      [("gate", .array([]))] + (access == .attested ? [] : [("session", .array([]))]))
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
        ("description", .string("Done")), ("content", content(JSONDocument(operation.responseSchema))),
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

  private var components: JSONDocument {
    .object([
      ("schemas", .object([("Error", JSONDocument(ErrorBody.schema))])),
      (
        "securitySchemes",
        .object([
          (
            "gate",
            .object([
              ("type", .string("apiKey")), ("in", .string("header")), ("name", .string("X-Attest-Assertion")),
            ])
          ),
          (
            "session",
            .object([
              ("type", .string("http")), ("scheme", .string("bearer")), ("bearerFormat", .string("JWT")),
            ])
          ),
        ])
      ),
    ])
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
    return all
  }
}
