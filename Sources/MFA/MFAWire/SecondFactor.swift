/// A request without values.
public struct EmptyRequest: WireValue {
  public init() {}

  public static let schema = JSONSchema.object([])
}

/// An answer that is a text for people.
public struct MessageResponse: WireValue {
  public var message: String

  public init(message: String) { self.message = message }

  public static let schema = JSONSchema.object([.required("message", .text)])
}

/// `GET /auth/mfa/status`
public struct MFAStatus: WireValue {
  public struct Policy: WireValue {
    /// Whether a client may offer its biometric gate in front of the code.
    public var biometric_gate: Bool

    public init(biometricGate: Bool) { biometric_gate = biometricGate }

    public static let schema = JSONSchema.object([.required("biometric_gate", .boolean)])
  }

  public var enabled: Bool
  @Nullable public var enrolled_at: String?
  public var backup_codes_remaining: Int
  public var trusted_devices_count: Int
  public var security_keys_count: Int
  public var required: Bool
  @Nullable public var required_at: String?
  @Nullable public var grace_period_end: String?
  public var in_grace_period: Bool
  public var challenge_required: Bool
  public var device_trusted: Bool
  public var methods: [String]
  public var policy: Policy

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
    .required("challenge_required", .boolean, "Whether this session must still give the second factor."),
    .required("device_trusted", .boolean),
    .required("methods", .array(.oneOf(["totp", "email", "backup_code", "webauthn"]))),
    .required("policy", Policy.schema),
  ])
}

/// `POST /auth/mfa/verify-login`
public struct VerifyMFARequest: WireValue {
  public var code: String
  public var trust_device: Bool?
  public var method: String?
  public var device_name: String?

  public init(code: String, trustDevice: Bool? = nil, method: String? = nil, deviceName: String? = nil) {
    self.code = code
    trust_device = trustDevice
    self.method = method
    device_name = deviceName
  }

  public static let schema = JSONSchema.object([
    .required("code", .code, "Of the authenticator, of an e-mail, or of the paper; spaces and dashes do not count."),
    .optional("trust_device", .boolean, "Spares this device the second factor for 30 days."),
    .optional("method", .oneOf(["totp", "email", "backup_code"])), .optional("device_name", .deviceModel),
  ])
}

public struct VerifyMFAResponse: WireValue {
  public var message: String
  public var user_id: String
  public var token: String
  public var refresh_token: String
  /// Seconds.
  public var expires_in: Int
  public var trust_token: String?

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
    .optional("trust_token", .trustToken, "To be sent with later sign-ins from this device."),
  ])
}

public struct TrustedDeviceList: WireValue {
  public struct Entry: WireValue {
    public var id: Int64
    public var device_name: String
    public var fingerprint: String
    public var created_at: String
    public var last_used_at: String
    public var expires_at: String
    public var ip_address: String?

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

  public var devices: [Entry]

  public init(devices: [Entry]) { self.devices = devices }

  public static let schema = JSONSchema.object([.required("devices", .array(Entry.schema))])
}

/// `DELETE /auth/mfa/trusted-devices/{id}`
public struct TrustedDeviceRequest: WireValue {
  public var id: Int64

  public init(id: Int64) { self.id = id }

  public static let schema = JSONSchema.object([.required("id", .integer(minimum: 1))])
}
