/// The response of `POST /auth/initiate`. Every field is present and not `null`, for both methods.
public struct ChallengeResponse: WireValue {
  /// The method of the device: `secureEnclave` or `smsOTP`.
  public var method: String
  /// The challenge: 32 random bytes in base64. The device signs the bytes, not the text.
  public var challenge: String
  /// The id to send with the signature.
  public var challengeId: String
  /// The lifetime of the challenge, in seconds.
  public var expiresIn: Int

  /// Creates the response.
  public init(method: String, challenge: String, challengeId: String, expiresIn: Int) {
    self.method = method
    self.challenge = challenge
    self.challengeId = challengeId
    self.expiresIn = expiresIn
  }

  public static let schema = JSONSchema.object([
    .required("method", .method),
    .required("challenge", .string(minLength: 44, maxLength: 44, format: "base64"), "Sign the 32 decoded bytes."),
    .required("challengeId", .uuid), .required("expiresIn", .integer(minimum: 1)),
  ])
}

/// The request of `POST /auth/verify-signature`.
public struct VerifySignatureRequest: WireValue {
  /// The username of the account.
  public var username: String
  /// The id of the device that signs.
  public var deviceId: String
  /// The id of the challenge, from `POST /auth/initiate`.
  public var challengeId: String
  /// The ECDSA signature over the challenge, in base64: DER or the 64 bytes of r and s.
  public var signature: String
  /// The token of a trusted device, which replaces the second factor.
  public var trustToken: String?

  /// Creates the request.
  public init(username: String, deviceId: String, challengeId: String, signature: String, trustToken: String? = nil) {
    self.username = username
    self.deviceId = deviceId
    self.challengeId = challengeId
    self.signature = signature
    self.trustToken = trustToken
  }

  public static let schema = JSONSchema.object([
    .required("username", .username), .required("deviceId", .deviceID), .required("challengeId", .uuid),
    .required(
      "signature", .string(minLength: 12, maxLength: 128, format: "base64"),
      "ECDSA with SHA-256 over the 32 bytes of the challenge, in base64: DER or 64 bytes."),
    .optional("trustToken", .trustToken, "The token of a trusted device, which replaces the second factor."),
  ])
}

/// The response of a sign-in or a token refresh: the tokens of a session.
public struct TokenResponse: WireValue {
  /// Always `true`.
  public var success: Bool
  /// The access token: a JWT.
  public var token: String
  /// A text for people.
  public var message: String
  /// The refresh token. It can be used once.
  public var refreshToken: String
  /// The lifetime of the access token, in seconds.
  public var expiresIn: Int
  /// What the session permits: `mfa`, `mfa_setup` or `full`.
  public var scope: String

  /// Creates the response.
  public init(token: String, message: String, refreshToken: String, expiresIn: Int, scope: String) {
    success = true
    self.token = token
    self.message = message
    self.refreshToken = refreshToken
    self.expiresIn = expiresIn
    self.scope = scope
  }

  public static let schema = JSONSchema.object([
    .required("success", .success), .required("token", .text), .required("message", .text),
    .required("refreshToken", .text), .required("expiresIn", .integer(minimum: 1)),
    .required(
      "scope", .oneOf(["mfa", "mfa_setup", "full"]),
      "mfa: the second factor is still missing. mfa_setup: the user must set up a second factor first."),
  ])
}

/// The request of `POST /auth/request-otp`.
public struct RequestOTPRequest: WireValue {
  /// The username of the account.
  public var username: String
  /// A phone number. The response repeats it; the code goes to the enrolled number only.
  public var phoneNumber: String

  /// Creates the request.
  public init(username: String, phoneNumber: String) {
    self.username = username
    self.phoneNumber = phoneNumber
  }

  public static let schema = JSONSchema.object([
    .required("username", .username),
    .required("phoneNumber", .phoneNumber, "The response repeats it. The code goes to the enrolled number only."),
  ])
}

/// The response of `POST /auth/request-otp`. It is the same whether or not the account exists.
public struct RequestOTPResponse: WireValue {
  /// Always `true`.
  public var success: Bool
  /// A text for people, with the number of the request.
  public var message: String
  /// The lifetime of the code, in seconds.
  public var expiresIn: Int

  /// Creates the response.
  public init(message: String, expiresIn: Int) {
    success = true
    self.message = message
    self.expiresIn = expiresIn
  }

  public static let schema = JSONSchema.object([
    .required("success", .success), .required("message", .string(example: "OTP sent to +1234567890")),
    .required("expiresIn", .integer(minimum: 1)),
  ])
}

/// The request of `POST /auth/verify-otp`.
public struct VerifyOTPRequest: WireValue {
  /// The username of the account.
  public var username: String
  /// The SMS code.
  public var otp: String
  /// The token of a trusted device, which replaces the second factor.
  public var trustToken: String?

  /// Creates the request.
  public init(username: String, otp: String, trustToken: String? = nil) {
    self.username = username
    self.otp = otp
    self.trustToken = trustToken
  }

  public static let schema = JSONSchema.object([
    .required("username", .username), .required("otp", .code), .optional("trustToken", .trustToken),
  ])
}
