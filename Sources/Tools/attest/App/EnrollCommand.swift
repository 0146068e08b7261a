internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import MFAClient
internal import MFAViewModels

struct EnrollCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "enroll",
    abstract: "Enrol the device's phone with the MFA backend behind a gate.",
    discussion: """
      Makes a key on the simulated phone, tests it, and gives the backend its public half. Prompts are answered on the \
      terminal or by --answers; Face ID asks for its permission first. An enrolment that was interrupted is finished. \
      Example:
        attest enroll wss://localhost:6200/ --authority DIR --user ada \\
          --phone +15550100 --answers approve,approve
      """)

  @OptionGroup var options: AppOptions

  @Option(help: ArgumentHelp("The number that receives codes, in E.164.", valueName: "number"))
  var phone: String?

  @Option(help: "What unlocks the key: biometrics, passcode; sms for codes without a key.")
  var with: UnlockChoice?

  @Option(
    help: ArgumentHelp(
      "Adds the phone to an account that exists: the code of another phone of it, or of an operator.",
      valueName: "code"))
  var linkCode: String?

  func validate() throws {
    // A shell variable that is not set gives an empty code, and the device would enrol without one.
    guard linkCode.map({ TypedCode.plain($0).isEmpty }) != true else { throw ValidationError("--link-code is empty") }
  }

  func run() async throws {
    let app = try await MobileApp(options, phoneNumber: phone, needsAccount: true)
    let model = EnrollmentViewModel(services: app.services)
    await model.appear()
    if case .enrolled = await model.state.phase {
      throw Failure(
        .refused, "this device is enrolled already", hint: "`attest upgrade`, `attest downgrade` or `attest unenroll`")
    }
    if let linkCode { await model.enter(linkCode: linkCode) }
    try await choose(on: model, app)
    let state = await model.state
    guard case .enrolled(let method, let authMethod) = state.phase else {
      // Another unlock does not help against a refusal of the backend.
      let offersPasscode = with == nil && app.lastRefusalCode == nil && state.options.contains(.usePasscode)
      throw Self.failure(
        of: app, state.errorText ?? state.message, hint: offersPasscode ? "--with passcode uses the passcode" : nil)
    }
    let line = ["user": state.username, "method": method.rawValue, "authMethod": authMethod?.rawValue ?? "none"]
    let text =
      "enrolled \(state.username): \(method.rawValue)\(authMethod.map { ", unlocked by \($0.rawValue)" } ?? "")"
    if options.global.json { JSONOutput.print(line) } else { StandardOutput.write(text + "\n") }
  }

  private func choose(on model: EnrollmentViewModel, _ app: MobileApp) async throws(Failure) {
    let state = await model.state
    let choice = with ?? (state.options.contains(.useBiometrics) ? .biometrics : .passcode)
    switch choice {
    case .biometrics, .passcode:
      let option: EnrollmentState.Option = choice == .biometrics ? .useBiometrics : .usePasscode
      guard state.options.contains(option) else {
        throw Failure(
          .refused, state.message ?? "this phone does not offer \(choice.rawValue)",
          hint: "`attest phone set` changes the phone; --with sms --phone NUMBER signs in by codes")
      }
      await model.choose(option)
    case .sms:
      guard let number = app.services.app.phoneNumber else {
        throw Failure(.usage, "codes need a number", hint: "--phone NUMBER, in E.164")
      }
      // The screen offers codes only on a phone without a passcode; a command may always use them.
      do throws(EnrolmentError) {
        try await app.services.enrolment.enroll(
          as: app.services.app.username, phoneNumber: number, key: nil, linkCode: linkCode.map(TypedCode.plain))
      } catch {
        throw Self.failure(of: app, "\(error)")
      }
      await model.appear()
    }
  }

  private static func failure(of app: MobileApp, _ text: String?, hint: String? = nil) -> Failure {
    let failure = app.failure(text)
    let taken =
      app.lastRefusalCode == "session_required"
      ? "if the account exists: another --user, or --link-code CODE; `mfa-backend admin reset NAME` prints a code"
      : nil
    return Failure(failure.status, failure.message, hint: failure.hint ?? taken ?? hint)
  }
}

struct UpgradeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "upgrade",
    abstract: "Give the enrolled device a new key; the old one is deleted.",
    discussion: """
      Needs a session: sign in first. The new key is tested before the backend hears of it. Example:
        attest upgrade wss://localhost:6200/ --authority DIR --with passcode \\
          --answers approve
      """)

  @OptionGroup var options: AppOptions

  @Option(help: "What unlocks the key: biometrics or passcode.")
  var with = UnlockChoice.biometrics

  func validate() throws {
    guard with != .sms else { throw ValidationError("`attest downgrade` lets the device sign in by codes") }
  }

  func run() async throws {
    let app = try await MobileApp(options)
    try await app.change(to: with == .biometrics ? .useBiometrics : .usePasscode, or: .renewKey, options.global)
  }
}

struct DowngradeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "downgrade",
    abstract: "Let the enrolled device sign in by codes; its key is deleted.",
    discussion: """
      Needs no session, since the app may have lost its key with the phone's passcode. Example:
        attest downgrade wss://localhost:6200/ --authority DIR
      """)

  @OptionGroup var options: AppOptions

  func run() async throws { try await MobileApp(options).change(to: .useSMS, or: nil, options.global) }
}

struct UnenrollCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "unenroll",
    abstract: "Remove the device from its account; its keys are deleted.",
    discussion: """
      Needs a session: sign in first. A removal whose answer was lost is repeated by the next command. Example:
        attest unenroll wss://localhost:6200/ --authority DIR
      """)

  @OptionGroup var options: AppOptions

  func run() async throws { try await MobileApp(options).change(to: .unenroll, or: nil, options.global) }
}

extension MobileApp {
  /// Makes a choice of the settings screen, or the other one if the device has what the first one would give it. A key
  /// that the passcode unlocks is not renewed for a user who has asked for a face or a finger.
  fileprivate func change(
    to option: SettingsState.Option, or other: SettingsState.Option?, _ options: GlobalOptions
  ) async throws(Failure) {
    let model = SettingsViewModel(services: services)
    await model.appear()
    var state = await model.state
    if state.offersUpgrade {
      await model.choose(.declineUpgrade)
      state = await model.state
    }
    // A phone without a passcode has told the server already that its key has gone.
    if option == .useSMS, state.method == .smsOTP, state.noticeText != nil { return report(state, options) }
    let isOfItsKind = option.authMethod == state.authMethod
    let choices = [option, isOfItsKind ? other : nil].compactMap(\.self)
    guard let choice = choices.first(where: { state.options.contains($0) }) else {
      let isDone = option == .useSMS && state.method == .smsOTP
      let renews = other.map { state.options.contains($0) } ?? false
      let offer = "`attest phone show` shows what the phone offers" + (renews ? "; --with passcode renews the key" : "")
      throw Failure(
        .refused,
        state.errorText ?? (isDone ? "the device signs in by codes already" : state.refusal),
        hint: state.method == nil ? "`attest enroll` enrols it" : offer)
    }
    await model.choose(choice)
    state = await model.state
    if let error = state.errorText { throw failure(error, needsSignIn: state.needsSignIn) }
    report(state, options)
  }

  private func report(_ state: SettingsState, _ options: GlobalOptions) {
    let line = ["method": state.method?.rawValue ?? "none", "authMethod": state.authMethod?.rawValue ?? "none"]
    if options.json {
      JSONOutput.print(line)
    } else {
      StandardOutput.write("\(state.noticeText ?? state.methodText)\n")
    }
  }
}

extension SettingsState.Option {
  /// What unlocks the key that the device gets by this choice; `nil` if it gets none, or one like the present one.
  fileprivate var authMethod: AuthMethod? {
    switch self {
    case .acceptUpgrade, .useBiometrics: .biometric
    case .usePasscode: .passcode
    case .declineUpgrade, .useSMS, .renewKey, .unenroll, .openSettings: nil
    }
  }
}

extension SettingsState {
  /// Why a change is not possible, as a sentence about the device.
  fileprivate var refusal: String {
    guard let method else { return "this device is not enrolled" }
    let present =
      switch (method, authMethod) {
      case (.smsOTP, _): "SMS codes"
      case (.secureEnclave, .passcode): "a key that the passcode unlocks"
      case (.secureEnclave, _): "a key that \(biometryType.name ?? "biometry") unlocks"
      }
    return "the device signs in by \(present), and this change is not offered"
  }
}
