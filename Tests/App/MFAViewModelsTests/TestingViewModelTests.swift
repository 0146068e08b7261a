import AttestClient
import ByteCoding
import Locking
import MFAClient
import MFAWire
import SimulatedPhone
import Testing

@testable import MFAViewModels

@Suite("The dashboard for tests", .timeLimit(.minutes(1)))
struct TestingViewModelTests {
  private let phone = SimulatedPhone()
  private let backend = StandInBackend()
  private let clock = LockedValue(Timestamp(milliseconds: 1_800_000_000_123))
  private let log: EventLog

  init() {
    let clock = clock
    log = EventLog(now: { clock.withLock(\.self) })
    phone.configure { $0.permission = .allowed }
  }

  private func model(storage: any MFAStorageService = MemoryStorageService(deviceID: "device-1")) -> TestingViewModel {
    let phone = phone
    return TestingViewModel(
      services: DeviceServices(
        keychain: phone, biometrics: phone, backend: backend, storage: storage,
        app: AppDescription(
          bundleID: "com.example.app", username: "ada", phoneNumber: "+1234567890", deviceModel: "iPhone 15 Pro")),
      log: log, declineNextPrompt: { phone.plan(.decline) })
  }

  private func run(_ action: TestingState.Action, _ answers: PromptAnswer..., on model: TestingViewModel) async {
    for answer in answers { phone.plan(answer) }
    await model.run(action)
  }

  @Test("A-040 A-041 A-042 A-043 A-044 A-112 the cards follow phone and server")
  func cards() async {
    let model = model()
    #expect(await model.state.hasSecureEnclave == nil)
    await model.appear()
    var state = await model.state
    #expect(state.hasSecureEnclave == true && state.capability == .biometricsAvailable)
    #expect(state.biometryType == .faceID && state.registration?.isEnrolled == false && state.method == nil)
    await run(.enrollWithBiometrics, .approve, on: model)
    state = await model.state
    #expect(state.registration == SettingsState.Registration(isEnrolled: true, method: .secureEnclave, hasKey: true))
    #expect(state.method == .secureEnclave && state.resultText == "Enrolled with biometric")
    phone.configure { $0.isSimulator = true }
    phone.removeBiometry()
    await model.run(.checkSecurity)
    state = await model.state
    #expect(state.hasSecureEnclave == false && state.capability == .passcodeOnly)
  }

  @Test("A device that was enrolled after a sign-in that failed signs in")
  func enrolledLater() async {
    let model = model()
    await model.run(.testAuthentication)
    #expect(await model.state.resultText == "This device is not enrolled - enroll it first")
    await run(.enrollWithPasscode, .approve, on: model)
    #expect(await model.state.hasSucceeded)
    await run(.testAuthentication, .approve, on: model)
    #expect(await model.state.resultText == "Signed in")
  }

  @Test("A-045 A-046 A-047 A-048 A-049 A-04A A-04B A-04C every action is offered by its label, works and is logged")
  func actions() async {
    let model = model()
    #expect(
      await model.state.actions.map(\.label) == [
        "Enroll with Biometrics", "Enroll with Passcode Only", "Test Authentication", "Re-enroll", "Unenroll",
        "Simulate Biometric Decline", "Switch to SMS Fallback", "Check Device Security Status",
      ])
    await run(.enrollWithPasscode, .approve, on: model)
    #expect(await model.state.method == .secureEnclave)
    await run(.testAuthentication, .approve, on: model)
    #expect(await model.state.resultText == "Signed in")
    await run(.reenroll, .approve, on: model)
    #expect(await model.state.resultText == "The server has the new key.")
    await run(.simulateDecline, on: model)
    #expect(await model.state.resultText == "User cancelled - offer passcode")
    #expect(await model.state.hasSucceeded)
    await run(.switchToSMS, on: model)
    #expect(await model.state.method == .smsOTP)
    await run(.unenroll, on: model)
    #expect(await model.state.method == nil)
    let lines = log.entries.filter { $0.source == .app }
    #expect(
      lines.map(\.title) == [
        "Enroll with Passcode Only", "Test Authentication", "Re-enroll", "Simulate Biometric Decline",
        "Switch to SMS Fallback", "Unenroll",
      ])
    #expect(lines.map(\.outcome) == Array(repeating: .success, count: 6))
  }

  @Test("A-04A a phone that cannot decline by itself does not offer to")
  func realPhone() async {
    let model = TestingViewModel(
      services: DeviceServices(
        keychain: phone, biometrics: phone, backend: backend, storage: MemoryStorageService(deviceID: "device-1"),
        app: AppDescription(bundleID: "com.example.app", username: "ada", deviceModel: "iPhone 15 Pro")), log: log)
    #expect(await !model.state.actions.contains(.simulateDecline))
    await model.run(.simulateDecline)
    #expect(await model.state.resultText == nil)
  }

  @Test("A device that signs in by codes is tested by the code that is entered")
  func code() async {
    backend.answer(method: .smsOTP)
    let model = model()
    await model.run(.testAuthentication)
    #expect(await model.state.awaitsCode)
    #expect(await model.state.resultText == "The server has sent a code")
    await model.enter(code: "123456")
    #expect(await !model.state.awaitsCode)
    #expect(await model.state.resultText == "Signed in")
    await model.enter(code: "123456")
    #expect(backend.received.filter { $0.name == "auth.verify-otp" }.count == 1)
  }

  @Test("An action that the device does not offer says why, and asks the server for nothing")
  func notOffered() async {
    phone.removePasscode()
    let model = model()
    await model.run(.enrollWithBiometrics)
    #expect(await model.state.resultText == "Please set up device passcode in Settings")
    #expect(await !model.state.hasSucceeded)
    await model.run(.reenroll)
    #expect(await model.state.resultText == "This device does not offer that: Not enrolled")
    #expect(backend.received.allSatisfy { $0.name == "device.status" })
  }

  @Test("A-04D A-04E A-04F A-04G each line has outcome, details, the error's name and number, and a time in order")
  func lines() async throws {
    let model = model()
    await run(.enrollWithBiometrics, .decline, on: model)
    clock.withLock { $0 = Timestamp(milliseconds: 0) }
    await run(.enrollWithPasscode, .approve, on: model)
    let lines = log.entries
    #expect(lines.map(\.id) == Array(1...lines.count))
    // The clock was set back.
    #expect(lines.allSatisfy { $0.time.description == "2027-01-15T08:00:00.123Z" })
    let declined = try #require(lines.first { $0.title == "Sign" })
    #expect(declined.outcome == .failure && declined.source == .phone)
    #expect(declined.detail == "LAError.userCancel (-2): User cancelled - offer passcode")
    let request = try #require(lines.first { $0.title == "mfa.enroll" })
    #expect(request.outcome == .success && request.detail == "POST /mfa/enroll" && request.source == .server)
  }

  @Test("A refusal in the log says who refused, and no line has a token")
  func refusals() async throws {
    let model = model()
    await run(.enrollWithPasscode, .approve, on: model)
    await run(.testAuthentication, .approve, on: model)
    backend.fail(
      .refused(BackendRefusal(status: 403, ErrorBody(message: "Not allowed", code: "forbidden", requestId: "r-9"))),
      .gate(.transport(.unreachable("no route"))))
    await model.run(.checkSecurity)
    await model.run(.checkSecurity)
    let details = log.entries.filter { $0.source == .server && $0.outcome == .failure }.map(\.detail)
    #expect(
      details == [
        "backend: forbidden: Not allowed (request r-9)", "gate: the gate cannot be reached: no route",
      ])
    #expect(!log.entries.contains { "\($0)".contains("t.t.t") })
  }

  @Test("A-223 each use of a security key is a line, with the domain that asks for it and the reason of a failure")
  func securityKeys() async throws {
    let services = DeviceServices(
      keychain: phone, biometrics: phone, securityKeys: phone, backend: backend,
      storage: MemoryStorageService(deviceID: "device-1"),
      app: AppDescription(bundleID: "com.example.app", username: "ada", deviceModel: "iPhone 15 Pro"))
    let keys = try #require(services.logged(to: log).securityKeys)
    phone.plan(.approve, .approve, .decline)
    let credential = try await keys.register(.standIn).id
    let options = CredentialRequestOptions(
      challenge: String(repeating: "A", count: 43), timeout: 300_000, rpId: "example.org",
      allowCredentials: [.init(id: credential, transports: nil)], userVerification: "preferred")
    _ = try await keys.prove(options)
    await #expect(throws: SecurityKeyError.cancelled) { try await keys.prove(options) }
    let lines = log.entries
    #expect(lines.allSatisfy { $0.source == .phone })
    #expect(lines.map(\.title) == ["Register a security key", "Use a security key", "Use a security key"])
    #expect(lines.map(\.outcome) == [.success, .success, .failure])
    #expect(
      lines.map(\.detail) == ["example.org", "example.org", "example.org: The security key was not used."])
  }

  @Test("A key that cannot be read is deleted with a log, too; where no key is, no line is written")
  func unreadableKey() async throws {
    struct Unreadable: KeychainService {
      let phone: any KeychainService

      func hasSecureEnclave() async -> Bool { true }
      func createKey(_ tag: KeyTag, protection: KeyProtection) async throws(DeviceSecurityError) -> KeyPair {
        try await phone.createKey(tag, protection: protection)
      }
      func key(_ tag: KeyTag) async throws(DeviceSecurityError) -> KeyPair? { throw .keyMissing }
      func deleteKey(_ tag: KeyTag) async throws(DeviceSecurityError) { try await phone.deleteKey(tag) }
      func sign(
        _ message: [UInt8], with tag: KeyTag, reason: String
      ) async throws(DeviceSecurityError) -> [UInt8] { throw .keyMissing }
    }
    func logged(_ keychain: any KeychainService) -> any KeychainService {
      DeviceServices(
        keychain: keychain, biometrics: phone, backend: backend, storage: MemoryStorageService(deviceID: "device-1"),
        app: AppDescription(bundleID: "com.example.app", username: "ada", deviceModel: "iPhone 15 Pro")
      ).logged(to: log).keychain
    }
    let tag = KeyTag.passcode(of: "com.example.app")
    _ = try await phone.createKey(tag, protection: .devicePasscode)
    try await logged(Unreadable(phone: phone)).deleteKey(tag)
    #expect(try await phone.key(tag) == nil)
    #expect(log.entries.map(\.title) == ["Delete a key"])
    try await logged(phone).deleteKey(tag)
    #expect(log.entries.count == 1)
  }

  @Test("A-234 the log keeps its last 1,000 lines")
  func thousand() {
    let log = EventLog(now: { Timestamp(seconds: 0) })
    for number in 1...1003 { log.add(.app, "line \(number)", .success) }
    #expect(log.entries.count == 1000)
    #expect(log.entries.first?.title == "line 4" && log.entries.last?.title == "line 1003")
  }

  @Test("A-234 a shorter log keeps as many, and passes each line on")
  func ring() async {
    let log = EventLog(capacity: 3, now: { Timestamp(seconds: 0) })
    for number in 1...10 { log.add(.app, "line \(number)", .success) }
    #expect(log.entries.map(\.title) == ["line 8", "line 9", "line 10"])
    var updates = log.updates().makeAsyncIterator()
    log.add(.app, "line 11", .failure)
    for number in 8...11 { #expect(await updates.next()?.title == "line \(number)") }
    log.clear()
    #expect(log.entries.isEmpty)
  }
}
