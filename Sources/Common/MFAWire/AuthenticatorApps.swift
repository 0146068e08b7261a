/// The request of `POST /auth/mfa/authenticators`.
public struct AppRequest: WireValue {
  /// The user's name for the app.
  public var name: String
  /// The HMAC algorithm: `SHA1` (the default), `SHA256` or `SHA512`.
  public var algorithm: String?
  /// The number of digits of a code, 6 to 8; 6 by default.
  public var digits: Int?

  /// Creates the request.
  public init(name: String, algorithm: String? = nil, digits: Int? = nil) {
    self.name = name
    self.algorithm = algorithm
    self.digits = digits
  }

  public static let schema = JSONSchema.object([
    .required("name", .authenticatorName),
    .optional(
      "algorithm", .oneOf(["SHA1", "SHA256", "SHA512"]), "SHA1 by default: every authenticator app supports it."),
    .optional("digits", .integer(minimum: 6, maximum: 8)),
  ])
}

/// The response of `POST /auth/mfa/authenticators`.
public struct AuthenticatorAppOffer: WireValue {
  /// The id of the offer, and of the app after its confirmation.
  public var id: String
  /// The shared secret, in base32.
  public var secret: String
  /// The `otpauth` URI, the content of a QR code.
  public var qrCodeUrl: String
  /// The time until which a code of it is accepted, ISO 8601 in UTC.
  public var expiresAt: String

  /// Creates the value.
  public init(id: String, secret: String, qrCodeURL: String, expiresAt: String) {
    self.id = id
    self.secret = secret
    qrCodeUrl = qrCodeURL
    self.expiresAt = expiresAt
  }

  public static let schema = JSONSchema.object([
    .required("id", .uuid), .required("secret", .string(minLength: 32, pattern: "^[A-Z2-7]+$")),
    .required("qrCodeUrl", .string(example: "otpauth://totp/…")), .required("expiresAt", .time),
  ])
}

/// The request of `POST /auth/mfa/authenticators/confirm`.
public struct AppCodeRequest: WireValue {
  /// The id of the newest offer to this session.
  public var id: String
  /// A code of the offered secret.
  public var code: String

  /// Creates the request.
  public init(id: String, code: String) {
    self.id = id
    self.code = code
  }

  public static let schema = JSONSchema.object([.required("id", .uuid), .required("code", .code)])
}

/// An authenticator of the account, as its user sees it.
public struct AuthenticatorEntry: WireValue {
  /// `first`, or the id of an added app or of a token.
  public var id: String
  /// `first`: the app that was set up together with the backup codes; `app`: one that was added; `token`: one that an
  /// operator has assigned.
  public var kind: String
  /// The user's name for an added app; maker and serial number of a token; empty for the first app.
  public var name: String
  /// The time since which its codes are a second factor, ISO 8601 in UTC.
  public var createdAt: String
  /// The time of the last accepted code, ISO 8601 in UTC, for the first app to the step; `null` before the first code.
  @Nullable public var lastUsedAt: String?

  /// Creates the entry.
  public init(id: String, kind: String, name: String, createdAt: String, lastUsedAt: String?) {
    self.id = id
    self.kind = kind
    self.name = name
    self.createdAt = createdAt
    self.lastUsedAt = lastUsedAt
  }

  public static let schema = JSONSchema.object([
    .required("id", .authenticatorID), .required("kind", .oneOf(["first", "app", "token"])),
    .required("name", .text, "Empty for the first app."), .required("createdAt", .time),
    .required("lastUsedAt", .nullable(.time)),
  ])
}

/// The response of `GET /auth/mfa/authenticators`.
public struct AuthenticatorList: WireValue {
  /// The first app, then added apps and tokens, oldest first.
  public var authenticators: [AuthenticatorEntry]

  /// Creates the response.
  public init(authenticators: [AuthenticatorEntry]) { self.authenticators = authenticators }

  public static let schema = JSONSchema.object([.required("authenticators", .array(AuthenticatorEntry.schema))])
}

/// The request of `DELETE /auth/mfa/authenticators/{id}`.
public struct AuthenticatorReference: WireValue {
  /// `first`, or the id of an added app.
  public var id: String

  /// Creates the request.
  public init(id: String) { self.id = id }

  public static let schema = JSONSchema.object([.required("id", .authenticatorID)])
}

/// The request of `POST /auth/mfa/authenticators/rename`.
public struct RenameAuthenticatorRequest: WireValue {
  /// The id of an added app.
  public var id: String
  /// The new name.
  public var name: String

  /// Creates the request.
  public init(id: String, name: String) {
    self.id = id
    self.name = name
  }

  public static let schema = JSONSchema.object([.required("id", .uuid), .required("name", .authenticatorName)])
}

extension JSONSchema {
  fileprivate static let authenticatorName = JSONSchema.string(minLength: 1, maxLength: 128, example: "New phone")
  fileprivate static let authenticatorID = JSONSchema.string(minLength: 5, maxLength: 36, example: "first")
}
