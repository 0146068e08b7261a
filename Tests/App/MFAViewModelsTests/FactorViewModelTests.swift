import MFAClient
import MFAWire
import SimulatedPhone
import Testing

@testable import MFAViewModels

@Suite("The screen for the second factor's set-up", .timeLimit(.minutes(1)))
struct FactorViewModelTests {
  private let trust = MemorySecretStorage<DeviceTrust>()

  private func appeared(
    _ backend: FactorBackend, securityKeys: (any SecurityKeyService)? = nil
  ) async -> FactorViewModel {
    let phone = SimulatedPhone()
    let model = FactorViewModel(
      services: DeviceServices(
        keychain: phone, biometrics: phone, securityKeys: securityKeys, backend: backend,
        storage: MemoryStorageService(deviceID: "device-1"),
        trust: trust, app: AppDescription(bundleID: "com.example.app", username: "ada", deviceModel: "iPhone 15 Pro")))
    await model.appear()
    return model
  }

  private static let enabled = FactorBackend.Account(
    isEnabled: true, methods: ["totp", "backup_code"], backupCodes: ["A1B2C3D4"], trusted: [3, 7])

  @Test("B-080 B-082 a secret is offered, and its first code puts it into force; the backup codes are shown once")
  func setsUp() async {
    let backend = FactorBackend()
    let model = await appeared(backend)
    #expect(await model.state.options == [.setUp])
    await model.choose(.setUp)
    #expect(await model.state.offer?.secret == "GEZDGNBV")
    #expect(await model.state.options == [.cancel])
    #expect(await model.state.backupCodes.isEmpty)
    await model.enter(code: "000000")
    #expect(await model.state.errorText == "Invalid code. Please try again.")
    #expect(await model.state.offer != nil && !backend.account.isEnabled)
    await model.enter(code: "123 456")
    let state = await model.state
    #expect(state.isEnabled && state.offer == nil && state.noticeText == "The second factor is on.")
    #expect(state.backupCodes.count == 10 && state.options == [.hideBackupCodes])
    #expect(state.backupCodesFile.contains("OFFERED9\n"))
    await model.choose(.hideBackupCodes)
    #expect(await model.state.backupCodes.isEmpty)
    #expect(await model.state.options == [.renewBackupCodes, .switchOff])
  }

  private static let lost = NetworkError.malformed(requestID: nil, "cut off")

  /// A model whose first code the server has accepted, with an answer that is lost by `error`.
  private func confirmed(_ backend: FactorBackend, losing error: NetworkError = Self.lost) async -> FactorViewModel {
    let model = await appeared(backend)
    await model.choose(.setUp)
    backend.loseAnswer(of: MFAOperations.confirmAuthenticator.name, error)
    await model.enter(code: "123456")
    return model
  }

  private func expectBackupCodes(_ state: FactorState) {
    #expect(state.isEnabled && state.offer == nil && state.codePurpose == nil && state.errorText == nil)
    #expect(state.noticeText == "The second factor is on.")
    #expect(state.backupCodes.count == 10 && state.options == [.hideBackupCodes])
  }

  @Test("B-082 the backup codes are shown although the answer to the first code was lost", arguments: [lost, refused])
  func lostConfirmation(error: NetworkError) async {
    let model = await confirmed(FactorBackend(), losing: error)
    expectBackupCodes(await model.state)
  }

  @Test("B-082 if the account cannot be read either, the next code or the end of the set-up shows the backup codes")
  func lostConfirmationAndStatus() async {
    for cancels in [false, true] {
      let backend = FactorBackend()
      let model = await appeared(backend)
      await model.choose(.setUp)
      backend.loseAnswer(of: MFAOperations.confirmAuthenticator.name, Self.lost)
      backend.loseAnswer(of: MFAOperations.status.name, Self.lost)
      await model.enter(code: "123456")
      let state = await model.state
      #expect(state.offer != nil && state.errorText != nil && state.options == [.cancel])
      if cancels { await model.choose(.cancel) } else { await model.enter(code: "123456") }
      expectBackupCodes(await model.state)
    }
  }

  @Test("B-082 the backup codes stay on the screen if the account cannot be read after the first code")
  func unreadAfterConfirmation() async {
    let backend = FactorBackend()
    let model = await appeared(backend)
    await model.choose(.setUp)
    backend.loseAnswer(of: MFAOperations.status.name, Self.lost)
    await model.enter(code: "123456")
    let state = await model.state
    #expect(state.phase == .ready && state.backupCodes.count == 10 && state.options == [.hideBackupCodes])
    await model.choose(.hideBackupCodes)
    await model.appear()
    #expect(await model.state.options == [.renewBackupCodes, .switchOff])
  }

  @Test("B-082 a first code that did not reach the server can be sent again, and the set-up can be given up")
  func unsentConfirmation() async {
    for cancels in [false, true] {
      let backend = FactorBackend()
      let model = await appeared(backend)
      await model.choose(.setUp)
      backend.fail(Self.lost)
      await model.enter(code: "123456")
      let state = await model.state
      #expect(state.offer != nil && state.errorText != nil && state.options == [.cancel])
      guard cancels else {
        await model.enter(code: "123456")
        expectBackupCodes(await model.state)
        continue
      }
      await model.choose(.cancel)
      #expect(await model.state.options == [.setUp])
      // Another device of the user sets a second factor up: the offer of this one is not in force.
      backend.account = Self.enabled
      await model.appear()
      #expect(await model.state.isEnabled)
      #expect(await model.state.backupCodes.isEmpty)
    }
  }

  @Test("B-082 an offer in whose place another device has set the factor up ends, and its backup codes are not shown")
  func setUpElsewhere() async {
    let backend = FactorBackend()
    let model = await appeared(backend)
    await model.choose(.setUp)
    backend.account = Self.enabled
    await model.enter(code: "123456")
    let state = await model.state
    #expect(state.isEnabled && state.offer == nil && state.codePurpose == nil && state.backupCodes.isEmpty)
    #expect(state.errorText == "the server's text")
    #expect(state.options == [.renewBackupCodes, .switchOff, .revokeAll])
  }

  @Test("B-066 a revocation that fails half-way shows the devices that are left, and why")
  func revokesSome() async {
    let backend = FactorBackend(Self.enabled)
    let model = await appeared(backend)
    backend.refuseRevocation(of: 7, Self.refused)
    await model.choose(.revokeAll)
    let state = await model.state
    #expect(state.trustedDevices.map(\.id) == [7] && backend.account.trusted == [7])
    #expect(state.errorText == "the server's text" && state.phase == .ready)
    await model.choose(.revokeAll)
    #expect(await model.state.trustedDevices.isEmpty)
  }

  private static let refused = FactorBackend.refusal("internal_error", 500)

  @Test("A-223 a security key is added by a touch, is listed, and can be removed")
  func securityKeys() async throws {
    let (backend, phone) = (FactorBackend(Self.enabled), SimulatedPhone())
    let model = await appeared(backend, securityKeys: phone)
    #expect(await model.state.options == [.renewBackupCodes, .addSecurityKey, .switchOff, .revokeAll])
    phone.plan(.decline, .approve)
    await model.choose(.addSecurityKey)
    #expect(await model.state.errorText == "The security key was not used.")
    #expect(await model.state.securityKeys.isEmpty && !backend.received.contains("webauthn.register"))
    await model.choose(.addSecurityKey)
    let state = await model.state
    #expect(state.noticeText == "The security key signs in from now on." && state.methods.contains("webauthn"))
    let key = try #require(state.securityKeys.first)
    #expect(state.securityKeys.map(\.id) == backend.account.keys && key.lastUsed == nil)
    await model.remove("another")
    #expect(backend.account.keys == [key.id])
    await model.remove(key.id)
    #expect(backend.account.keys.isEmpty)
    #expect(await model.state.securityKeys.isEmpty)
    #expect(await model.state.noticeText == "The security key was removed.")
  }

  @Test("An offer that is cancelled leaves nothing, and its codes are not shown")
  func cancels() async {
    let model = await appeared(FactorBackend())
    await model.choose(.setUp)
    await model.choose(.cancel)
    let state = await model.state
    #expect(state.offer == nil && state.codePurpose == nil && state.backupCodes.isEmpty && state.options == [.setUp])
    await model.enter(code: "123456")
    #expect(await model.state.isEnabled == false)
  }

  @Test("B-081 new backup codes need a code, and are shown once")
  func renews() async {
    let backend = FactorBackend(Self.enabled)
    let model = await appeared(backend)
    await model.choose(.renewBackupCodes)
    #expect(!backend.received.contains(MFAOperations.regenerateBackupCodes.name))
    await model.enter(code: "123456")
    #expect(await model.state.backupCodes == ["RENEWED1"])
    #expect(await model.state.backupCodesRemaining == 1)
    await model.choose(.hideBackupCodes)
    #expect(await model.state.backupCodes.isEmpty)
  }

  @Test("B-083 switching off needs a code, and drops the trust of this device")
  func switchesOff() async {
    let backend = FactorBackend(Self.enabled)
    trust.save(DeviceTrust(username: "ada", token: "trust-1"))
    let model = await appeared(backend)
    await model.choose(.switchOff)
    await model.enter(code: "999999")
    #expect(backend.account.isEnabled && trust.load() != nil)
    await model.enter(code: "123456")
    #expect(!backend.account.isEnabled && trust.load() == nil)
    #expect(await model.state.noticeText == "The second factor is off.")
    #expect(await model.state.options == [.setUp])
  }

  @Test("B-066 the trust in one device or in all is revoked; a device that is not listed does nothing")
  func revokes() async {
    let backend = FactorBackend(Self.enabled)
    let model = await appeared(backend)
    #expect(await model.state.trustedDevices.map(\.name) == ["phone 3", "phone 7"])
    await model.revoke(4)
    #expect(backend.account.trusted == [3, 7])
    await model.revoke(3)
    #expect(backend.account.trusted == [7])
    #expect(await model.state.trustedDevices.map(\.id) == [7])
    await model.choose(.revokeAll)
    #expect(backend.account.trusted.isEmpty)
    #expect(await model.state.options == [.renewBackupCodes, .switchOff])
  }

  @Test("An address for codes is confirmed by the code that it has received")
  func email() async {
    let backend = FactorBackend(Self.enabled)
    let model = await appeared(backend)
    await model.enter(email: "  ")
    #expect(await model.state.errorText == "Enter an address.")
    await model.enter(email: " ada@example.com ")
    #expect(await model.state.codePurpose == .email("ada@example.com"))
    await model.enter(code: "654321")
    #expect(await model.state.methods == ["totp", "backup_code", "email"])
    #expect(await model.state.asksEmail == false)
  }

  @Test("A change whose answer was lost is shown if the server has carried it out", arguments: [lost, refused])
  func lostChange(error: NetworkError) async {
    let (backend, phone) = (FactorBackend(Self.enabled), SimulatedPhone())
    let model = await appeared(backend, securityKeys: phone)
    backend.loseAnswer(of: MFAOperations.registerSecurityKey.name, error)
    phone.plan(.approve)
    await model.choose(.addSecurityKey)
    #expect(backend.account.keys.count == 1)
    #expect(await model.state.securityKeys.map(\.id) == backend.account.keys)
    #expect(await model.state.errorText != nil)
    backend.loseAnswer(of: MFAOperations.revokeTrustedDevice.name, error)
    await model.revoke(3)
    #expect(await model.state.trustedDevices.map(\.id) == [7])
    await model.enter(email: "ada@example.com")
    backend.loseAnswer(of: MFAOperations.confirmEmail.name, error)
    await model.enter(code: "654321")
    var state = await model.state
    #expect(state.codePurpose == nil && state.errorText == nil && state.methods.contains("email"))
    #expect(state.noticeText == "Codes can be sent to ada@example.com.")
    await model.choose(.switchOff)
    backend.loseAnswer(of: MFAOperations.disableAuthenticator.name, error)
    await model.enter(code: "123456")
    state = await model.state
    #expect(!state.isEnabled && state.codePurpose == nil && state.errorText == nil)
    #expect(state.noticeText == "The second factor is off." && state.options == [.setUp])
  }

  @Test("A change that was lost before the server carried it out can be tried again", arguments: [lost, refused])
  func lostRequest(error: NetworkError) async {
    let backend = FactorBackend(Self.enabled)
    let model = await appeared(backend)
    await model.choose(.switchOff)
    backend.fail(error)
    await model.enter(code: "123456")
    let state = await model.state
    #expect(state.isEnabled && state.codePurpose == .switchOff && state.errorText != nil)
    await model.enter(code: "123456")
    #expect(await model.state.noticeText == "The second factor is off.")
  }

  @Test("A session that has not given the second factor is told to sign in; what was shown stays")
  func needsSignIn() async {
    let backend = FactorBackend(Self.enabled)
    let model = await appeared(backend)
    backend.fail(FactorBackend.refusal("insufficient_user_authentication", 401))
    await model.choose(.revokeAll)
    let state = await model.state
    #expect(state.needsSignIn && state.phase == .ready && state.trustedDevices.count == 2)
    #expect(state.errorText == "Sign in, with the second factor if there is one, to do this.")
  }

  @Test("An account that cannot be read offers nothing, and is read when the screen appears again")
  func unavailable() async {
    let backend = FactorBackend(Self.enabled)
    backend.fail(.malformed(requestID: nil, "no answer"))
    let model = await appeared(backend)
    #expect(await model.state.phase == .unavailable)
    #expect(await model.state.options.isEmpty)
    await model.appear()
    #expect(await model.state.isEnabled)
  }

  @Test("Neither a description nor a dump has the secret or a code")
  func secrets() async {
    let model = await appeared(FactorBackend())
    await model.choose(.setUp)
    for _ in 0..<2 {
      let state = await model.state
      var text = "\(state) \(String(reflecting: state)) \(state.offer.map { "\($0)" } ?? "")"
      dump(state, to: &text)
      if let offer = state.offer { dump(offer, to: &text) }
      #expect(!text.contains("GEZDGNBV") && !text.contains("OFFERED"), "\(text)")
      await model.enter(code: "123456")
    }
  }
}
