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
