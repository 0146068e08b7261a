/// The response of `POST /auth/push/start`, for the device that signs in.
public struct PushStarted: WireValue {
  /// The id of the push challenge.
  public var pushId: String
  /// The number that this device shows and the user types on the approving device.
  public var number: Int
  /// The lifetime of the push challenge, in seconds.
  public var expiresIn: Int

  /// Creates the response.
  public init(pushId: String, number: Int, expiresIn: Int) {
    self.pushId = pushId
    self.number = number
    self.expiresIn = expiresIn
  }

  public static let schema = JSONSchema.object([
    .required("pushId", .uuid), .required("number", .integer(minimum: 10, maximum: 99)),
    .required("expiresIn", .integer(minimum: 1)),
  ])
}

/// A sign-in that waits for approval. A socket sends it as the notification `push.challenge`.
public struct PushEntry: WireValue {
  /// The id of the push challenge.
  public var pushId: String
  /// The id of the user.
  public var userId: String
  /// The bytes that the answer signs: 32 bytes in base64.
  public var nonce: String
  /// The client address of the sign-in, as the gate reports it.
  public var address: String
  /// The time when the push challenge expires, ISO 8601 in UTC.
  public var expiresAt: String

  /// Creates the entry.
  public init(pushId: String, userId: String, nonce: String, address: String, expiresAt: String) {
    self.pushId = pushId
    self.userId = userId
    self.nonce = nonce
    self.address = address
    self.expiresAt = expiresAt
  }

  public static let schema = JSONSchema.object([
    .required("pushId", .uuid), .required("userId", .uuid),
    .required("nonce", .string(minLength: 44, maxLength: 44, format: "base64")), .required("address", .text),
    .required("expiresAt", .time),
  ])
}

/// The response of `GET /auth/push`.
public struct PushList: WireValue {
  /// The sign-ins that wait for approval.
  public var pushes: [PushEntry]

  /// Creates the response.
  public init(pushes: [PushEntry]) { self.pushes = pushes }

  public static let schema = JSONSchema.object([.required("pushes", .array(PushEntry.schema))])
}

/// The request of `POST /auth/push/answer`.
public struct PushAnswerRequest: WireValue {
  /// The id of the push challenge.
  public var pushId: String
  /// `true` to approve the sign-in, `false` to deny it.
  public var approve: Bool
  /// The number that the signing-in device shows; required to approve.
  public var number: Int?
  /// The ECDSA signature of the approving device's key, in base64: DER or 64 bytes.
  public var signature: String

  /// Creates the request.
  public init(pushId: String, approve: Bool, number: Int?, signature: String) {
    self.pushId = pushId
    self.approve = approve
    self.number = number
    self.signature = signature
  }

  public static let schema = JSONSchema.object([
    .required("pushId", .uuid), .required("approve", .boolean),
    .optional("number", .integer(minimum: 0, maximum: 99), "The number on the signing-in device; required to approve."),
    .required("signature", .string(minLength: 12, maxLength: 128, format: "base64")),
  ])
}

/// The response of `POST /auth/push/answer` and `GET /auth/push/{pushId}`.
public struct PushState: WireValue {
  /// The state: `pending`, `approved` or `denied`.
  public var state: String
  /// The access token of the full session; only for the signing-in device, once approved.
  public var token: String?
  /// The refresh token of the full session; only for the signing-in device, once approved.
  public var refreshToken: String?

  /// Creates the value.
  public init(state: String, token: String? = nil, refreshToken: String? = nil) {
    self.state = state
    self.token = token
    self.refreshToken = refreshToken
  }

  public static let schema = JSONSchema.object([
    .required("state", .oneOf(["pending", "approved", "denied"])),
    .optional("token", .text, "Of the full session, for the signing-in device."), .optional("refreshToken", .text),
  ])
}

/// The request of `GET /auth/push/{pushId}`.
public struct PushStateRequest: WireValue {
  /// The id of the push challenge.
  public var pushId: String

  /// Creates the request.
  public init(pushId: String) { self.pushId = pushId }

  public static let schema = JSONSchema.object([.required("pushId", .uuid)])
}

/// The request of `POST /auth/push/address`.
public struct PushAddressRequest: WireValue {
  /// The token of the app instance at the push service of its platform: for APNs the device token in hexadecimal digits,
  /// for FCM the registration token.
  public var token: String

  /// Creates the request.
  public init(token: String) { self.token = token }

  public static let schema = JSONSchema.object([
    .required(
      "token", .string(minLength: 20, maxLength: 1024),
      "The device token of APNs in hexadecimal digits, or the registration token of FCM.")
  ])
}

/// The response of `POST /auth/push/address` and `DELETE /auth/push/address`.
public struct PushAddressState: WireValue {
  /// Whether the backend sends push notifications to this device from now on. `false` if its operator has not configured
  /// the push service of the platform; the token is not kept then.
  public var active: Bool

  /// Creates the response.
  public init(active: Bool) { self.active = active }

  public static let schema = JSONSchema.object([.required("active", .boolean)])
}
