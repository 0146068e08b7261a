/// The request of `GET /auth/notices`.
public struct NoticesRequest: WireValue {
  /// The sequence number of the last notice that the client has; absent for all notices.
  public var after: Int64?

  /// Creates the request.
  public init(after: Int64? = nil) { self.after = after }

  public static let schema = JSONSchema.object([
    .optional("after", .integer(minimum: 0), "The number of the last notice that the client has; absent for all.")
  ])
}

/// A notice to all devices of a user. A socket sends it as the notification `notice`.
public struct NoticeEntry: WireValue {
  /// The number of the notice, counted from 1 for each user.
  public var sequence: Int64
  /// What happened.
  public var kind: String
  /// The time of the event, ISO 8601 in UTC.
  public var at: String
  /// The id of the device, session, trusted device, security key, authenticator or recovery concerned; absent if the
  /// notice concerns the whole account.
  public var concerning: String?

  /// Creates the entry.
  public init(sequence: Int64, kind: String, at: String, concerning: String?) {
    self.sequence = sequence
    self.kind = kind
    self.at = at
    self.concerning = concerning
  }

  public static let schema = JSONSchema.object([
    .required("sequence", .integer(minimum: 1)), .required("kind", .text), .required("at", .time),
    .optional("concerning", .text),
  ])
}

/// The response of `GET /auth/notices`.
public struct NoticeList: WireValue {
  /// The notices, oldest first.
  public var notices: [NoticeEntry]

  /// Creates the response.
  public init(notices: [NoticeEntry]) { self.notices = notices }

  public static let schema = JSONSchema.object([.required("notices", .array(NoticeEntry.schema))])
}
