internal import ByteCoding
public import MFAClient

/// What the settings screen shows. Changed only by events; compares by value.
public struct SettingsState: Sendable, Hashable {
  /// What happens now.
  public enum Phase: Sendable, Hashable {
    /// The screen has not appeared yet, or the device is being read.
    case loading
    /// The user can choose.
    case ready
    /// A new key is made and tested: the phone may show a prompt.
    case testingKey(KeyProtection)
    /// The server is told of a change.
    case changing(Change)
  }

  /// A change that the server is told of.
  public enum Change: String, Sendable, Hashable, CaseIterable {
    /// The device gets another key.
    case key
    /// The device loses its key and signs in by codes.
    case codes
    /// Codes go to another number.
    case phoneNumber
    /// A code is sent to the changed number, or the one that arrived there is verified.
    case numberCode
    /// The device is removed from the account.
    case removal
  }

  /// A choice that the screen offers now.
  public enum Option: String, Sendable, Hashable, CaseIterable {
    /// Accepts the offer of a key that biometry unlocks.
    case acceptUpgrade
    /// Declines that offer, until the screen is made again.
    case declineUpgrade
    /// A key that a face or a finger unlocks, or the passcode.
    case useBiometrics
    /// A key that only the passcode unlocks.
    case usePasscode
    /// No key: codes by SMS.
    case useSMS
    /// A new key in place of the present one, with the same protection.
    case renewKey
    /// Removes the device from the account.
    case unenroll
    /// The Settings app, in which the user sets a passcode.
    case openSettings
  }

  /// What the server says about this device.
  public struct Registration: Sendable, Hashable {
    /// Whether the device is enrolled.
    public let isEnrolled: Bool
    /// How it signs in; `nil` if it is not enrolled, or signs in in a way that this version does not know.
    public let method: MFAMethod?
    /// Whether the server has a key of the device.
    public let hasKey: Bool
  }

  /// What the server says about the second factor of the account.
  public struct SecondFactor: Sendable, Hashable {
    /// Whether the account has one. Without one, the screen links to its enrolment.
    public let isEnabled: Bool
    /// The number of backup codes that were not used yet.
    public let backupCodesRemaining: Int
    /// The number of devices that may skip it.
    public internal(set) var trustedDevices: Int
    /// Whether this device is one of them.
    public internal(set) var remembersThisDevice: Bool
  }

  /// What happens now.
  public internal(set) var phase = Phase.loading
  /// What the device offers.
  public internal(set) var capability = DeviceCapability.none
  /// The sensor of the device.
  public internal(set) var biometryType = BiometryType.none
  /// The account; `nil` without an enrolment.
  public internal(set) var username: String?
  /// How the device signs in; `nil` without an enrolment.
  public internal(set) var method: MFAMethod?
  /// How its key is unlocked; `nil` without a key.
  public internal(set) var authMethod: AuthMethod?
  /// Whether the Secure Enclave holds the key; `nil` without a key.
  public internal(set) var isHardwareBacked: Bool?
  /// The number that receives codes, but for its last four digits masked; `nil` for none.
  public internal(set) var maskedPhoneNumber: String?
  /// Whether the number was changed, and the code that was sent to it has not been entered yet. Until then the number may
  /// be a wrong one. An app that restarts does not ask again.
  public internal(set) var awaitsNumberCode = false
  /// What the server says; `nil` if it could not be asked.
  public internal(set) var registration: Registration?
  /// What the server says about the second factor; `nil` without a session.
  public internal(set) var secondFactor: SecondFactor?
  /// A change of the device's security that the user must hear of; `nil` for none.
  public internal(set) var alertText: String?
  /// The last error, as a text for the user; `nil` if the last step succeeded.
  public internal(set) var errorText: String?
  /// The last success, as a text for the user.
  public internal(set) var noticeText: String?
  /// Whether the user must sign in before the last choice can be carried out.
  public internal(set) var needsSignIn = false
  /// Whether the user declined the offer of `offersUpgrade`.
  var declinedUpgrade = false
  /// Whether the key that the server knows has gone.
  var hasLostKey = false

  /// The state before the screen appears.
  public init() {}

  /// Whether the screen asks "Upgrade to biometric security?".
  public var offersUpgrade: Bool {
    phase == .ready && method == .smsOTP && capability == .biometricsAvailable && !declinedUpgrade
  }

  /// The heading.
  public var title: String {
    switch phase {
    case .loading: "Checking this device"
    case .testingKey: "Confirm it is you"
    case .changing: "Updating the server"
    case .ready: offersUpgrade ? "Upgrade to biometric security?" : "Security"
    }
  }

  /// The present way to sign in, for people.
  public var methodText: String {
    switch (method, authMethod) {
    case (.secureEnclave, .passcode): "Passcode only"
    case (.secureEnclave, _): biometryType.name ?? "Biometrics"
    case (.smsOTP, _): "SMS codes"
    case (nil, _): "Not enrolled"
    }
  }

  /// What the user can choose now, in this order.
  public var options: [Option] {
    guard phase == .ready else { return [] }
    if offersUpgrade { return [.acceptUpgrade, .declineUpgrade] }
    var options: [Option] = capability == .none ? [.openSettings] : []
    guard let method else { return options }
    if capability == .biometricsAvailable, authMethod != .biometric { options.append(.useBiometrics) }
    if capability != .none, authMethod != .passcode { options.append(.usePasscode) }
    if capability != .none, method == .secureEnclave { options.append(.renewKey) }
    if method == .secureEnclave { options.append(.useSMS) }
    return options + [.unenroll]
  }

  /// The label of an option, with the name of the sensor.
  public func label(of option: Option) -> String {
    switch option {
    case .acceptUpgrade: "Upgrade"
    case .declineUpgrade: "Not Now"
    case .useBiometrics: "Switch to \(biometryType.name ?? "Biometrics")"
    case .usePasscode: "Switch to Passcode Only"
    case .useSMS: "Switch to SMS Codes"
    case .renewKey: "Re-enroll"
    case .unenroll: "Unenroll This Device"
    case .openSettings: "Open Settings"
    }
  }
}
