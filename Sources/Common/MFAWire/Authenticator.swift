/// The request of `POST /auth/mfa/enroll`.
public struct AuthenticatorRequest: WireValue {
  /// The HMAC algorithm: `SHA1` (the default), `SHA256` or `SHA512`.
  public var algorithm: String?
  /// The number of digits of a code, 6 to 8; 6 by default.
  public var digits: Int?

  /// Creates the request.
  public init(algorithm: String? = nil, digits: Int? = nil) {
    self.algorithm = algorithm
    self.digits = digits
  }

  public static let schema = JSONSchema.object([
    .optional(
      "algorithm", .oneOf(["SHA1", "SHA256", "SHA512"]), "SHA1 by default: every authenticator app supports it."),
    .optional("digits", .integer(minimum: 6, maximum: 8)),
  ])
}

/// The response of `POST /auth/mfa/enroll`.
public struct AuthenticatorOffer: WireValue {
  /// The shared secret, in base32.
  public var secret: String
  /// The `otpauth` URI, the content of a QR code.
  public var qr_code_url: String
  /// The backup codes. Each can be used once.
  public var backup_codes: [String]

  /// Creates the value.
  public init(secret: String, qrCodeURL: String, backupCodes: [String]) {
    self.secret = secret
    qr_code_url = qrCodeURL
    backup_codes = backupCodes
  }

  public static let schema = JSONSchema.object([
    .required("secret", .string(minLength: 32, pattern: "^[A-Z2-7]+$")),
    .required("qr_code_url", .string(example: "otpauth://totp/…")), .required("backup_codes", .array(.text)),
  ])
}

/// A request that one code authorizes: confirm or disable the authenticator, or replace the backup codes.
public struct CodeRequest: WireValue {
  /// A code of the authenticator, an e-mail code or a backup code, as the operation allows.
  public var code: String

  /// Creates the request.
  public init(code: String) { self.code = code }

  public static let schema = JSONSchema.object([.required("code", .code)])
}

/// The response of `POST /auth/mfa/regenerate-backup-codes`.
public struct BackupCodes: WireValue {
  /// The new backup codes. The previous ones are no longer valid.
  public var backup_codes: [String]

  /// Creates the value.
  public init(backupCodes: [String]) { backup_codes = backupCodes }

  public static let schema = JSONSchema.object([.required("backup_codes", .array(.text))])
}

/// The request of `POST /auth/mfa/email`.
public struct EmailRequest: WireValue {
  /// The address that is to receive e-mail codes.
  public var email: String

  /// Creates the request.
  public init(email: String) { self.email = email }

  public static let schema = JSONSchema.object([.required("email", .string(maxLength: 254, format: "email"))])
}

/// The request of `POST /auth/mfa/email/verify`.
public struct EmailCodeRequest: WireValue {
  /// The address that the code was sent to.
  public var email: String
  /// The code from the e-mail.
  public var code: String

  /// Creates the request.
  public init(email: String, code: String) {
    self.email = email
    self.code = code
  }

  public static let schema = JSONSchema.object([
    .required("email", .string(maxLength: 254, format: "email")), .required("code", .code),
  ])
}

/// The request of `POST /auth/token/refresh`.
public struct RefreshRequest: WireValue {
  /// The refresh token of the session.
  public var refreshToken: String

  /// Creates the request.
  public init(refreshToken: String) { self.refreshToken = refreshToken }

  public static let schema = JSONSchema.object([.required("refreshToken", .string(maxLength: 128))])
}

/// The request of `POST /auth/token/revoke`.
public struct RevokeRequest: WireValue {
  /// The refresh token of the session to revoke. Absent: the session of the access token.
  public var refreshToken: String?

  /// Creates the request.
  public init(refreshToken: String? = nil) { self.refreshToken = refreshToken }

  public static let schema = JSONSchema.object([
    .optional("refreshToken", .string(maxLength: 128), "Absent: revokes the session of the access token.")
  ])
}

/// The response of operations that only report success.
public struct RevokeResponse: WireValue {
  /// Always `true`.
  public var success: Bool
  /// A text for people.
  public var message: String

  /// Creates the response.
  public init(message: String) {
    success = true
    self.message = message
  }

  public static let schema = JSONSchema.object([.required("success", .success), .required("message", .text)])
}
