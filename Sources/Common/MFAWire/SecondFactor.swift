/// A request without fields.
public struct EmptyRequest: WireValue {
  /// Creates the request.
  public init() {}

  public static let schema = JSONSchema.object([])
}

/// A response that is only a text for people.
public struct MessageResponse: WireValue {
  /// The text.
  public var message: String

  /// Creates the response.
  public init(message: String) { self.message = message }

  public static let schema = JSONSchema.object([.required("message", .text)])
}

/// The response of `GET /auth/mfa/status`. Times are ISO 8601 in UTC.
public struct MFAStatus: WireValue {
  /// The rules that a client has to follow.
  public struct Policy: WireValue {
    /// Whether a client may show its biometric gate before the user enters the code.
    public var biometric_gate: Bool

    /// Creates the value.
    public init(biometricGate: Bool) { biometric_gate = biometricGate }

    public static let schema = JSONSchema.object([.required("biometric_gate", .boolean)])
  }

  /// Whether a second factor is set up.
  public var enabled: Bool
  /// The time when the second factor was set up; `null` if there is none.
  @Nullable public var enrolled_at: String?
  /// The number of unused backup codes.
  public var backup_codes_remaining: Int
  /// The number of trusted devices.
  public var trusted_devices_count: Int
  /// The number of registered security keys.
  public var security_keys_count: Int
  /// Whether the policy requires a second factor of this user.
  public var required: Bool
  /// The time since which the second factor is required; `null` if it is not required.
  @Nullable public var required_at: String?
  /// The end of the grace period; `null` if no second factor is required.
  @Nullable public var grace_period_end: String?
  /// Whether the grace period is still running.
  public var in_grace_period: Bool
  /// Whether this session still needs the second factor.
  public var challenge_required: Bool
  /// Whether this app instance is a trusted device of the user.
  public var device_trusted: Bool
  /// The methods that the second factor can be given by: `totp`, `email`, `backup_code`, `webauthn`.
  public var methods: [String]
  /// The rules that a client has to follow.
  public var policy: Policy

  /// Creates the response.
  public init(
    enabled: Bool, enrolledAt: String?, backupCodesRemaining: Int, trustedDevicesCount: Int, securityKeysCount: Int,
    required: Bool, requiredAt: String?, gracePeriodEnd: String?, inGracePeriod: Bool, challengeRequired: Bool,
    deviceTrusted: Bool, methods: [String], policy: Policy
  ) {
    self.enabled = enabled
    enrolled_at = enrolledAt
    backup_codes_remaining = backupCodesRemaining
    trusted_devices_count = trustedDevicesCount
    security_keys_count = securityKeysCount
    self.required = required
    required_at = requiredAt
    grace_period_end = gracePeriodEnd
    in_grace_period = inGracePeriod
    challenge_required = challengeRequired
    device_trusted = deviceTrusted
    self.methods = methods
    self.policy = policy
  }

  public static let schema = JSONSchema.object([
    .required("enabled", .boolean), .required("enrolled_at", .nullable(.time)),
    .required("backup_codes_remaining", .integer(minimum: 0)),
    .required("trusted_devices_count", .integer(minimum: 0)),
    .required("security_keys_count", .integer(minimum: 0)), .required("required", .boolean),
    .required("required_at", .nullable(.time)), .required("grace_period_end", .nullable(.time)),
    .required("in_grace_period", .boolean),
    .required("challenge_required", .boolean, "Whether this session still needs the second factor."),
    .required("device_trusted", .boolean),
    .required("methods", .array(.oneOf(["totp", "email", "backup_code", "webauthn"]))),
    .required("policy", Policy.schema),
  ])
}

/// The request of `POST /auth/mfa/verify-login`.
public struct VerifyMFARequest: WireValue {
  /// A code of the authenticator, an e-mail code or a backup code. Spaces and hyphens are ignored.
  public var code: String
  /// Whether to trust this device for 30 days.
  public var trust_device: Bool?
  /// The method of the code: `totp`, `email` or `backup_code`. Absent: the server finds out.
  public var method: String?
  /// The name of the device in the list of trusted devices.
  public var device_name: String?

  /// Creates the request.
  public init(code: String, trustDevice: Bool? = nil, method: String? = nil, deviceName: String? = nil) {
    self.code = code
    trust_device = trustDevice
    self.method = method
    device_name = deviceName
  }

  public static let schema = JSONSchema.object([
    .required("code", .code, "An authenticator code, an e-mail code or a backup code. Spaces and hyphens are ignored."),
    .optional("trust_device", .boolean, "Trust this device for 30 days, without the second factor."),
    .optional("method", .oneOf(["totp", "email", "backup_code"])), .optional("device_name", .deviceModel),
  ])
}

/// The response of `POST /auth/mfa/verify-login` and `POST /auth/webauthn/authentication`.
public struct VerifyMFAResponse: WireValue {
  /// A text for people.
  public var message: String
  /// The id of the user.
  public var user_id: String
  /// The access token of the full session.
  public var token: String
  /// The refresh token of the full session.
  public var refresh_token: String
  /// The lifetime of the access token, in seconds.
  public var expires_in: Int
  /// The token to send with later sign-ins from this device; absent unless trust was requested.
  public var trust_token: String?

  /// Creates the response.
  public init(
    message: String, userID: String, token: String, refreshToken: String, expiresIn: Int, trustToken: String?
  ) {
    self.message = message
    user_id = userID
    self.token = token
    refresh_token = refreshToken
    expires_in = expiresIn
    trust_token = trustToken
  }

  public static let schema = JSONSchema.object([
    .required("message", .constant("MFA verification successful")), .required("user_id", .uuid),
    .required("token", .text), .required("refresh_token", .text), .required("expires_in", .integer(minimum: 1)),
    .optional("trust_token", .trustToken, "Send it with later sign-ins from this device."),
  ])
}

/// The response of `GET /auth/mfa/trusted-devices`.
public struct TrustedDeviceList: WireValue {
  /// One trusted device. Times are ISO 8601 in UTC.
  public struct Entry: WireValue {
    /// The id, for `DELETE /auth/mfa/trusted-devices/{id}`.
    public var id: Int64
    /// The name that the client gave.
    public var device_name: String
    /// A fingerprint of the device, for people.
    public var fingerprint: String
    /// The time when the device became trusted.
    public var created_at: String
    /// The time when trust last replaced the second factor.
    public var last_used_at: String
    /// The time when the trust expires.
    public var expires_at: String
    /// The client address from which the device became trusted, as the gate reports it.
    public var ip_address: String?

    /// Creates the entry.
    public init(
      id: Int64, deviceName: String, fingerprint: String, createdAt: String, lastUsedAt: String, expiresAt: String,
      ipAddress: String?
    ) {
      self.id = id
      device_name = deviceName
      self.fingerprint = fingerprint
      created_at = createdAt
      last_used_at = lastUsedAt
      expires_at = expiresAt
      ip_address = ipAddress
    }

    public static let schema = JSONSchema.object([
      .required("id", .integer(minimum: 1)), .required("device_name", .text), .required("fingerprint", .text),
      .required("created_at", .time), .required("last_used_at", .time), .required("expires_at", .time),
      .optional("ip_address", .text),
    ])
  }

  /// The trusted devices, oldest first.
  public var devices: [Entry]

  /// Creates the response.
  public init(devices: [Entry]) { self.devices = devices }

  public static let schema = JSONSchema.object([.required("devices", .array(Entry.schema))])
}

/// The request of `DELETE /auth/mfa/trusted-devices/{id}`.
public struct TrustedDeviceRequest: WireValue {
  /// The id of the trusted device.
  public var id: Int64

  /// Creates the request.
  public init(id: Int64) { self.id = id }

  public static let schema = JSONSchema.object([.required("id", .integer(minimum: 1))])
}
