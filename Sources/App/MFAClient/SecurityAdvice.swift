/// What the user does when a prompt or a key fails.
public enum SecurityFlow: String, Sendable, Hashable, CaseIterable {
  /// The user enrolls the device.
  case enrolment
  /// The user signs in with the key.
  case signIn
  /// The user changes how the device signs in.
  case methodChange
}

/// What the app offers after an error, with the text that it shows.
public struct SecurityAdvice: Sendable, Hashable {
  /// The offer of the app.
  public enum Action: String, Sendable, Hashable, CaseIterable {
    /// Asks whether to use the passcode instead.
    case offerPasscode
    /// Continues with the passcode.
    case usePasscode
    /// Shows the prompt again when the user asks for it.
    case retry
    /// Makes another key and enrolls it.
    case enrollAgain
    /// Blocks keys, points to the Settings app, and offers to sign in by SMS codes.
    case blockAndOfferSMS
  }

  /// The text for the user, one line.
  public let text: String
  /// The offer.
  public let action: Action

  init(_ text: String, _ action: Action) {
    self.text = text
    self.action = action
  }
}

extension DeviceSecurityError {
  /// Returns what to show and to offer when this error occurs in `flow` on a device with `capability`.
  ///
  /// Never offers a passcode that the device does not have.
  public func advice(in flow: SecurityFlow, capability: DeviceCapability) -> SecurityAdvice {
    let advice = advice(in: flow)
    switch (advice.action, capability) {
    case (.offerPasscode, .none), (.usePasscode, .none), (.enrollAgain, .none), (.retry, .none):
      return SecurityAdvice(Self.noSecurity.text, .blockAndOfferSMS)
    case (.blockAndOfferSMS, .biometricsAvailable), (.blockAndOfferSMS, .passcodeOnly):
      // The passcode was set between the error and this call.
      return SecurityAdvice("Device security has changed - retry", .retry)
    default:
      return advice
    }
  }

  private static let noSecurity = SecurityAdvice("Critical: No device security", .blockAndOfferSMS)

  private func advice(in flow: SecurityFlow) -> SecurityAdvice {
    switch self {
    case .localAuthentication(let code):
      LocalAuthenticationCode(rawValue: code)?.advice
        ?? SecurityAdvice("Unknown error \(code) - offer passcode", .offerPasscode)
    case .keychainCancelled: LocalAuthenticationCode.userCancel.advice
    case .keychainAuthenticationFailed: LocalAuthenticationCode.authenticationFailed.advice
    case .keychain(let status): SecurityAdvice("Unknown keychain error \(status) - retry", .retry)
    case .keyMissing:
      flow == .enrolment
        ? SecurityAdvice("The key was removed - retry", .retry)
        : SecurityAdvice("The key was removed - enroll this device again", .enrollAgain)
    }
  }
}

extension LocalAuthenticationCode {
  /// The table of texts and actions. The compiler requires a line for each code.
  var advice: SecurityAdvice {
    switch self {
    case .userCancel: SecurityAdvice("User cancelled - offer passcode", .offerPasscode)
    case .biometryNotAvailable: SecurityAdvice("Biometrics disabled - use passcode", .usePasscode)
    case .biometryNotEnrolled: SecurityAdvice("No biometrics enrolled", .usePasscode)
    case .passcodeNotSet: SecurityAdvice("Critical: No device security", .blockAndOfferSMS)
    case .biometryLockout: SecurityAdvice("Too many attempts - use passcode", .usePasscode)
    case .authenticationFailed: SecurityAdvice("Authentication failed - retry", .retry)
    case .userFallback: SecurityAdvice("Passcode chosen - use passcode", .usePasscode)
    case .systemCancel: SecurityAdvice("Interrupted by the system - retry", .retry)
    case .appCancel: SecurityAdvice("Cancelled by the app - retry", .retry)
    case .invalidContext: SecurityAdvice("The prompt is no longer valid - retry", .retry)
    case .companionNotAvailable: SecurityAdvice("No paired device nearby - use passcode", .usePasscode)
    case .biometryNotPaired: SecurityAdvice("No sensor paired - use passcode", .usePasscode)
    case .biometryDisconnected: SecurityAdvice("Sensor disconnected - use passcode", .usePasscode)
    case .invalidDimensions: SecurityAdvice("The prompt does not fit on the screen - retry", .retry)
    case .notInteractive: SecurityAdvice("No prompt can be shown now - retry", .retry)
    }
  }
}
