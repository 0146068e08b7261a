internal import MFAClient
internal import MFAViewModels
internal import SimulatedPhone

/// A story of a user, a phone, an app and a server, with what must be true at each point of it.
///
/// A scenario uses only the operations of the seed's API, so that it also judges other servers.
public struct Scenario: Sendable, Hashable {
  /// The number of the requirement, for example `A-S01`. Variants of a scenario share it.
  public let id: String
  /// What happens, for people.
  public let title: String
  /// The phone at the beginning.
  let phone: PhoneSettings
  let steps: [Step]

  /// One step of a scenario.
  enum Step: Sendable, Hashable {
    /// The owner of the phone changes its settings.
    case owner(OwnerEvent)
    /// How the owner answers the next prompts.
    case answers([PromptAnswer])
    /// The user does something in the app. It ends with all that follows from it.
    case app(AppEvent)
    case expect(Expectation)
  }

  /// What the owner of the phone does in its Settings app.
  enum OwnerEvent: String, Sendable, Hashable {
    case setsPasscode = "sets a passcode"
    case removesPasscode = "removes the passcode"
    case enrolsBiometry = "enrols a face or a finger"
    case removesBiometry = "removes all faces and fingers"
  }

  /// What the user does in the app.
  enum AppEvent: Sendable, Hashable {
    case opensEnrolment
    case enrolls(EnrollmentState.Option)
    /// Registers the number of the phone for codes.
    case registersNumber
    case signsIn(SignInState.Option)
    /// Asks the server for a code although one was sent.
    case asksForCodeAgain
    /// Enters the newest code that the phone has received.
    case entersCode
    case opensSettings
    case changes(SettingsState.Option)
    /// Puts a secret into an authenticator, and gives its first code.
    case setsUpFactor
    case switchesFactorOff(FactorCode)
    /// Gives the second factor on the challenge.
    case givesFactor(FactorCode, remembering: Bool)
    /// Adds an address for codes by e-mail.
    case confirmsEmail
    /// Registers the security key at the phone.
    case addsSecurityKey
    /// Gives the second factor on the challenge by that key.
    case usesSecurityKey
    /// Revokes the trust in all devices.
    case revokesTrust
  }

  /// Where a code of the second factor comes from.
  enum FactorCode: String, Sendable, Hashable {
    case authenticator = "the authenticator"
    case email = "an e-mail"
    case backupCode = "the backup codes"
  }

  /// What must be true now.
  enum Expectation: Sendable, Hashable {
    case enrolmentOffers([EnrollmentState.Option], title: String)
    case enrolmentSays(String)
    case enrolled(MFAMethod, AuthMethod?)
    case signedIn
    case awaitsCode
    case settingsTitle(String)
    case alert(String)
    /// What the server says about the device.
    case server(MFAMethod, hasKey: Bool)
    /// The server has not noted a sign-in of the device yet, or has.
    case lastUsed(Bool)
    /// The prompts since the last expectation of this kind.
    case prompts([Prompt.Kind])
    /// What unlocks the keys on the phone: one entry for each key.
    case keys([KeyProtection])
    /// The number of messages with codes that the phone has received.
    case messages(Int)
    /// The app asked the phone to show the Settings app.
    case settingsAppOpened
    /// The server refuses signatures of the key that the app deleted last.
    case deletedKeyIsRefused
    /// The session of the last sign-in has no rights before the second factor.
    case awaitsFactor
    case factor(isOn: Bool, backupCodes: Int)
    /// The server refuses the backup code that was used last.
    case usedBackupCodeIsRefused
  }
}

extension Scenario.Step: CustomStringConvertible {
  /// The step as a sentence.
  var description: String {
    switch self {
    case .owner(let event): "the owner \(event.rawValue)"
    case .answers(let answers): "the owner will answer: \(answers.map { "\($0)" }.joined(separator: ", "))"
    case .app(let event): "the user \(event)"
    case .expect(let expectation): "expected: \(expectation)"
    }
  }
}

extension Scenario.AppEvent: CustomStringConvertible {
  var description: String {
    switch self {
    case .opensEnrolment: "opens the enrolment"
    case .enrolls(let option): "chooses \(option.rawValue)"
    case .registersNumber: "registers a phone number"
    case .signsIn(let option): "chooses \(option.rawValue)"
    case .asksForCodeAgain: "asks for a code again"
    case .entersCode: "enters the code"
    case .opensSettings: "opens the settings"
    case .changes(let option): "chooses \(option.rawValue)"
    case .setsUpFactor: "sets up the second factor"
    case .switchesFactorOff(let code): "switches the second factor off by a code of \(code.rawValue)"
    case .givesFactor(let code, let remembering):
      "gives a code of \(code.rawValue)" + (remembering ? ", and lets this device be remembered" : "")
    case .confirmsEmail: "adds an address for codes by e-mail"
    case .addsSecurityKey: "adds a security key"
    case .usesSecurityKey: "uses the security key"
    case .revokesTrust: "revokes the trust in all devices"
    }
  }
}

extension Scenario.Expectation: CustomStringConvertible {
  var description: String {
    switch self {
    case .enrolmentOffers(let options, let title):
      "the enrolment \"\(title)\" offers \(options.map(\.rawValue).joined(separator: ", "))"
    case .enrolmentSays(let text): "the enrolment says \"\(text)\""
    case .enrolled(let method, let authMethod):
      "the device is enrolled: "
        + ([method.rawValue] + [authMethod?.rawValue].compactMap(\.self)).joined(separator: ", ")
    case .signedIn: "the user is signed in"
    case .awaitsCode: "the app asks for the code"
    case .settingsTitle(let text): "the settings ask \"\(text)\""
    case .alert(let text): "the alert \"\(text)\""
    case .server(let method, let hasKey): "the server has \(method.rawValue) \(hasKey ? "with" : "without") a key"
    case .lastUsed(let isUsed): isUsed ? "the server has noted the sign-in" : "the server has noted no sign-in"
    case .prompts(let kinds): "prompts: " + (kinds.isEmpty ? "none" : kinds.map { "\($0)" }.joined(separator: ", "))
    case .keys(let keys): "keys: " + (keys.isEmpty ? "none" : keys.map(\.rawValue).joined(separator: ", "))
    case .messages(let count): "\(count) message\(count == 1 ? "" : "s") with a code"
    case .settingsAppOpened: "the Settings app is opened"
    case .deletedKeyIsRefused: "the server refuses the deleted key"
    case .awaitsFactor: "the app asks for the second factor"
    case .factor(let isOn, let backupCodes):
      "the second factor is \(isOn ? "on" : "off"), with \(backupCodes) backup codes"
    case .usedBackupCodeIsRefused: "the server refuses the used backup code"
    }
  }
}
