/// The request of `POST /mfa/recovery` and `POST /mfa/recovery/stop`.
public struct RecoveryCodeRequest: WireValue {
  /// The username of the account.
  public var username: String
  /// A backup code to start a recovery; the code from the message to stop it.
  public var code: String

  /// Creates the request.
  public init(username: String, code: String) {
    self.username = username
    self.code = code
  }

  public static let schema = JSONSchema.object([.required("username", .username), .required("code", .code)])
}

/// The response of `POST /mfa/recovery`, for the app instance that started the recovery.
public struct RecoveryStarted: WireValue {
  /// Always `true`.
  public var success: Bool
  /// The token that completes the recovery in `POST /mfa/enroll`.
  public var recoveryToken: String
  /// The state: `waiting`, `ready`, `completed`, `cancelled` or `expired`.
  public var state: String
  /// The time from which the recovery can be completed, ISO 8601 in UTC.
  public var readyAt: String
  /// The time after which the recovery can no longer be completed, ISO 8601 in UTC.
  public var expiresAt: String
  /// The number of unused backup codes.
  public var backupCodesRemaining: Int

  /// Creates the response.
  public init(recoveryToken: String, state: String, readyAt: String, expiresAt: String, backupCodesRemaining: Int) {
    success = true
    self.recoveryToken = recoveryToken
    self.state = state
    self.readyAt = readyAt
    self.expiresAt = expiresAt
    self.backupCodesRemaining = backupCodesRemaining
  }

  public static let schema = JSONSchema.object([
    .required("success", .success),
    .required("recoveryToken", .recoveryToken, "Enrols one device, once, from this app instance. Keep it."),
    .required("state", .recoveryState), .required("readyAt", .time, "When the recovery can be completed."),
    .required("expiresAt", .time, "When the recovery expires."),
    .required(
      "backupCodesRemaining", .integer(minimum: 0), "If the authenticator is lost too, the next sign-in needs one."),
  ])
}

/// The request of `POST /mfa/recovery/status`.
public struct RecoveryTokenRequest: WireValue {
  /// The token from `POST /mfa/recovery`.
  public var recoveryToken: String

  /// Creates the request.
  public init(recoveryToken: String) { self.recoveryToken = recoveryToken }

  public static let schema = JSONSchema.object([.required("recoveryToken", .recoveryToken)])
}

/// The response of `POST /mfa/recovery/status`.
public struct RecoveryStatus: WireValue {
  /// Always `true`.
  public var success: Bool
  /// The state: `waiting`, `ready`, `completed`, `cancelled` or `expired`.
  public var state: String
  /// The time from which the recovery can be completed, ISO 8601 in UTC.
  public var readyAt: String
  /// The time after which the recovery can no longer be completed, ISO 8601 in UTC.
  public var expiresAt: String

  /// Creates the response.
  public init(state: String, readyAt: String, expiresAt: String) {
    success = true
    self.state = state
    self.readyAt = readyAt
    self.expiresAt = expiresAt
  }

  public static let schema = JSONSchema.object([
    .required("success", .success), .required("state", .recoveryState), .required("readyAt", .time),
    .required("expiresAt", .time),
  ])
}

/// An open recovery, as its account or an admin sees it.
public struct OpenRecovery: WireValue, Hashable {
  /// The time when the recovery was started, ISO 8601 in UTC.
  public var startedAt: String
  /// The time from which the recovery can be completed, ISO 8601 in UTC.
  public var readyAt: String
  /// The time after which the recovery can no longer be completed, ISO 8601 in UTC.
  public var expiresAt: String
  /// The client address that started the recovery, as the gate reports it.
  public var address: String
  /// Whether an app instance with an attested key started the recovery.
  public var attested: Bool

  /// Creates the value.
  public init(startedAt: String, readyAt: String, expiresAt: String, address: String, attested: Bool) {
    self.startedAt = startedAt
    self.readyAt = readyAt
    self.expiresAt = expiresAt
    self.address = address
    self.attested = attested
  }

  public static let schema = JSONSchema.object([
    .required("startedAt", .time), .required("readyAt", .time), .required("expiresAt", .time),
    .required("address", .text, "The client address that started it, as the gate reports it."),
    .required("attested", .boolean, "Whether an app instance with an attested key started it."),
  ])
}

/// The response of `GET /mfa/recovery`.
public struct OwnRecovery: WireValue {
  /// The open recovery of the caller's account; `null` if there is none.
  @Nullable public var recovery: OpenRecovery?

  /// Creates the value.
  public init(recovery: OpenRecovery?) { self.recovery = recovery }

  public static let schema = JSONSchema.object([.required("recovery", .nullable(OpenRecovery.schema))])
}

/// The response of `GET /admin/recoveries`: one page of open recoveries, sorted by username.
public struct RecoveryList: WireValue {
  /// One open recovery.
  public struct Entry: WireValue {
    /// The username of the account.
    public var username: String
    /// The recovery.
    public var recovery: OpenRecovery

    /// Creates the entry.
    public init(username: String, recovery: OpenRecovery) {
      self.username = username
      self.recovery = recovery
    }

    public static let schema = JSONSchema.object([
      .required("username", .text), .required("recovery", OpenRecovery.schema),
    ])
  }

  /// The recoveries of this page.
  public var recoveries: [Entry]
  /// The username to send as `after` for the next page; `null` on the last page.
  @Nullable public var next: String?

  /// Creates the response.
  public init(recoveries: [Entry], next: String?) {
    self.recoveries = recoveries
    self.next = next
  }

  public static let schema = JSONSchema.object([
    .required("recoveries", .array(Entry.schema)),
    .required("next", .nullable(.text), "The value of after for the next page; null on the last page."),
  ])
}
