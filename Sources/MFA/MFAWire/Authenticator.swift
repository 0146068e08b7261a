/// `POST /auth/mfa/enroll`
public struct AuthenticatorRequest: WireValue {
  public var algorithm: String?
  public var digits: Int?

  public init(algorithm: String? = nil, digits: Int? = nil) {
    self.algorithm = algorithm
    self.digits = digits
  }

  public static let schema = JSONSchema.object([
    .optional(
      "algorithm", .oneOf(["SHA1", "SHA256", "SHA512"]), "SHA1, which every authenticator app knows, by default."),
    .optional("digits", .integer(minimum: 6, maximum: 8)),
  ])
}

public struct AuthenticatorOffer: WireValue {
  /// Base32.
  public var secret: String
  /// What a QR code of it says.
  public var qr_code_url: String
  public var backup_codes: [String]

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

/// A request that a code pays for.
public struct CodeRequest: WireValue {
  public var code: String

  public init(code: String) { self.code = code }

  public static let schema = JSONSchema.object([.required("code", .code)])
}

/// `POST /auth/mfa/regenerate-backup-codes`
public struct BackupCodes: WireValue {
  public var backup_codes: [String]

  public init(backupCodes: [String]) { backup_codes = backupCodes }

  public static let schema = JSONSchema.object([.required("backup_codes", .array(.text))])
}

/// `POST /auth/mfa/email`
public struct EmailRequest: WireValue {
  public var email: String

  public init(email: String) { self.email = email }

  public static let schema = JSONSchema.object([.required("email", .string(maxLength: 254, format: "email"))])
}

/// `POST /auth/mfa/email/verify`
public struct EmailCodeRequest: WireValue {
  public var email: String
  public var code: String

  public init(email: String, code: String) {
    self.email = email
    self.code = code
  }

  public static let schema = JSONSchema.object([
    .required("email", .string(maxLength: 254, format: "email")), .required("code", .code),
  ])
}

/// `POST /auth/token/refresh`
public struct RefreshRequest: WireValue {
  public var refreshToken: String

  public init(refreshToken: String) { self.refreshToken = refreshToken }

  public static let schema = JSONSchema.object([.required("refreshToken", .string(maxLength: 128))])
}

/// `POST /auth/token/revoke`
public struct RevokeRequest: WireValue {
  public var refreshToken: String?

  public init(refreshToken: String? = nil) { self.refreshToken = refreshToken }

  public static let schema = JSONSchema.object([
    .optional("refreshToken", .string(maxLength: 128), "Absent: the session of the access token.")
  ])
}

public struct RevokeResponse: WireValue {
  public var success: Bool
  public var message: String

  public init(message: String) {
    success = true
    self.message = message
  }

  public static let schema = JSONSchema.object([.required("success", .success), .required("message", .text)])
}
