internal import MFAClient

/// The rules of signing in: an event changes the state and asks for at most one effect.
struct SignInMachine: StateMachine, Hashable {
  /// A challenge of the server. Its bytes are what the key signs.
  struct DeviceChallenge: Sendable, Hashable {
    let id: String
    let bytes: [UInt8]
  }

  /// What the user does, and what effects report.
  enum Event: Sendable, Hashable {
    case chose(SignInState.Option)
    case enteredCode(String)
    case challenged(DeviceChallenge)
    /// The server has sent a code.
    case codeSent
    case signed(DeviceChallenge, signature: [UInt8])
    case keyFailed(DeviceSecurityError, DeviceCapability)
    /// The device is not enrolled, or not any more, so that it has no key to sign with.
    case notEnrolled
    /// The server has the device for another app instance, with the text of its refusal.
    case boundElsewhere(String)
    /// The enrolment of another app instance could not be forgotten.
    case notForgotten(String)
    /// The server refused the signature of a key, and the device has another key that the server may know.
    case keyRefused
    case verified(needsSecondFactor: Bool)
    case failed(String)
    case enteredUsername(String)
    /// The user wants to sign in again: a code that is waited for and the offers after an error are given up, and a
    /// session is left as it is.
    case startedOver
  }

  /// What the view model does next.
  enum Effect: Sendable, Hashable {
    case requestChallenge
    case requestCode
    /// Shows the prompt of the key and signs.
    case sign(DeviceChallenge)
    case verifySignature(DeviceChallenge, signature: [UInt8])
    case verifyCode(String)
    /// Forgets the enrolment of another app instance, and takes another id.
    case forgetEnrolment
    case openSettings
  }

  private(set) var state: SignInState

  init(username: String) { state = SignInState(username: username) }

  /// Where the user continues after an error of the server.
  private var isByCode = false

  mutating func apply(_ event: Event) -> Effect? {
    switch (event, state.phase) {
    case (.chose(let option), _) where state.options.contains(option): return choose(option)
    case (.challenged(let challenge), .requestingChallenge):
      state.phase = .signing
      return .sign(challenge)
    case (.codeSent, .requestingChallenge):
      isByCode = true
      state.phase = .enteringCode
      return nil
    case (.signed(let challenge, let signature), .signing):
      state.phase = .verifying
      return .verifySignature(challenge, signature: signature)
    case (.keyFailed(let error, let capability), .signing):
      let advice = error.advice(in: .signIn, capability: capability)
      (state.errorText, state.advice, state.phase) = (advice.text, advice.action, .ready)
      return nil
    case (.notEnrolled, .requestingChallenge), (.notEnrolled, .signing):
      (state.errorText, state.advice, state.phase) = (
        "This device is not enrolled - enroll it first", .enrollAgain, .ready
      )
      state.enrolment = .nowhere
      return nil
    case (.boundElsewhere(let text), .requestingChallenge), (.notForgotten(let text), .ready):
      (state.errorText, state.advice, state.phase) = (text, .enrollAgain, .ready)
      state.enrolment = .elsewhere
      return nil
    case (.enteredCode(let code), .enteringCode):
      state.errorText = nil
      state.phase = .verifying
      return .verifyCode(code)
    case (.keyRefused, .verifying):
      state.phase = .requestingChallenge
      return .requestChallenge
    case (.startedOver, .enteringCode), (.startedOver, .signedIn), (.startedOver, .ready):
      (state.errorText, state.advice, state.phase) = (nil, nil, .ready)
      state.enrolment = .here
      return nil
    case (.enteredUsername(let name), .ready):
      state.username = name
      return nil
    case (.verified(let needsSecondFactor), .verifying):
      (state.errorText, state.advice, state.phase) = (nil, nil, .signedIn(needsSecondFactor: needsSecondFactor))
      return nil
    case (.failed(let text), .verifying) where isByCode:
      (state.errorText, state.phase) = (text, .enteringCode)
      return nil
    case (.failed(let text), .requestingChallenge), (.failed(let text), .verifying):
      (state.errorText, state.phase) = (text, .ready)
      return nil
    default: return nil
    }
  }

  private mutating func choose(_ option: SignInState.Option) -> Effect? {
    switch option {
    case .signIn:
      (state.errorText, state.advice, state.phase) = (nil, nil, .requestingChallenge)
      isByCode = false
      return .requestChallenge
    case .useSMS:
      (state.errorText, state.phase) = (nil, .requestingChallenge)
      return .requestCode
    case .enrollAgain:
      let effect: Effect? = state.enrolment == .elsewhere ? .forgetEnrolment : nil
      // After the enrolment, the user signs in here.
      (state.errorText, state.advice, state.enrolment) = (nil, nil, .here)
      return effect
    case .openSettings: return .openSettings
    }
  }
}
