/// How a device signs in.
public enum MFAMethod: String, Sendable, Hashable, Codable, CaseIterable {
  /// By the signature of a key in the Secure Enclave.
  case secureEnclave
  /// By a code that the server sends as an SMS.
  case smsOTP
}

/// How the user unlocks the key of a device, as the app reports it to the server.
public enum AuthMethod: String, Sendable, Hashable, Codable, CaseIterable {
  /// The key can be unlocked by a face or a finger.
  case biometric
  /// The key can be unlocked by the passcode only.
  case passcode
}

/// What the device offers to protect a key.
public enum DeviceCapability: String, Sendable, Hashable, Codable, CaseIterable {
  /// A face or a finger is enrolled and may be used, and a passcode is set.
  case biometricsAvailable
  /// A passcode is set, and biometry cannot be used.
  case passcodeOnly
  /// No passcode is set: keys cannot be protected.
  case none
}

/// The biometric sensor of a device.
public enum BiometryType: String, Sendable, Hashable, Codable, CaseIterable {
  /// Face ID.
  case faceID
  /// Touch ID.
  case touchID
  /// A sensor for the iris: Optic ID, or that of a phone with Android.
  case iris
  /// A fingerprint sensor of a phone with Android.
  case fingerprint
  /// A camera of a phone with Android that recognizes its owner.
  case faceUnlock
  /// The device has no sensor.
  case none

  /// The name of the sensor for labels; `nil` without one.
  public var name: String? {
    switch self {
    case .faceID: "Face ID"
    case .touchID: "Touch ID"
    case .iris: "Iris Scan"
    case .fingerprint: "Fingerprint"
    case .faceUnlock: "Face Unlock"
    case .none: nil
    }
  }
}
