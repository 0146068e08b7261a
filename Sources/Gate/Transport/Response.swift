/// An answer that the engine writes. The engine adds `Content-Length`, `Date` and, if it closes the connection,
/// `Connection`.
public struct Response: Sendable, Hashable {
  /// A final status, 200 to 599.
  public let status: Int
  public let headers: HeaderFields
  public let body: [UInt8]
  /// Whether the engine closes the connection after this answer.
  ///
  /// The engine also closes it where the protocol requires that: nothing is parsed after a refused upgrade or a
  /// malformed head.
  public let closes: Bool

  public init(status: Int, headers: HeaderFields = HeaderFields(), body: [UInt8] = [], closes: Bool = false) {
    self.status = status
    self.headers = headers
    self.body = body
    self.closes = closes
  }
}
