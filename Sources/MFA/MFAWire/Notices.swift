/// `GET /auth/notices`
public struct NoticesRequest: WireValue {
  public var after: Int64?

  public init(after: Int64? = nil) { self.after = after }

  public static let schema = JSONSchema.object([
    .optional("after", .integer(minimum: 0), "The number of the last notice seen; absent for all.")
  ])
}

/// Something that a user's devices are told; on a socket as the notification `notice`.
public struct NoticeEntry: WireValue {
  public var sequence: Int64
  public var kind: String
  public var at: String
  /// The id of the device, session, trusted device, security key or recovery that it is about; absent for the account
  /// as a whole.
  public var concerning: String?

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

public struct NoticeList: WireValue {
  public var notices: [NoticeEntry]

  public init(notices: [NoticeEntry]) { self.notices = notices }

  public static let schema = JSONSchema.object([.required("notices", .array(NoticeEntry.schema))])
}
