/// What every refusal looks like.
public struct ErrorBody: WireValue {
  public var success: Bool
  /// The same text as `message`: one of the two is what a client of the seeds reads.
  public var error: String
  public var message: String
  /// A stable word.
  public var code: String
  public var requestId: String
  /// Seconds.
  public var retryAfter: Int?

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
