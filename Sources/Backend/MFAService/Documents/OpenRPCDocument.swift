internal import Commands
internal import MFAWire

/// The OpenRPC 1.3 document of the operations and of what only sockets have.
struct OpenRPCDocument {
  let operations: [Operation]

  var document: JSONDocument {
    .object([
      ("openrpc", .string("1.3.2")),
      ("info", .object([("title", .string("MFA backend, by socket")), ("version", .string(ProjectVersion.number))])),
      (
        "methods",
        .array(
          operations.map {
            Self.method(
              $0.name, $0.summary, $0.requestSchema, JSONDocument($0.responseSchema), $0.allRefusals,
              acceptsKey: $0.sendsMessages)
          } + [
            Self.method(
              AttachRequest.method, "Attaches a session to the socket, for later requests and for notices.",
              AttachRequest.schema, .object([("type", .string("object"))]), [.sessionRequired, .boundElsewhere])
          ])
      ),
      (
        "components",
        .object([
          (
            "schemas",
            .object([
              ("notice", JSONDocument(NoticeEntry.schema)), ("push.challenge", JSONDocument(PushEntry.schema)),
            ])
          )
        ])
      ),
    ])
  }

  private static func method(
    _ name: String, _ summary: String, _ request: JSONSchema, _ result: JSONDocument, _ refusals: [RefusalCode],
    acceptsKey: Bool = false
  ) -> JSONDocument {
    let properties: [JSONSchema.Property] = if case .object(let properties) = request { properties } else { [] }
    let description = "A repeated request with the same member idempotencyKey, next to params, sends no second message."
    return .object(
      [
        ("name", .string(name)), ("summary", .string(summary)),
      ] + (acceptsKey ? [("description", .string(description))] : []) + [
        ("paramStructure", .string("by-name")),
        (
          "params",
          .array(
            properties.map { property in
              .object([
                ("name", .string(property.name)), ("required", .bool(property.isRequired)),
                ("schema", JSONDocument(property.schema)),
              ])
            })
        ),
        ("result", .object([("name", .string("result")), ("schema", result)])),
        (
          "errors",
          .array(
            Set(refusals).sorted { $0.rawValue < $1.rawValue }.map { code in
              .object([
                ("code", .number(code == .invalidRequest ? -32602 : -32000)), ("message", .string(code.rawValue)),
              ])
            })
        ),
      ])
  }
}
