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
    let (operation, input, caller, key) = try await accepted(request, requestID, service)
    return try await service.registry.run(operation, .document(input), for: caller, key: key)
  }

  /// Finds the operation, its input, the caller and the idempotency key. Logs refusals, because no operation does.
  private static func accepted(
    _ request: Request, _ requestID: String, _ service: ServiceGeneration
  ) async throws(PublicRefusal) -> (Operation, [UInt8], Caller, IdempotencyKey?) {
    var caller: Caller?
    var operation: Operation?
    do {
      let known = try await service.callers.caller(
        of: request.headers, requestID: requestID, changesNothing: [.get, .head].contains(request.method))
      caller = known
      let match = try service.routes.match(
        request.method.rawValue, request.uri.path,
        query: request.uri.queryParameters.map { (String($0.key), String($0.value)) })
      operation = match.operation
      let key = match.operation.sendsMessages ? try key(of: request) : nil
      let input = match.operation.method == .post ? try await body(of: request) : match.document
      return (match.operation, input, known, key)
    } catch {
      service.registry.logUnserved(error, of: operation?.name, requestID: requestID, by: caller?.identity)
      throw PublicRefusal(error)
    }
  }

  /// Reads `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header); `nil` if there is none.
  private static func key(of request: Request) throws(OperationInputError) -> IdempotencyKey? {
    let fields = request.headers[values: .idempotencyKey]
    guard fields.count <= 1 else { throw .idempotencyKeyMalformed }
    guard let text = fields.first else { return nil }
    return try IdempotencyKey(text)
  }

  private static func body(of request: Request) async throws -> [UInt8] {
    let type = request.headers[.contentType]?.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces)
    if let type, type.lowercased() != "application/json" { throw OperationInputError.notJSON }
    do {
      return Array(try await request.body.collect(upTo: largestBody).readableBytesView)
    } catch is NIOTooManyBytesError {
      throw OperationInputError.bodyTooLarge
    } catch is RequestBodyDeadline.Passed {
      throw OperationInputError.bodyTooSlow
    }
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
