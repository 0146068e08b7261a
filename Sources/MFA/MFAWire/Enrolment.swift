/// `POST /mfa/enroll`
public struct EnrollRequest: WireValue {
  public var username: String
  public var phoneNumber: String?
  public var publicKey: String?
  public var method: String
  public var deviceId: String
  public var deviceModel: String?
  public var authMethod: String?
  public var linkCode: String?
  public var recoveryToken: String?

  public init(
    username: String, phoneNumber: String?, publicKey: String?, method: String, deviceId: String,
    deviceModel: String?, authMethod: String? = nil, linkCode: String? = nil, recoveryToken: String? = nil
  ) {
    self.username = username
    self.phoneNumber = phoneNumber
    self.publicKey = publicKey
    self.method = method
    self.deviceId = deviceId
    self.deviceModel = deviceModel
    self.authMethod = authMethod
    self.linkCode = linkCode
    self.recoveryToken = recoveryToken
  }

  public static let schema = JSONSchema.object([
    .required("username", .username),
    .optional("phoneNumber", .phoneNumber, "Required for smsOTP; where codes go."),
    .optional(
      "publicKey", .publicKey,
      "Required for secureEnclave: a P-256 key, 65 bytes (X9.63) or 91 (SubjectPublicKeyInfo), in base64."),
    .required("method", .method),
    .required("deviceId", .deviceID),
    .optional("deviceModel", .deviceModel),
    .optional(
      "authMethod", .authMethod,
      "How the person unlocks the key, as the app says; policy.device_unlock alone decides by it."),
    .optional("linkCode", .code, "Given out by another device of the account, to let this one in."),
    .optional(
      "recoveryToken", .recoveryToken, "Of a recovery that is ready, to let this one in and take all others out."),
  ])
}

public struct EnrollResponse: WireValue {
  public var success: Bool
  public var deviceId: String
  public var method: String
  public var message: String

  public init(deviceId: String, method: String, message: String) {
    success = true
    self.deviceId = deviceId
    self.method = method
    self.message = message
  }

  public static let schema = JSONSchema.object([
    .required("success", .success), .required("deviceId", .deviceID), .required("method", .method),
    .required("message", .constant("Device enrolled successfully")),
  ])
}

/// `POST /mfa/unenroll` and `POST /mfa/downgrade`
public struct DeviceRequest: WireValue {
  public var username: String
  public var deviceId: String

  public init(username: String, deviceId: String) {
    self.username = username
    self.deviceId = deviceId
  }

  public static let schema = JSONSchema.object([.required("username", .username), .required("deviceId", .deviceID)])
}

public struct UnenrollResponse: WireValue {
  public var success: Bool
  public var message: String

  public init(message: String) {
    success = true
    self.message = message
  }

  public static let schema = JSONSchema.object([
    .required("success", .success), .required("message", .constant("Device unenrolled")),
  ])
}

/// `POST /mfa/upgrade`
public struct UpgradeRequest: WireValue {
  public var username: String
  public var deviceId: String
  public var publicKey: String
  public var authMethod: String?

  public init(username: String, deviceId: String, publicKey: String, authMethod: String? = nil) {
    self.username = username
    self.deviceId = deviceId
    self.publicKey = publicKey
    self.authMethod = authMethod
  }

  public static let schema = JSONSchema.object([
    .required("username", .username), .required("deviceId", .deviceID), .required("publicKey", .publicKey),
    .optional("authMethod", .authMethod),
  ])
}

/// What upgrade and downgrade answer.
public struct MethodResponse: WireValue {
  public var success: Bool
  public var method: String
  public var message: String

  public init(method: String, message: String) {
    success = true
    self.method = method
    self.message = message
  }

  public static let schema = JSONSchema.object([
    .required("success", .success), .required("method", .method),
    .required("message", .oneOf(["Upgraded to Secure Enclave MFA", "Downgraded to SMS OTP"])),
  ])
}

/// `POST /mfa/link`
public struct LinkResponse: WireValue {
  public var success: Bool
  public var linkCode: String
  /// Seconds.
  public var expiresIn: Int

  public init(linkCode: String, expiresIn: Int) {
    success = true
    self.linkCode = linkCode
    self.expiresIn = expiresIn
  }

  public static let schema = JSONSchema.object([
    .required("success", .success), .required("linkCode", .code), .required("expiresIn", .integer(minimum: 1)),
  ])
}
