import AttestClient
import ByteCoding
import Locking
import MFAClient
import MFAWire
import SimulatedPhone
import Testing

@testable import MFAViewModels

@Suite("The enrolment screen", .timeLimit(.minutes(1)))
struct EnrollmentViewModelTests {
  private let phone: SimulatedPhone
  private let backend = StandInBackend()
  private let storage = MemoryStorageService(deviceID: "device-1")
  private let settingsOpened = LockedValue(0)
  private static let bundleID = "com.example.app"

  init() { phone = SimulatedPhone() }

  private func model(phoneNumber: String? = "+1234567890") -> EnrollmentViewModel {
    let settingsOpened = settingsOpened
    return EnrollmentViewModel(
      services: DeviceServices(
        keychain: phone, biometrics: phone, backend: backend, storage: storage,
        app: AppDescription(
          bundleID: Self.bundleID, username: "ada", phoneNumber: phoneNumber, deviceModel: "iPhone 15 Pro",
          openSettings: { settingsOpened.withLock { $0 += 1 } })))
  }

  private var keys: (biometric: KeyPair?, passcode: KeyPair?) {
    get async throws {
      (try await phone.key(.biometric(of: Self.bundleID)), try await phone.key(.passcode(of: Self.bundleID)))
    }
  }

  private func device(_ capability: DeviceCapability) -> EnrollmentMachine.Device {
    EnrollmentMachine.Device(
      capability: capability, biometryType: .faceID, method: nil, authMethod: nil, failure: nil)
  }

  private func enrolment() throws -> EnrollRequest {
    #expect(backend.received.map(\.name) == ["mfa.enroll"])
    return try #require(backend.received.first).decoded(as: EnrollRequest.self)
  }

  @Test("A-S01 A-011 A-012 A-013 A-015 with Face ID: the key is tested, and then registered; the app's half")
  func faceID() async throws {
    let model = model()
    await model.appear()
    var state = await model.state
    #expect(state.options == [.useBiometrics, .usePasscode])
    #expect(state.options.map { state.label(of: $0) } == ["Use Face ID", "Use Passcode Only"])
    // Allows Face ID, and shows the face.
    phone.plan(.approve, .approve)
    await model.choose(.useBiometrics)
    state = await model.state
    #expect(state.phase == .enrolled(.secureEnclave, .biometric) && state.errorText == nil)
    #expect(phone.shownPrompts.map(\.kind) == [.faceIDPermission, .biometry(.faceID)])
    let key = try #require(try await keys.biometric)
    #expect(key.protection == .userPresence)
    let request = try enrolment()
    #expect(request.publicKey == Base64.encode(key.publicKey) && request.authMethod == "biometric")
    #expect(request.username == "ada" && request.deviceId == "device-1" && request.method == "secureEnclave")
    let record = storage.load()
    #expect(record.method == .secureEnclave && record.authMethod == .biometric && record.username == "ada")
  }

  @Test(
    "A-S02 A-014 a user who does not allow Face ID is offered the passcode, and no key remains; the app's half",
    arguments: PhoneSettings.PermissionRefusal.allCases)
  func declinedPermission(_ refusal: PhoneSettings.PermissionRefusal) async throws {
    phone.configure { $0.permissionRefusal = refusal }
    let model = model()
    await model.appear()
    phone.plan(.decline)
    await model.choose(.useBiometrics)
    var state = await model.state
    #expect(state.phase == .offeringPasscode && state.title == "Use Passcode Instead?")
    #expect(state.options.map { state.label(of: $0) } == ["Yes"])
    #expect(backend.received.isEmpty)
    #expect(try await keys.biometric == nil)
    phone.plan(.approve)
    await model.choose(.usePasscode)
    state = await model.state
    #expect(state.phase == .enrolled(.secureEnclave, .passcode))
    #expect(phone.shownPrompts.map(\.kind) == [.faceIDPermission, .passcode])
    #expect(try await keys.passcode?.protection == .devicePasscode)
    #expect(try enrolment().authMethod == "passcode")
  }

  @Test("A-014 a user who cancels the prompt is offered the passcode, and may refuse it")
  func cancelled() async throws {
    phone.configure { $0.permission = .allowed }
    let model = model()
    await model.appear()
    phone.plan(.decline)
    await model.choose(.useBiometrics)
    #expect(await model.state.phase == .offeringPasscode)
    #expect(await model.state.errorText == "User cancelled - offer passcode")
    await model.declinePasscode()
    #expect(await model.state.phase == .choosing)
    #expect(backend.received.isEmpty)
    #expect(try await keys.biometric == nil)
  }

  @Test("A-S03 a user who prefers the passcode sees no prompt for biometry; the app's half")
  func passcodeOnly() async throws {
    let model = model()
    await model.appear()
    phone.plan(.approve)
    await model.choose(.usePasscode)
    #expect(await model.state.phase == .enrolled(.secureEnclave, .passcode))
    #expect(phone.shownPrompts.map(\.kind) == [.passcode])
  }

  @Test("A-S04 A-017 without an enrolled face only the passcode is offered; the app's half")
  func noBiometry() async throws {
    phone.removeBiometry()
    let model = model()
    await model.appear()
    let state = await model.state
    #expect(state.title == "Passcode Authentication" && state.message == "Using passcode authentication")
    #expect(state.options == [.usePasscode])
    await model.choose(.useBiometrics)
    #expect(await model.state == state)
  }

  @Test("A-S05 A-018 without a passcode no key is made, and codes by SMS are offered; the app's half")
  func noSecurity() async throws {
    phone.removePasscode()
    let model = model()
    await model.appear()
    let state = await model.state
    #expect(state.phase == .blocked && state.message == "Please set up device passcode in Settings")
    #expect(state.options == [.openSettings, .useSMS])
    await model.choose(.openSettings)
    #expect(settingsOpened.withLock(\.self) == 1)
    await model.register(phoneNumber: "+1987654321")
    #expect(await model.state.phase == .enrolled(.smsOTP, nil))
    let request = try enrolment()
    #expect(request.method == "smsOTP" && request.publicKey == nil && request.phoneNumber == "+1987654321")
    #expect(phone.shownPrompts.isEmpty)
  }

  @Test("A-133 a passcode that is set while the app is in the back is found when the app returns")
  func returned() async throws {
    phone.removePasscode()
    let model = model()
    await model.appear()
    #expect(await model.state.phase == .blocked)
    phone.setPasscode()
    await model.appear()
    #expect(await model.state.phase == .choosing)
    #expect(await model.state.options == [.usePasscode])
  }

  @Test("A passcode that is removed while a prompt is shown blocks the enrolment")
  func removedMeanwhile() async throws {
    phone.configure { $0.permission = .allowed }
    let model = model()
    await model.appear()
    var prompts = phone.promptUpdates().makeAsyncIterator()
    let choice = Task { await model.choose(.useBiometrics) }
    _ = await prompts.next()
    phone.removePasscode()
    await choice.value
    #expect(await model.state.phase == .blocked)
    #expect(backend.received.isEmpty)
  }

  @Test("A refused registration leaves no key, says why, and can be repeated")
  func refused() async throws {
    phone.configure { $0.permission = .allowed }
    let body = ErrorBody(message: "The device is enrolled already", code: "device_exists", requestId: "r-1")
    backend.fail(.refused(BackendRefusal(status: 409, body)))
    let model = model()
    await model.appear()
    phone.plan(.approve, .approve)
    await model.choose(.useBiometrics)
    #expect(await model.state.phase == .choosing)
    #expect(await model.state.errorText == "The device is enrolled already")
    #expect(try await keys.biometric == nil && storage.load().method == nil)
    await model.choose(.useBiometrics)
    #expect(await model.state.phase == .enrolled(.secureEnclave, .biometric))
    #expect(await model.state.errorText == nil)
  }

  private let exists = NetworkError.refused(
    BackendRefusal(status: 409, ErrorBody(message: "Device already enrolled", code: "device_exists", requestId: "r-1")))

  @Test("On a phone that was restored from the backup of another one, the app enrols with an id of its own")
  func restored() async throws {
    phone.configure { $0.permission = .allowed }
    // The key stayed on the other phone.
    let key = KeyPair(
      tag: .biometric(of: Self.bundleID), protection: .userPresence, isHardwareBacked: true, publicKey: [])
    var record = storage.load()
    (record.username, record.method, record.key) = ("ada", .secureEnclave, KeyReference(key))
    storage.save(record)
    backend.fail(exists)
    let model = model()
    await model.appear()
    phone.plan(.approve, .approve)
    await model.choose(.useBiometrics)
    #expect(await model.state.phase == .choosing)
    #expect(await model.state.errorText == "Device already enrolled")
    let id = storage.load().deviceID
    #expect(id != "device-1" && storage.load().pendingChange == nil)
    await model.choose(.useBiometrics)
    #expect(await model.state.phase == .enrolled(.secureEnclave, .biometric))
    let sent = try backend.received.map { try $0.decoded(as: EnrollRequest.self) }
    #expect(sent.map(\.deviceId) == ["device-1", id] && storage.load().deviceID == id)
  }

  @Test("A link code goes with the enrolment, also when it is repeated under another id, and is in no record")
  func linkCode() async throws {
    phone.configure { $0.permission = .allowed }
    let lost = NetworkError.gate(.transport(.lost("reset")))
    backend.fail(exists, lost, lost)
    let model = model()
    await model.appear()
    await model.enter(linkCode: " abcd-efgh ")
    phone.plan(.approve, .approve, .approve)
    await model.choose(.useBiometrics)
    #expect(await model.state.errorText == "Device already enrolled")
    await model.choose(.useBiometrics)
    #expect(storage.load().pendingChange != nil)
    #expect(!"\(storage.load())".contains("abcdefgh"))
    await model.appear()
    #expect(await model.state.phase == .enrolled(.secureEnclave, .biometric))
    let sent = try backend.received.map { try $0.decoded(as: EnrollRequest.self) }
    #expect(sent.map(\.linkCode) == ["abcdefgh", "abcdefgh", "abcdefgh", "abcdefgh"])
    storage.save(MFARecord(deviceID: "device-2"))
    await model.appear()
    await model.choose(.useBiometrics)
    let last = try #require(backend.received.last).decoded(as: EnrollRequest.self)
    #expect(last.deviceId == "device-2" && last.linkCode == nil)
  }

  @Test("An enrolment without a link code has none, also after one that had a code", arguments: ["", " - "])
  func noLinkCode(_ entered: String) async throws {
    let services = DeviceServices(
      keychain: phone, biometrics: phone, backend: backend, storage: storage,
      app: AppDescription(bundleID: Self.bundleID, username: "ada", deviceModel: "iPhone 15 Pro"))
    backend.fail(exists)
    await #expect(throws: EnrolmentError.network(exists)) {
      try await services.enrolment.enroll(as: "ada", phoneNumber: nil, key: nil, linkCode: "abcdefgh")
    }
    let model = EnrollmentViewModel(services: services)
    phone.plan(.approve)
    await model.appear()
    await model.enter(linkCode: entered)
    await model.choose(.usePasscode)
    #expect(try backend.received.map { try $0.decoded(as: EnrollRequest.self).linkCode } == ["abcdefgh", nil])
  }

  @Test("An enrolled device keeps its id when it is refused for another account")
  func keepsID() async throws {
    let services = DeviceServices(
      keychain: phone, biometrics: phone, backend: backend, storage: storage,
      app: AppDescription(bundleID: Self.bundleID, username: "ada", deviceModel: "iPhone 15 Pro"))
    try await services.enrolment.enroll(as: "ada", phoneNumber: "+1234567890", key: nil)
    backend.fail(exists)
    await #expect(throws: EnrolmentError.network(exists)) {
      try await services.enrolment.enroll(as: "bob", phoneNumber: nil, key: nil)
    }
    #expect(storage.load().deviceID == "device-1" && storage.load().username == "ada")
  }

  @Test("A record that cannot be saved stops the enrolment before the server hears of it")
  func unsaved() async throws {
    struct FullDisk: MFAStorageService {
      func load() -> MFARecord { MFARecord(deviceID: "device-1") }
      func save(_ record: MFARecord) throws(StorageError) { throw StorageError("disk full") }
    }
    let model = EnrollmentViewModel(
      services: DeviceServices(
        keychain: phone, biometrics: phone, backend: backend, storage: FullDisk(),
        app: AppDescription(bundleID: Self.bundleID, username: "ada", deviceModel: "iPhone 15 Pro")))
    await model.appear()
    phone.plan(.approve)
    await model.choose(.usePasscode)
    #expect(await model.state.phase == .choosing)
    #expect(await model.state.errorText == "disk full")
    #expect(try await keys.passcode == nil)
    #expect(backend.received.isEmpty)
  }

  @Test("A device that proves to be enrolled when a key is chosen is shown as enrolled, without a second reading")
  func enrolledMeanwhile() async {
    struct WornStorage: MFAStorageService {
      let readings = LockedValue(0)

      func load() throws(StorageError) -> MFARecord {
        let reading = readings.withLock { count in
          count += 1
          return count
        }
        if reading > 2 { throw StorageError("cannot be read") }
        var record = MFARecord(deviceID: "device-1")
        if reading == 2 { (record.username, record.method) = ("ada", .smsOTP) }
        return record
      }

      func save(_ record: MFARecord) {}
    }
    let model = EnrollmentViewModel(
      services: DeviceServices(
        keychain: phone, biometrics: phone, backend: backend, storage: WornStorage(),
        app: AppDescription(bundleID: Self.bundleID, username: "ada", deviceModel: "iPhone 15 Pro")))
    await model.appear()
    #expect(await model.state.phase == .choosing)
    await model.choose(.usePasscode)
    #expect(await model.state.phase == .enrolled(.smsOTP, nil))
    #expect(await model.state.errorText == nil)
    #expect(phone.shownPrompts.isEmpty)
  }

  @Test("An enrolment whose answer was lost is finished when the screen appears again, with the same key")
  func lostAnswer() async throws {
    phone.configure { $0.permission = .allowed }
    let lost = NetworkError.gate(.transport(.lost("reset")))
    backend.fail(lost, lost)
    var model = model()
    await model.appear()
    phone.plan(.approve)
    await model.choose(.useBiometrics)
    #expect(await model.state.phase == .choosing)
    #expect(await model.state.errorText == "the gate's answer was lost: reset")
    let key = try #require(try await keys.biometric)
    // The process was killed and starts again.
    model = self.model()
    await model.appear()
    #expect(await model.state.phase == .enrolled(.secureEnclave, .biometric))
    #expect(try await keys.biometric == key)
    let sent = try backend.received.map { try $0.decoded(as: EnrollRequest.self) }
    #expect(sent.count == 3 && Set(sent.map(\.publicKey)).count == 1)
  }

  @Test("A key that was made and not enrolled before the process ended is deleted")
  func strayKey() async throws {
    _ = try await phone.createKey(.biometric(of: Self.bundleID), protection: .userPresence)
    let model = model()
    await model.appear()
    #expect(await model.state.phase == .choosing)
    #expect(try await keys.biometric == nil)
  }

  @Test("A-110 A-162 A-009 each change is published, in order, and each state once")
  func published() async throws {
    let model = model()
    var states = await model.states().makeAsyncIterator()
    await model.appear()
    phone.plan(.approve)
    await model.choose(.usePasscode)
    var phases: [EnrollmentState.Phase] = []
    while phases.last != .enrolled(.secureEnclave, .passcode), let state = await states.next() {
      phases.append(state.phase)
    }
    #expect(
      phases == [
        .loading, .choosing, .testingKey(.devicePasscode), .registering(.secureEnclave),
        .enrolled(.secureEnclave, .passcode),
      ])
  }

  @Test(
    "A-132 every error of a prompt leads to a state with a choice, with every protection and capability",
    arguments: LocalAuthenticationCode.allCases, [KeyProtection.userPresence, .devicePasscode])
  func everyError(_ code: LocalAuthenticationCode, _ protection: KeyProtection) {
    for capability in DeviceCapability.allCases {
      var machine = EnrollmentMachine(username: "ada")
      _ = machine.apply(.appeared)
      _ = machine.apply(.readDevice(device(.biometricsAvailable)))
      let option = protection == .userPresence ? EnrollmentState.Option.useBiometrics : .usePasscode
      #expect(machine.apply(.chose(option)) == .makeKey(protection))
      #expect(machine.apply(.keyFailed(.localAuthentication(code))) == .abandonKey)
      _ = machine.apply(.readDevice(device(capability)))
      #expect(!machine.state.options.isEmpty && machine.state.errorText?.isEmpty == false)
      #expect((machine.state.phase == .blocked) == (capability == .none))
    }
  }

  @Test("An event that does not fit the phase changes nothing")
  func misplaced() {
    let events: [EnrollmentMachine.Event] = [
      .chose(.useBiometrics), .chose(.useSMS), .declinedPasscode, .enteredPhone("+1"), .registered,
      .failed("x"), .keyFailed(.keyMissing),
      .testedKey(
        KeyPair(tag: .passcode(of: ""), protection: .devicePasscode, isHardwareBacked: true, publicKey: [])),
    ]
    for event in events {
      var machine = EnrollmentMachine(username: "ada")
      #expect(machine.apply(event) == nil)
      #expect(machine == EnrollmentMachine(username: "ada"))
    }
  }
}
