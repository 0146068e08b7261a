import AttestClient
import ByteCoding
import MFAClient
import MFAWire
import SimulatedPhone
import Testing

@testable import MFAViewModels

@Suite("The screen for the second factor", .timeLimit(.minutes(1)))
struct ChallengeViewModelTests {
  private let phone = SimulatedPhone()
  private let backend = StandInBackend()
  private let sessions = MemorySecretStorage<MFASession>()
  private let trust = MemorySecretStorage<DeviceTrust>()
  private let start = Timestamp(seconds: 1_800_000_000)

  private static func session(_ token: String, _ refreshToken: String, _ scope: String, of username: String = "ada")
    -> MFASession
  {
    MFASession(
      TokenResponse(token: token, message: "", refreshToken: refreshToken, expiresIn: 900, scope: scope), of: username)
  }

  /// The services of an app in which ada has a session of the scope `mfa`.
  private func services(securityKeys: (any SecurityKeyService)? = nil) -> DeviceServices {
    sessions.save(Self.session("m.m.m", "r-1", "mfa"))
    return DeviceServices(
      keychain: phone, biometrics: phone, securityKeys: securityKeys, backend: backend,
      storage: MemoryStorageService(deviceID: "device-1"), sessions: sessions,
      trust: trust, app: AppDescription(bundleID: "com.example.app", username: "ada", deviceModel: "iPhone 15 Pro"))
  }

  private func model(securityKeys: (any SecurityKeyService)? = nil) -> ChallengeViewModel {
    ChallengeViewModel(services: services(securityKeys: securityKeys), token: "m.m.m")
  }

  /// A model whose screen has appeared.
  private func appeared() async -> ChallengeViewModel {
    let model = model()
    await model.appear(at: start)
    return model
  }

  private func refusal(_ code: String, _ status: Int, retryAfter: Int? = nil) -> NetworkError {
    .refused(
      BackendRefusal(
        status: status, ErrorBody(message: "the server's text", code: code, requestId: "r", retryAfter: retryAfter)))
  }

  private var verifications: [VerifyMFARequest] {
    get throws {
      try backend.received.filter { $0.name == "mfa.verify-login" }.map { try $0.decoded(as: VerifyMFARequest.self) }
    }
  }

  @Test("B-001 B-005 B-028 one screen has a tab for each kind of code of the account")
  func tabs() async {
    let model = await appeared()
    #expect(await model.state.phase == .entering)
    #expect(await model.state.tabs == [.totp, .email, .backup])
    #expect(backend.received.map(\.name) == ["mfa.status"] && backend.received.map(\.token) == ["m.m.m"])
    backend.answer(status: .standIn(methods: ["backup_code", "webauthn"]))
    let other = await appeared()
    #expect(await other.state.tabs == [.backup])
    #expect(await other.state.selectedTab == .backup)
    await other.select(.totp)
    #expect(await other.state.selectedTab == .backup)
  }

  @Test("B-050 a session that needs no second factor shows no challenge, and an account without codes none either")
  func notRequired() async {
    backend.answer(status: .standIn(methods: ["totp"], needsCode: false, isDeviceTrusted: true))
    let model = await appeared()
    #expect(await model.state.phase == .notRequired)
    #expect(await model.state.isDeviceTrusted)
    #expect(await !model.state.canSubmit)
    backend.answer(status: .standIn(methods: ["webauthn"]))
    #expect(await appeared().state.phase == .unavailable)
  }

  @Test("B-002 the countdown is the time to the authenticator's next code")
  func countdown() async {
    let model = model()
    #expect(await model.state.secondsLeftInStep == nil)
    for (second, left) in [(0, 30), (1, 29), (29, 1), (30, 30)] as [(Int64, Int)] {
      await model.tick(Timestamp(seconds: 1_800_000_000 + second))
      #expect(await model.state.secondsLeftInStep == left)
    }
  }

  @Test(
    "B-002 B-004 B-006 only the shape of a code can be sent",
    arguments: [
      (.totp, "123456", true), (.totp, " 123 456 ", true), (.totp, "123-456", true), (.totp, "12345", false),
      (.totp, "1234567", false), (.totp, "12345a", false), (.totp, "١٢٣٤٥٦", false), (.totp, "１２３－４５６", true),
      (.email, "000042", true), (.email, "", false), (.backup, "abcd-1234", true), (.backup, "ABCD1234", true),
      (.backup, "ａｂｃｄ１２３４", true),
      (.backup, "ABCD123", false), (.backup, "ABCDé234", false), (.backup, String(repeating: "A", count: 4096), false),
    ] as [(ChallengeState.Tab, String, Bool)])
  func shapes(_ tab: ChallengeState.Tab, _ text: String, _ isCode: Bool) async throws {
    let model = await appeared()
    await model.select(tab)
    await model.enter(text)
    #expect(await model.state.canSubmit == isCode)
    #expect(await model.state.isEntryMasked == (tab == .backup))
    await model.verify()
    #expect(try verifications.count == (isCode ? 1 : 0))
    #expect(await model.state.phase == (isCode ? .verified : .entering))
  }

  @Test("B-021 B-022 B-051 a code of the authenticator opens the full session")
  func verifies() async throws {
    let model = await appeared()
    await model.enter("123 456")
    await model.verify()
    #expect(await model.state.phase == .verified)
    #expect(await model.tokens?.token == "f.f.f")
    #expect(await model.tokens?.scope == "full")
    #expect(trust.load() == nil)
    let request = try #require(try verifications.first)
    #expect(request.code == "123456" && request.method == "totp" && request.trust_device == nil)
    // A second tap arrives late.
    await model.verify()
    #expect(try verifications.count == 1)
  }

  @Test("B-008 B-077 the toggle asks for trust, and the server's token is kept out of descriptions and dumps")
  func trust() async throws {
    let model = await appeared()
    await model.setRemembersDevice(true)
    await model.enter("123456")
    var dumped = ""
    dump(await model.state, to: &dumped)
    #expect(await !"\(model.state) \(dumped)".contains("123456"))
    await model.verify()
    #expect(try verifications.first?.trust_device == true)
    let kept = try #require(trust.load())
    #expect(kept == DeviceTrust(username: "ada", token: "trust-1"))
    dump(kept, to: &dumped)
    #expect(!"\(kept) \(dumped)".contains("trust-1"))
    trust.save(nil)
    backend.answer(trustsDevices: false)
    let untrusted = await appeared()
    await untrusted.setRemembersDevice(true)
    await untrusted.enter("123456")
    await untrusted.verify()
    // The toggle alone changes nothing.
    #expect(await untrusted.state.phase == .verified)
    #expect(trust.load() == nil)
  }

  @Test("B-008 a token that the server does not know any more is dropped, and the second factor is asked for")
  func forgotten() async {
    trust.save(DeviceTrust(username: "ada", token: "expired"))
    let model = await appeared()
    #expect(await model.state.phase == .entering)
    #expect(trust.load() == nil)
  }

  @Test("B-008 a token stays while the server remembers the device, and so does the token of another account")
  func remembered() async {
    let kept = DeviceTrust(username: "ada", token: "trust-1")
    trust.save(kept)
    backend.answer(status: .standIn(methods: ["totp"], isDeviceTrusted: true))
    #expect(await appeared().state.phase == .entering)
    #expect(trust.load() == kept)
    let other = DeviceTrust(username: "bob", token: "trust-2")
    trust.save(other)
    backend.answer(status: .standIn(methods: ["totp"]))
    #expect(await appeared().state.phase == .entering)
    #expect(trust.load() == other)
  }

  @Test("B-008 a status that was asked for before the device was remembered drops nothing")
  func rememberedMeanwhile() async {
    let model = await appeared()
    await model.setRemembersDevice(true)
    await model.enter("123456")
    backend.during("mfa.status") { await model.verify() }
    await model.invalidateStatus()
    #expect(await model.state.phase == .verified)
    #expect(trust.load() == DeviceTrust(username: "ada", token: "trust-1"))
  }

  @Test("B-040 B-073 a wrong code clears the entry and can be tried again")
  func invalidCode() async throws {
    let model = await appeared()
    backend.fail(refusal("invalid_code", 401))
    await model.enter("123456")
    await model.verify()
    #expect(await model.state.errorText == "Invalid code. Please try again.")
    #expect(await model.state.entry.isEmpty)
    #expect(await model.state.phase == .entering)
    await model.enter("654321")
    await model.verify()
    #expect(await model.state.phase == .verified)
    #expect(await model.state.errorText == nil)
  }

  @Test("B-041 an expired code by e-mail suggests another one")
  func expiredCode() async {
    let model = await appeared()
    for (tab, suggests) in [(.email, true), (.totp, false)] as [(ChallengeState.Tab, Bool)] {
      await model.select(tab)
      backend.fail(refusal("expired_code", 410))
      await model.enter("123456")
      await model.verify()
      #expect(await model.state.errorText == "Code has expired. Please generate a new one.")
      #expect(await model.state.suggestsResend == suggests)
    }
  }

  @Test("B-042 B-074 after too many attempts the input is disabled for the time that the server says")
  func rateLimited() async throws {
    let model = await appeared()
    backend.fail(refusal("rate_limited", 429, retryAfter: 40))
    await model.enter("123456")
    await model.verify()
    #expect(await model.state.errorText == "Too many attempts. Please wait before trying again.")
    #expect(await model.state.phase == .waiting)
    #expect(await model.state.secondsUntilRetry == 40)
    await model.tick(start.advanced(by: .seconds(39)))
    #expect(await model.state.secondsUntilRetry == 1)
    #expect(await !model.state.isInputEnabled)
    await model.enter("654321")
    await model.verify()
    #expect(try verifications.count == 1)
    // A clock that is set back ends no wait.
    await model.tick(start.advanced(by: .seconds(-1000)))
    #expect(await model.state.phase == .waiting)
    await model.tick(start.advanced(by: .seconds(-998)))
    #expect(await model.state.phase == .entering)
    #expect(await model.state.isInputEnabled)
    #expect(await model.state.entry == "123456")
  }

  @Test("B-043 a locked account points to support and forgets what was entered")
  func locked() async {
    let model = await appeared()
    backend.fail(refusal("account_locked", 423, retryAfter: 900))
    await model.enter("123456")
    await model.verify()
    #expect(await model.state.errorText == "Too many failed attempts. Your account has been temporarily locked.")
    #expect(await model.state.needsSupport)
    #expect(await model.state.entry.isEmpty)
    #expect(await !model.state.isInputEnabled)
    await model.tick(start.advanced(by: .seconds(901)))
    #expect(await model.state.phase == .entering)
  }

  @Test("An account that an operator locked, without a time to wait, is not told of failed attempts")
  func lockedByOperator() async {
    let model = await appeared()
    backend.fail(refusal("account_locked", 423))
    await model.enter("123456")
    await model.verify()
    #expect(await model.state.errorText == "Your account has been locked. Please contact support.")
    #expect(await model.state.needsSupport)
  }

  @Test("B-044 a broken network keeps the code, and the attempt can be repeated")
  func network() async throws {
    let model = await appeared()
    backend.fail(.gate(.transport(.lost("the connection ended"))))
    await model.enter("123456")
    await model.verify()
    #expect(await model.state.phase == .entering)
    #expect(await model.state.canSubmit)
    #expect(await model.state.errorText?.contains("Check your connection") == true)
    await model.verify()
    #expect(await model.state.phase == .verified)
    backend.fail(.gate(.transport(.unreachable("no route"))))
    let failed = await appeared()
    #expect(await failed.state.phase == .unavailable)
    await failed.appear(at: start)
    #expect(await failed.state.phase == .entering)
  }

  @Test("B-003 B-052 a code by e-mail can be requested again after the pause")
  func resend() async {
    let model = await appeared()
    await model.select(.email)
    #expect(await model.state.sendEmailLabel == "Send Code")
    await model.sendEmail()
    #expect(await model.state.secondsUntilResend == 60)
    #expect(await model.state.sendEmailLabel == "Resend Code")
    await model.tick(start.advanced(by: .seconds(59)))
    await model.sendEmail()
    #expect(backend.received.count { $0.name == "mfa.resend-email-otp" } == 1)
    // The server's clock decides.
    await model.tick(start.advanced(by: .seconds(60)))
    backend.fail(refusal("rate_limited", 429, retryAfter: 1))
    await model.sendEmail()
    #expect(await model.state.secondsUntilResend == 1)
    #expect(await model.state.phase == .entering)
    await model.tick(start.advanced(by: .seconds(61)))
    await model.sendEmail()
    #expect(backend.received.count { $0.name == "mfa.resend-email-otp" } == 3)
    #expect(await model.state.secondsUntilResend == 60)
  }

  @Test("B-031 T-14 B-009 B-054 B-060 B-076 Face ID confirms nothing to the server: the code is still required")
  func biometry() async throws {
    let model = await appeared()
    #expect(await model.state.biometryLabel == "Use Face ID")
    phone.plan(.approve, .approve)
    await model.useBiometry()
    #expect(await model.state.isBiometryConfirmed)
    #expect(await model.state.phase == .entering)
    #expect(await model.tokens == nil)
    #expect(await model.state.biometryLabel == nil)
    #expect(await !model.state.canSubmit)
    #expect(backend.received.map(\.name) == ["mfa.status"])
    await model.enter("123456")
    await model.verify()
    for received in backend.received {
      let text = String(decoding: received.body, as: UTF8.self).lowercased()
      #expect(!text.contains("biometr") && !text.contains("face"), "\(text)")
    }
  }

  @Test("B-076 a declined prompt leaves the entry by hand")
  func declinedBiometry() async {
    let model = await appeared()
    phone.plan(.approve, .decline)
    await model.useBiometry()
    #expect(await model.state.errorText == "User cancelled - offer passcode")
    #expect(await !model.state.isBiometryConfirmed)
    await model.enter("123456")
    await model.verify()
    #expect(await model.state.phase == .verified)
  }

  @Test(
    "B-030 B-032 B-033 B-062 the button for biometry needs an enrolled sensor and the server's permission",
    arguments: [
      (.faceID, true, "Use Face ID"), (.touchID, true, "Use Touch ID"), (.fingerprint, true, "Use Fingerprint"),
      (.faceUnlock, true, "Use Face Unlock"), (.faceID, false, nil), (.fingerprint, false, nil),
      (.passcodeOnly, true, nil), (.unprotected, true, nil),
    ] as [(PhoneSettings, Bool, String?)])
  func biometryLabel(_ settings: PhoneSettings, _ isAllowed: Bool, _ label: String?) async {
    phone.configure { $0 = settings }
    backend.answer(status: .standIn(methods: ["totp"], allowsBiometry: isAllowed))
    #expect(await appeared().state.biometryLabel == label)
    #expect(BiometryType.iris.name == "Iris Scan")
  }

  /// What a person tries on a phone with this sensor: the prompt, the toggle, six digits, each failure, the network.
  private func tries(_ settings: PhoneSettings) async throws {
    phone.configure { settingsNow in
      settingsNow = settings
      settingsNow.permission = .allowed
    }
    let model = await appeared()
    // A prompt that fails, that is cancelled, and that succeeds: none of them is a code.
    phone.plan(.fail, .fail, .fail, .decline, .approve)
    for isConfirmed in [false, false, true] {
      await model.useBiometry()
      #expect(await model.state.isBiometryConfirmed == isConfirmed)
      let state = await model.state
      #expect((state.errorText == nil) == isConfirmed && state.phase == .entering && !state.canSubmit)
    }
    #expect(phone.shownPrompts.allSatisfy { $0.kind == .biometry(settings.biometry) })
    for (code, status, text) in [
      ("invalid_code", 401, "Invalid code. Please try again."),
      ("expired_code", 410, "Code has expired. Please generate a new one."),
      ("rate_limited", 429, "Too many attempts. Please wait before trying again."),
      ("account_locked", 423, "Too many failed attempts. Your account has been temporarily locked."),
    ] {
      let refused = await appeared()
      backend.fail(refusal(code, status, retryAfter: status < 420 ? nil : 60))
      await refused.enter("123456")
      await refused.verify()
      #expect(await refused.state.errorText == text)
    }
    await model.setRemembersDevice(true)
    backend.fail(.gate(.transport(.lost("the connection ended"))))
    await model.enter("654321")
    await model.verify()
    #expect(await model.state.errorText?.contains("Check your connection") == true)
    await model.verify()
    #expect(await model.state.phase == .verified)
    let last = try #require(try verifications.last)
    #expect(last.code == "654321" && last.method == "totp" && last.trust_device == true)
  }

  @Test(
    "B-071 prompts, toggle, six digits, failures and the network on an iPhone",
    arguments: [PhoneSettings.faceID, .touchID])
  func iPhone(_ settings: PhoneSettings) async throws { try await tries(settings) }

  @Test(
    "B-072 prompts, toggle, six digits, failures and the network on a phone with Android",
    arguments: [PhoneSettings.fingerprint, .faceUnlock])
  func android(_ settings: PhoneSettings) async throws { try await tries(settings) }

  @Test("A-223 a security key has a tab without an entry; its touch, and nothing less, gives the second factor")
  func securityKey() async throws {
    backend.answer(status: .standIn(methods: ["totp", "webauthn"]))
    #expect(await appeared().state.tabs == [.totp], "an app without security keys")
    let model = model(securityKeys: phone)
    await model.appear(at: start)
    #expect(await model.state.tabs == [.totp, .securityKey])
    #expect(await !model.state.canUseSecurityKey)
    #expect(await model.state.takesCode)
    await model.select(.securityKey)
    await model.enter("123456")
    let state = await model.state
    #expect(state.canUseSecurityKey && !state.takesCode && !state.canSubmit && !state.submitsWhenTyped)
    // A phone without a key of this account, then one that is not touched.
    await model.useSecurityKey()
    #expect(await model.state.errorText == "No security key of this account was found.")
    phone.plan(.approve)
    backend.credential = try await phone.register(.standIn).id
    phone.plan(.decline)
    await model.useSecurityKey()
    #expect(await model.state.errorText == "The security key was not used.")
    #expect(await model.state.phase == .entering)
    #expect(await model.tokens == nil)
    #expect(!backend.received.contains { $0.name == "webauthn.verify-login" })
    // Touched: refused, and then accepted, with trust.
    phone.plan(.approve, .approve)
    backend.refuseProofs(refusal("invalid_code", 401))
    await model.setRemembersDevice(true)
    await model.useSecurityKey()
    #expect(await model.state.errorText == "Invalid code. Please try again.")
    await model.useSecurityKey()
    #expect(await model.state.phase == .verified)
    #expect(await model.tokens?.token == "f.f.f")
    #expect(trust.load()?.token == "trust-1")
    let proofs = try backend.received.filter { $0.name == "webauthn.verify-login" }.map {
      try $0.decoded(as: AuthenticationRequest.self)
    }
    #expect(proofs.count == 2 && proofs.allSatisfy { $0.id == backend.credential && $0.trust_device == true })
    #expect(Set(proofs.map(\.response.signature)).count == 2)
    #expect(backend.received.filter { $0.name.hasPrefix("webauthn.") }.allSatisfy { $0.token == "m.m.m" })
  }

  @Test("B-053 a backup code is masked, eight characters, and named as such to the server")
  func backup() async throws {
    let model = await appeared()
    await model.select(.backup)
    await model.enter("abcd-2345")
    #expect(await model.state.isEntryMasked)
    #expect(await model.state.selectedTab.codeLength == 8)
    await model.verify()
    #expect(try verifications.first?.code == "ABCD2345" && verifications.first?.method == "backup_code")
  }

  @Test("B-078 a link fills in its code and sends nothing")
  func link() async throws {
    let model = await appeared()
    await model.open(try #require(ChallengeLink("mfaapp://mfa-challenge?code=012345")))
    #expect(await model.state.selectedTab == .email)
    #expect(await model.state.entry == "012345")
    #expect(await model.state.canSubmit)
    #expect(try verifications.isEmpty)
  }

  @Test(
    "B-078 other links are refused",
    arguments: [
      "", "mfaapp://mfa-challenge", "mfaapp://mfa-challenge?code=", "mfaapp://mfa-challenge?code=12345",
      "mfaapp://mfa-challenge?code=1234567", "mfaapp://mfa-challenge?code=12345a", "https://mfa-challenge?code=123456",
      "mfaapp://mfa-challenge?code=123456&submit=1", "mfaapp://other?code=123456", "mfaapp://mfa-challenge?CODE=123456",
      "mfaapp://mfa-challenge?code=%31%32%33", "mfaapp://mfa-challenge?code=１２３４５６",
    ])
  func otherLinks(_ url: String) { #expect(ChallengeLink(url) == nil) }

  @Test("B-079 the status is kept for 30 seconds and read again after a notice")
  func cache() async {
    let model = await appeared()
    await model.appear(at: start.advanced(by: .seconds(30)))
    #expect(backend.received.count == 1)
    await model.appear(at: start.advanced(by: .seconds(31)))
    #expect(backend.received.count == 2)
    await model.invalidateStatus()
    #expect(backend.received.count == 3)
  }

  @Test("B-007 the end of the session asks for another sign-in")
  func sessionEnded() async {
    let model = await appeared()
    backend.fail(refusal("session_required", 401))
    await model.enter("123456")
    await model.verify()
    #expect(await model.state.phase == .sessionEnded)
    #expect(await model.state.errorText == "the server's text")
  }

  @Test(
    "An answer after the user has signed out or in again begins no session, and its tokens are revoked",
    arguments: [nil, "ada", "bob"])
  func signedOutMeanwhile(username: String?) async {
    let services = services()
    let model = ChallengeViewModel(services: services, token: "m.m.m")
    await model.appear(at: start)
    await model.setRemembersDevice(true)
    await model.enter("123456")
    let other = username.map { Self.session("t.t.t", "r-9", "full", of: $0) }
    backend.during("mfa.verify-login") { try? await services.session.begin(other) }
    await model.verify()
    #expect(await model.state.phase == .sessionEnded)
    #expect(await model.state.errorText == "The session has ended. Sign in again.")
    #expect(await model.tokens == nil)
    #expect(await services.session.session == other)
    #expect(sessions.load() == other && trust.load() == nil)
    #expect(backend.received.last?.name == "auth.revoke" && backend.received.last?.token == "f.f.f")
  }

  @Test("A security key begins no session after the user has signed out")
  func signedOutDuringTouch() async throws {
    backend.answer(status: .standIn(methods: ["webauthn"]))
    phone.plan(.approve, .approve)
    backend.credential = try await phone.register(.standIn).id
    let services = services(securityKeys: phone)
    let model = ChallengeViewModel(services: services, token: "m.m.m")
    await model.appear(at: start)
    backend.during("webauthn.verify-login") { try? await services.session.begin(nil) }
    await model.useSecurityKey()
    #expect(await model.state.phase == .sessionEnded)
    #expect(await services.session.session == nil)
    #expect(backend.received.last?.name == "auth.revoke")
  }

  @Test("Without its session the challenge sends no code", arguments: [nil, "bob"])
  func signedOutBefore(username: String?) async throws {
    let services = services()
    let model = ChallengeViewModel(services: services, token: "m.m.m")
    await model.appear(at: start)
    await model.enter("123456")
    try await services.session.begin(username.map { Self.session("t.t.t", "r-9", "full", of: $0) })
    await model.verify()
    #expect(await model.state.phase == .sessionEnded)
    #expect(try verifications.isEmpty)
  }

  @Test(
    "After a renewal during the verification the tokens that came last stay",
    arguments: [("mfa", "f.f.f", "r-2"), ("full", "t.t.t", "r")])
  func renewedMeanwhile(scope: String, token: String, refreshToken: String) async {
    let services = services()
    let model = ChallengeViewModel(services: services, token: "m.m.m")
    await model.appear(at: start)
    await model.enter("123456")
    backend.answer(scope: scope)
    let expired = refusal("session_required", 401)
    backend.during("mfa.verify-login") { [backend] in
      backend.fail(expired)
      _ = try? await services.session.call(MFAOperations.status, EmptyRequest())
    }
    await model.verify()
    #expect(await model.state.phase == .verified)
    #expect(await services.session.session == Self.session(token, refreshToken, "full"))
    #expect(sessions.load() == Self.session(token, refreshToken, "full"))
    #expect(await model.tokens?.token == token)
    #expect(await model.tokens?.refreshToken == refreshToken)
  }

  @Test("After a renewal elsewhere the challenge continues with the new token", arguments: [false, true])
  func renewedBefore(hasAppeared: Bool) async throws {
    let services = services()
    let model = ChallengeViewModel(services: services, token: "m.m.m")
    if hasAppeared { await model.appear(at: start) }
    backend.answer(scope: "mfa")
    backend.fail(refusal("session_required", 401))
    _ = try await services.session.call(MFAOperations.status, EmptyRequest())
    let count = backend.received.count
    await model.appear(at: start.advanced(by: .seconds(60)))
    await model.sendEmail()
    await model.enter("123456")
    await model.verify()
    #expect(await model.state.phase == .verified)
    let later = backend.received.dropFirst(count)
    #expect(later.last?.name == "mfa.verify-login" && later.allSatisfy { $0.token == "t.t.t" })
    #expect(sessions.load() == Self.session("f.f.f", "r-2", "full"))
  }

  @Test("A security key is proved in the session as it is after the touch")
  func renewedDuringTouch() async throws {
    backend.answer(status: .standIn(methods: ["webauthn"]))
    phone.plan(.approve, .approve)
    backend.credential = try await phone.register(.standIn).id
    let services = services(securityKeys: phone)
    let model = ChallengeViewModel(services: services, token: "m.m.m")
    await model.appear(at: start)
    backend.answer(scope: "mfa")
    let expired = refusal("session_required", 401)
    backend.during("webauthn.authentication-options") { [backend] in
      backend.fail(expired)
      _ = try? await services.session.call(MFAOperations.status, EmptyRequest())
    }
    await model.useSecurityKey()
    #expect(await model.state.phase == .verified)
    #expect(backend.received.last?.name == "webauthn.verify-login" && backend.received.last?.token == "t.t.t")
  }

  @Test("A status that arrives after the user has sent a code changes nothing")
  func lateStatus() {
    let status = ChallengeMachine.Status(
      needsCode: true, isDeviceTrusted: false, methods: ["totp"], allowsBiometry: true)
    let other = ChallengeMachine.Status(needsCode: false, isDeviceTrusted: true, methods: [], allowsBiometry: false)
    var machine = ChallengeMachine()
    #expect(machine.apply(.appeared) == .readStatus)
    #expect(machine.apply(.readStatus(status)) == nil)
    #expect(machine.apply(.invalidatedStatus) == .readStatus)
    _ = machine.apply(.entered("123456"))
    #expect(machine.apply(.submitted) != nil)
    let sent = machine.state
    #expect(machine.apply(.readStatus(other)) == nil)
    #expect(machine.state == sent && machine.state.phase == .verifying)
    #expect(machine.apply(.verified) == nil)
    #expect(machine.state.phase == .verified)
  }
}
