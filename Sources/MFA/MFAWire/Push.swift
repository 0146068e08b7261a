/// What `POST /auth/push/start` answers, for the device that signs in.
public struct PushStarted: WireValue {
  public var pushId: String
  /// To be shown, and typed on the other device.
  public var number: Int
  /// Seconds.
  public var expiresIn: Int

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

/// A sign-in that waits for approval; on a socket as the notification `push.challenge`.
public struct PushEntry: WireValue {
  public var pushId: String
  public var userId: String
  /// 32 bytes in base64.
  public var nonce: String
  public var address: String
  public var expiresAt: String

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

public struct PushList: WireValue {
  public var pushes: [PushEntry]

  public init(pushes: [PushEntry]) { self.pushes = pushes }

  public static let schema = JSONSchema.object([.required("pushes", .array(PushEntry.schema))])
}

/// `POST /auth/push/answer`
public struct PushAnswerRequest: WireValue {
  public var pushId: String
  public var approve: Bool
  public var number: Int?
  public var signature: String

  public init(pushId: String, approve: Bool, number: Int?, signature: String) {
    self.pushId = pushId
    self.approve = approve
    self.number = number
    self.signature = signature
  }

  public static let schema = JSONSchema.object([
    .required("pushId", .uuid), .required("approve", .boolean),
    .optional("number", .integer(minimum: 0, maximum: 99), "What the other device shows; required to approve."),
    .required("signature", .string(minLength: 12, maxLength: 128, format: "base64")),
  ])
}

public struct PushState: WireValue {
  public var state: String
  public var token: String?
  public var refreshToken: String?

  public init(state: String, token: String? = nil, refreshToken: String? = nil) {
    self.state = state
    self.token = token
    self.refreshToken = refreshToken
  }

  public static let schema = JSONSchema.object([
    .required("state", .oneOf(["pending", "approved", "denied"])),
    .optional("token", .text, "Of the full session, for the device that signs in."), .optional("refreshToken", .text),
  ])
}

/// `GET /auth/push/{pushId}`
public struct PushStateRequest: WireValue {
  public var pushId: String

  public init(pushId: String) { self.pushId = pushId }

  public static let schema = JSONSchema.object([.required("pushId", .uuid)])
}
