/// `POST /mfa/recovery`, and `POST /mfa/recovery/stop`
public struct RecoveryCodeRequest: WireValue {
  public var username: String
  public var code: String

  public init(username: String, code: String) {
    self.username = username
    self.code = code
  }

  public static let schema = JSONSchema.object([.required("username", .username), .required("code", .code)])
}

/// A recovery, as the client that began it sees it.
public struct RecoveryStarted: WireValue {
  public var success: Bool
  /// What `POST /mfa/enroll` completes it with.
  public var recoveryToken: String
  public var state: String
  public var readyAt: String
  public var expiresAt: String
  public var backupCodesRemaining: Int

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
    .required("recoveryToken", .recoveryToken, "Brings a device in, once, from this app instance; keep it."),
    .required("state", .recoveryState), .required("readyAt", .time, "When the waiting is over."),
    .required("expiresAt", .time, "When it is too late."),
    .required(
      "backupCodesRemaining", .integer(minimum: 0), "Where the authenticator is lost too, the next sign-in needs one."),
  ])
}

/// `POST /mfa/recovery/status`
public struct RecoveryTokenRequest: WireValue {
  public var recoveryToken: String

  public init(recoveryToken: String) { self.recoveryToken = recoveryToken }

  public static let schema = JSONSchema.object([.required("recoveryToken", .recoveryToken)])
}

public struct RecoveryStatus: WireValue {
  public var success: Bool
  public var state: String
  public var readyAt: String
  public var expiresAt: String

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

/// A recovery as the account that it is of sees it.
public struct OpenRecovery: WireValue, Hashable {
  public var startedAt: String
  public var readyAt: String
  public var expiresAt: String
  public var address: String
  public var attested: Bool

  public init(startedAt: String, readyAt: String, expiresAt: String, address: String, attested: Bool) {
    self.startedAt = startedAt
    self.readyAt = readyAt
    self.expiresAt = expiresAt
    self.address = address
    self.attested = attested
  }

  public static let schema = JSONSchema.object([
    .required("startedAt", .time), .required("readyAt", .time), .required("expiresAt", .time),
    .required("address", .text, "Where it was begun from, as the gate tells it."),
    .required("attested", .boolean, "Whether an app instance with an attested key began it."),
  ])
}

/// `GET /mfa/recovery`
public struct OwnRecovery: WireValue {
  /// `null` if none is open.
  @Nullable public var recovery: OpenRecovery?

  public init(recovery: OpenRecovery?) { self.recovery = recovery }

  public static let schema = JSONSchema.object([.required("recovery", .nullable(OpenRecovery.schema))])
}

/// `GET /admin/recoveries`
public struct RecoveryList: WireValue {
  public struct Entry: WireValue {
    public var username: String
    public var recovery: OpenRecovery

    public init(username: String, recovery: OpenRecovery) {
      self.username = username
      self.recovery = recovery
    }

    public static let schema = JSONSchema.object([
      .required("username", .text), .required("recovery", OpenRecovery.schema),
    ])
  }

  public var recoveries: [Entry]
  /// The name after which to go on; `null` at the end.
  @Nullable public var next: String?

  public init(recoveries: [Entry], next: String?) {
    self.recoveries = recoveries
    self.next = next
  }

  public static let schema = JSONSchema.object([
    .required("recoveries", .array(Entry.schema)),
    .required("next", .nullable(.text), "What to go on after; null at the end."),
  ])
}
