internal import MFAClient

/// The rules of enrolment: an event changes the state and asks for at most one effect.
struct EnrollmentMachine: StateMachine, Hashable {
  /// What the device offers, and whether it is enrolled.
  struct Device: Sendable, Hashable {
    let capability: DeviceCapability
    let biometryType: BiometryType
    /// How it signs in; `nil` for a device that is not enrolled or has lost its key.
    let method: MFAMethod?
    let authMethod: AuthMethod?
    /// Why an earlier change is not finished.
    let failure: String?
  }

  /// What the user does, and what effects report.
  enum Event: Sendable, Hashable {
    case appeared
    case chose(EnrollmentState.Option)
    case declinedPasscode
    case enteredUsername(String)
    case enteredLinkCode(String)
    case enteredPhone(String)
    case readDevice(Device)
    case testedKey(KeyPair)
    case keyFailed(DeviceSecurityError)
    /// The server has registered the device.
    case registered
    /// No key was made, or the server has not registered the device.
    case failed(String)
  }

  /// What the view model does next.
  enum Effect: Sendable, Hashable {
    /// Finishes what was begun earlier, and reads what there is now.
    case readDevice
    /// Makes a key and signs with it once, before the server hears of it.
    case makeKey(KeyProtection)
    /// Deletes the key that was made, unless the server may have it, and reads the device again.
    case abandonKey
    case register(MFAMethod, KeyPair?, phoneNumber: String?, linkCode: String?)
    case openSettings
  }

  private(set) var state: EnrollmentState

  init(username: String) { state = EnrollmentState(username: username) }

  /// The code that adds the device to an existing account, until it is enrolled. It is a secret, so no state shows it.
  private var linkCode: String?

  mutating func apply(_ event: Event) -> Effect? {
    switch (event, state.phase) {
    case (.appeared, .loading), (.appeared, .choosing), (.appeared, .blocked), (.appeared, .offeringPasscode),
      (.appeared, .enrolled):
      return .readDevice
    case (.readDevice(let device), _): return update(device)
    case (.enteredUsername(let name), .loading), (.enteredUsername(let name), .choosing),
      (.enteredUsername(let name), .blocked):
      state.username = name
      return nil
    case (.enteredLinkCode(let code), .loading), (.enteredLinkCode(let code), .choosing),
      (.enteredLinkCode(let code), .offeringPasscode), (.enteredLinkCode(let code), .blocked):
      linkCode = code.isEmpty ? nil : code
      return nil
    case (.chose(let option), _) where state.options.contains(option): return choose(option)
    case (.declinedPasscode, .offeringPasscode):
      state.phase = .choosing
      return nil
    case (.enteredPhone(let number), .blocked):
      state.phase = .registering(.smsOTP)
      state.errorText = nil
      return .register(.smsOTP, nil, phoneNumber: number, linkCode: linkCode)
    case (.testedKey(let pair), .testingKey):
      state.phase = .registering(.secureEnclave)
      return .register(.secureEnclave, pair, phoneNumber: nil, linkCode: linkCode)
    case (.keyFailed(let error), .testingKey), (.keyFailed(let error), .registering(.secureEnclave)):
      return keyFailed(error)
    case (.failed(let text), .testingKey):
      (state.errorText, state.phase) = (text, .choosing)
      return .abandonKey
    case (.registered, .registering(let method)):
      state.phase = .enrolled(method, method == .secureEnclave ? testedMethod : nil)
      state.errorText = nil
      linkCode = nil
      return nil
    case (.failed(let text), .registering(let method)):
      state.errorText = text
      state.phase = method == .smsOTP ? .blocked : .choosing
      return method == .smsOTP ? nil : .abandonKey
    default: return nil
    }
  }

  /// How the key in progress is unlocked.
  private var testedMethod: AuthMethod?

  private mutating func update(_ device: Device) -> Effect? {
    (state.capability, state.biometryType) = (device.capability, device.biometryType)
    if let failure = device.failure { state.errorText = failure }
    switch (state.phase, device.method) {
    case (.registering, _), (.testingKey, nil): break
    case (_, let method?):
      (state.phase, state.errorText) = (.enrolled(method, device.authMethod), device.failure)
      linkCode = nil
    case (.offeringPasscode, nil) where device.capability != .none: break
    case (_, nil): state.phase = device.capability == .none ? .blocked : .choosing
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
