/// `GET /admin/users`
public struct AccountsRequest: WireValue {
  public var after: String?

  public init(after: String? = nil) { self.after = after }

  public static let schema = JSONSchema.object([
    .optional("after", .string(maxLength: 128), "The name after which to go on.")
  ])
}

public struct AccountList: WireValue {
  public struct Entry: WireValue {
    public var username: String
    public var createdAt: String
    public var locked: Bool
    public var admin: Bool
    public var devices: [String]
    public var mfaEnabled: Bool
    public var backupCodesRemaining: Int
    public var trustedDevices: Int

    public init(
      username: String, createdAt: String, locked: Bool, admin: Bool, devices: [String], mfaEnabled: Bool,
      backupCodesRemaining: Int, trustedDevices: Int
    ) {
      self.username = username
      self.createdAt = createdAt
      self.locked = locked
      self.admin = admin
      self.devices = devices
      self.mfaEnabled = mfaEnabled
      self.backupCodesRemaining = backupCodesRemaining
      self.trustedDevices = trustedDevices
    }

    public static let schema = JSONSchema.object([
      .required("username", .text), .required("createdAt", .time), .required("locked", .boolean),
      .required("admin", .boolean), .required("devices", .array(.text)), .required("mfaEnabled", .boolean),
      .required("backupCodesRemaining", .integer(minimum: 0)), .required("trustedDevices", .integer(minimum: 0)),
    ])
  }

  public var users: [Entry]

  public init(users: [Entry]) { self.users = users }

  public static let schema = JSONSchema.object([.required("users", .array(Entry.schema))])
}

/// What operators do to an account.
public struct AccountRequest: WireValue {
  public var username: String

  public init(username: String) { self.username = username }

  public static let schema = JSONSchema.object([.required("username", .username)])
}

public struct ResetResponse: WireValue {
  public var success: Bool
  /// What the user enrols a new device with.
  public var temporaryCode: String
  /// Seconds.
  public var expiresIn: Int

  public init(temporaryCode: String, expiresIn: Int) {
    success = true
    self.temporaryCode = temporaryCode
    self.expiresIn = expiresIn
  }

  public static let schema = JSONSchema.object([
    .required("success", .success), .required("temporaryCode", .code), .required("expiresIn", .integer(minimum: 1)),
  ])
}

/// `GET /admin/users/{username}/history`
public struct HistoryRequest: WireValue {
  public var username: String
  public var after: Int64?

  public init(username: String, after: Int64? = nil) {
    self.username = username
    self.after = after
  }

  public static let schema = JSONSchema.object([
    .required("username", .username), .optional("after", .integer(minimum: 0)),
  ])
}

public struct History: WireValue {
  public struct Entry: WireValue {
    public var sequence: Int64
    public var at: String
    public var event: String
    public var detail: String
    public var actor: String
    public var requestId: String

    public init(sequence: Int64, at: String, event: String, detail: String, actor: String, requestId: String) {
      self.sequence = sequence
      self.at = at
      self.event = event
      self.detail = detail
      self.actor = actor
      self.requestId = requestId
    }

    public static let schema = JSONSchema.object([
      .required("sequence", .integer(minimum: 1)), .required("at", .time), .required("event", .text),
      .required("detail", .text), .required("actor", .text), .required("requestId", .text),
    ])
  }

  public var entries: [Entry]

  public init(entries: [Entry]) { self.entries = entries }

  public static let schema = JSONSchema.object([.required("entries", .array(Entry.schema))])
}
