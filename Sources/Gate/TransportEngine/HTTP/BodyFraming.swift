/// Where a message's body ends (RFC 9112 section 6.3).
enum BodyFraming: Sendable, Hashable {
  /// There is none, and nothing says how long it would be.
  case none
  /// So many bytes.
  case length(Int)
  /// With the last chunk.
  case chunked
  /// With the connection; responses only.
  case untilClose
}
