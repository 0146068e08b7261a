/// `GET /admin/users`
public struct AccountsRequest: WireValue {
  public var after: String?

  public init(after: String? = nil) { self.after = after }

  public static let schema = JSONSchema.object([
    .optional("after", .username, "The name after which to go on: `next` of the page before.")
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
    public var securityKeys: Int

    public init(
      username: String, createdAt: String, locked: Bool, admin: Bool, devices: [String], mfaEnabled: Bool,
      backupCodesRemaining: Int, trustedDevices: Int, securityKeys: Int
    ) {
      self.username = username
      self.createdAt = createdAt
      self.locked = locked
      self.admin = admin
      self.devices = devices
      self.mfaEnabled = mfaEnabled
      self.backupCodesRemaining = backupCodesRemaining
      self.trustedDevices = trustedDevices
      self.securityKeys = securityKeys
    }

    public static let schema = JSONSchema.object([
      .required("username", .text), .required("createdAt", .time), .required("locked", .boolean),
      .required("admin", .boolean), .required("devices", .array(.text)), .required("mfaEnabled", .boolean),
      .required("backupCodesRemaining", .integer(minimum: 0)), .required("trustedDevices", .integer(minimum: 0)),
      .required("securityKeys", .integer(minimum: 0)),
    ])
  }

  public var users: [Entry]
  /// The name after which to go on; `null` at the end.
  @Nullable public var next: String?

  public init(users: [Entry], next: String?) {
    self.users = users
    self.next = next
  }

  public static let schema = JSONSchema.object([
    .required("users", .array(Entry.schema)),
    .required("next", .nullable(.text), "What to go on after; null at the end."),
  ])
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
  public var before: Int64?

  public init(username: String, before: Int64? = nil) {
    self.username = username
    self.before = before
  }

  public static let schema = JSONSchema.object([
    .required("username", .username),
    .optional("before", .integer(minimum: 1), "The number before which to go on: `next` of the page before."),
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

  /// The newest first.
  public var entries: [Entry]
  /// The number before which to go on; `null` at the end.
  @Nullable public var next: Int64?

  public init(entries: [Entry], next: Int64?) {
    self.entries = entries
    self.next = next
  }

  public static let schema = JSONSchema.object([
    .required("entries", .array(Entry.schema), "The newest first."),
    .required("next", .nullable(.integer(minimum: 1)), "What to go on before; null at the end."),
  ])
}
