public import AttestClient
internal import ByteCoding
public import MFAWire
public import Foundation

/// Calls the operations of the MFA backend through the gate, each with an assertion of its own.
///
/// Calls from several tasks are safe; they are sent one after another.
public struct NetworkService: MFABackend {
  private let session: AttestSession
  private let base: URL
  private let timeout: Duration

  /// Creates a service for the backend behind the gate of `session`.
  ///
  /// - Parameters:
  ///   - base: The URL of the API, if it has another path than ``MFAConfiguration/path``. Its scheme, host and port are
  ///     those of the gate.
  ///   - timeout: How long a call may take.
  public init(session: AttestSession, base: URL? = nil, timeout: Duration = .seconds(MFAConfiguration.timeout)) {
    self.session = session
    self.base = base ?? session.gate.url("https", MFAConfiguration.path)
    self.timeout = timeout
  }

  /// Performs `operation` and returns its response.
  ///
  /// - Parameter token: The access token of a session, for operations that need one.
  /// - Throws: `.refused` if the backend refuses; `.gate` if the request did not reach it, or if its answer was lost;
  ///   `.malformed` if the answer is not what the operation answers.
  public func call<Request, Response>(
    _ operation: WireOperation<Request, Response>, _ request: Request, token: String?
  ) async throws(NetworkError) -> Response {
    var message = try Self.message(operation, request, base)
    message.headers.append(HTTPField("Accept", "application/json"))
    if let token { message.headers.append(HTTPField("Authorization", "Bearer " + token)) }
    let (session, request) = (session, message)
    let answer = try await CallDeadline.within(timeout) { () async throws(NetworkError) in
      do throws(AttestError) { return try await session.data(for: request) } catch { throw .gate(error) }
    }
    return try Self.response(of: answer)
  }

  /// The HTTP request of an operation: fields of the path are escaped, those of `GET` and `DELETE` are in the query.
  private static func message<Request, Response>(
    _ operation: WireOperation<Request, Response>, _ request: Request, _ base: URL
  ) throws(NetworkError) -> HTTPRequest {
    let body: [UInt8]
    var fields: [String: String] = [:]
    do {
      body = [UInt8](try JSONEncoder().encode(request))
      let object = try JSONSerialization.jsonObject(with: Data(body)) as? [String: Any] ?? [:]
      for (name, value) in object where !(value is NSNull) { fields[name] = "\(value)" }
    } catch {
      throw .malformed(requestID: nil, "the request cannot be encoded: \(error)")
    }
    var path = operation.path
    for (name, value) in fields where path.contains("{\(name)}") {
      path = path.replacing("{\(name)}", with: value.percentEncoded)
      fields[name] = nil
    }
    let query = fields.sorted { $0.key < $1.key }.map { "\($0.key.percentEncoded)=\($0.value.percentEncoded)" }
    if operation.method != .post, !query.isEmpty { path += "?" + query.joined(separator: "&") }
    guard let url = URL(string: base.absoluteString.droppingTrailingSlashes + path) else {
      throw .malformed(requestID: nil, "not a URL: \(base.absoluteString + path)")
    }
    switch operation.method {
    case .get: return HTTPRequest(method: .get, url: url)
    case .delete: return HTTPRequest(method: .delete, url: url)
    case .post:
      return HTTPRequest(
        method: .post, url: url, headers: [HTTPField("Content-Type", "application/json")], body: body)
    }
  }

  private static func response<Response: WireValue>(of answer: HTTPResponse) throws(NetworkError) -> Response {
    let requestID = answer.value(of: "X-Request-Id").map(TerminalText.printable)
    guard (200..<300).contains(answer.status) else {
      guard let body = try? JSONDecoder().decode(ErrorBody.self, from: Data(answer.body)) else {
        throw .malformed(requestID: requestID, "status \(answer.status) without an error body")
      }
      throw .refused(BackendRefusal(status: answer.status, body))
    }
    do {
      return try JSONDecoder().decode(Response.self, from: Data(answer.body))
    } catch {
      throw .malformed(requestID: requestID, "the answer is not a \(Response.self)")
    }
  }
}

/// Why a call of the backend has no response.
public enum NetworkError: Error, Sendable, Hashable {
  /// The gate refused the request, or there was no complete answer.
  case gate(AttestError)
  /// The backend refused the request.
  case refused(BackendRefusal)
  /// The answer is not what the operation answers. `requestID` finds the request in the backend's log.
  case malformed(requestID: String?, String)
}

/// A refusal of the backend. Its texts cannot steer a terminal.
public struct BackendRefusal: Error, Sendable, Hashable {
  /// The HTTP status; `nil` if the refusal came by a socket.
  public let status: Int?
  /// The code for programs, for example `invalid_code`.
  public let code: String
  /// The text for people.
  public let message: String
  /// The id of the request in the backend's log.
  public let requestID: String
  /// How long to wait before the next attempt.
  public let retryAfter: Duration?

  /// The codes of a backend that failed. It may have carried out the request: a store that fails may have written already.
  private static let codesOfFailures: Set<String> = ["internal_error", "unavailable"]

  /// Whether the backend failed, rather than refused.
  public var isFailure: Bool { Self.codesOfFailures.contains(code) }

  /// The longest wait that a backend can ask for, in seconds.
  private static let longestWait = 86_400

  /// Creates a refusal, for tests of an app.
  public init(status: Int? = nil, _ body: ErrorBody) {
    self.status = status
    code = TerminalText.printable(body.code)
    message = TerminalText.printable(body.message)
    requestID = TerminalText.printable(body.requestId)
    retryAfter = body.retryAfter.map { .seconds(min(max($0, 0), Self.longestWait)) }
  }
}

extension NetworkError {
  /// The HTTP status of the refusal, by the gate or by the backend; `nil` if the request was not refused, or refused
  /// by a socket.
  public var status: Int? {
    switch self {
    case .gate(let error): error.refusal?.status
    case .refused(let refusal): refusal.status
    case .malformed: nil
    }
  }

  /// Whether the server may have carried out the request, as far as the app can tell.
  ///
  /// `false` for all refusals but those of a server that failed, or whose answer did not reach the gate.
  public var mayHaveBeenCarriedOut: Bool {
    switch self {
    case .refused(let refusal): refusal.isFailure
    case .malformed: true
    case .gate(.transport(let error)):
      switch error {
      case .unreachable, .untrusted: false
      case .lost, .malformed, .tooLarge: true
      }
    case .gate(.cancelled): true
    // The gate may have passed the request on: the server answered too late, or its connection ended.
    case .gate(.assertionFailed(let refusal)): refusal.code == .upstreamUnavailable
    case .gate: false
    }
  }

  /// How long to wait before the next attempt, as the gate or the backend says; `nil` if it does not say so.
  public var retryAfter: Duration? {
    switch self {
    case .gate(let error): error.refusal?.retryAfter
    case .refused(let refusal): refusal.retryAfter
    case .malformed: nil
    }
  }
}

extension AttestError {
  fileprivate var refusal: GateRefusal? {
    switch self {
    case .challengeFailed(let refusal), .registrationFailed(let refusal), .assertionFailed(let refusal),
      .keyRevoked(let refusal):
      refusal
    case .missingNonce, .serviceUnavailable, .renewedTooRecently, .unusableAddress, .keyService, .transport, .store,
      .cancelled:
      nil
    }
  }
}

extension NetworkError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .gate(let error): "\(error)"
    case .refused(let refusal): refusal.message
    case .malformed(let id, let reason): "malformed answer: \(reason)" + (id.map { " (request \($0))" } ?? "")
    }
  }
}

extension String {
  /// The text with every byte escaped that is not unreserved in a URL (RFC 3986 section 2.3).
  fileprivate var percentEncoded: String {
    let unreserved = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~".utf8)
    return utf8.map { unreserved.contains($0) ? String(UnicodeScalar($0)) : "%" + Hex.encode([$0]).uppercased() }
      .joined()
  }

  fileprivate var droppingTrailingSlashes: String {
    var text = self
    while text.hasSuffix("/") { text.removeLast() }
    return text
  }
}
