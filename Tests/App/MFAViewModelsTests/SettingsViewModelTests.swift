import AttestClient
import ByteCoding
import Locking
import MFAClient
import MFAWire
import SimulatedPhone
import Testing

@testable import MFAViewModels

@Suite("The settings screen", .timeLimit(.minutes(1)))
struct SettingsViewModelTests {
  private let phone = SimulatedPhone()
  private let backend = StandInBackend()
  private let storage = MemoryStorageService(deviceID: "device-1")
  private let sessions = MemorySecretStorage<MFASession>()
  private static let bundleID = "com.example.app"

  private func services() -> DeviceServices {
    DeviceServices(
      keychain: phone, biometrics: phone, backend: backend, storage: storage, sessions: sessions,
      app: AppDescription(
        bundleID: Self.bundleID, username: "ada", phoneNumber: "+1234567890", deviceModel: "iPhone 15 Pro",
        version: "2.1"))
  }

  /// A device that is enrolled with a key, and its user signed in.
  private func enrolled(_ protection: KeyProtection = .userPresence) async throws -> SettingsViewModel {
    phone.configure { $0.permission = .allowed }
    let services = services()
    phone.plan(.approve)
    let pair = try await services.enrolment.makeKey(protection)
    try await services.enrolment.enroll(as: "ada", phoneNumber: "+1234567890", key: pair)
    try await services.session.begin(Self.session)
    let model = SettingsViewModel(services: services)
    await model.appear()
    return model
  }

  private static let session = MFASession(
    TokenResponse(token: "t.t.t", message: "", refreshToken: "r", expiresIn: 900, scope: "full"), of: "ada")

  /// The tags of the keys on the phone.
  private var tags: Set<KeyTag> {
    get async throws {
      var tags: Set<KeyTag> = []
      for tag in [KeyTag.biometric(of: Self.bundleID), .passcode(of: Self.bundleID)].flatMap({ [$0, $0.successor] })
      where try await phone.key(tag) != nil {
        tags.insert(tag)
      }
      return tags
    }
  }

  private func calls(of name: String) -> [StandInBackend.Received] { backend.received.filter { $0.name == name } }

  private func refusal(_ code: String, _ status: Int = 401) -> NetworkError {
    .refused(BackendRefusal(status: status, ErrorBody(message: "the server's text", code: code, requestId: "r")))
  }

  @Test("A user who signs in while the device of another user is removed stays signed in")
  func signInDuringRemoval() async throws {
    let services = services()
    try await services.enrolment.enroll(as: "ada", phoneNumber: "+1234567890", key: nil)
    try await services.session.begin(Self.session)
    let other = MFASession(
      TokenResponse(token: "b.b.b", message: "", refreshToken: "r-9", expiresIn: 900, scope: "full"), of: "bob")
    backend.during("mfa.unenroll") { try? await services.session.begin(other) }
    try await services.enrolment.unenroll()
    #expect(!storage.load().isEnrolled)
    #expect(await services.session.session == other)
    #expect(sessions.load() == other)
  }

  @Test("A-060 A-061 A-064 A-065 A-043 A-044 the screen shows method, masked number, registration and app")
  func shows() async throws {
    let model = try await enrolled()
    let state = await model.state
    #expect(state.phase == .ready && state.title == "Security" && state.methodText == "Face ID")
    #expect(state.method == .secureEnclave && state.authMethod == .biometric && state.isHardwareBacked == true)
    #expect(state.maskedPhoneNumber == "•••••••7890")
    let registration = SettingsState.Registration(isEnrolled: true, method: .secureEnclave, hasKey: true)
    #expect(state.registration == registration)
    #expect(model.appText == "Version 2.1 on iPhone 15 Pro")
    #expect(state.options == [.usePasscode, .renewKey, .useSMS, .unenroll])
    #expect(
      state.options.map { state.label(of: $0) } == [
        "Switch to Passcode Only", "Re-enroll", "Switch to SMS Codes", "Unenroll This Device",
      ])
  }

  @Test("B-055 the screen shows whether there is a second factor, its backup codes and its trusted devices")
  func secondFactor() async throws {
    backend.answer(status: .standIn(methods: ["totp"], isDeviceTrusted: true))
    let model = try await enrolled()
    var expected = SettingsState.SecondFactor(
      isEnabled: true, backupCodesRemaining: 10, trustedDevices: 1, remembersThisDevice: true)
    #expect(await model.state.secondFactor == expected)
    backend.answer(status: .standIn(methods: ["totp"]))
    await model.appear()
    expected.remembersThisDevice = false
    expected.trustedDevices = try #require(await model.state.secondFactor).trustedDevices
    #expect(await model.state.secondFactor == expected)
    sessions.save(nil)
    let signedOut = SettingsViewModel(services: services())
    await signedOut.appear()
    #expect(await signedOut.state.secondFactor == nil)
  }

  @Test("A-S10 A-038 A-062 after the switch to the passcode exactly one key is left, the new one; the app's half")
  func switchesToPasscode() async throws {
    let model = try await enrolled()
    phone.plan(.approve)
    await model.choose(.usePasscode)
    let state = await model.state
    #expect(state.phase == .ready && state.authMethod == .passcode && state.errorText == nil)
    #expect(state.noticeText == "The server has the new key.")
    #expect(phone.shownPrompts.last?.kind == .passcode)
    #expect(try await tags == [.passcode(of: Self.bundleID)])
    let request = try #require(calls(of: "mfa.upgrade").first)
    let key = try #require(try await phone.key(.passcode(of: Self.bundleID)))
    let upgrade = try request.decoded(as: UpgradeRequest.self)
    #expect(upgrade.publicKey == Base64.encode(key.publicKey) && upgrade.authMethod == "passcode")
    #expect(request.token == "t.t.t")
    #expect(storage.load().pendingChange == nil)
  }

  @Test(
    "A-048 a new key of the same kind replaces the old one", arguments: [KeyProtection.userPresence, .devicePasscode])
  func renews(_ protection: KeyProtection) async throws {
    let model = try await enrolled(protection)
    let old = try #require(storage.load().key)
    for _ in 0..<2 {
      let before = try #require(storage.load().key)
      phone.plan(.approve)
      await model.choose(.renewKey)
      let after = try #require(storage.load().key)
      #expect(after.tag == before.tag.successor && after.protection == protection)
      #expect(try await tags == [after.tag])
    }
    #expect(storage.load().key == old)
  }

  @Test("A-S10 a declined prompt, or a refusal of the server, leaves the old key in use")
  func keepsOldKey() async throws {
    let model = try await enrolled()
    phone.plan(.decline)
    await model.choose(.usePasscode)
    #expect(await model.state.phase == .ready)
    #expect(await model.state.errorText == "User cancelled - offer passcode")
    #expect(calls(of: "mfa.upgrade").isEmpty)
    backend.fail(refusal("forbidden", 403))
    phone.plan(.approve)
    await model.choose(.usePasscode)
    #expect(await model.state.errorText == "the server's text")
    #expect(try await tags == [.biometric(of: Self.bundleID)])
    #expect(storage.load().authMethod == .biometric && storage.load().pendingChange == nil)
  }

  @Test("A change that needs a recent sign-in says so, and changes nothing")
  func needsSignIn() async throws {
    let model = try await enrolled()
    backend.fail(refusal("insufficient_user_authentication"))
    await model.choose(.unenroll)
    let state = await model.state
    #expect(state.needsSignIn && state.errorText == "Sign in to change the security of this device")
    #expect(state.method == .secureEnclave)
    #expect(try await tags == [.biometric(of: Self.bundleID)])
    #expect(storage.load().pendingChange == nil)
    await model.choose(.unenroll)
    #expect(await model.state.method == nil)
    #expect(await !model.state.needsSignIn)
  }

  @Test("A-S08 A-042 a device without a passcode tells the server that its key has gone; the app's half")
  func securityRemoved() async throws {
    let model = try await enrolled()
    phone.removePasscode()
    await model.appear()
    let state = await model.state
    #expect(state.alertText == "Critical: No device security" && state.phase == .ready)
    #expect(state.method == .smsOTP && state.noticeText == "This device signs in by SMS codes now.")
    #expect(state.options == [.openSettings, .unenroll])
    #expect(calls(of: "mfa.downgrade").count == 1)
    #expect(storage.load().key == nil && sessions.load() == nil)
    await model.appear()
    #expect(calls(of: "mfa.downgrade").count == 1)
  }

  @Test("A-S08 a server that cannot be told is told when the app returns, and a device without a number says why")
  func securityRemovedOffline() async throws {
    let model = try await enrolled()
    phone.removePasscode()
    backend.refuseDowngrades(.gate(.transport(.unreachable("no route"))), refusal("no_phone_number", 409))
    await model.appear()
    #expect(await model.state.method == .secureEnclave)
    #expect(await model.state.errorText == "the gate cannot be reached: no route")
    await model.appear()
    #expect(await model.state.errorText == "the server's text")
    await model.appear()
    #expect(await model.state.method == .smsOTP)
    #expect(calls(of: "mfa.downgrade").count == 3)
  }

  @Test("A removal of the key that is repeated after a lost answer leaves the session, which may be newer")
  func repeatedRemoval() async throws {
    _ = try await enrolled()
    let services = services()
    let lost = NetworkError.gate(.transport(.lost("reset")))
    backend.refuseDowngrades(lost)
    await #expect(throws: EnrolmentError.network(lost)) { try await services.enrolment.removeKey() }
    try await services.session.begin(Self.session)
    try await services.enrolment.removeKey()
    #expect(calls(of: "mfa.downgrade").count == 2)
    #expect(storage.load().pendingChange == nil && storage.load().method == .smsOTP)
    #expect(await services.session.session == Self.session)
  }

  @Test("A-S09 when Face ID is set up again, the app offers to upgrade, and gives the server a new key; the app's half")
  func upgrades() async throws {
    let model = try await enrolled()
    let old = try #require(try await phone.key(.biometric(of: Self.bundleID)))
    phone.removePasscode()
    await model.appear()
    #expect(await !model.state.offersUpgrade)
    phone.setPasscode()
    phone.enrollBiometry()
    await model.appear()
    #expect(await model.state.title == "Upgrade to biometric security?")
    #expect(await model.state.options == [.acceptUpgrade, .declineUpgrade])
    sessions.save(Self.session)
    phone.plan(.approve)
    await model.choose(.acceptUpgrade)
    #expect(await model.state.method == .secureEnclave)
    #expect(await model.state.methodText == "Face ID")
    let new = try #require(try await phone.key(.biometric(of: Self.bundleID)))
    #expect(new.publicKey != old.publicKey)
    let sent = try calls(of: "mfa.upgrade").map { try $0.decoded(as: UpgradeRequest.self).publicKey }
    #expect(sent == [Base64.encode(new.publicKey)])
  }

  @Test("A-S09 a declined offer is not repeated while the screen exists")
  func declinesUpgrade() async throws {
    let model = try await enrolled()
    await model.choose(.useSMS)
    #expect(await model.state.offersUpgrade)
    await model.choose(.declineUpgrade)
    #expect(await model.state.options == [.useBiometrics, .usePasscode, .unenroll])
    await model.appear()
    #expect(await !model.state.offersUpgrade)
  }

  @Test("A-037 A-049 A-063 after the removal no key is left, and neither session nor record of the account")
  func unenrols() async throws {
    let model = try await enrolled()
    await model.choose(.unenroll)
    #expect(await model.state.method == nil)
    #expect(await model.state.methodText == "Not enrolled")
    #expect(await model.state.options.isEmpty)
    #expect(try await tags.isEmpty)
    #expect(sessions.load() == nil && storage.load().username == nil)
    #expect(calls(of: "mfa.unenroll").map(\.token) == ["t.t.t"])
  }

  @Test(
    "A-037 a removal without an answer deletes the keys, and is repeated until the server knows the device no more",
    arguments: [TransportError.lost("reset"), .unreachable("no route")])
  func unenrolsLater(_ error: TransportError) async throws {
    let model = try await enrolled()
    // Both attempts, and the questions after them whether the device is gone.
    let failure = NetworkError.gate(.transport(error))
    backend.fail(failure, failure, failure, failure)
    await model.choose(.unenroll)
    #expect(try await tags.isEmpty)
    #expect(storage.load().pendingChange == .unenroll(username: "ada"))
    // The process was killed and starts again.
    backend.fail(refusal("device_not_enrolled", 404))
    let next = SettingsViewModel(services: services())
    await next.appear()
    #expect(storage.load().pendingChange == nil && storage.load().method == nil)
    #expect(try await tags.isEmpty)
    #expect(calls(of: "mfa.unenroll").count == 3)
  }

  @Test("A-037 a removal whose answer was lost with its session is known to be done by the state of the device")
  func removalWithoutSession() async throws {
    let model = try await enrolled()
    backend.fail(.gate(.transport(.lost("4403: session revoked"))))
    await model.choose(.unenroll)
    #expect(await model.state.method == nil)
    #expect(storage.load().pendingChange == nil)
    #expect(calls(of: "mfa.unenroll").count == 1)
  }

  @Test(
    "A change whose answer was lost is carried out again at the next start, and exactly one key is left",
    arguments: [
      AttestError.transport(.lost("reset")),
      // The gate has no answer to what it passed on.
      .assertionFailed(GateRefusal(status: 502, code: .upstreamUnavailable)),
    ])
  func lostAnswer(_ error: AttestError) async throws {
    let model = try await enrolled()
    let lost = NetworkError.gate(error)
    backend.fail(lost, lost)
    phone.plan(.approve)
    await model.choose(.usePasscode)
    // The server may know either key: both are kept.
    #expect(try await tags == [.biometric(of: Self.bundleID), .passcode(of: Self.bundleID)])
    let next = SettingsViewModel(services: services())
    await next.appear()
    #expect(await next.state.authMethod == .passcode)
    #expect(try await tags == [.passcode(of: Self.bundleID)])
    let sent = try calls(of: "mfa.upgrade").map { try $0.decoded(as: UpgradeRequest.self) }
    #expect(sent.count == 3 && Set(sent.map(\.publicKey)).count == 1)
  }

  @Test("A removal that is refused while the answer to a change is missing deletes neither key, and can be repeated")
  func removalAfterLostAnswer() async throws {
    let model = try await enrolled()
    let lost = NetworkError.gate(.transport(.lost("reset")))
    backend.fail(lost, lost)
    phone.plan(.approve)
    await model.choose(.usePasscode)
    let both: Set<KeyTag> = [.biometric(of: Self.bundleID), .passcode(of: Self.bundleID)]
    #expect(try await tags == both)
    // For the attempt before the removal, and for the one of the screen after it.
    let refusal = refusal("insufficient_user_authentication")
    backend.fail(refusal, refusal)
    await model.choose(.unenroll)
    #expect(await model.state.needsSignIn)
    #expect(try await tags == both)
    #expect(calls(of: "mfa.unenroll").isEmpty)
    let pending = try #require(storage.load().pendingChange)
    guard case .replaceKey = pending else {
      Issue.record("pending: \(pending)")
      return
    }
    await model.choose(.unenroll)
    #expect(await model.state.method == nil)
    #expect(try await tags.isEmpty)
    #expect(calls(of: "mfa.unenroll").count == 1)
  }

  @Test("An enrolment by SMS waits for the outcome of an enrolment with a key, whose answer was lost")
  func codesAfterLostEnrolment() async throws {
    phone.configure { $0.permission = .allowed }
    let enrolment = services().enrolment
    phone.plan(.approve)
    let pair = try await enrolment.makeKey(.userPresence)
    let lost = NetworkError.gate(.transport(.lost("reset")))
    backend.fail(lost, lost)
    for key in [pair, nil] {
      await #expect(throws: EnrolmentError.network(lost)) {
        try await enrolment.enroll(as: "ada", phoneNumber: "+1234567890", key: key)
      }
      #expect(try await tags == [pair.tag])
    }
    try await enrolment.enroll(as: "ada", phoneNumber: "+1234567890", key: nil)
    let sent = try calls(of: "mfa.enroll").map { try $0.decoded(as: EnrollRequest.self).publicKey != nil }
    #expect(sent == [true, true, true, false])
    #expect(storage.load().method == .smsOTP)
    #expect(try await tags.isEmpty)
  }

  @Test("A removal takes the name of the account from an enrolment whose answer was lost")
  func removalAfterLostEnrolment() async throws {
    let enrolment = services().enrolment
    let lost = NetworkError.gate(.transport(.lost("reset")))
    backend.fail(lost)
    await #expect(throws: EnrolmentError.network(lost)) {
      try await enrolment.enroll(as: "ada", phoneNumber: "+1234567890", key: nil)
    }
    try await enrolment.unenroll()
    let removals = try calls(of: "mfa.unenroll").map { try $0.decoded(as: DeviceRequest.self).username }
    #expect(removals == ["ada"])
    #expect(!storage.load().isEnrolled && storage.load().pendingChange == nil)
  }

  @Test("A device that the server has removed forgets its enrolment and its key")
  func removedElsewhere() async throws {
    let model = try await enrolled()
    backend.device = nil
    await model.appear()
    #expect(await model.state.method == nil)
    #expect(try await tags.isEmpty)
    #expect(!storage.load().isEnrolled && storage.load().deviceID == "device-1")
  }

  @Test("A-061 codes go to another number after it was changed; the key stays")
  func changesNumber() async throws {
    let model = try await enrolled()
    await model.change(phoneNumber: "+1987654321")
    #expect(await model.state.maskedPhoneNumber == "•••••••4321")
    let requests = try calls(of: "mfa.enroll").map { try $0.decoded(as: EnrollRequest.self) }
    #expect(requests.count == 2 && requests[0].publicKey == requests[1].publicKey)
    #expect(requests[1].phoneNumber == "+1987654321")
    #expect(try await tags == [.biometric(of: Self.bundleID)])
  }

  @Test("A-061 a changed number receives a code, and is confirmed when that comes back; no session stays of it")
  func confirmsNumber() async throws {
    let model = try await enrolled()
    #expect(await !model.state.awaitsNumberCode)
    await model.confirm(numberCode: "123456")
    #expect(calls(of: "auth.verify-otp").isEmpty)
    await model.change(phoneNumber: "+1987654321")
    #expect(await model.state.awaitsNumberCode)
    #expect(await model.state.noticeText == "Enter the code that was sent to the new number.")
    let asked = try calls(of: "auth.request-otp").map { try $0.decoded(as: RequestOTPRequest.self) }
    #expect(asked.map(\.phoneNumber) == ["+1987654321"])
    backend.fail(refusal("invalid_code"))
    await model.confirm(numberCode: "000000")
    #expect(await model.state.awaitsNumberCode)
    #expect(await model.state.errorText == "the server's text")
    await model.resendNumberCode()
    #expect(calls(of: "auth.request-otp").count == 2)
    await model.confirm(numberCode: "123456")
    #expect(await !model.state.awaitsNumberCode)
    #expect(await model.state.noticeText == "The new number is confirmed.")
    let entered = try calls(of: "auth.verify-otp").map { try $0.decoded(as: VerifyOTPRequest.self) }
    #expect(entered.map(\.otp) == ["000000", "123456"])
    let revoked = calls(of: "auth.revoke")
    #expect(revoked.map(\.token) == ["o.t.p"])
    #expect(sessions.load()?.accessToken == "t.t.t")
  }

  @Test("A-061 a changed number whose code cannot be sent is still to be confirmed, and the user can try again")
  func unsentNumberCode() async throws {
    let model = try await enrolled()
    backend.failCodes(.gate(.transport(.unreachable("no route"))))
    await model.change(phoneNumber: "+1987654321")
    #expect(await model.state.awaitsNumberCode)
    #expect(await model.state.errorText?.contains("no route") == true)
    await model.resendNumberCode()
    #expect(await model.state.awaitsNumberCode)
    #expect(await model.state.errorText == nil)
  }

  @Test("A number receives its code although the answer to the change was lost, once or more often", arguments: [1, 2])
  func lostNumber(losses: Int) async throws {
    let model = try await enrolled()
    backend.fail(refusal("insufficient_user_authentication"))
    await model.change(phoneNumber: "+1987654321")
    #expect(await !model.state.awaitsNumberCode)
    #expect(calls(of: "auth.request-otp").isEmpty)
    for _ in 0..<losses { backend.fail(.gate(.transport(.lost("reset")))) }
    await model.change(phoneNumber: "+1987654321")
    if losses > 1 {
      #expect(await !model.state.awaitsNumberCode)
      #expect(storage.load().pendingChange == .changePhoneNumber("+1987654321"))
      await model.appear()
    }
    #expect(await model.state.awaitsNumberCode)
    #expect(await model.state.errorText == nil)
    let asked = try calls(of: "auth.request-otp").map { try $0.decoded(as: RequestOTPRequest.self) }
    #expect(asked.map(\.phoneNumber) == ["+1987654321"])
    await model.confirm(numberCode: "123456")
    #expect(await model.state.noticeText == "The new number is confirmed.")
    await model.appear()
    #expect(await !model.state.awaitsNumberCode)
  }

  @Test("A number cannot be changed without the key, so that the device does not lose its method by it")
  func numberWithoutKey() async throws {
    let model = try await enrolled()
    phone.removePasscode()
    phone.setPasscode()
    let count = calls(of: "mfa.enroll").count
    await model.change(phoneNumber: "+1987654321")
    #expect(await model.state.errorText == "The key was removed - enroll this device again")
    #expect(calls(of: "mfa.enroll").count == count)
    #expect(storage.load().pendingChange == nil && storage.load().phoneNumber == "+1234567890")
    await model.appear()
    #expect(await model.state.alertText == "The key was removed - enroll this device again")
  }

  @Test("A key that goes between its test and the server's answer is reported, and nothing is pending")
  func keyGoes() async throws {
    let services = services()
    phone.configure { $0.permission = .allowed }
    phone.plan(.approve)
    let pair = try await services.enrolment.makeKey(.userPresence)
    phone.removePasscode()
    do throws(EnrolmentError) {
      try await services.enrolment.enroll(as: "ada", phoneNumber: nil, key: pair)
      Issue.record("enrolled without a key")
    } catch {
      #expect(error == .security(.keyMissing))
    }
    #expect(storage.load().pendingChange == nil && !storage.load().isEnrolled)
    #expect(backend.received.isEmpty)
  }

  @Test("An access token that has expired is replaced once, and the change carried out with the new one")
  func refreshes() async throws {
    let model = try await enrolled()
    backend.fail(refusal("session_required"))
    await model.choose(.unenroll)
    #expect(await model.state.method == nil)
    #expect(calls(of: "auth.refresh").count == 1 && calls(of: "mfa.unenroll").count == 2)
  }

  @Test("A server that cannot be asked leaves what the device knows")
  func offline() async throws {
    let model = try await enrolled()
    backend.fail(.gate(.transport(.unreachable("no route"))))
    await model.appear()
    let state = await model.state
    #expect(state.phase == .ready && state.registration == nil && state.method == .secureEnclave)
    #expect(state.errorText == "the gate cannot be reached: no route")
    await model.appear()
    #expect(await model.state.errorText == nil)
  }

  @Test(
    "A-132 every error of a prompt leads to a state with a choice",
    arguments: LocalAuthenticationCode.allCases, DeviceCapability.allCases)
  func everyError(_ code: LocalAuthenticationCode, _ capability: DeviceCapability) async throws {
    let model = try await enrolled()
    phone.plan(.interrupt(code))
    await model.choose(.usePasscode)
    #expect(await model.state.phase == .ready)
    #expect(await model.state.errorText?.isEmpty == false)
    #expect(await model.state.options.contains(.usePasscode))
    #expect(try await tags == [.biometric(of: Self.bundleID)])
    let advice = DeviceSecurityError.localAuthentication(code).advice(in: .methodChange, capability: capability)
    #expect(!advice.text.isEmpty)
  }

  @Test("An event that does not fit the phase changes nothing")
  func misplaced() {
    let pair = KeyPair(tag: .passcode(of: ""), protection: .devicePasscode, isHardwareBacked: true, publicKey: [])
    let events: [SettingsMachine.Event] = [
      .chose(.unenroll), .chose(.acceptUpgrade), .enteredPhone("+1"), .testedKey(pair), .keyFailed(.keyMissing, .none),
      .changed, .failed(SettingsMachine.Failure(text: "x", needsSignIn: false)),
    ]
    for event in events {
      var machine = SettingsMachine()
      #expect(machine.apply(event) == nil)
      #expect(machine == SettingsMachine())
    }
  }
}
