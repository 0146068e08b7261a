public import struct Foundation.URL

/// Sends one HTTP request to the gate and returns the answer.
///
/// An implementation verifies the server's certificate and name, and follows no redirects: a nonce belongs to the
/// gate that issued it.
public protocol HTTPTransport: Sendable {
  /// Returns the answer with any status. A refusal is an answer, not an error.
  func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPResponse
}

/// A request to the gate: of the registration protocol, or to the server behind it.
public struct HTTPRequest: Sendable, Hashable {
  /// The methods that the gate's routes and the MFA backend need.
  public enum Method: String, Sendable, Hashable {
    /// GET.
    case get = "GET"
    /// POST.
    case post = "POST"
    /// DELETE.
    case delete = "DELETE"
  }

  /// The method.
  public var method: Method
  /// The absolute URL.
  public var url: URL
  /// The header fields.
  public var headers: [HTTPField]
  /// The body; empty for none.
  public var body: [UInt8]

  /// Creates a request.
  public init(method: Method = .get, url: URL, headers: [HTTPField] = [], body: [UInt8] = []) {
    self.method = method
    self.url = url
    self.headers = headers
    self.body = body
  }
}

/// A final answer with its whole body.
public struct HTTPResponse: Sendable, Hashable {
  /// The HTTP status.
  public var status: Int
  /// The header fields in the order of the answer.
  public var headers: [HTTPField]
  /// The whole body.
  public var body: [UInt8]

  /// Creates a response, for transports and tests.
  public init(status: Int, headers: [HTTPField] = [], body: [UInt8] = []) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// The value of the first field called `name`, compared without case.
  public func value(of name: String) -> String? {
    headers.first { $0.name.lowercased() == name.lowercased() }?.value
  }
}

/// A header field.
public struct HTTPField: Sendable, Hashable {
  /// The name, in any case.
  public let name: String
  /// The value.
  public let value: String

  /// Creates a field.
  public init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }
}

/// Why there is no answer. The texts are for people.
public enum TransportError: Error, Sendable, Hashable {
  /// No connection: name resolution or routing failed, or no process listens.
  case unreachable(String)
  /// The handshake failed, or the server's certificate is not to be trusted.
  case untrusted(String)
  /// The connection ended, or time ran out, before the answer was complete: the request may have been carried out.
  case lost(String)
  /// The answer broke its protocol.
  case malformed(String)
}

extension TransportError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .unreachable(let reason): "the gate cannot be reached: \(reason)"
    case .untrusted(let reason): "no trusted connection: \(reason)"
    case .lost(let reason): "the gate's answer was lost: \(reason)"
    case .malformed(let reason): "the gate's answer is malformed: \(reason)"
    }
  }
}
