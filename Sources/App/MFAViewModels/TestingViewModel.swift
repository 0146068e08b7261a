internal import MFAClient
internal import MFAWire

/// Shows the state of the device and runs each step of enrolment, sign-in and settings by one call, for people who test
/// an app. Each action ends with a line in the log.
///
/// One action runs at a time: another one that is started meanwhile does nothing.
public actor TestingViewModel {
  /// The state now.
  public private(set) var state: TestingState {
    didSet { if state != oldValue { publisher.publish(state) } }
  }

  /// The enrolment that the actions use.
  public nonisolated let enrolment: EnrollmentViewModel
  /// The sign-in that the actions use.
  public nonisolated let signIn: SignInViewModel
  /// The settings that the actions use.
  public nonisolated let settings: SettingsViewModel
  /// The second factor of the account.
  public nonisolated let factor: FactorViewModel
  /// The lines of the actions, the prompts and the requests.
  public nonisolated let log: EventLog

  private let services: DeviceServices
  private let declineNextPrompt: (@Sendable () async -> Void)?
  private nonisolated let publisher = StatePublisher<TestingState>()

  /// Creates the dashboard of an app.
  ///
  /// An app that has other screens too builds them on ``enrolment``, ``signIn``, ``settings`` and ``factor`` of the
  /// dashboard: see ``DeviceServices/logged(to:)``.
  ///
  /// - Parameters:
  ///   - services: The services of the app. The dashboard uses a copy that writes to `log`.
  ///   - log: Receives the lines.
  ///   - declineNextPrompt: Makes the next prompt of the phone be declined; `nil` on a real phone.
  public init(services: DeviceServices, log: EventLog, declineNextPrompt: (@Sendable () async -> Void)? = nil) {
    let logged = services.logged(to: log)
    self.services = logged
    self.log = log
    self.declineNextPrompt = declineNextPrompt
    enrolment = EnrollmentViewModel(services: logged)
    signIn = SignInViewModel(services: logged)
    settings = SettingsViewModel(services: logged)
    factor = FactorViewModel(services: logged)
    state = TestingState(canDecline: declineNextPrompt != nil)
  }

  /// The state now and after each change. The stream ends when the view model is released.
  public func states() -> AsyncStream<TestingState> { publisher.states(beginningWith: state) }

  /// Call it when the screen appears, and when the app returns to the front.
  public func appear() async { await run(.checkSecurity) }

  /// Runs `action` and returns when it is finished. Prompts are answered meanwhile.
  public func run(_ action: TestingState.Action) async {
    guard state.running == nil, state.actions.contains(action) else { return }
    state.running = action
    (state.resultText, state.awaitsCode) = (nil, false)
    let result = await perform(action)
    await finish(action.label, result)
  }

  /// Sends the code that the sign-in waits for.
  public func enter(code: String) async {
    guard state.running == nil, state.awaitsCode else { return }
    state.running = .testAuthentication
    await signIn.enter(code: code)
    await finish("Enter a code", await signInResult())
  }

  /// The challenge for the session of the last sign-in; `nil` if that session needs no second factor.
  public func challenge() async -> ChallengeViewModel? {
    guard await signIn.state.phase == .signedIn(needsSecondFactor: true), let tokens = await signIn.tokens else {
      return nil
    }
    return ChallengeViewModel(services: services, token: tokens.token)
  }

  /// What came of an action.
  private struct Result {
    let hasSucceeded: Bool
    let text: String
  }

  private func perform(_ action: TestingState.Action) async -> Result {
    switch action {
    case .enrollWithBiometrics: return await enroll(.useBiometrics)
    case .enrollWithPasscode: return await enroll(.usePasscode)
    case .testAuthentication: return await authenticate()
    case .reenroll: return await change(.renewKey)
    case .unenroll: return await change(.unenroll)
    case .switchToSMS: return await change(.useSMS)
    case .simulateDecline:
      await declineNextPrompt?()
      let isEnrolled = await settings.state.method == .secureEnclave
      let result = isEnrolled ? await authenticate() : await enroll(.useBiometrics)
      // The action is to be declined.
      return Result(hasSucceeded: !result.hasSucceeded, text: result.text)
    case .checkSecurity:
      await settings.appear()
      let state = await settings.state
      return Result(
        hasSucceeded: state.errorText == nil && state.alertText == nil,
        text: state.errorText ?? state.alertText ?? "Device: \(state.capability.rawValue)")
    }
  }

  private func enroll(_ option: EnrollmentState.Option) async -> Result {
    await enrolment.appear()
    if case .enrolled = await enrolment.state.phase {
      return Result(hasSucceeded: false, text: "This device is enrolled already - re-enroll or unenroll it")
    }
    guard await enrolment.state.options.contains(option) else {
      let state = await enrolment.state
      return Result(hasSucceeded: false, text: state.message ?? "This device does not offer that")
    }
    await enrolment.choose(option)
    let state = await enrolment.state
    guard case .enrolled(_, let authMethod) = state.phase else {
      return Result(hasSucceeded: false, text: state.errorText ?? state.title)
    }
    return Result(hasSucceeded: true, text: "Enrolled" + (authMethod.map { " with \($0.rawValue)" } ?? " with codes"))
  }

  private func authenticate() async -> Result {
    await signIn.startOver()
    await signIn.choose(.signIn)
    return await signInResult()
  }

  private func signInResult() async -> Result {
    let state = await signIn.state
    switch state.phase {
    case .signedIn(let needsSecondFactor):
      let text = needsSecondFactor ? "Signed in; the second factor is missing" : "Signed in"
      return Result(hasSucceeded: true, text: text)
    case .enteringCode:
      return Result(hasSucceeded: state.errorText == nil, text: state.errorText ?? "The server has sent a code")
    case .ready, .requestingChallenge, .signing, .verifying:
      return Result(hasSucceeded: false, text: state.errorText ?? "Not signed in")
    }
  }

  private func change(_ option: SettingsState.Option) async -> Result {
    await settings.appear()
    var state = await settings.state
    // The offer of another key is in the way of the other options.
    if state.offersUpgrade, option != .acceptUpgrade {
      await settings.choose(.declineUpgrade)
      state = await settings.state
    }
    guard state.options.contains(option) else {
      return Result(
        hasSucceeded: false, text: state.errorText ?? "This device does not offer that: \(state.methodText)")
    }
    await settings.choose(option)
    state = await settings.state
    return Result(hasSucceeded: state.errorText == nil, text: state.errorText ?? state.noticeText ?? state.methodText)
  }

  /// Shows the result, with what device and server have now.
  private func finish(_ title: String, _ result: Result) async {
    if state.running != .checkSecurity { await settings.appear() }
    let settings = await settings.state
    let hasSecureEnclave = await services.keychain.hasSecureEnclave()
    let awaitsCode = await signIn.state.phase == .enteringCode
    log.add(.app, title, result.hasSucceeded ? .success : .failure, result.text)
    var next = state
    next.hasSecureEnclave = hasSecureEnclave
    (next.capability, next.biometryType) = (settings.capability, settings.biometryType)
    (next.registration, next.method) = (settings.registration, settings.method)
    (next.awaitsCode, next.running) = (awaitsCode, nil)
    (next.resultText, next.hasSucceeded) = (result.text, result.hasSucceeded)
    state = next
  }
}
