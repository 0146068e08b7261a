/// The request of `GET /devices/{username}`.
public struct DevicesRequest: WireValue {
  /// The username of the caller's own account.
  public var username: String

  /// Creates the request.
  public init(username: String) { self.username = username }

  public static let schema = JSONSchema.object([.required("username", .username)])
}

/// The response of `GET /devices/{username}`.
public struct DeviceList: WireValue {
  /// One enrolled device.
  public struct Entry: WireValue {
    /// The id that the app gave the device.
    public var deviceId: String
    /// The model, as the app reports it.
    public var deviceModel: String
    /// The method: `secureEnclave` or `smsOTP`.
    public var method: String
    /// The time of enrolment, ISO 8601 in UTC.
    public var enrolledAt: String
    /// The time of the last sign-in, ISO 8601 in UTC; `null` before the first.
    @Nullable public var lastUsed: String?
    /// Whether the device is bound to an attested key. A debug build has none.
    public var attested: Bool

    /// Creates the entry.
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
      .required("attested", .boolean, "Whether the device is bound to an attested key; false for a debug build."),
    ])
  }

  /// The devices, oldest enrolment first.
  public var devices: [Entry]

  /// Creates the response.
  public init(devices: [Entry]) { self.devices = devices }

  public static let schema = JSONSchema.object([.required("devices", .array(Entry.schema))])
}

/// The request of `GET /device/{deviceId}/status`.
public struct DeviceStatusRequest: WireValue {
  /// The id of the device.
  public var deviceId: String

  /// Creates the request.
  public init(deviceId: String) { self.deviceId = deviceId }

  public static let schema = JSONSchema.object([.required("deviceId", .deviceID)])
}

/// The response of `GET /device/{deviceId}/status`.
public struct DeviceStatus: WireValue {
  /// The id of the request.
  public var deviceId: String
  /// Whether the device is enrolled.
  public var enrolled: Bool
  /// The method, `secureEnclave` or `smsOTP`; `null` if the device is not enrolled.
  @Nullable public var method: String?
  /// Whether the device has a public key.
  public var hasPublicKey: Bool
  /// The phone number: in full for the user, masked for the app instance; `null` if there is none.
  @Nullable public var phoneNumber: String?
  /// Whether the device is bound to an attested key. A debug build has none.
  public var attested: Bool

  /// Creates the response.
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
    .required("phoneNumber", .nullable(.text), "In full for the user, masked for the app instance of the device."),
    .required("attested", .boolean, "Whether the device is bound to an attested key; false for a debug build."),
  ])
}
