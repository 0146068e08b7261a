/// How the end of a message body is determined (RFC 9112 section 6.3).
enum BodyFraming: Sendable, Hashable {
  /// There is no body and no declared length.
  case none
  /// The body has this number of bytes.
  case length(Int)
  /// The body ends with the last chunk.
  case chunked
  /// The body ends with the connection; responses only.
  case untilClose
}
