/// What `POST /auth/initiate` answers. No field is ever absent or null, whatever the method.
public struct ChallengeResponse: WireValue {
  public var method: String
  /// 32 bytes in base64; what is signed are the bytes.
  public var challenge: String
  public var challengeId: String
  /// Seconds.
  public var expiresIn: Int

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

/// `POST /auth/verify-signature`
public struct VerifySignatureRequest: WireValue {
  public var username: String
  public var deviceId: String
  public var challengeId: String
  public var signature: String
  public var trustToken: String?

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
      "ECDSA with SHA-256 over the 32 bytes of the challenge; DER or 64 bytes, in base64."),
    .optional("trustToken", .trustToken, "Spares a trusted device the second factor."),
  ])
}

/// A session, as its first token.
public struct TokenResponse: WireValue {
  public var success: Bool
  public var token: String
  public var message: String
  public var refreshToken: String
  /// Seconds.
  public var expiresIn: Int
  public var scope: String

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
      "mfa: the second factor is still to be given. mfa_setup: one has to be set up before anything else."),
  ])
}

/// `POST /auth/request-otp`
public struct RequestOTPRequest: WireValue {
  public var username: String
  public var phoneNumber: String

  public init(username: String, phoneNumber: String) {
    self.username = username
    self.phoneNumber = phoneNumber
  }

  public static let schema = JSONSchema.object([
    .required("username", .username),
    .required("phoneNumber", .phoneNumber, "Repeated in the answer. The code goes to the enrolled number alone."),
  ])
}

public struct RequestOTPResponse: WireValue {
  public var success: Bool
  public var message: String
  /// Seconds.
  public var expiresIn: Int

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

/// `POST /auth/verify-otp`
public struct VerifyOTPRequest: WireValue {
  public var username: String
  public var otp: String
  public var trustToken: String?

  public init(username: String, otp: String, trustToken: String? = nil) {
    self.username = username
    self.otp = otp
    self.trustToken = trustToken
  }

  public static let schema = JSONSchema.object([
    .required("username", .username), .required("otp", .code), .optional("trustToken", .trustToken),
  ])
}
