public import MFAClient

/// What the owner of a phone has set up, and which phone it is.
public struct PhoneSettings: Sendable, Hashable, Codable {
  /// Whether the app may use Face ID. iOS asks once, when the app first needs it; Touch ID needs no permission.
  public enum Permission: String, Sendable, Hashable, Codable, CaseIterable {
    /// The app has not needed Face ID yet.
    case notAsked
    /// The user allowed it.
    case allowed
    /// The user refused, then or in the Settings app.
    case denied
  }

  /// The error that an app gets when the user taps "Don't Allow".
  public enum PermissionRefusal: String, Sendable, Hashable, Codable, CaseIterable {
    /// What the prompt reports at once on current systems.
    case biometryNotAvailable
    /// What some systems and the seed's scenario report.
    case userCancel

    var code: LocalAuthenticationCode { self == .userCancel ? .userCancel : .biometryNotAvailable }
  }

  /// Apple's name of the model, for example `iPhone 15 Pro`.
  public var model = "iPhone 15 Pro"
  /// The sensor.
  public var biometry = BiometryType.faceID
  /// Whether a face or a finger is enrolled.
  public internal(set) var isBiometryEnrolled = true
  /// Whether a passcode is set.
  public internal(set) var isPasscodeSet = true
  /// Whether the app may use Face ID.
  public var permission = Permission.notAsked
  /// What the app is told when the user does not allow Face ID.
  public var permissionRefusal = PermissionRefusal.biometryNotAvailable
  /// Whether this is Apple's simulator: without Secure Enclave, so that keys are in the regular keychain.
  public var isSimulator = false
  /// Whether prompts of keys that the user cancels or fails are reported as OSStatus instead of LAError.
  public var reportsKeychainStatus = false

  /// A phone with Face ID and a passcode, on which the app has not asked for anything yet.
  public static let faceID = PhoneSettings()

  /// A phone with a home button, a passcode and an enrolled finger.
  public static let touchID = {
    var settings = PhoneSettings()
    (settings.model, settings.biometry) = ("iPhone SE (3rd generation)", .touchID)
    return settings
  }()

  /// A phone with Android, a passcode and an enrolled finger.
  public static let fingerprint = {
    var settings = PhoneSettings()
    (settings.model, settings.biometry) = ("Pixel 6", .fingerprint)
    return settings
  }()

  /// A phone with Android, a passcode and an enrolled face.
  public static let faceUnlock = {
    var settings = PhoneSettings()
    (settings.model, settings.biometry) = ("Pixel 8", .faceUnlock)
    return settings
  }()

  /// A phone with a passcode on which no face is enrolled.
  public static let passcodeOnly = {
    var settings = PhoneSettings()
    settings.isBiometryEnrolled = false
    return settings
  }()

  /// A phone without a passcode. Biometry cannot be enrolled on it.
  public static let unprotected = {
    var settings = PhoneSettings.passcodeOnly
    settings.isPasscodeSet = false
    return settings
  }()

  /// Apple's simulator with an enrolled face.
  public static let simulator = {
    var settings = PhoneSettings()
    settings.isSimulator = true
    return settings
  }()

  /// Whether the app may use an enrolled face or finger, apart from a lockout.
  var allowsBiometry: Bool { isPasscodeSet && isBiometryEnrolled && biometry != .none && permission != .denied }
}
