internal import MFAClient

/// The rules of enrolment: an event changes the state and asks for at most one effect. It performs nothing itself.
struct EnrollmentMachine: Sendable, Hashable {
  /// What the user does, and what effects report.
  enum Event: Sendable, Hashable {
    case appeared
    case chose(EnrollmentState.Option)
    case declinedPasscode
    case enteredPhone(String)
    case readCapability(DeviceCapability, BiometryType)
    case testedKey(KeyPair)
    case keyFailed(DeviceSecurityError)
    /// The server has registered the device. `unsaved` says why the app cannot remember it.
    case registered(unsaved: String?)
    case registrationFailed(String)
  }

  /// What the view model does next.
  enum Effect: Sendable, Hashable {
    case readCapability
    /// Makes a key and signs with it once, before the server hears of it.
    case makeKey(KeyProtection)
    /// Deletes the key that was made and reads the capability again.
    case abandonKey
    case register(MFAMethod, KeyPair?, phoneNumber: String?)
    case openSettings
  }

  private(set) var state = EnrollmentState()

  /// Applies `event`. An event that does not fit the phase changes nothing: a button may be tapped twice.
  mutating func apply(_ event: Event) -> Effect? {
    switch (event, state.phase) {
    case (.appeared, .loading), (.appeared, .choosing), (.appeared, .blocked), (.appeared, .offeringPasscode):
      return .readCapability
    case (.readCapability(let capability, let type), _): return updateCapability(capability, type)
    case (.chose(let option), _) where state.options.contains(option): return choose(option)
    case (.declinedPasscode, .offeringPasscode):
      state.phase = .choosing
      return nil
    case (.enteredPhone(let number), .blocked):
      state.phase = .registering(.smsOTP)
      state.errorText = nil
      return .register(.smsOTP, nil, phoneNumber: number)
    case (.testedKey(let pair), .testingKey):
      state.phase = .registering(.secureEnclave)
      return .register(.secureEnclave, pair, phoneNumber: nil)
    case (.keyFailed(let error), .testingKey): return keyFailed(error)
    case (.registered(let unsaved), .registering(let method)):
      state.phase = .enrolled(method, method == .secureEnclave ? testedMethod : nil)
      state.errorText = unsaved
      return nil
    case (.registrationFailed(let text), .registering(let method)):
      state.errorText = text
      state.phase = method == .smsOTP ? .blocked : .choosing
      return method == .smsOTP ? nil : .abandonKey
    default: return nil
    }
  }

  /// How the key in progress is unlocked.
  private var testedMethod: AuthMethod?

  private mutating func updateCapability(_ capability: DeviceCapability, _ type: BiometryType) -> Effect? {
    state.capability = capability
    state.biometryType = type
    switch state.phase {
    case .loading, .choosing, .blocked: state.phase = capability == .none ? .blocked : .choosing
    case .offeringPasscode where capability == .none: state.phase = .blocked
    case .offeringPasscode, .testingKey, .registering, .enrolled: break
    }
    return nil
  }

  private mutating func choose(_ option: EnrollmentState.Option) -> Effect? {
    switch option {
    case .useBiometrics: return test(.userPresence)
    case .usePasscode: return test(.devicePasscode)
    case .useSMS: return nil
    case .openSettings: return .openSettings
    }
  }

  private mutating func test(_ protection: KeyProtection) -> Effect {
    state.errorText = nil
    state.phase = .testingKey(protection)
    testedMethod = protection.authMethod
    return .makeKey(protection)
  }

  private mutating func keyFailed(_ error: DeviceSecurityError) -> Effect {
    let advice = error.advice(in: .enrolment, capability: state.capability)
    state.errorText = advice.text
    switch advice.action {
    // A key for the passcode alone has no other passcode to fall back on.
    case .offerPasscode, .usePasscode:
      state.phase = state.phase == .testingKey(.devicePasscode) ? .choosing : .offeringPasscode
    case .retry, .enrollAgain: state.phase = .choosing
    case .blockAndOfferSMS: state.phase = .blocked
    }
    return .abandonKey
  }
}
