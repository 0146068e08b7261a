/// The body of every error response.
public struct ErrorBody: WireValue {
  /// Always `false`.
  public var success: Bool
  /// The same text as `message`. Existing clients read one or the other.
  public var error: String
  /// What is wrong, as a text for people.
  public var message: String
  /// A stable code for programs.
  public var code: String
  /// The id of the request, as in the header `X-Request-Id` and in the log.
  public var requestId: String
  /// The number of seconds to wait before the next attempt.
  public var retryAfter: Int?

  /// Creates the error body.
  public init(message: String, code: String, requestId: String, retryAfter: Int? = nil) {
    success = false
    error = message
    self.message = message
    self.code = code
    self.requestId = requestId
    self.retryAfter = retryAfter
  }

  public static let schema = JSONSchema.object([
    .required("success", .success), .required("error", .text), .required("message", .text), .required("code", .text),
    .required("requestId", .text), .optional("retryAfter", .integer(minimum: 1), "Seconds."),
  ])
}
