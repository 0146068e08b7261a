internal import ByteCoding
internal import Locking
internal import MFAClient
internal import MFAViewModels
internal import MFAWire
internal import SimulatedPhone

/// The phone, the app and the user of one scenario.
final class Stage: Sendable {
  private static let bundleID = "com.example.app"
  /// How long a message may take to arrive.
  private static let messageTimeout = Duration.seconds(5)

  private let phone: SimulatedPhone
  let services: DeviceServices
  private let enrolment: EnrollmentViewModel
  let signIn: SignInViewModel
  let factor: FactorViewModel
  private let settings: SettingsViewModel
  let identity: ScenarioPlayer.Identity
  private let messages: any MessageSource
  private let state = LockedValue(State())

  private struct State {
    var seenPrompts = 0
    /// The number of codes that were used, by the address that has received them.
    var usedCodes: [String: Int] = [:]
    var kept = KeptFactor()
    var hasGivenFactor = false
    var hasOpenedSettings = false
  }

  init(
    _ settings: PhoneSettings, _ identity: ScenarioPlayer.Identity, backend: any MFABackend,
    messages: any MessageSource, log: EventLog
  ) {
    let (phone, state) = (SimulatedPhone(settings), self.state)
    self.phone = phone
    self.identity = identity
    self.messages = messages
    services = DeviceServices(
      keychain: phone, biometrics: phone, securityKeys: phone, backend: backend,
      storage: MemoryStorageService(deviceID: identity.deviceID),
      app: AppDescription(
        bundleID: Self.bundleID, username: identity.username, phoneNumber: identity.phoneNumber,
        deviceModel: settings.model, openSettings: { state.withLock { $0.hasOpenedSettings = true } })
    ).logged(to: log)
    enrolment = EnrollmentViewModel(services: services)
    signIn = SignInViewModel(services: services)
    self.settings = SettingsViewModel(services: services)
    factor = FactorViewModel(services: services)
  }

  /// What the user has kept of the second factor.
  var kept: KeptFactor {
    get { state.withLock(\.kept) }
    set { state.withLock { $0.kept = newValue } }
  }

  /// Whether the second factor was given since the last sign-in began.
  var hasGivenFactor: Bool {
    get { state.withLock(\.hasGivenFactor) }
    set { state.withLock { $0.hasGivenFactor = newValue } }
  }

  /// Takes `step`; a user waits until the app has done all that follows from it.
  func take(_ step: Scenario.Step) async throws(ScenarioFailure) {
    switch step {
    case .owner(let event):
      switch event {
      case .setsPasscode: phone.setPasscode()
      case .removesPasscode: phone.removePasscode()
      case .enrolsBiometry: phone.enrollBiometry()
      case .removesBiometry: phone.removeBiometry()
      }
    case .answers(let answers): for answer in answers { phone.plan(answer) }
    case .app(let event): try await perform(event)
    case .expect(let expectation):
      if let found = try await difference(from: expectation) { throw ScenarioFailure(reason: found) }
    }
  }

  // MARK: The user

  private func perform(_ event: Scenario.AppEvent) async throws(ScenarioFailure) {
    switch event {
    case .opensEnrolment: await enrolment.appear()
    case .enrolls(let option):
      try await offered(option, among: enrolment.state.options, enrolment.state.errorText)
      await watched { await self.enrolment.choose(option) }
    case .registersNumber: await enrolment.register(phoneNumber: identity.phoneNumber)
    case .signsIn(let option):
      hasGivenFactor = false
      await signIn.startOver()
      try await offered(option, among: signIn.state.options, signIn.state.errorText)
      await watched { await self.signIn.choose(option) }
    case .asksForCodeAgain:
      _ = try await call(
        MFAOperations.requestOTP,
        RequestOTPRequest(username: identity.username, phoneNumber: identity.phoneNumber))
    case .entersCode: await signIn.enter(code: try await newestCode(to: identity.phoneNumber))
    case .opensSettings: await watched { await self.settings.appear() }
    case .changes(let option):
      try await offered(option, among: settings.state.options, settings.state.errorText)
      await watched { await self.settings.choose(option) }
    case .setsUpFactor: try await setUpFactor()
    case .switchesFactorOff(let code): try await switchFactorOff(by: code)
    case .givesFactor(let code, let remembering): try await giveFactor(code, remembering: remembering)
    case .confirmsEmail: try await confirmEmail()
    case .addsSecurityKey: try await addSecurityKey()
    case .usesSecurityKey: try await useSecurityKey()
    case .revokesTrust: try await revokeTrust()
    }
  }

  private func offered<Option: RawRepresentable & Equatable>(
    _ option: Option, among options: [Option], _ error: String?
  ) throws(ScenarioFailure) where Option.RawValue == String {
    guard !options.contains(option) else { return }
    let list = options.isEmpty ? "nothing" : options.map(\.rawValue).joined(separator: ", ")
    throw ScenarioFailure(reason: "the app offers \(list)" + (error.map { "; it says \"\($0)\"" } ?? ""))
  }

  /// Performs `action`. A prompt that the scenario did not plan is interrupted, so that nothing waits forever.
  func watched(_ action: @escaping @Sendable () async -> Void) async {
    let phone = phone
    let updates = phone.promptUpdates()
    let watch = Task {
      for await prompt in updates { phone.answer(prompt.id, with: .interrupt(.systemCancel)) }
    }
    await action()
    watch.cancel()
  }

  /// Waits for a code to `address` that was not used yet.
  func newestCode(to address: String) async throws(ScenarioFailure) -> String {
    let used = state.withLock { $0.usedCodes[address, default: 0] }
    let end = ContinuousClock.now + Self.messageTimeout
    while true {
      let codes = try receivedCodes(at: address)
      if codes.count > used, let code = codes.last {
        state.withLock { $0.usedCodes[address] = codes.count }
        return code
      }
      guard ContinuousClock.now < end, (try? await Task.sleep(for: .milliseconds(5))) != nil else {
        throw ScenarioFailure(reason: "no message with a code arrived within \(Self.messageTimeout)")
      }
    }
  }

  private func receivedCodes(at address: String) throws(ScenarioFailure) -> [String] {
    do throws(MessageSourceError) {
      return try messages.codes(to: address)
    } catch {
      throw ScenarioFailure(reason: "\(error)")
    }
  }

  // MARK: Expectations

  /// What is found instead of `expectation`; `nil` if it is met.
  private func difference(from expectation: Scenario.Expectation) async throws(ScenarioFailure) -> String? {
    switch expectation {
    case .enrolmentOffers(let options, let title):
      let state = await enrolment.state
      guard state.options != options || state.title != title else { return nil }
      return "\"\(state.title)\" offers \(state.options.map(\.rawValue).joined(separator: ", "))"
    case .enrolmentSays(let text): return Self.difference(text, await enrolment.state.message)
    case .enrolled(let method, let authMethod):
      let record = try await record()
      guard record.method != method || record.authMethod != authMethod else { return nil }
      let texts = [await enrolment.state.errorText, await settings.state.errorText].compactMap(\.self)
      let found = [record.method?.rawValue ?? "not enrolled", record.authMethod?.rawValue].compactMap(\.self)
      return (found + texts).joined(separator: ", ")
    case .signedIn:
      let state = await signIn.state
      if case .signedIn(let needsSecondFactor) = state.phase, !needsSecondFactor || hasGivenFactor { return nil }
      return state.errorText ?? "\(state.phase)"
    case .awaitsCode:
      let state = await signIn.state
      return state.phase == .enteringCode ? nil : state.errorText ?? "\(state.phase)"
    case .settingsTitle(let text): return Self.difference(text, await settings.state.title)
    case .alert(let text): return Self.difference(text, await settings.state.alertText)
    case .server(let method, let hasKey): return try await registrationDifference(method, hasKey)
    case .lastUsed(let isUsed):
      let list = try await call(MFAOperations.devices, DevicesRequest(username: identity.username))
      let entry = list.devices.first { $0.deviceId == identity.deviceID }
      guard let entry else { return "the list of devices lacks this one" }
      return (entry.lastUsed != nil) == isUsed ? nil : "last used: \(entry.lastUsed ?? "never")"
    case .prompts(let kinds):
      let shown = phone.shownPrompts.map(\.kind)
      let new = Array(shown.dropFirst(state.withLock(\.seenPrompts)))
      state.withLock { $0.seenPrompts = shown.count }
      return new == kinds ? nil : new.isEmpty ? "none" : new.map { "\($0)" }.joined(separator: ", ")
    case .keys(let protections): return try await keyDifference(protections)
    case .messages(let count):
      let codes = try receivedCodes(at: identity.phoneNumber)
      return codes.count == count ? nil : "\(codes.count) messages"
    case .settingsAppOpened: return state.withLock(\.hasOpenedSettings) ? nil : "it is not"
    case .deletedKeyIsRefused: return try await deletedKeyDifference()
    case .awaitsFactor: return await awaitsFactor() ? nil : "\(await signIn.state.phase)"
    case .factor(let isOn, let backupCodes): return try await factorDifference(isOn, backupCodes)
    case .usedBackupCodeIsRefused: return try await usedCodeDifference()
    }
  }

  private static func difference(_ expected: String, _ found: String?) -> String? {
    found == expected ? nil : found.map { "\"\($0)\"" } ?? "nothing"
  }

  private func record() async throws(ScenarioFailure) -> MFARecord {
    do throws(StorageError) { return try services.storage.load() } catch { throw ScenarioFailure(reason: "\(error)") }
  }

  private func registrationDifference(_ method: MFAMethod, _ hasKey: Bool) async throws(ScenarioFailure) -> String? {
    let status = try await call(MFAOperations.deviceStatus, DeviceStatusRequest(deviceId: identity.deviceID))
    guard status.enrolled else { return "the device is not enrolled" }
    guard status.method != method.rawValue || status.hasPublicKey != hasKey else { return nil }
    return "\(status.method ?? "no method") \(status.hasPublicKey ? "with" : "without") a key"
  }

  private func keyDifference(_ protections: [KeyProtection]) async throws(ScenarioFailure) -> String? {
    var found: [KeyProtection] = []
    for tag in [KeyTag.biometric(of: Self.bundleID), .passcode(of: Self.bundleID)].flatMap({ [$0, $0.successor] }) {
      do throws(DeviceSecurityError) {
        if let key = try await phone.key(tag) { found.append(key.protection) }
      } catch {
        throw ScenarioFailure(reason: "\(error)")
      }
    }
    return found == protections ? nil : found.isEmpty ? "none" : found.map(\.rawValue).joined(separator: ", ")
  }

  /// Signs a challenge with the key that the app deleted last, as a thief of the key would.
  private func deletedKeyDifference() async throws(ScenarioFailure) -> String? {
    guard let key = phone.deletedKeys.last else { return "no key was deleted" }
    let challenge = try await call(
      MFAOperations.initiateSignIn, DeviceRequest(username: identity.username, deviceId: identity.deviceID))
    guard let bytes = Base64.decode(challenge.challenge), bytes.count == 32,
      let signature = phone.signature(ofDeleted: key, over: bytes)
    else { return "the challenge is not 32 bytes in base64" }
    do throws(NetworkError) {
      _ = try await services.backend.call(
        MFAOperations.verifySignature,
        VerifySignatureRequest(
          username: identity.username, deviceId: identity.deviceID, challengeId: challenge.challengeId,
          signature: Base64.encode(signature)))
      return "the deleted key signs in"
    } catch {
      if case .refused = error { return nil }
      return "\(error)"
    }
  }

  /// Performs an operation in the session of the app, if there is one.
  func call<Request: WireValue, Response: WireValue>(
    _ operation: WireOperation<Request, Response>, _ request: Request
  ) async throws(ScenarioFailure) -> Response {
    do throws(NetworkError) {
      return try await services.session.call(operation, request)
    } catch {
      throw ScenarioFailure(reason: "\(operation.name): \(error)")
    }
  }
}
