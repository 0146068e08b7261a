internal import MFAWire

/// `session.attach`, which only sockets have: REST brings its token with each request.
struct AttachRequest: WireValue {
  static let method = "session.attach"

  var token: String
  /// The number of the last notice that the client has seen; absent, only those from now on are told.
  var after: Int64?

  static let schema = JSONSchema.object([
    .required("token", .text),
    .optional("after", .integer(minimum: 0), "The number of the last notice seen; later ones are told again."),
  ])
}
