internal import MFAWire

/// The request of `session.attach`, which only sockets have: REST sends its token with each request.
struct AttachRequest: WireValue {
  static let method = "session.attach"

  var token: String
  /// The sequence number of the last notice that the client has; absent to receive only new notices.
  var after: Int64?

  static let schema = JSONSchema.object([
    .required("token", .text),
    .optional("after", .integer(minimum: 0), "The number of the last notice that the client has. Later ones are sent."),
  ])
}
