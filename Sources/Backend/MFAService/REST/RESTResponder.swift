internal import ByteCoding
internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import MFADomain
internal import MFAWire
internal import NIOCore

/// Answers HTTP requests by running operations.
struct RESTResponder: HTTPResponder {
  typealias Context = BasicRequestContext

  /// The maximum size of a request body, in bytes.
  static let largestBody = 1 << 16

  let live: LiveService
  let documents: PublicDocuments

  /// A response to HEAD has no body, only its length (RFC 9110, section 9.3.2). A client that keeps the connection
  /// would take a body for the next response.
  func respond(to request: Request, context: Context) async throws -> Response {
    let response = await self.response(to: request)
    return request.method == .head ? response.createHeadResponse() : response
  }

  private func response(to request: Request) async -> Response {
    let service = live.current
    let requestID = service.callers.requestID(of: request.headers)
    do throws(PublicRefusal) {
      if let document = documents.document(at: request.uri.path) {
        guard request.method == .get else {
          let fault = OperationInputError.methodNotAllowed(["GET"])
          service.registry.logUnserved(fault, requestID: requestID)
          throw PublicRefusal(fault)
        }
        return Self.response(.ok, document, requestID)
      }
      return Self.response(.ok, try await Self.answer(request, requestID, service), requestID)
    } catch {
      return Self.response(refusing: error, requestID)
    }
  }

  private static func answer(
    _ request: Request, _ requestID: String, _ service: ServiceGeneration
  ) async throws(PublicRefusal) -> [UInt8] {
    let match = Result { () throws(OperationInputError) in
      guard request.uri.string.utf8.count <= RESTRouteTable.longestTarget else { throw .unknownOperation }
      return try service.routes.match(
        request.method.rawValue, request.uri.path,
        query: request.uri.queryParameters.map { (String($0.key), String($0.value)) })
    }
    // Before the identity, which is recorded by the operation's first write: in between, a copy of a request whose body
    // comes slowly could arrive with another body.
    let body = await body(of: request, match)
    let caller: Caller
    let unspent: UnspentIdentity?
    do {
      (caller, unspent) = try await service.callers.caller(
        of: request.headers, requestID: requestID,
        opening: RequestLine(method: request.method.rawValue, target: request.head.path ?? ""),
        effect: effect(of: match, at: request.uri.path))
    } catch {
      service.registry.logUnserved(error, requestID: requestID)
      throw PublicRefusal(error)
    }
    let outcome = await UnspentIdentity.$current.withValue(unspent) {
      await Self.outcome(of: request, match, body, for: caller, service)
    }
    return try outcome.get()
  }

  /// What a request can change, by its operation. One that reaches no operation changes nothing.
  private static func effect(
    of match: Result<RESTRouteTable.Match, OperationInputError>, at path: String
  ) -> GateIdentityVerifier.Effect {
    switch match {
    case .success(let match) where match.operation.givesAccess: .access
    case .success(let match): match.operation.method == .get ? .none : .write
    // An identity for such a path could open a socket elsewhere.
    case .failure: UpgradableChannel.paths.contains(path) ? .access : .none
    }
  }

  /// Runs the operation of a request. Logs the refusals before it, because no operation does.
  private static func outcome(
    of request: Request, _ match: Result<RESTRouteTable.Match, OperationInputError>, _ body: Result<[UInt8], any Error>,
    for caller: Caller, _ service: ServiceGeneration
  ) async -> Result<[UInt8], PublicRefusal> {
    let operation: Operation
    let input: [UInt8]
    let key: IdempotencyKey?
    do {
      let match = try match.get()
      operation = match.operation
      key = operation.sendsMessages ? try Self.key(of: request) : nil
      input = operation.method == .post ? try body.get() : match.document
    } catch {
      let name = (try? match.get())?.operation.name
      service.registry.logUnserved(error, of: name, requestID: caller.requestID, by: caller.identity)
      return await service.registry.settled(.failure(PublicRefusal(error)), for: caller)
    }
    return await service.registry.outcome(of: operation, .document(input), for: caller, key: key)
  }

  /// Reads `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header); `nil` if there is none.
  private static func key(of request: Request) throws(OperationInputError) -> IdempotencyKey? {
    let fields = request.headers[values: .idempotencyKey]
    guard fields.count <= 1 else { throw .idempotencyKeyMalformed }
    guard let text = fields.first else { return nil }
    return try IdempotencyKey(text)
  }

  /// Reads the body if the operation has one.
  private static func body(
    of request: Request, _ match: Result<RESTRouteTable.Match, OperationInputError>
  ) async -> Result<[UInt8], any Error> {
    guard case .success(let match) = match, match.operation.method == .post else { return .success([]) }
    do { return .success(try await body(of: request)) } catch { return .failure(error) }
  }

  private static func body(of request: Request) async throws -> [UInt8] {
    if let type = request.headers[.contentType], !isJSON(type) { throw OperationInputError.notJSON }
    do {
      return Array(try await request.body.collect(upTo: largestBody).readableBytesView)
    } catch is NIOTooManyBytesError {
      throw OperationInputError.bodyTooLarge
    } catch is RequestBodyDeadline.Passed {
      throw OperationInputError.bodyTooSlow
    }
  }

  /// Whether a media type is `application/json`, in any case and with any parameters (RFC 9110, section 8.3.1).
  private static func isJSON(_ type: String) -> Bool {
    let essence = type.utf8.prefix { $0 != UInt8(ascii: ";") }.drop { $0 == 0x20 || $0 == 0x09 }
    let name = "application/json".utf8
    return essence.count >= name.count && zip(essence, name).allSatisfy { $0 == $1 || $0 | 0x20 == $1 }
      && essence.dropFirst(name.count).allSatisfy { $0 == 0x20 || $0 == 0x09 }
  }

  private static func response(
    _ status: HTTPResponse.Status, _ body: [UInt8], _ requestID: String, _ more: HTTPFields = [:]
  ) -> Response {
    var headers: HTTPFields = [
      .contentType: "application/json", .cacheControl: "no-store", .requestID: requestID,
      .contentLength: String(body.count),
    ]
    headers.append(contentsOf: more)
    return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: body)))
  }

  static func response(refusing refusal: PublicRefusal, _ requestID: String) -> Response {
    var headers: HTTPFields = [:]
    // RFC 9110, section 15.5.9: the server closes the connection after 408.
    if refusal.code == .requestTimeout { headers[.connection] = "close" }
    for field in refusal.fields {
      if let name = HTTPField.Name(field.name) { headers[name] = field.value }
    }
    return response(
      HTTPResponse.Status(code: refusal.code.status), refusal.body(requestID: requestID), requestID, headers)
  }
}

extension PublicRefusal {
  /// The JSON body of the error response.
  func body(requestID: String) -> [UInt8] {
    let body = ErrorBody(message: text, code: code.rawValue, requestId: requestID, retryAfter: retryAfter)
    // Encoding strings and a number cannot fail.
    return (try? WireCoding.encode(body)) ?? Array("{\"success\":false}".utf8)
  }
}

extension HTTPField.Name {
  // Constants, and valid tokens of RFC 9110.
  static let requestID = HTTPField.Name("X-Request-Id")!
  static let idempotencyKey = HTTPField.Name("Idempotency-Key")!
  static let attestAssertion = HTTPField.Name("X-Attest-Assertion")!
}
