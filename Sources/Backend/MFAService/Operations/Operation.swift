internal import ByteCoding
internal import Foundation
internal import MFADomain
public import MFAWire

/// One operation of the backend, independent of the transport: its names, types, access, rate class and
/// implementation. Routes, socket methods and documents are derived from it, so all transports have the same rules.
public struct Operation: Sendable {
  /// The callers that may use an operation.
  public enum Access: Sendable, Hashable {
    /// Any app instance with an identity of the gate.
    case attested
    /// A session that may still lack the second factor.
    case pendingSession
    /// A full session.
    case session
    /// A full session of an admin.
    case admin
  }

  /// The rate class. One app instance has one limit for all operations of a class.
  public enum RateClass: Sendable, Hashable {
    /// Reads and sign-ins.
    case standard
    /// Operations that send messages or verify codes.
    case sensitive
  }

  /// The name in sockets and documents.
  public let name: String
  /// The HTTP method.
  public let method: WireMethod
  /// The path after the prefix. `{name}` stands for a segment that is a request field.
  public let path: String
  /// The description in the documents.
  public let summary: String
  /// The callers that may use it.
  public let access: Access
  /// The rate class.
  public let rateClass: RateClass
  /// The names of the types of request and response, for documents.
  let schemaNames: (request: String, response: String)
  /// Whether it sends a message. Then a client may repeat it under an idempotency key.
  public let sendsMessages: Bool
  /// Whether its answer can contain tokens though it changes nothing, so that even a copy of its request gives access.
  let givesAccess: Bool
  /// The schema of the request.
  public let requestSchema: JSONSchema
  /// The schema of the response.
  public let responseSchema: JSONSchema
  /// The codes of the refusals that are specific to this operation.
  public let refusals: [RefusalCode]
  /// The decoded request in one form, which depends neither on the transport nor on the order of the members.
  let canonicalRequest: @Sendable (OperationInput) throws -> [UInt8]
  let perform: @Sendable (OperationInput, Caller) async throws -> [UInt8]

  init<Request: WireValue, Response: WireValue>(
    _ wire: WireOperation<Request, Response>, _ summary: String, access: Access,
    rateClass: RateClass = .standard, sendsMessages: Bool = false, givesAccess: Bool = false,
    refusals: [RefusalCode] = [],
    _ body: @escaping @Sendable (Request, Caller) async throws -> Response
  ) {
    name = wire.name
    method = wire.method
    path = wire.path
    self.summary = summary
    self.access = access
    self.rateClass = rateClass
    self.refusals = refusals
    self.sendsMessages = sendsMessages
    self.givesAccess = givesAccess
    schemaNames = (String(describing: Request.self), String(describing: Response.self))
    requestSchema = Request.schema
    responseSchema = Response.schema
    canonicalRequest = { try WireCoding.encode(try $0.decode(as: Request.self), isCanonical: true) }
    perform = { input, caller in
      try WireCoding.encode(try await body(try input.decode(as: Request.self), caller))
    }
  }
}

/// The fields of a request, as JSON.
public enum OperationInput: Sendable {
  /// The whole text is the request.
  case document([UInt8])
  /// The request is the member `params` of an object.
  case parameters(of: [UInt8])

  /// Decodes the request.
  ///
  /// - Throws: `OperationInputError`, with the field that is missing or has the wrong type.
  func decode<Request: WireValue>(as type: Request.Type) throws(OperationInputError) -> Request {
    switch self {
    case .document(let bytes): return try WireCoding.decode(bytes)
    case .parameters(let bytes):
      let envelope: Envelope<Request> = try WireCoding.decode(bytes)
      return envelope.params
    }
  }

  private struct Envelope<Request: WireValue>: Decodable {
    let params: Request
  }
}

/// JSON encoding and decoding of the wire.
enum WireCoding {
  /// - Parameter isCanonical: whether to sort the members of objects.
  static func encode(_ value: some Encodable, isCanonical: Bool = false) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = isCanonical ? [.withoutEscapingSlashes, .sortedKeys] : .withoutEscapingSlashes
    return Array(try encoder.encode(value))
  }

  /// Decodes `bytes` after checking them with `StreamSafeText` and `JSONGrammar`. The decoder alone would accept
  /// trailing commas and duplicate names.
  static func decode<Value: Decodable>(_ bytes: [UInt8]) throws(OperationInputError) -> Value {
    guard StreamSafeText.accepts(json: bytes) else { throw .heapedMarks }
    guard JSONGrammar.accepts(bytes) else { throw .malformedJSON }
    do {
      return try JSONDecoder().decode(Value.self, from: Data(bytes))
    } catch let error as DecodingError {
      throw OperationInputError(error)
    } catch {
      throw .malformedJSON
    }
  }
}

/// The reasons why a request does not reach its operation.
public enum OperationInputError: Error, Sendable, Hashable {
  /// The gate's identity is missing or not valid.
  case notAttested
  /// The body is not valid JSON.
  case malformedJSON
  /// A text in the body has more combining marks in a row than the stream-safe format allows.
  case heapedMarks
  /// A required field is missing.
  case fieldMissing(String)
  /// A field has the wrong type.
  case fieldOfWrongType(String)
  /// A field is in the query twice, or in the path and the query.
  case fieldGivenTwice(String)
  /// The body exceeds the size limit.
  case bodyTooLarge
  /// The body exceeds the time limit.
  case bodyTooSlow
  /// The content type is not JSON.
  case notJSON
  /// The idempotency key is not one text of 1 to 128 visible ASCII characters.
  case idempotencyKeyMalformed
  /// A socket is opened with another version than 13, or with several.
  case socketVersion
  /// A socket is opened without exactly one key of 16 bytes.
  case socketKey
  /// No operation has this name or path.
  case unknownOperation
  /// The path has only these methods.
  case methodNotAllowed([String])
  /// The caller exceeds its rate limit.
  case tooFast(retryAfter: Duration)

  fileprivate init(_ error: DecodingError) {
    switch error {
    case .keyNotFound(let key, let context): self = .fieldMissing(Self.path(context.codingPath + [key]))
    case .valueNotFound(_, let context): self = .fieldMissing(Self.path(context.codingPath))
    case .typeMismatch(_, let context): self = .fieldOfWrongType(Self.path(context.codingPath))
    case .dataCorrupted(let context) where !context.codingPath.isEmpty:
      self = .fieldOfWrongType(Self.path(context.codingPath))
    case .dataCorrupted: self = .malformedJSON
    @unknown default: self = .malformedJSON
    }
  }

  /// The path of a member, the same by socket, where the input is in `params`, and by REST.
  private static func path(_ keys: [any CodingKey]) -> String {
    var names = keys.map(\.stringValue)
    if names.count > 1, names.first == "params" { names.removeFirst() }
    return names.isEmpty ? "body" : names.joined(separator: ".")
  }
}

extension OperationInputError {
  /// The reason for the log.
  var cause: String {
    switch self {
    case .notAttested: "not_attested"
    case .malformedJSON: "malformed_json"
    case .heapedMarks: "heaped_marks"
    case .fieldMissing(let field): "missing_\(field)"
    case .fieldOfWrongType(let field): "wrong_type_\(field)"
    case .fieldGivenTwice(let field): "given_twice_\(field)"
    case .bodyTooLarge: "body_too_large"
    case .bodyTooSlow: "body_too_slow"
    case .notJSON: "not_json"
    case .idempotencyKeyMalformed: "idempotency_key_malformed"
    case .socketVersion: "socket_version"
    case .socketKey: "socket_key"
    case .unknownOperation: "unknown_operation"
    case .methodNotAllowed: "method_not_allowed"
    case .tooFast: "rate"
    }
  }
}
