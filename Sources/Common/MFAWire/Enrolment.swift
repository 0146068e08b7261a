/// The request of `POST /mfa/enroll`.
public struct EnrollRequest: WireValue {
  /// The username. A new name creates an account.
  public var username: String
  /// The phone number in E.164; required for the method `smsOTP`.
  public var phoneNumber: String?
  /// The device's P-256 public key in base64, X9.63 or SubjectPublicKeyInfo; required for the method `secureEnclave`.
  public var publicKey: String?
  /// The method: `secureEnclave` or `smsOTP`.
  public var method: String
  /// The id that the app gives the device.
  public var deviceId: String
  /// The model, for lists of devices.
  public var deviceModel: String?
  /// How the user unlocks the key, as the app reports it: `biometric` or `passcode`.
  public var authMethod: String?
  /// A link code from another device of the account.
  public var linkCode: String?
  /// The token of a recovery that is ready.
  public var recoveryToken: String?
  /// The challenge of `idToken`, from `POST /auth/oidc/challenge`.
  public var challengeId: String?
  /// An ID token. It connects a new account to the user of the identity provider.
  public var idToken: String?

  /// Creates the request.
  public init(
    username: String, phoneNumber: String?, publicKey: String?, method: String, deviceId: String,
    deviceModel: String?, authMethod: String? = nil, linkCode: String? = nil, recoveryToken: String? = nil,
    challengeId: String? = nil, idToken: String? = nil
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
    self.challengeId = challengeId
    self.idToken = idToken
  }

  public static let schema = JSONSchema.object([
    .required("username", .username),
    .optional("phoneNumber", .phoneNumber, "Required for smsOTP. SMS codes go to this number."),
    .optional(
      "publicKey", .publicKey,
      "Required for secureEnclave: a P-256 key, 65 bytes (X9.63) or 91 (SubjectPublicKeyInfo), in base64."),
    .required("method", .method),
    .required("deviceId", .deviceID),
    .optional("deviceModel", .deviceModel),
    .optional(
      "authMethod", .authMethod,
      "How the user unlocks the key, as the app reports it. Only policy.device_unlock uses it."),
    .optional("linkCode", .code, "A link code from another device of the account. It adds this device."),
    .optional(
      "recoveryToken", .recoveryToken, "Of a recovery that is ready. It adds this device and removes all others."),
    .optional("challengeId", .uuid, "Required with idToken: its challenge, from POST /auth/oidc/challenge."),
    .optional("idToken", .idToken, "Connects a new account to the user of the identity provider."),
  ])
}

/// The response of `POST /mfa/enroll`.
public struct EnrollResponse: WireValue {
  /// Always `true`.
  public var success: Bool
  /// The id of the device.
  public var deviceId: String
  /// The method of the device.
  public var method: String
  /// A text for people.
  public var message: String

  /// Creates the response.
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

/// The request of `POST /mfa/unenroll`, `POST /mfa/downgrade` and other operations on one device of an account.
public struct DeviceRequest: WireValue {
  /// The username of the account.
  public var username: String
  /// The id of the device.
  public var deviceId: String

  /// Creates the request.
  public init(username: String, deviceId: String) {
    self.username = username
    self.deviceId = deviceId
  }

  public static let schema = JSONSchema.object([.required("username", .username), .required("deviceId", .deviceID)])
}

/// The response of `POST /mfa/unenroll`.
public struct UnenrollResponse: WireValue {
  /// Always `true`.
  public var success: Bool
  /// A text for people.
  public var message: String

  /// Creates the response.
  public init(message: String) {
    success = true
    self.message = message
  }

  public static let schema = JSONSchema.object([
    .required("success", .success), .required("message", .constant("Device unenrolled")),
  ])
}

/// The request of `POST /mfa/upgrade`.
public struct UpgradeRequest: WireValue {
  /// The username of the account.
  public var username: String
  /// The id of the device.
  public var deviceId: String
  /// The new P-256 public key in base64, X9.63 or SubjectPublicKeyInfo.
  public var publicKey: String
  /// How the user unlocks the key, as the app reports it: `biometric` or `passcode`.
  public var authMethod: String?

  /// Creates the request.
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

/// The response of `POST /mfa/upgrade` and `POST /mfa/downgrade`.
public struct MethodResponse: WireValue {
  /// Always `true`.
  public var success: Bool
  /// The method of the device after the change.
  public var method: String
  /// A text for people.
  public var message: String

  /// Creates the response.
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

/// The response of `POST /mfa/link`.
public struct LinkResponse: WireValue {
  /// Always `true`.
  public var success: Bool
  /// The code that another device enrols with.
  public var linkCode: String
  /// The lifetime of the code, in seconds.
  public var expiresIn: Int

  /// Creates the response.
  public init(linkCode: String, expiresIn: Int) {
    success = true
    self.linkCode = linkCode
    self.expiresIn = expiresIn
  }

  public static let schema = JSONSchema.object([
    .required("success", .success), .required("linkCode", .code), .required("expiresIn", .integer(minimum: 1)),
  ])
}
