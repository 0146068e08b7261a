internal import Foundation
internal import MFAClient
internal import MFAViewModels
internal import SimulatedPhone

/// What a person does on the page. Each message of the page is one event, in JSON.
enum LabEvent: Sendable, Hashable {
  /// Shows a tab; its screen appears.
  case showTab(LabTab)
  case setUsername(String)
  case enroll(EnrollmentState.Option)
  case declinePasscode
  case registerNumber(String)
  case signIn(SignInState.Option)
  case startOver
  case enterCode(String)
  /// Something on the challenge for the second factor.
  case challenge(ChallengeEvent)
  /// Something on the tab "Security".
  case factor(FactorEvent)
  case changeSettings(SettingsState.Option)
  case changeNumber(String)
  case confirmNumber(String)
  case resendNumberCode
  case run(TestingState.Action)
  case enterTestCode(String)
  case answer(Prompt.ID, PromptAnswer)
  case setPhone(PhoneChange)
  case play(Int)
  case clearLog

  /// What a person does on the challenge for the second factor.
  enum ChallengeEvent: Sendable, Hashable {
    case select(ChallengeState.Tab)
    /// The text of the entry, and the number of this change on the page.
    case enter(String, change: Int)
    case remember(Bool)
    case useBiometry, useSecurityKey, sendEmail, verify
  }

  /// What a person does on the tab "Security".
  enum FactorEvent: Sendable, Hashable {
    case choose(FactorState.Option)
    case enterCode(String)
    case enterEmail(String)
    case revoke(Int)
    case removeKey(String)
  }

  /// A change of the phone's settings.
  enum PhoneChange: Sendable, Hashable {
    case passcode(Bool)
    case biometryEnrolled(Bool)
    case biometry(BiometryType)
    case permission(PhoneSettings.Permission)
    case simulator(Bool)
  }

  /// Reads a message of the page.
  ///
  /// - Throws: if the message is not an event, with the reason.
  init(_ text: String) throws(LabEventError) {
    guard let fields = try? JSONDecoder().decode(Fields.self, from: Data(text.utf8)) else {
      throw LabEventError("not an event: a JSON object with a name is expected")
    }
    switch fields.event {
    case "tab": self = .showTab(try fields.value(of: "tab"))
    case "username": self = .setUsername(try fields.text(upTo: 64))
    case "enroll": self = .enroll(try fields.value(of: "option"))
    case "declinePasscode": self = .declinePasscode
    case "registerNumber": self = .registerNumber(try fields.text(upTo: 32))
    case "signIn": self = .signIn(try fields.value(of: "option"))
    case "startOver": self = .startOver
    case "code": self = .enterCode(try fields.text(upTo: 32))
    case "challengeTab": self = .challenge(.select(try fields.value(of: "kind of code")))
    case "challengeEntry":
      self = .challenge(.enter(try fields.text(upTo: 128), change: try fields.requiredNumber()))
    case "challengeRemember": self = .challenge(.remember(try fields.requiredFlag()))
    case "challengeBiometry": self = .challenge(.useBiometry)
    case "challengeSecurityKey": self = .challenge(.useSecurityKey)
    case "challengeEmail": self = .challenge(.sendEmail)
    case "challengeVerify": self = .challenge(.verify)
    case "factor": self = .factor(.choose(try fields.value(of: "option")))
    case "factorCode": self = .factor(.enterCode(try fields.text(upTo: 32)))
    case "factorEmail": self = .factor(.enterEmail(try fields.text(upTo: 254)))
    case "factorRevoke": self = .factor(.revoke(try fields.requiredNumber()))
    case "factorRemoveKey": self = .factor(.removeKey(try fields.text(upTo: 64)))
    case "settings": self = .changeSettings(try fields.value(of: "option"))
    case "changeNumber": self = .changeNumber(try fields.text(upTo: 32))
    case "numberCode": self = .confirmNumber(try fields.text(upTo: 32))
    case "resendNumberCode": self = .resendNumberCode
    case "run": self = .run(try fields.value(of: "action"))
    case "testCode": self = .enterTestCode(try fields.text(upTo: 32))
    case "answer": self = .answer(try fields.requiredNumber(), try fields.promptAnswer())
    case "passcode": self = .setPhone(.passcode(try fields.requiredFlag()))
    case "biometryEnrolled": self = .setPhone(.biometryEnrolled(try fields.requiredFlag()))
    case "biometry": self = .setPhone(.biometry(try fields.value(of: "sensor")))
    case "permission": self = .setPhone(.permission(try fields.value(of: "permission")))
    case "simulator": self = .setPhone(.simulator(try fields.requiredFlag()))
    case "play": self = .play(try fields.requiredNumber())
    case "clearLog": self = .clearLog
    default: throw LabEventError("unknown event: \(fields.event.prefix(64))")
    }
  }

  private struct Fields: Decodable {
    let event: String
    let value: String?
    let number: Int?
    let flag: Bool?

    func value<Value: RawRepresentable>(of name: String) throws(LabEventError) -> Value
    where Value.RawValue == String {
      guard let value = value.flatMap(Value.init) else {
        throw LabEventError("\(event): no such \(name): \((value ?? "").prefix(64))")
      }
      return value
    }

    func text(upTo limit: Int) throws(LabEventError) -> String {
      guard let value, value.utf8.count <= limit else {
        throw LabEventError("\(event): a text of at most \(limit) bytes is expected")
      }
      return value
    }

    func requiredNumber() throws(LabEventError) -> Int {
      guard let number else { throw LabEventError("\(event): a number is expected") }
      return number
    }

    func requiredFlag() throws(LabEventError) -> Bool {
      guard let flag else { throw LabEventError("\(event): true or false is expected") }
      return flag
    }

    func promptAnswer() throws(LabEventError) -> PromptAnswer {
      switch value {
      case "approve": return .approve
      case "decline": return .decline
      case "fail": return .fail
      case "usePasscode": return .usePasscode
      default:
        guard let value, let number = Int(value), let code = LocalAuthenticationCode(rawValue: number) else {
          throw LabEventError("\(event): no such answer: \((value ?? "").prefix(64))")
        }
        return .interrupt(code)
      }
    }
  }
}

/// The tabs of the page.
enum LabTab: String, Sendable, Hashable, CaseIterable, Encodable {
  case enroll, signIn, security, dashboard, settings

  var label: String {
    switch self {
    case .enroll: "Enroll"
    case .signIn: "Sign in"
    case .security: "Security"
    case .dashboard: "Dashboard"
    case .settings: "Settings"
    }
  }
}

/// Why a message of the page was refused, as a text for people.
struct LabEventError: Error, Sendable, Hashable {
  let text: String

  init(_ text: String) { self.text = text }
}
