import AttestClient
import ByteCoding
import Cryptography
import Locking
import MFAClient
import MFAWire
import SimulatedPhone
import Testing

@testable import MFAViewModels

@Suite("The sign-in screen", .timeLimit(.minutes(1)))
struct SignInViewModelTests {
  private let phone = SimulatedPhone(.touchID)
  private let backend = StandInBackend()
  private let storage = MemoryStorageService(deviceID: "device-1")
  private let sessions = MemorySecretStorage<MFASession>()
  private let trust = MemorySecretStorage<DeviceTrust>()
  private static let bundleID = "com.example.app"
  private let tag = KeyTag.biometric(of: Self.bundleID)

  private var services: DeviceServices {
    DeviceServices(
      keychain: phone, biometrics: phone, backend: backend, storage: storage, sessions: sessions, trust: trust,
      app: AppDescription(
        bundleID: Self.bundleID, username: "ada", phoneNumber: "+1234567890", deviceModel: "iPhone SE"))
  }

  private func model() -> SignInViewModel { SignInViewModel(services: services) }

  /// Makes a key as the enrolment does.
  private func enroll() async throws -> KeyPair {
    let pair = try await phone.createKey(tag, protection: .userPresence)
    var record = storage.load()
    (record.username, record.method, record.key) = ("ada", .secureEnclave, KeyReference(pair))
    storage.save(record)
    return pair
  }

  private func refusal(_ code: String, _ message: String) -> NetworkError {
    .refused(BackendRefusal(status: 401, ErrorBody(message: message, code: code, requestId: "r-1")))
  }

  @Test("A-111 A-S06 A-021 the key signs the 32 bytes of the challenge after one prompt; the app's half")
  func signs() async throws {
    let pair = try await enroll()
    let model = model()
    phone.plan(.approve)
    await model.choose(.signIn)
    #expect(await model.state.phase == .signedIn(needsSecondFactor: false))
    #expect(await model.tokens?.token == "t.t.t")
    #expect(phone.shownPrompts.map(\.kind) == [.biometry(.touchID)])
    #expect(backend.received.map(\.name) == ["auth.initiate", "auth.verify-signature"])
    let request = try #require(backend.received.last).decoded(as: VerifySignatureRequest.self)
    #expect(request.username == "ada" && request.deviceId == "device-1" && request.challengeId == "c-1")
    let signature = try #require(Base64.decode(request.signature))
    let key = try P256PublicKey(x963: pair.publicKey)
    #expect(key.isValidSignature(signature, for: [UInt8](repeating: 9, count: 32)))
  }

  /// Signs in by the key, and returns the trust token that was sent.
  private func sentTrust(as model: SignInViewModel) async throws -> String? {
    phone.plan(.approve)
    await model.choose(.signIn)
    return try #require(backend.received.last).decoded(as: VerifySignatureRequest.self).trustToken
  }

  @Test("B-008 a remembered device sends its token at the next sign-in, for its account only")
  func remembered() async throws {
    _ = try await enroll()
    #expect(try await sentTrust(as: model()) == nil)
    let kept = DeviceTrust(username: "ada", token: "trust-1")
    trust.save(kept)
    let model = model()
    #expect(try await sentTrust(as: model) == "trust-1")
    #expect(await model.state.phase == .signedIn(needsSecondFactor: false))
    #expect(trust.load() == kept)
    let other = self.model()
    await other.enter(username: "bea")
    #expect(try await sentTrust(as: other) == nil)
    #expect(trust.load() == kept)
  }

  @Test("B-008 a sign-in by a code sends the token, too")
  func rememberedByCode() async throws {
    backend.answer(method: .smsOTP)
    trust.save(DeviceTrust(username: "ada", token: "trust-1"))
    let model = model()
    await model.choose(.signIn)
    await model.enter(code: "123456")
    let request = try #require(backend.received.last).decoded(as: VerifyOTPRequest.self)
    #expect(request.trustToken == "trust-1")
  }

  @Test("B-008 a server that asks for the second factor all the same may remember the device: its token stays")
  func steppedUp() async throws {
    _ = try await enroll()
    backend.answer(scope: "mfa")
    let kept = DeviceTrust(username: "ada", token: "trust-1")
    trust.save(kept)
    let model = model()
    #expect(try await sentTrust(as: model) == "trust-1")
    #expect(await model.state.phase == .signedIn(needsSecondFactor: true))
    #expect(trust.load() == kept)
    #expect(try await sentTrust(as: self.model()) == "trust-1")
  }

  @Test("A-020 the user enters the name of the account; an enrolled device fills it in")
  func username() async throws {
    let model = model()
    #expect(await model.state.username == "ada")
    await model.enter(username: "grace")
    await model.choose(.signIn)
    #expect(try #require(backend.received.first).decoded(as: DeviceRequest.self).username == "grace")
  }

  @Test("A session is kept for the operations that need one; its tokens are in no description")
  func session() async throws {
    _ = try await enroll()
    phone.plan(.approve)
    await model().choose(.signIn)
    let session = try #require(sessions.load())
    #expect(session.accessToken == "t.t.t" && session.refreshToken == "r" && session.username == "ada")
    var text = ""
    dump(session, to: &text)
    #expect(!"\(session) \(text) \(String(reflecting: session))".contains("t.t.t"))
  }

  @Test("After a lost answer to a change of the key, the key that the server knows signs in, and the other is deleted")
  func eitherKey() async throws {
    let old = try await enroll()
    let new = try await phone.createKey(.passcode(of: Self.bundleID), protection: .devicePasscode)
    var record = storage.load()
    record.pendingChange = .replaceKey(KeyReference(new))
    storage.save(record)
    let refused = refusal("authentication_failed", "Authentication failed")
    let model = model()
    phone.plan(.approve, .approve)
    backend.failVerifications(refused)
    await model.choose(.signIn)
    #expect(await model.state.phase == .signedIn(needsSecondFactor: false))
    #expect(phone.shownPrompts.map(\.kind) == [.biometry(.touchID), .passcode])
    #expect(storage.load().key == KeyReference(new) && storage.load().pendingChange == nil)
    #expect(try await phone.key(old.tag) == nil)
    #expect(try await phone.key(new.tag) == new)
  }

  @Test(
    "A removal of the key whose answer was lost is finished before the sign-in, and later leaves the session as it is",
    arguments: [false, true])
  func lostRemoval(isAnsweredLater: Bool) async throws {
    _ = try await enroll()
    var record = storage.load()
    record.pendingChange = .removeKey
    storage.save(record)
    backend.answer(method: .smsOTP)
    if isAnsweredLater { backend.refuseDowngrades(.gate(.transport(.lost("reset")))) }
    let model = model()
    await model.choose(.signIn)
    await model.enter(code: "123456")
    #expect(await model.state.phase == .signedIn(needsSecondFactor: false))
    #expect(sessions.load()?.accessToken == "o.t.p")
    #expect(storage.load().pendingChange == nil && storage.load().method == .smsOTP)
    let calls = ["mfa.downgrade", "auth.initiate", "auth.verify-otp"]
    #expect(backend.received.map(\.name) == calls + (isAnsweredLater ? ["mfa.downgrade"] : []))
  }

  @Test("A session without the second factor is reported as such")
  func secondFactor() async throws {
    _ = try await enroll()
    backend.answer(scope: "mfa")
    let model = model()
    phone.plan(.approve)
    await model.choose(.signIn)
    #expect(await model.state.phase == .signedIn(needsSecondFactor: true))
  }

  @Test("A-022 a declined prompt sends nothing, and offers another attempt and a code")
  func declined() async throws {
    _ = try await enroll()
    let model = model()
    phone.plan(.decline, .approve)
    await model.choose(.signIn)
    #expect(await model.state.phase == .ready)
    #expect(await model.state.errorText == "User cancelled - offer passcode")
    #expect(await model.state.options == [.signIn, .useSMS])
    #expect(backend.received.map(\.name) == ["auth.initiate"])
    await model.choose(.signIn)
    #expect(await model.state.phase == .signedIn(needsSecondFactor: false))
    #expect(await model.state.errorText == nil)
  }

  @Test("A-S07 a device with codes by SMS gets one code, and signs in with it; the app's half")
  func code() async throws {
    backend.answer(method: .smsOTP)
    let model = model()
    await model.choose(.signIn)
    #expect(await model.state.phase == .enteringCode)
    await model.enter(code: " 123 456\n")
    #expect(await model.state.phase == .signedIn(needsSecondFactor: false))
    #expect(backend.received.map(\.name) == ["auth.initiate", "auth.verify-otp"])
    #expect(try #require(backend.received.last).decoded(as: VerifyOTPRequest.self).otp == "123456")
  }

  @Test(
    "A code is sent in its usual form, however it is typed",
    arguments: ["１２３４５６", "１２３－４５６", "123\u{2011}456", "\u{200B}123\u{A0}456\u{FEFF}", "１23456\r\n"])
  func typedCode(_ text: String) async throws {
    backend.answer(method: .smsOTP)
    let model = model()
    await model.choose(.signIn)
    await model.enter(code: text)
    #expect(try #require(backend.received.last).decoded(as: VerifyOTPRequest.self).otp == "123456")
  }

  @Test("A wrong code can be entered again, and the user can start over")
  func wrongCode() async throws {
    backend.answer(method: .smsOTP)
    let model = model()
    await model.choose(.signIn)
    backend.fail(refusal("code_invalid", "Invalid code. Please try again."))
    await model.enter(code: "000000")
    #expect(await model.state.phase == .enteringCode)
    #expect(await model.state.errorText == "Invalid code. Please try again.")
    #expect(await model.state.options == [.signIn])
    await model.enter(code: "123456")
    #expect(await model.state.phase == .signedIn(needsSecondFactor: false))
  }

  @Test("A-024 A-036 without its key the device can sign in by a code, or enrol again")
  func missingKey() async throws {
    _ = try await enroll()
    phone.removePasscode()
    phone.setPasscode()
    let model = model()
    await model.choose(.signIn)
    #expect(await model.state.options == [.enrollAgain, .useSMS])
    await model.choose(.useSMS)
    #expect(await model.state.phase == .enteringCode)
    let request = try #require(backend.received.last).decoded(as: RequestOTPRequest.self)
    #expect(request.username == "ada" && request.phoneNumber == "+1234567890")
    await model.enter(code: "123456")
    #expect(await model.state.phase == .signedIn(needsSecondFactor: false))
  }

  @Test(
    "A device that was never enrolled is told so, with or without a passcode, and can only enrol",
    arguments: [true, false])
  func neverEnrolled(hasPasscode: Bool) async {
    if !hasPasscode { phone.removePasscode() }
    let model = model()
    await model.choose(.signIn)
    #expect(await model.state.errorText == "This device is not enrolled - enroll it first")
    // The server would answer that it has sent a code, and none would come.
    #expect(await model.state.options == [.enrollAgain])
    #expect(phone.shownPrompts.isEmpty)
    await model.choose(.useSMS)
    #expect(backend.received.map(\.name) == ["auth.initiate"])
    await model.choose(.enrollAgain)
    #expect(await model.state.options == [.signIn])
  }

  @Test(
    "A device that the server has removed forgets its enrolment and can only enrol again, also with a change under way",
    arguments: [false, true])
  func removed(hasPendingChange: Bool) async throws {
    let pair = try await enroll()
    let removed = refusal("device_not_enrolled", "Device is not enrolled")
    backend.fail(removed)
    if hasPendingChange {
      var record = storage.load()
      record.pendingChange = .changePhoneNumber("+1987654321")
      storage.save(record)
      backend.fail(removed)
    }
    let model = model()
    await model.choose(.signIn)
    #expect(await model.state.phase == .ready)
    #expect(await model.state.errorText == "This device is not enrolled - enroll it first")
    #expect(await model.state.options == [.enrollAgain])
    #expect(!storage.load().isEnrolled && storage.load().pendingChange == nil)
    #expect(try await phone.key(pair.tag) == nil)
    #expect(phone.shownPrompts.isEmpty)
  }

  @Test("A device that another app instance has enrolled is offered no code, and enrols again with another id")
  func boundElsewhere() async throws {
    let pair = try await enroll()
    backend.fail(refusal("device_mismatch", "This device is bound to another app instance"))
    let model = model()
    await model.choose(.signIn)
    #expect(await model.state.errorText == "This device is bound to another app instance")
    #expect(await model.state.options == [.enrollAgain])
    #expect(storage.load().key == KeyReference(pair) && phone.shownPrompts.isEmpty)
    await model.choose(.enrollAgain)
    let state = await model.state
    #expect(state.options == [.signIn] && state.errorText == nil)
    #expect(!storage.load().isEnrolled && storage.load().deviceID != "device-1")
    #expect(try await phone.key(pair.tag) == nil)
    #expect(backend.received.map(\.name) == ["auth.initiate"])
  }

  @Test("A device that signed in by codes before its backup was restored elsewhere can be enrolled there")
  func codesBoundElsewhere() async throws {
    var record = storage.load()
    (record.username, record.method) = ("ada", .smsOTP)
    storage.save(record)
    backend.fail(refusal("device_mismatch", "This device is bound to another app instance"))
    let services = services
    let model = SignInViewModel(services: services)
    await model.choose(.signIn)
    await model.choose(.enrollAgain)
    let enrollment = EnrollmentViewModel(services: services)
    await enrollment.appear()
    #expect(await enrollment.state.phase == .choosing)
  }

  @Test("An enrolment whose answer was lost is finished if the server does not know the device at the sign-in")
  func lostEnrolment() async throws {
    let pair = try await phone.createKey(tag, protection: .userPresence)
    var record = storage.load()
    record.pendingChange = .enroll(username: "ada", phoneNumber: nil, key: KeyReference(pair))
    storage.save(record)
    backend.fail(refusal("device_not_enrolled", "Device is not enrolled"))
    let model = model()
    await model.choose(.signIn)
    #expect(await model.state.errorText == "Device is not enrolled")
    #expect(storage.load().key == KeyReference(pair) && storage.load().pendingChange == nil)
    phone.plan(.approve)
    await model.choose(.signIn)
    #expect(await model.state.phase == .signedIn(needsSecondFactor: false))
  }

  @Test("A-S08 on a device whose security was removed, settings and a code are offered; the app's half")
  func noSecurity() async throws {
    _ = try await enroll()
    phone.removePasscode()
    let model = model()
    await model.choose(.signIn)
    #expect(await model.state.options == [.openSettings, .useSMS])
    #expect(await model.state.errorText == "Critical: No device security")
  }

  @Test("A server that cannot be reached, or that refuses, leaves the user where they were, with its text")
  func refused() async throws {
    _ = try await enroll()
    let model = model()
    backend.fail(.gate(.transport(.unreachable("no route"))))
    await model.choose(.signIn)
    #expect(await model.state.phase == .ready)
    #expect(await model.state.errorText == "the gate cannot be reached: no route")
    #expect(phone.shownPrompts.isEmpty)
    phone.plan(.approve, .approve)
    await model.choose(.signIn)
    #expect(await model.state.phase == .signedIn(needsSecondFactor: false))
  }

  @Test("A challenge that is not 32 bytes is not signed", arguments: ["", "AAAA", "%%%"])
  func malformedChallenge(_ text: String) async throws {
    _ = try await enroll()
    backend.answer(challenge: text)
    let model = model()
    await model.choose(.signIn)
    #expect(await model.state.phase == .ready)
    #expect(await model.state.errorText == "The server's challenge is malformed")
    #expect(phone.shownPrompts.isEmpty)
  }

  @Test(
    "A-132 every error of a prompt leads to a state with a choice",
    arguments: LocalAuthenticationCode.allCases, DeviceCapability.allCases)
  func everyError(_ code: LocalAuthenticationCode, _ capability: DeviceCapability) {
    var machine = SignInMachine(username: "ada")
    #expect(machine.apply(.chose(.signIn)) == .requestChallenge)
    let challenge = SignInMachine.DeviceChallenge(id: "c", bytes: [])
    #expect(machine.apply(.challenged(challenge)) == .sign(challenge))
    #expect(machine.apply(.keyFailed(.localAuthentication(code), capability)) == nil)
    #expect(machine.state.phase == .ready && machine.state.options.contains(.useSMS))
    #expect(machine.state.errorText?.isEmpty == false)
    #expect(machine.state.options.contains(.openSettings) == (capability == .none))
  }

  @Test("An event that does not fit the phase changes nothing")
  func misplaced() {
    let challenge = SignInMachine.DeviceChallenge(id: "c", bytes: [])
    let events: [SignInMachine.Event] = [
      .chose(.useSMS), .chose(.enrollAgain), .enteredCode("1"), .challenged(challenge), .codeSent,
      .signed(challenge, signature: []), .keyFailed(.keyMissing, .none), .verified(needsSecondFactor: false),
      .boundElsewhere("x"), .failed("x"),
    ]
    for event in events {
      var machine = SignInMachine(username: "ada")
      #expect(machine.apply(event) == nil)
      #expect(machine == SignInMachine(username: "ada"))
    }
  }
}
