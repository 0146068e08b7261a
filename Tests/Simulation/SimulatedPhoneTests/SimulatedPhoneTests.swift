import ByteCoding
import Cryptography
import Locking
import MFAClient
import MFAWire
import SimulatedPhone
import TestSupport
import Testing

@Suite("A simulated phone", .timeLimit(.minutes(1)))
struct SimulatedPhoneTests {
  private let message = [UInt8](0..<32)
  private let tag = KeyTag.biometric(of: "com.example.app")

  /// A phone that has been asked for Face ID before.
  private func phone(_ settings: PhoneSettings = .faceID) -> SimulatedPhone {
    let phone = SimulatedPhone(settings)
    phone.configure { $0.permission = .allowed }
    return phone
  }

  private func kinds(_ phone: SimulatedPhone) -> [Prompt.Kind] { phone.shownPrompts.map(\.kind) }

  private func error(_ body: () async throws(DeviceSecurityError) -> Void) async -> DeviceSecurityError? {
    do throws(DeviceSecurityError) {
      try await body()
      return nil
    } catch {
      return error
    }
  }

  // MARK: Capability

  @Test(
    "A-010 A-133 the capability follows the settings",
    arguments: [
      (PhoneSettings.faceID, DeviceCapability.biometricsAvailable), (.touchID, .biometricsAvailable),
      (.fingerprint, .biometricsAvailable), (.faceUnlock, .biometricsAvailable), (.passcodeOnly, .passcodeOnly),
      (.unprotected, .none), (.simulator, .biometricsAvailable),
    ])
  func capabilities(_ settings: PhoneSettings, _ capability: DeviceCapability) async {
    #expect(await SimulatedPhone(settings).capability() == capability)
  }

  @Test("A-214 A-133 the capability changes with the settings, while the app runs")
  func changes() async {
    let phone = phone()
    phone.removeBiometry()
    #expect(await phone.capability() == .passcodeOnly)
    #expect(phone.enrollBiometry())
    #expect(await phone.capability() == .biometricsAvailable)
    phone.configure { $0.permission = .denied }
    #expect(await phone.capability() == .passcodeOnly)
    phone.removePasscode()
    #expect(await phone.capability() == .none)
    #expect(!phone.enrollBiometry())
    phone.setPasscode()
    #expect(await phone.capability() == .passcodeOnly)
  }

  // MARK: Keys

  @Test(
    "A-030 A-106 T-1 A-012 A-016 A-103 a key has its protection, 65 bytes of a point on P-256, and signs after one prompt",
    arguments: [
      (KeyProtection.userPresence, Prompt.Kind.biometry(.faceID)), (.devicePasscode, .passcode),
      (.biometryCurrentSet, .biometry(.faceID)),
    ])
  func signs(_ protection: KeyProtection, _ prompt: Prompt.Kind) async throws {
    let phone = phone()
    let pair = try await phone.createKey(tag, protection: protection)
    #expect(pair.protection == protection && pair.isHardwareBacked)
    #expect(pair.publicKey.count == 65 && pair.publicKey.first == 4)
    #expect([UInt8](pair.getPublicKeyData()) == pair.publicKey)
    #expect(phone.shownPrompts.isEmpty)
    phone.plan(.approve)
    let signature = try await phone.sign(message, with: tag, reason: "Sign in")
    #expect(try P256PublicKey(x963: pair.publicKey).isValidSignature(signature, for: message))
    #expect(phone.shownPrompts.map(\.kind) == [prompt])
    #expect(phone.shownPrompts.map(\.reason) == ["Sign in"])
  }

  @Test("A-034 A-035 keys of different tags exist side by side, and a tag finds the newest key")
  func tags() async throws {
    let phone = phone()
    let other = KeyTag.passcode(of: "com.example.app")
    let first = try await phone.createKey(tag, protection: .userPresence)
    let second = try await phone.createKey(other, protection: .devicePasscode)
    #expect(try await phone.key(tag) == first)
    #expect(try await phone.key(other) == second)
    let third = try await phone.createKey(tag, protection: .userPresence)
    #expect(third.publicKey != first.publicKey)
    #expect(try await phone.key(tag) == third)
    try await phone.deleteKey(tag)
    #expect(try await phone.key(tag) == nil)
    #expect(try await phone.key(other) == second)
    #expect(
      await error { () throws(DeviceSecurityError) in _ = try await phone.sign(message, with: tag, reason: "") }
        == .keyMissing)
  }

  @Test(
    "A-032 A-152 A-166 A-033 A-131 keys are in the Secure Enclave, in a simulator in the regular keychain, and say so",
    arguments: [(PhoneSettings.faceID, true), (.touchID, true), (.simulator, false)])
  func placeOfKeys(_ settings: PhoneSettings, _ isInEnclave: Bool) async throws {
    let phone = phone(settings)
    #expect(await phone.hasSecureEnclave() == isInEnclave)
    for protection in KeyProtection.allCases {
      #expect(try await phone.createKey(tag, protection: protection).isHardwareBacked == isInEnclave)
      #expect(try await phone.key(tag)?.isHardwareBacked == isInEnclave)
    }
  }

  @Test("A-223 a security key signs after a touch, counts, is none of the phone's keys, and is registered once")
  func securityKey() async throws {
    let phone = phone()
    let excluded = { (ids: [String]) in
      CredentialCreationOptions(
        rp: .init(id: "example.org", name: "Example"), user: .init(id: "AA", name: "ada", displayName: "ada"),
        challenge: String(repeating: "A", count: 43), pubKeyCredParams: [.init(alg: -7)], timeout: 1,
        excludeCredentials: ids.map { CredentialDescriptor(id: $0, transports: nil) },
        authenticatorSelection: .init(residentKey: "discouraged", userVerification: "preferred"), attestation: "none")
    }
    phone.plan(.approve, .approve, .approve)
    let made = try await phone.register(excluded([]))
    phone.removePasscode()
    await #expect(throws: SecurityKeyError.knownKey) { try await phone.register(excluded([made.id])) }
    func options(_ id: String, at party: String) -> CredentialRequestOptions {
      CredentialRequestOptions(
        challenge: String(repeating: "B", count: 43), timeout: 1, rpId: party,
        allowCredentials: [CredentialDescriptor(id: id, transports: nil)], userVerification: "preferred")
    }
    await #expect(throws: SecurityKeyError.unknownKey) { try await phone.prove(options(made.id, at: "evil.example")) }
    await #expect(throws: SecurityKeyError.unknownKey) { try await phone.prove(options("AAAA", at: "example.org")) }
    var counts: [UInt8] = []
    for _ in 1...2 {
      let proof = try await phone.prove(options(made.id, at: "example.org"))
      let data = try #require(Base64URL.decode(proof.response.authenticatorData))
      #expect(data.count == 37 && data[32] == 0x05)
      counts.append(data[36])
    }
    #expect(counts == [1, 2])
    #expect(kinds(phone) == [.securityKey, .securityKey, .securityKey])
    phone.plan(.decline)
    await #expect(throws: SecurityKeyError.cancelled) { try await phone.prove(options(made.id, at: "example.org")) }
    // Two prompts at once: both are touched, and each signature has a count of its own.
    var prompts = phone.promptUpdates().makeAsyncIterator()
    async let first = phone.prove(options(made.id, at: "example.org"))
    async let second = phone.prove(options(made.id, at: "example.org"))
    var open: [Prompt] = []
    for _ in 1...2 { open.append(try #require(await prompts.next())) }
    for prompt in open { #expect(phone.answer(prompt.id, with: .approve)) }
    let last = try await [first, second].map { Base64URL.decode($0.response.authenticatorData)?.last }
    #expect(Set(last) == [3, 4])
  }

  @Test("A-018 without a passcode no key can be made")
  func noPasscode() async {
    let phone = phone(.unprotected)
    for protection in KeyProtection.allCases {
      let error = await error { () throws(DeviceSecurityError) in
        _ = try await phone.createKey(tag, protection: protection)
      }
      #expect(error == .localAuthentication(.passcodeNotSet))
    }
  }

  @Test("A-S08 removing the passcode deletes every key", arguments: KeyProtection.allCases)
  func removedPasscode(_ protection: KeyProtection) async throws {
    let phone = phone()
    _ = try await phone.createKey(tag, protection: protection)
    phone.removePasscode()
    phone.setPasscode()
    #expect(try await phone.key(tag) == nil)
  }

  @Test(
    "A new face invalidates keys of the enrolled faces, and no others",
    arguments: [(KeyProtection.userPresence, true), (.devicePasscode, true), (.biometryCurrentSet, false)])
  func newFace(_ protection: KeyProtection, _ isValid: Bool) async throws {
    let phone = phone()
    _ = try await phone.createKey(tag, protection: protection)
    phone.enrollBiometry()
    phone.plan(.approve)
    let error = await error { () throws(DeviceSecurityError) in
      _ = try await phone.sign(message, with: tag, reason: "")
    }
    #expect(error == (isValid ? nil : .keychainAuthenticationFailed))
    #expect(phone.shownPrompts.isEmpty == !isValid)
  }

  // MARK: Prompts

  @Test(
    "A-04A a prompt that the user declines is reported as LAError or as OSStatus",
    arguments: [(false, DeviceSecurityError.localAuthentication(.userCancel)), (true, .keychainCancelled)])
  func declined(_ reportsStatus: Bool, _ expected: DeviceSecurityError) async throws {
    let phone = phone()
    phone.configure { $0.reportsKeychainStatus = reportsStatus }
    _ = try await phone.createKey(tag, protection: .userPresence)
    phone.plan(.decline)
    let error = await error { () throws(DeviceSecurityError) in
      _ = try await phone.sign(message, with: tag, reason: "")
    }
    #expect(error == expected)
  }

  @Test(
    "T-12 A-S02 iOS asks for Face ID once; a refusal is reported as chosen, and then the passcode is asked for",
    arguments: [
      (PhoneSettings.PermissionRefusal.userCancel, LocalAuthenticationCode.userCancel),
      (.biometryNotAvailable, .biometryNotAvailable),
    ])
  func permission(_ refusal: PhoneSettings.PermissionRefusal, _ code: LocalAuthenticationCode) async throws {
    let phone = SimulatedPhone()
    phone.configure { $0.permissionRefusal = refusal }
    _ = try await phone.createKey(tag, protection: .userPresence)
    phone.plan(.decline, .approve)
    let error = await error { () throws(DeviceSecurityError) in
      _ = try await phone.sign(message, with: tag, reason: "Test the key")
    }
    #expect(error == .localAuthentication(code))
    #expect(await phone.capability() == .passcodeOnly)
    _ = try await phone.sign(message, with: tag, reason: "Test the key")
    #expect(kinds(phone) == [.faceIDPermission, .passcode])
    #expect(phone.shownPrompts.first?.reason == SimulatedPhone.faceIDPurpose)
  }

  @Test(
    "Other sensors than Face ID need no permission", arguments: [PhoneSettings.touchID, .fingerprint, .faceUnlock])
  func noPermission(_ settings: PhoneSettings) async throws {
    let phone = SimulatedPhone(settings)
    phone.plan(.approve)
    try await phone.evaluate(.biometrics, reason: "Unlock")
    #expect(kinds(phone) == [.biometry(settings.biometry)])
  }

  @Test("A-120 Face ID asks once, with the purpose string that the guide gives an app")
  func permissionOnce() async throws {
    let face = SimulatedPhone()
    face.plan(.approve, .approve, .approve)
    try await face.evaluate(.biometrics, reason: "Unlock")
    try await face.evaluate(.biometrics, reason: "Unlock")
    #expect(kinds(face) == [.faceIDPermission, .biometry(.faceID), .biometry(.faceID)])
    let purpose = try #require(face.shownPrompts.first?.reason)
    #expect(purpose == "We use Face ID to securely authenticate your identity for account access.")
    let guide = try ProjectFile.text("Sources/App/MFAClient/MFAClient.docc/OnADevice.md")
    #expect(guide.contains("<key>NSFaceIDUsageDescription</key>\n<string>\(purpose)</string>"))
  }

  @Test(
    "A-107 a prompt inside the app tells which sensor there is, what it can do, and why it failed",
    arguments: [
      (PhoneSettings.faceID, BiometryType.faceID, DeviceCapability.biometricsAvailable, nil),
      (.touchID, .touchID, .biometricsAvailable, nil), (.fingerprint, .fingerprint, .biometricsAvailable, nil),
      (.passcodeOnly, .faceID, .passcodeOnly, .biometryNotEnrolled),
      (.unprotected, .faceID, .none, .passcodeNotSet),
    ] as [(PhoneSettings, BiometryType, DeviceCapability, LocalAuthenticationCode?)])
  func reports(
    _ settings: PhoneSettings, _ sensor: BiometryType, _ capability: DeviceCapability, _ code: LocalAuthenticationCode?
  ) async {
    let phone = phone(settings)
    #expect(await phone.biometryType() == sensor)
    #expect(await phone.capability() == capability)
    if code == nil { phone.plan(.approve) }
    #expect(
      await error { () throws(DeviceSecurityError) in try await phone.evaluate(.biometrics, reason: "") }
        == code.map { .localAuthentication($0) })
    // The passcode does where the policy accepts it.
    phone.plan(.approve)
    #expect(
      await error { () throws(DeviceSecurityError) in try await phone.evaluate(.biometricsOrPasscode, reason: "") }
        == (capability == .none ? .localAuthentication(.passcodeNotSet) : nil))
  }

  @Test("Three wrong faces fail a prompt, and five in a row lock biometry until the passcode is entered")
  func lockout() async throws {
    let phone = phone()
    phone.plan(.fail, .fail, .fail, .fail, .fail)
    #expect(
      await error { () throws(DeviceSecurityError) in try await phone.evaluate(.biometrics, reason: "") }
        == .localAuthentication(.authenticationFailed))
    #expect(!phone.isLockedOut)
    #expect(
      await error { () throws(DeviceSecurityError) in try await phone.evaluate(.biometrics, reason: "") }
        == .localAuthentication(.biometryLockout))
    #expect(phone.isLockedOut)
    #expect(await phone.capability() == .passcodeOnly)
    phone.plan(.fail, .approve)
    try await phone.evaluate(.biometricsOrPasscode, reason: "")
    #expect(kinds(phone).suffix(2) == [.passcode, .passcode])
    #expect(await phone.capability() == .biometricsAvailable)
  }

  @Test("Wrong faces are counted across the processes that open a saved phone, until the passcode is entered")
  func savedLockout() async throws {
    let file = LockedValue(SavedPhone(settings: .touchID))
    func opened() throws -> SimulatedPhone {
      try SimulatedPhone(file.withLock(\.self)) { phone in file.withLock { $0 = phone } }
    }
    for isLockedOut in [false, true] {
      let phone = try opened()
      phone.plan(.fail, .fail, .fail)
      let failure = await error { () throws(DeviceSecurityError) in
        try await phone.evaluate(.biometrics, reason: "")
      }
      #expect(failure == .localAuthentication(isLockedOut ? .biometryLockout : .authenticationFailed))
      #expect(phone.isLockedOut == isLockedOut)
    }
    let phone = try opened()
    #expect(phone.isLockedOut)
    phone.plan(.approve)
    try await phone.evaluate(.biometricsOrPasscode, reason: "")
    #expect(kinds(phone) == [.passcode])
    #expect(try !opened().isLockedOut)
  }

  @Test("A-107 The passcode replaces biometry where it suffices, and only there")
  func passcodeInstead() async throws {
    let phone = phone()
    phone.plan(.usePasscode, .approve, .usePasscode)
    try await phone.evaluate(.biometricsOrPasscode, reason: "")
    #expect(
      await error { () throws(DeviceSecurityError) in try await phone.evaluate(.biometrics, reason: "") }
        == .localAuthentication(.userFallback))
    #expect(kinds(phone) == [.biometry(.faceID), .passcode, .biometry(.faceID)])
  }

  @Test("A-056 a prompt can end with any code of LAError", arguments: LocalAuthenticationCode.allCases)
  func interrupted(_ code: LocalAuthenticationCode) async throws {
    let phone = phone()
    phone.plan(.interrupt(code))
    #expect(
      await error { () throws(DeviceSecurityError) in try await phone.evaluate(.biometricsOrPasscode, reason: "") }
        == .localAuthentication(code))
  }

  @Test("A-236 A prompt waits for its answer, can be seen, and is answered once")
  func waits() async throws {
    let phone = phone()
    var updates = phone.promptUpdates().makeAsyncIterator()
    async let result: Void = phone.evaluate(.biometrics, reason: "Unlock")
    let prompt = try #require(await updates.next())
    #expect(phone.prompts == [prompt] && prompt.reason == "Unlock")
    #expect(!phone.answer(prompt.id + 1, with: .approve))
    #expect(phone.answer(prompt.id, with: .approve))
    #expect(!phone.answer(prompt.id, with: .approve))
    try await result
    #expect(phone.prompts.isEmpty)
  }

  @Test("A cancelled call dismisses its prompt", arguments: [true, false])
  func cancelled(_ isEarly: Bool) async throws {
    let phone = phone()
    var updates = phone.promptUpdates().makeAsyncIterator()
    let call = Task { [phone] () -> DeviceSecurityError? in
      if isEarly { while !Task.isCancelled { await Task.yield() } }
      return await error { () throws(DeviceSecurityError) in try await phone.evaluate(.biometrics, reason: "") }
    }
    if !isEarly { _ = await updates.next() }
    call.cancel()
    #expect(await call.value == .localAuthentication(.appCancel))
    #expect(phone.prompts.isEmpty)
  }

  @Test("Removing the passcode dismisses a prompt, and an approval that comes later signs nothing")
  func removedMeanwhile() async throws {
    let phone = phone()
    _ = try await phone.createKey(tag, protection: .userPresence)
    var updates = phone.promptUpdates().makeAsyncIterator()
    let call = Task { [phone, message, tag] in
      await error { () throws(DeviceSecurityError) in _ = try await phone.sign(message, with: tag, reason: "") }
    }
    let prompt = try #require(await updates.next())
    phone.removePasscode()
    #expect(!phone.answer(prompt.id, with: .approve))
    #expect(await call.value == .localAuthentication(.systemCancel))
  }

  @Test("A key that another one replaced while the prompt was shown does not sign")
  func replacedMeanwhile() async throws {
    let phone = phone()
    _ = try await phone.createKey(tag, protection: .userPresence)
    var updates = phone.promptUpdates().makeAsyncIterator()
    let call = Task { [phone, message, tag] in
      await error { () throws(DeviceSecurityError) in _ = try await phone.sign(message, with: tag, reason: "") }
    }
    let prompt = try #require(await updates.next())
    _ = try await phone.createKey(tag, protection: .userPresence)
    phone.answer(prompt.id, with: .approve)
    #expect(await call.value == .keyMissing)
  }

  @Test("A-180 the public interface of a key shows no private byte")
  func noExport() async throws {
    let phone = phone()
    let pair = try await phone.createKey(tag, protection: .userPresence)
    var text = ""
    dump(pair, to: &text)
    #expect(
      Mirror(reflecting: pair).children.compactMap(\.label) == ["tag", "protection", "isHardwareBacked", "publicKey"])
    #expect(!text.contains("private"))
  }
}
