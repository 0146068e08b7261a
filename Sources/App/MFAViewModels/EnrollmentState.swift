public import MFAClient

/// What the enrolment screen shows. Changed only by events; compares by value.
public struct EnrollmentState: Sendable, Hashable {
  /// What happens now.
  public enum Phase: Sendable, Hashable {
    /// The screen has not appeared yet, or the capability is being read.
    case loading
    /// The user chooses how to protect the key.
    case choosing
    /// The key is made and tested: the phone may show a prompt.
    case testingKey(KeyProtection)
    /// The user is asked whether to use the passcode instead of biometry.
    case offeringPasscode
    /// The device is being registered with the server.
    case registering(MFAMethod)
    /// No key can be protected: the user can open the Settings app or register a phone number.
    case blocked
    /// The device is enrolled.
    case enrolled(MFAMethod, AuthMethod?)
  }

  /// A choice that the screen offers now.
  public enum Option: String, Sendable, Hashable, CaseIterable {
    /// A key that a face or a finger unlocks, or the passcode.
    case useBiometrics
    /// A key that only the passcode unlocks.
    case usePasscode
    /// No key: codes by SMS.
    case useSMS
    /// The Settings app, in which the user sets a passcode.
    case openSettings
  }

  /// The name of the account that the device is enrolled with.
  public internal(set) var username: String
  /// What happens now.
  public internal(set) var phase = Phase.loading
  /// What the device offers.
  public internal(set) var capability = DeviceCapability.none
  /// The sensor of the device.
  public internal(set) var biometryType = BiometryType.none
  /// The last error, as a text for the user; `nil` if the last step succeeded.
  public internal(set) var errorText: String?

  /// The state before the screen appears.
  public init(username: String = "") { self.username = username }

  /// The heading.
  public var title: String {
    switch phase {
    case .loading: "Checking this device"
    case .choosing: capability == .passcodeOnly ? "Passcode Authentication" : "Protect your account"
    case .testingKey: "Confirm it is you"
    case .offeringPasscode: "Use Passcode Instead?"
    case .registering: "Registering this device"
    case .blocked: "No device security"
    case .enrolled: "Device enrolled"
    }
  }

  /// The text below the heading; `nil` for none.
  public var message: String? {
    switch phase {
    case .choosing where capability == .passcodeOnly: "Using passcode authentication"
    case .blocked: "Please set up device passcode in Settings"
    default: nil
    }
  }

  /// What the user can choose now, in this order. Biometry is offered only on devices where it can be used.
  public var options: [Option] {
    switch phase {
    case .choosing: capability == .biometricsAvailable ? [.useBiometrics, .usePasscode] : [.usePasscode]
    case .offeringPasscode: [.usePasscode]
    case .blocked: [.openSettings, .useSMS]
    case .loading, .testingKey, .registering, .enrolled: []
    }
  }

  /// The label of an option, with the name of the sensor.
  public func label(of option: Option) -> String {
    switch option {
    case .useBiometrics: "Use \(biometryType.name ?? "biometrics")"
    case .usePasscode: phase == .offeringPasscode ? "Yes" : "Use Passcode Only"
    case .useSMS: "Use SMS Codes"
    case .openSettings: "Open Settings"
    }
  }
}
