internal import MFAClient

/// The rules of the settings: an event changes the state and asks for at most one effect.
struct SettingsMachine: StateMachine, Hashable {
  /// What the device and the server have now.
  struct Device: Sendable, Hashable {
    let capability: DeviceCapability
    let biometryType: BiometryType
    let status: EnrolmentStatus
    /// What the server says; `nil` if it could not be asked.
    let registration: SettingsState.Registration?
    /// `nil` without a session.
    var secondFactor: SettingsState.SecondFactor?
    /// Why the server could not be asked, or why an earlier change is not finished.
    let failure: String?
  }

  /// Why a change was not carried out.
  struct Failure: Sendable, Hashable {
    let text: String
    let needsSignIn: Bool
  }

  /// What the user does, and what effects report.
  enum Event: Sendable, Hashable {
    case appeared
    case chose(SettingsState.Option)
    case enteredPhone(String)
    /// The user wants another code at the changed number.
    case choseNumberCode
    case enteredNumberCode(String)
    case readDevice(Device)
    case unreadable(String)
    case testedKey(KeyPair)
    case keyFailed(DeviceSecurityError, DeviceCapability)
    /// The change is carried out, as far as the server can be asked.
    case changed
    /// A code is on its way to the changed number.
    case sentNumberCode
    case failed(Failure)
  }

  /// What the view model does next.
  enum Effect: Sendable, Hashable {
    /// Finishes what was begun earlier, and reads what device and server have now.
    case readDevice
    /// Makes a key beside the present one and signs with it once.
    case makeKey(KeyProtection)
    /// Deletes the key that was made, unless the server may have it, and reads the device again.
    case abandonKey
    /// Gives the server the key, and deletes the one before.
    case replaceKey(KeyPair)
    case removeKey
    case changePhoneNumber(String)
    case sendNumberCode
    case verifyNumberCode(String)
    case unenroll
    case openSettings
  }

  private(set) var state = SettingsState()
  /// Whether the security of the device is checked when it has been read: once for each appearance.
  private var checksSecurity = false
  /// The present number for codes, as it was read last.
  private var number: String?
  /// Whether a change of the number has begun whose outcome is not known.
  private var changesNumber = false

  mutating func apply(_ event: Event) -> Effect? {
    switch (event, state.phase) {
    case (.appeared, .loading), (.appeared, .ready):
      checksSecurity = true
      return .readDevice
    case (.readDevice(let device), .loading), (.readDevice(let device), .ready): return update(device)
    case (.unreadable(let text), .loading), (.unreadable(let text), .ready):
      (state.errorText, state.phase) = (text, .ready)
      return nil
    case (.chose(let option), .ready) where state.options.contains(option): return choose(option)
    case (.enteredPhone(let number), .ready) where state.method != nil:
      changesNumber = true
      return begin(.phoneNumber, .changePhoneNumber(number))
    case (.choseNumberCode, .ready) where state.awaitsNumberCode: return begin(.numberCode, .sendNumberCode)
    case (.enteredNumberCode(let code), .ready) where state.awaitsNumberCode:
      return begin(.numberCode, .verifyNumberCode(code))
    case (.testedKey(let pair), .testingKey): return begin(.key, .replaceKey(pair))
    case (.keyFailed(let error, let capability), .testingKey), (.keyFailed(let error, let capability), .changing):
      (state.errorText, state.phase) = (error.advice(in: .methodChange, capability: capability).text, .ready)
      return .abandonKey
    case (.failed(let failure), .testingKey), (.failed(let failure), .changing):
      (state.errorText, state.needsSignIn, state.phase) = (failure.text, failure.needsSignIn, .ready)
      return .abandonKey
    case (.changed, .changing(.phoneNumber)):
      return confirmNumber()
    case (.sentNumberCode, .changing(.numberCode)):
      (state.noticeText, state.phase) = ("Enter the code that was sent to the new number.", .ready)
      return .readDevice
    case (.changed, .changing(let change)):
      if change == .numberCode { state.awaitsNumberCode = false }
      (state.noticeText, state.phase) = (change.notice, .ready)
      return .readDevice
    default: return nil
    }
  }

  private mutating func update(_ device: Device) -> Effect? {
    let isReturn = state.phase == .ready
    let record = device.status.record
    (state.capability, state.biometryType) = (device.capability, device.biometryType)
    (state.username, state.method, state.authMethod) = (record.username, record.method, record.authMethod)
    state.isHardwareBacked = device.status.key?.isHardwareBacked
    state.hasLostKey = device.status.hasLostKey
    state.maskedPhoneNumber = record.phoneNumber.map(Self.masked)
    (state.registration, state.secondFactor) = (device.registration, device.secondFactor)
    if record.phoneNumber == nil { state.awaitsNumberCode = false }
    state.phase = .ready
    if let failure = device.failure {
      state.errorText = failure
    } else if checksSecurity, isReturn {
      state.errorText = nil
    }
    let isOtherNumber = record.phoneNumber != number
    number = record.phoneNumber
    if changesNumber, record.pendingChange == nil {
      changesNumber = false
      // Only the answer was lost.
      if isOtherNumber, number != nil { return confirmNumber() }
    }
    guard checksSecurity else { return nil }
    checksSecurity = false
    return checkSecurity()
  }

  /// Sends a code to the changed number: a mistyped one would lock the user out.
  private mutating func confirmNumber() -> Effect {
    changesNumber = false
    state.awaitsNumberCode = true
    return begin(.numberCode, .sendNumberCode)
  }

  /// A device that has lost its passcode has lost its key. The server is told at once, so that codes sign in.
  private mutating func checkSecurity() -> Effect? {
    guard state.method == .secureEnclave else {
      if state.capability != .none { state.alertText = nil }
      return nil
    }
    if state.capability == .none {
      let effect = begin(.codes, .removeKey)
      state.alertText =
        DeviceSecurityError.localAuthentication(.passcodeNotSet)
        .advice(in: .methodChange, capability: .none).text
      return effect
    }
    state.alertText =
      state.hasLostKey
      ? DeviceSecurityError.keyMissing.advice(in: .methodChange, capability: state.capability).text : nil
    return nil
  }

  private mutating func choose(_ option: SettingsState.Option) -> Effect? {
    switch option {
    case .acceptUpgrade, .useBiometrics: return test(.userPresence)
    case .declineUpgrade:
      state.declinedUpgrade = true
      return nil
    case .usePasscode: return test(.devicePasscode)
    case .renewKey: return test(state.authMethod == .passcode ? .devicePasscode : .userPresence)
    case .useSMS: return begin(.codes, .removeKey)
    case .unenroll: return begin(.removal, .unenroll)
    case .openSettings: return .openSettings
    }
  }

  private mutating func test(_ protection: KeyProtection) -> Effect {
    clearTexts()
    state.phase = .testingKey(protection)
    return .makeKey(protection)
  }

  private mutating func begin(_ change: SettingsState.Change, _ effect: Effect) -> Effect {
    clearTexts()
    state.phase = .changing(change)
    return effect
  }

  private mutating func clearTexts() {
    (state.errorText, state.noticeText, state.alertText, state.needsSignIn) = (nil, nil, nil, false)
  }

  /// Masks all but the last four digits.
  private static func masked(_ number: String) -> String {
    let hidden = max(0, number.count - 4)
    return String(repeating: "•", count: hidden) + number.suffix(4)
  }
}

extension SettingsState.Change {
  /// The text after the change.
  fileprivate var notice: String {
    switch self {
    case .key: "The server has the new key."
    case .codes: "This device signs in by SMS codes now."
    case .phoneNumber: "Codes go to the new number."
    case .numberCode: "The new number is confirmed."
    case .removal: "This device is not enrolled any more."
    }
  }
}
