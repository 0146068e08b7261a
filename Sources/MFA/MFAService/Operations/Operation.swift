internal import ByteCoding
internal import Foundation
internal import MFADomain
public import MFAWire

/// Something that can be asked of the backend, by whatever transport: its names, its types, who may ask, how often, and
/// what it does. Routes, socket methods and documents are made of it, so no transport has rules of its own.
public struct Operation: Sendable {
  public enum Method: String, Sendable, Hashable { case get = "GET", post = "POST", delete = "DELETE" }

  /// Who may ask.
  public enum Access: Sendable, Hashable {
    /// Any app instance that the gate vouches for.
    case attested
    /// The bearer of a session that may still lack the second factor.
    case pendingSession
    /// The bearer of a full session.
    case session
    /// An operator.
    case admin
  }

  /// How often one app instance may ask, in all operations of the same pace together.
  public enum RateClass: Sendable, Hashable {
    /// Reads and sign-ins.
    case standard
    /// What sends messages, or guesses.
    case sensitive
  }

  /// The name that sockets and documents use.
  public let name: String
  public let method: Method
  /// Below the prefix; `{name}` stands for a segment that is a field of the request.
  public let path: String
  public let summary: String
  public let access: Access
  public let rateClass: RateClass
  public let requestSchema: JSONSchema
  public let responseSchema: JSONSchema
  /// The codes of the refusals that are its own.
  public let refusals: [RefusalCode]
  let perform: @Sendable (OperationInput, Caller) async throws -> [UInt8]

  init<Request: WireValue, Response: WireValue>(
    _ name: String, _ method: Method, _ path: String, _ summary: String, access: Access,
    rateClass: RateClass = .standard,
    refusals: [RefusalCode] = [],
    _ body: @escaping @Sendable (Request, Caller) async throws -> Response
  ) {
    self.name = name
    self.method = method
    self.path = path
    self.summary = summary
    self.access = access
    self.rateClass = rateClass
    self.refusals = refusals
    requestSchema = Request.schema
    responseSchema = Response.schema
    perform = { input, caller in
      try WireCoding.encode(try await body(try input.decode(as: Request.self), caller))
    }
  }
}

/// A request's values, still as JSON.
public enum OperationInput: Sendable {
  /// The whole text is the request.
  case document([UInt8])
  /// The request is the member `params` of an object.
  case parameters(of: [UInt8])

  /// - Throws: `RequestFault` with the field that is missing or of another type.
  func decode<Request: WireValue>(as type: Request.Type) throws(RequestFault) -> Request {
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

/// JSON as the wire has it.
enum WireCoding {
  static func encode(_ value: some Encodable) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    return Array(try encoder.encode(value))
  }

  /// Reads `bytes`, which must be what `JSONGrammar` accepts: the decoder itself passes over trailing commas and takes
  /// one of two members of one name.
  static func decode<Value: Decodable>(_ bytes: [UInt8]) throws(RequestFault) -> Value {
    guard JSONGrammar.accepts(bytes) else { throw .malformedJSON }
    do {
      return try JSONDecoder().decode(Value.self, from: Data(bytes))
    } catch let error as DecodingError {
      throw RequestFault(error)
    } catch {
      throw .malformedJSON
    }
  }
}

/// A request that no operation gets to see.
public enum RequestFault: Error, Sendable, Hashable {
  case notAttested
  case malformedJSON
  case fieldMissing(String)
  case fieldOfWrongType(String)
  /// A value of the query that stands there twice, or in the path as well.
  case fieldGivenTwice(String)
  case bodyTooLarge
  case bodyTooSlow
  case notJSON
  case unknownOperation
  case methodNotAllowed([String])
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

  private static func path(_ keys: [any CodingKey]) -> String {
    keys.isEmpty ? "body" : keys.map(\.stringValue).joined(separator: ".")
  }
}

extension RequestFault {
  /// What the log says of it.
  var cause: String {
    switch self {
    case .notAttested: "not_attested"
    case .malformedJSON: "malformed_json"
    case .fieldMissing(let field): "missing_\(field)"
    case .fieldOfWrongType(let field): "wrong_type_\(field)"
    case .fieldGivenTwice(let field): "given_twice_\(field)"
    case .bodyTooLarge: "body_too_large"
    case .bodyTooSlow: "body_too_slow"
    case .notJSON: "not_json"
    case .unknownOperation: "unknown_operation"
    case .methodNotAllowed: "method_not_allowed"
    case .tooFast: "rate"
    }
  }
}
