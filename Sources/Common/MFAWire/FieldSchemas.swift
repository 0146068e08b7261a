/// The schemas of fields that several operations share.
extension JSONSchema {
  static let username = JSONSchema.string(minLength: 1, maxLength: 128, example: "testuser")
  static let deviceID = JSONSchema.string(
    minLength: 1, maxLength: 128, pattern: "^[!-~]{1,128}$", example: "unique-device-id")
  static let deviceModel = JSONSchema.string(maxLength: 128, example: "iPhone 15 Pro")
  static let phoneNumber = JSONSchema.string(
    minLength: 5, maxLength: 16, pattern: "^\\+[1-9][0-9]{3,14}$", example: "+1234567890")
  static let publicKey = JSONSchema.string(minLength: 87, maxLength: 256, format: "base64")
  static let method = JSONSchema.oneOf(["secureEnclave", "smsOTP"])
  static let authMethod = JSONSchema.oneOf(["biometric", "passcode"])
  static let uuid = JSONSchema.string(minLength: 36, maxLength: 36, format: "uuid")
  static let code = JSONSchema.string(minLength: 1, maxLength: 32, example: "123456")
  static let time = JSONSchema.string(format: "date-time", example: "2025-11-01T10:00:00Z")
  static let trustToken = JSONSchema.string(minLength: 1, maxLength: 128)
  static let recoveryToken = JSONSchema.string(minLength: 1, maxLength: 128)
  static let recoveryState = JSONSchema.oneOf(["waiting", "ready", "completed", "cancelled", "expired"])
  /// The bound keeps a whole request below 64 KiB.
  static let idToken = JSONSchema.string(minLength: 1, maxLength: 49_152)
  static let success = JSONSchema.boolean
}
