/// An answer that the engine writes by itself: it adds `Content-Length`, `Date` and, where it closes, `Connection`.
public struct Response: Sendable, Hashable {
  /// A final status, 200 to 599.
  public let status: Int
  public let headers: HeaderFields
  public let body: [UInt8]
  /// Whether the connection ends behind this answer. The engine also closes where the protocol asks for it: after
  /// a refused upgrade and after a malformed head nothing that follows is parsed.
  public let closes: Bool

  public init(status: Int, headers: HeaderFields = HeaderFields(), body: [UInt8] = [], closes: Bool = false) {
    self.status = status
    self.headers = headers
    self.body = body
    self.closes = closes
  }
}
