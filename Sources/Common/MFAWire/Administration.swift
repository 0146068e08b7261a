/// The request of `GET /admin/users`.
public struct AccountsRequest: WireValue {
  /// The username after which the page starts: `next` of the previous page. Absent for the first page.
  public var after: String?

  /// Creates the request.
  public init(after: String? = nil) { self.after = after }

  public static let schema = JSONSchema.object([
    .optional("after", .username, "The username after which the page starts: `next` of the previous page.")
  ])
}

/// The response of `GET /admin/users`: one page of accounts, sorted by username.
public struct AccountList: WireValue {
  /// One account.
  public struct Entry: WireValue {
    /// The username, as the user wrote it.
    public var username: String
    /// The time of creation, ISO 8601 in UTC.
    public var createdAt: String
    /// Whether an operator or an admin locked the account.
    public var locked: Bool
    /// Whether the sessions of the account may use the admin operations.
    public var admin: Bool
    /// The ids of the enrolled devices.
    public var devices: [String]
    /// Whether a second factor is set up.
    public var mfaEnabled: Bool
    /// The number of unused backup codes.
    public var backupCodesRemaining: Int
    /// The number of trusted devices.
    public var trustedDevices: Int
    /// The number of registered security keys.
    public var securityKeys: Int

    /// Creates the entry.
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

  /// The accounts of this page.
  public var users: [Entry]
  /// The username to send as `after` for the next page; `null` on the last page.
  @Nullable public var next: String?

  /// Creates the response.
  public init(users: [Entry], next: String?) {
    self.users = users
    self.next = next
  }

  public static let schema = JSONSchema.object([
    .required("users", .array(Entry.schema)),
    .required("next", .nullable(.text), "The value of after for the next page; null on the last page."),
  ])
}

/// The request of the admin operations that change one account.
public struct AccountRequest: WireValue {
  /// The username of the account.
  public var username: String

  /// Creates the request.
  public init(username: String) { self.username = username }

  public static let schema = JSONSchema.object([.required("username", .username)])
}

/// The response of `POST /admin/reset`.
public struct ResetResponse: WireValue {
  /// Always `true`.
  public var success: Bool
  /// The code that the user enrols a new device with.
  public var temporaryCode: String
  /// The lifetime of the code, in seconds.
  public var expiresIn: Int

  /// Creates the response.
  public init(temporaryCode: String, expiresIn: Int) {
    success = true
    self.temporaryCode = temporaryCode
    self.expiresIn = expiresIn
  }

  public static let schema = JSONSchema.object([
    .required("success", .success), .required("temporaryCode", .code), .required("expiresIn", .integer(minimum: 1)),
  ])
}

/// The request of `GET /admin/users/{username}/history`.
public struct HistoryRequest: WireValue {
  /// The username of the account.
  public var username: String
  /// The sequence number before which the page ends: `next` of the previous page. Absent for the first page.
  public var before: Int64?

  /// Creates the request.
  public init(username: String, before: Int64? = nil) {
    self.username = username
    self.before = before
  }

  public static let schema = JSONSchema.object([
    .required("username", .username),
    .optional("before", .integer(minimum: 1), "The page ends before this number: `next` of the previous page."),
  ])
}

/// The response of `GET /admin/users/{username}/history`: one page of the audit history of an account.
public struct History: WireValue {
  /// One entry of the audit history.
  public struct Entry: WireValue {
    /// The number of the entry, counted from 1 over all accounts.
    public var sequence: Int64
    /// The time of the event, ISO 8601 in UTC.
    public var at: String
    /// The name of the event.
    public var event: String
    /// Details of the event, as `name=value` pairs.
    public var detail: String
    /// The app instance, admin or operator that caused the event.
    public var actor: String
    /// The id of the request that caused the event.
    public var requestId: String

    /// Creates the entry.
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

  /// The entries of this page, newest first.
  public var entries: [Entry]
  /// The sequence number to send as `before` for the next page; `null` on the last page.
  @Nullable public var next: Int64?

  /// Creates the value.
  public init(entries: [Entry], next: Int64?) {
    self.entries = entries
    self.next = next
  }

  public static let schema = JSONSchema.object([
    .required("entries", .array(Entry.schema), "Newest first."),
    .required("next", .nullable(.integer(minimum: 1)), "The value of before for the next page; null on the last page."),
  ])
}
