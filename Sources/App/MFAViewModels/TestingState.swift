public import MFAClient

/// What the dashboard for tests shows. Compares by value.
public struct TestingState: Sendable, Hashable {
  /// Something that the dashboard can do.
  public enum Action: String, Sendable, Hashable, CaseIterable {
    /// Enrols with a key that biometry unlocks.
    case enrollWithBiometrics
    /// Enrols with a key that only the passcode unlocks.
    case enrollWithPasscode
    /// Signs in as the device is enrolled.
    case testAuthentication
    /// Gives the device a new key in place of the present one.
    case reenroll
    /// Removes the device from its account.
    case unenroll
    /// Signs in, or enrols, with a prompt that is declined. Only on a phone that can decline by itself.
    case simulateDecline
    /// Lets the device sign in by codes.
    case switchToSMS
    /// Reads again what the device offers, and what the server says.
    case checkSecurity

    /// The label of the button.
    public var label: String {
      switch self {
      case .enrollWithBiometrics: "Enroll with Biometrics"
      case .enrollWithPasscode: "Enroll with Passcode Only"
      case .testAuthentication: "Test Authentication"
      case .reenroll: "Re-enroll"
      case .unenroll: "Unenroll"
      case .simulateDecline: "Simulate Biometric Decline"
      case .switchToSMS: "Switch to SMS Fallback"
      case .checkSecurity: "Check Device Security Status"
      }
    }
  }

  /// The action that runs now; `nil` for none.
  public internal(set) var running: Action?
  /// Whether new keys are made in a Secure Enclave; `nil` before the first check.
  public internal(set) var hasSecureEnclave: Bool?
  /// What the device offers.
  public internal(set) var capability = DeviceCapability.none
  /// The sensor of the device.
  public internal(set) var biometryType = BiometryType.none
  /// What the server says about the device; `nil` if it could not be asked.
  public internal(set) var registration: SettingsState.Registration?
  /// How the device signs in; `nil` without an enrolment.
  public internal(set) var method: MFAMethod?
  /// Whether the last sign-in waits for a code.
  public internal(set) var awaitsCode = false
  /// What came of the last action, as a text for people; `nil` before the first.
  public internal(set) var resultText: String?
  /// Whether the last action did what its label says.
  public internal(set) var hasSucceeded = true
  /// What the dashboard offers now.
  public internal(set) var actions: [Action]

  /// The state before the first check.
  ///
  /// - Parameter canDecline: Whether the dashboard offers `.simulateDecline`.
  public init(canDecline: Bool = false) {
    actions = Action.allCases.filter { canDecline || $0 != .simulateDecline }
  }
}
