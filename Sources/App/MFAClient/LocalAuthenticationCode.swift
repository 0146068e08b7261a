/// The codes of Apple's `LAError`, which prompts for a face, a finger or a passcode fail with.
///
/// `MFAClient` has its own list, so that the table of texts and actions exists once, for every platform. On Apple's
/// platforms the raw values equal those of `LAError.Code`.
public enum LocalAuthenticationCode: Int, Sendable, Hashable, Codable, CaseIterable {
  /// The user was not recognized.
  case authenticationFailed = -1
  /// The user tapped Cancel.
  case userCancel = -2
  /// The user asked for the passcode, which the prompt does not accept.
  case userFallback = -3
  /// The system dismissed the prompt, for example because another app came to the front.
  case systemCancel = -4
  /// The device has no passcode.
  case passcodeNotSet = -5
  /// The device has no sensor, or the app may not use it.
  case biometryNotAvailable = -6
  /// No face or finger is enrolled.
  case biometryNotEnrolled = -7
  /// Biometry is locked after too many wrong faces or fingers.
  case biometryLockout = -8
  /// The app dismissed the prompt.
  case appCancel = -9
  /// The context of the prompt was invalidated before.
  case invalidContext = -10
  /// No paired device is nearby: `watchNotAvailable` on older systems.
  case companionNotAvailable = -11
  /// The removable sensor is not paired.
  case biometryNotPaired = -12
  /// The removable sensor is not connected.
  case biometryDisconnected = -13
  /// The view of the prompt has invalid dimensions.
  case invalidDimensions = -14
  /// The app may not show a prompt now.
  case notInteractive = -1004

  /// The name of the case, as Apple's documentation writes it.
  public var name: String { "\(self)" }
}

/// Why a key could not be made, found or used, or a prompt was not approved.
public enum DeviceSecurityError: Error, Sendable, Hashable {
  /// An error of `LAErrorDomain`, with its code. Systems may report codes that this version does not know.
  case localAuthentication(code: Int)
  /// An error of `NSOSStatusErrorDomain`: the keychain reports some refused prompts so.
  case keychain(status: Int32)
  /// The keychain has no key with the tag. Keys are deleted when the passcode is removed.
  case keyMissing

  /// An error of `LAErrorDomain` with a known code.
  public static func localAuthentication(_ code: LocalAuthenticationCode) -> Self {
    .localAuthentication(code: code.rawValue)
  }

  /// `errSecUserCanceled`: the user cancelled the prompt.
  public static let keychainCancelled = Self.keychain(status: -128)
  /// `errSecAuthFailed`: the user was not recognized, or the enrolled faces or fingers have changed.
  public static let keychainAuthenticationFailed = Self.keychain(status: -25293)
}

extension DeviceSecurityError: CustomStringConvertible {
  /// The name and number of the error, for logs: `LAError.userCancel (-2)`.
  public var description: String {
    switch self {
    case .localAuthentication(let code):
      "LAError.\(LocalAuthenticationCode(rawValue: code)?.name ?? "unknown") (\(code))"
    case .keychain(let status): "OSStatus \(status)"
    case .keyMissing: "errSecItemNotFound (-25300)"
    }
  }
}
