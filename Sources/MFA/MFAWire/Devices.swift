/// `GET /devices/{username}`
public struct DevicesRequest: WireValue {
  public var username: String

  public init(username: String) { self.username = username }

  public static let schema = JSONSchema.object([.required("username", .username)])
}

public struct DeviceList: WireValue {
  public struct Entry: WireValue {
    public var deviceId: String
    public var deviceModel: String
    public var method: String
    public var enrolledAt: String
    @Nullable public var lastUsed: String?
    /// Whether a key that Apple attested is bound to it; a debug build has none.
    public var attested: Bool

    public init(
      deviceId: String, deviceModel: String, method: String, enrolledAt: String, lastUsed: String?, attested: Bool
    ) {
      self.deviceId = deviceId
      self.deviceModel = deviceModel
      self.method = method
      self.enrolledAt = enrolledAt
      self.lastUsed = lastUsed
      self.attested = attested
    }

    public static let schema = JSONSchema.object([
      .required("deviceId", .deviceID), .required("deviceModel", .deviceModel), .required("method", .method),
      .required("enrolledAt", .time), .required("lastUsed", .nullable(.time)),
      .required("attested", .boolean, "Whether an attested key is bound to it; false for a debug build."),
    ])
  }

  public var devices: [Entry]

  public init(devices: [Entry]) { self.devices = devices }

  public static let schema = JSONSchema.object([.required("devices", .array(Entry.schema))])
}

/// `GET /device/{deviceId}/status`
public struct DeviceStatusRequest: WireValue {
  public var deviceId: String

  public init(deviceId: String) { self.deviceId = deviceId }

  public static let schema = JSONSchema.object([.required("deviceId", .deviceID)])
}

public struct DeviceStatus: WireValue {
  public var deviceId: String
  public var enrolled: Bool
  @Nullable public var method: String?
  public var hasPublicKey: Bool
  @Nullable public var phoneNumber: String?
  /// Whether a key that Apple attested is bound to it; a debug build has none.
  public var attested: Bool

  public init(
    deviceId: String, enrolled: Bool, method: String?, hasPublicKey: Bool, phoneNumber: String?, attested: Bool
  ) {
    self.deviceId = deviceId
    self.enrolled = enrolled
    self.method = method
    self.hasPublicKey = hasPublicKey
    self.phoneNumber = phoneNumber
    self.attested = attested
  }

  public static let schema = JSONSchema.object([
    .required("deviceId", .deviceID), .required("enrolled", .boolean), .required("method", .nullable(.method)),
    .required("hasPublicKey", .boolean),
    .required("phoneNumber", .nullable(.text), "In full for the user, masked for the device's app."),
    .required("attested", .boolean, "Whether an attested key is bound to it; false for a debug build."),
  ])
}
