public import struct Foundation.URL

/// An HTTP request with its whole body.
public struct HTTPRequest: Sendable, Hashable {
  /// The methods in use.
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
