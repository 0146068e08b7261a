internal import MFAClient
internal import MFAViewModels
internal import SimulatedPhone

/// All that the page shows, apart from the log. The page draws it and decides nothing.
struct LabSnapshot: Sendable, Hashable, Encodable {
  /// Something that a person can choose.
  struct Choice: Sendable, Hashable, Encodable {
    let id: String
    let label: String
  }

  /// A line of a card.
  struct Fact: Sendable, Hashable, Encodable {
    let label: String
    let value: String
    /// Whether it is good; absent where that is no question.
    var isGood: Bool?
  }

  struct Phone: Sendable, Hashable, Encodable {
    struct Prompt: Sendable, Hashable, Encodable {
      let id: Int
      let title: String
      let reason: String
      let answers: [Choice]
    }

    let model: String
    let biometry: String
    let permission: String
    let isBiometryEnrolled: Bool
    let isPasscodeSet: Bool
    let isSimulator: Bool
    let isLockedOut: Bool
    /// How often the app has opened the Settings app.
    let timesSettingsOpened: Int
    let prompts: [Prompt]
    let messages: [String]
  }

  struct Enrolment: Sendable, Hashable, Encodable {
    let title: String
    let message: String?
    let error: String?
    let isBusy: Bool
    let options: [Choice]
    let asksNumber: Bool
    let offersDecline: Bool
  }

  struct SignIn: Sendable, Hashable, Encodable {
    let status: String
    let error: String?
    let isBusy: Bool
    let isSignedIn: Bool
    let asksCode: Bool
    let options: [Choice]
    /// The second factor, while the session of the last sign-in needs it.
    let challenge: Challenge?
  }

  struct Dashboard: Sendable, Hashable, Encodable {
    let cards: [Fact]
    let actions: [Choice]
    let isBusy: Bool
    let result: String?
    let hasSucceeded: Bool
    let asksCode: Bool
  }

  struct Settings: Sendable, Hashable, Encodable {
    let title: String
    let facts: [Fact]
    let alert: String?
    let error: String?
    let notice: String?
    let needsSignIn: Bool
    let isBusy: Bool
    let options: [Choice]
    let asksNumber: Bool
    let asksNumberCode: Bool
  }

  /// A scenario and what came of it.
  struct Played: Sendable, Hashable, Encodable {
    enum Status: String, Sendable, Hashable, Encodable {
      case new, running, passed, failed
    }

    let id: String
    let title: String
    var status = Status.new
    /// The failed step and what was found.
    var failure: String?
  }

  /// The requests of the scenario that was played last.
  struct Sequence: Sendable, Hashable, Encodable {
    struct Exchange: Sendable, Hashable, Encodable {
      let operation: String
      let detail: String
      /// Where the request ended: `phone`, `gate` or `backend`.
      let end: String
      let hasSucceeded: Bool
    }

    var title: String
    var exchanges: [Exchange] = []
  }

  let tab: LabTab
  let username: String
  let phone: Phone
  let enrolment: Enrolment
  let signIn: SignIn
  let security: Factor
  let dashboard: Dashboard
  let settings: Settings
  let scenarios: [Played]
  let sequence: Sequence?
}

extension LabSnapshot.Phone {
  init(_ phone: SimulatedPhone, codes: [String], mailCodes: [String], timesSettingsOpened: Int) {
    let settings = phone.settings
    model = settings.model
    biometry = settings.biometry.rawValue
    permission = settings.permission.rawValue
    isBiometryEnrolled = settings.isBiometryEnrolled
    isPasscodeSet = settings.isPasscodeSet
    isSimulator = settings.isSimulator
    isLockedOut = phone.isLockedOut
    self.timesSettingsOpened = timesSettingsOpened
    prompts = phone.prompts.map(Prompt.init)
    // The lock screen has room for the last ones.
    messages = codes.suffix(5).map { "Your OTP is \($0)" } + mailCodes.suffix(5).map { "E-mail: your OTP is \($0)" }
  }
}

extension LabSnapshot.Phone.Prompt {
  init(_ prompt: Prompt) {
    id = prompt.id
    reason = prompt.reason
    var answers = [LabSnapshot.Choice(id: "approve", label: "Approve"), .init(id: "decline", label: "Cancel")]
    switch prompt.kind {
    case .faceIDPermission:
      title = "Allow the app to use Face ID?"
      answers = [.init(id: "approve", label: "OK"), .init(id: "decline", label: "Don't Allow")]
    case .biometry(let type):
      title = type.name ?? "Biometry"
      answers += [
        .init(id: "fail", label: "Show another face or finger"), .init(id: "usePasscode", label: "Enter Passcode"),
      ]
    case .passcode:
      title = "Enter the passcode"
      answers.append(.init(id: "fail", label: "Enter a wrong passcode"))
    case .securityKey:
      title = "Touch the security key"
      answers[0] = .init(id: "approve", label: "Touch")
    }
    self.answers = answers
  }
}

extension LabSnapshot.Enrolment {
  init(_ state: EnrollmentState) {
    title = state.title
    var text = state.message
    if case .enrolled(let method, let authMethod) = state.phase {
      text = "This device signs in by " + (authMethod.map { "a key, unlocked by \($0.rawValue)" } ?? method.rawValue)
    }
    message = text
    error = state.errorText
    options = state.options.filter { $0 != .useSMS }.map { .init(id: $0.rawValue, label: state.label(of: $0)) }
    asksNumber = state.options.contains(.useSMS)
    offersDecline = state.phase == .offeringPasscode
    switch state.phase {
    case .loading, .testingKey, .registering: isBusy = true
    case .choosing, .offeringPasscode, .blocked, .enrolled: isBusy = false
    }
  }
}

extension LabSnapshot.SignIn {
  init(_ state: SignInState, challenge: LabSnapshot.Challenge?) {
    self.challenge = challenge
    error = state.errorText
    asksCode = state.phase == .enteringCode
    options = state.options.map { .init(id: $0.rawValue, label: Self.label(of: $0)) }
    switch state.phase {
    case .ready: (status, isBusy, isSignedIn) = ("Not signed in", false, false)
    case .requestingChallenge: (status, isBusy, isSignedIn) = ("Asking for a challenge", true, false)
    case .signing: (status, isBusy, isSignedIn) = ("Waiting for the phone", true, false)
    case .verifying: (status, isBusy, isSignedIn) = ("Asking the server", true, false)
    case .enteringCode: (status, isBusy, isSignedIn) = ("Enter the code that the phone has received", false, false)
    case .signedIn(let needsSecondFactor):
      (status, isBusy, isSignedIn) = (needsSecondFactor ? challenge?.status ?? "" : "Signed in", false, true)
    }
  }

  private static func label(of option: SignInState.Option) -> String {
    switch option {
    case .signIn: "Sign In"
    case .useSMS: "Use an SMS Code"
    case .enrollAgain: "Enroll Again"
    case .openSettings: "Open Settings"
    }
  }
}

extension LabSnapshot.Dashboard {
  init(_ state: TestingState) {
    let registration = state.registration
    cards = [
      .init(
        label: "Secure Enclave",
        value: state.hasSecureEnclave == true ? "available" : "not available: regular keychain",
        isGood: state.hasSecureEnclave),
      .init(
        label: "Biometry",
        value: (state.biometryType.name ?? "no sensor")
          + (state.capability == .biometricsAvailable ? ", usable" : ", not usable"),
        isGood: state.capability == .biometricsAvailable),
      .init(label: "Passcode", value: state.capability == .none ? "not set" : "set", isGood: state.capability != .none),
      .init(
        label: "Enrollment at the server",
        value: registration.map { $0.isEnrolled ? "enrolled" : "not enrolled" } ?? "unknown",
        isGood: registration?.isEnrolled),
      .init(label: "MFA method", value: state.method?.rawValue ?? "none"),
    ]
    actions = state.actions.map { .init(id: $0.rawValue, label: $0.label) }
    isBusy = state.running != nil
    result = state.resultText
    hasSucceeded = state.hasSucceeded
    asksCode = state.awaitsCode
  }
}

extension LabSnapshot.Settings {
  init(_ state: SettingsState, app: String) {
    title = state.title
    var facts: [LabSnapshot.Fact] = [.init(label: "Security method", value: state.methodText)]
    if let isHardwareBacked = state.isHardwareBacked {
      facts.append(.init(label: "Key", value: isHardwareBacked ? "in the Secure Enclave" : "in the regular keychain"))
    }
    facts.append(.init(label: "Number for codes", value: state.maskedPhoneNumber ?? "none"))
    let registration = state.registration
    facts.append(
      .init(
        label: "Server",
        value: registration.map { $0.isEnrolled ? $0.method?.rawValue ?? "enrolled" : "not enrolled" } ?? "unknown"))
    if let factor = state.secondFactor {
      let codes =
        "\(factor.backupCodesRemaining) backup codes, \(factor.trustedDevices) trusted devices"
        + (factor.remembersThisDevice ? ", this device is remembered" : "")
      facts.append(.init(label: "Second factor", value: factor.isEnabled ? codes : "not set up"))
    }
    facts.append(.init(label: "App", value: app))
    self.facts = facts
    alert = state.alertText
    error = state.errorText
    notice = state.noticeText
    needsSignIn = state.needsSignIn
    isBusy = state.phase != .ready
    options = state.options.map { .init(id: $0.rawValue, label: state.label(of: $0)) }
    asksNumber = state.phase == .ready && state.method != nil && !state.offersUpgrade
    asksNumberCode = state.phase == .ready && state.awaitsNumberCode
  }
}

extension LabSnapshot.Sequence.Exchange {
  /// A line of the log that is a request; `nil` for others.
  init?(_ entry: LogEntry) {
    guard entry.source == .server else { return nil }
    operation = entry.title
    detail = entry.detail
    hasSucceeded = entry.outcome == .success
    end = hasSucceeded || entry.detail.hasPrefix("backend:") ? "backend" : "gate"
  }
}

/// A line of the log, as the page shows it.
struct LabLogLine: Sendable, Hashable, Encodable {
  let id: Int
  let time: String
  let source: String
  let isFailure: Bool
  let title: String
  let detail: String

  init(_ entry: LogEntry) {
    id = entry.id
    time = entry.time.withMilliseconds
    source = entry.source.rawValue
    isFailure = entry.outcome == .failure
    title = entry.title
    detail = entry.detail
  }
}
