import ByteCoding
import Crypto
import Foundation
@testable import MFADomain
import MFAFixtures
import MFAStore
import Testing

/// An account that is connected to a user of a provider, with one device.
private struct Scene: Sendable {
  let provider = TestProvider()
  let clock = ManualClock()
  let context: DomainContext
  let user: User
  let deviceID: DeviceID

  init(policy: Policy = Policy(), hasSecondFactor: Bool = true, isConnected: Bool = true) async throws {
    let store = try SQLiteMFAStore.ephemeral()
    let vault = try await Vault.open(in: store, with: .ephemeral(.system), entropy: .system)
    context = DomainContext(
      store: store, vault: vault, outbox: CapturedOutbox(), tokens: NamedTokens(), clock: clock.wall, policy: policy,
      provider: provider.tokens)
    user = User(id: UUID(), username: try Username("ada"), createdAt: clock.now)
    deviceID = try DeviceID("phone")
    let device = Device(
      id: deviceID, userID: user.id, model: try DeviceModel("phone"), method: .secureEnclave, authMethod: nil,
      publicKey: .decoy, phoneNumber: nil, binding: .attestedKey("phone"), enrolledAt: clock.now)
    let identity = FederatedIdentity(
      userID: user.id, subject: ProviderSubject(issuer: provider.issuer, subject: "ada"), createdAt: clock.now)
    let factor = TOTPFactor(
      userID: user.id, secret: try vault.seal([UInt8](repeating: 1, count: 20), for: Authenticator.place(user.id)),
      parameters: .standard, createdAt: clock.now, confirmedAt: clock.now)
    try await store.write { [user] records in
      try records.insert(user)
      try records.save(device)
      if isConnected { try records.insert(identity) }
      if hasSecondFactor { try records.save(factor) }
    }
  }

  var federation: Federation { Federation(context) }

  /// The app instance with the attested key `key`.
  func caller(_ key: String = "phone", session: LoginSession? = nil) -> Caller {
    Caller(
      identity: GateIdentity(
        subject: key, environment: .production, app: "app", sessionID: "s", clientAddress: "192.0.2.1",
        issuedAt: clock.now),
      session: session.map {
        SessionProof(sessionID: $0.id, userID: $0.userID, expiresAt: clock.now.advanced(by: .seconds(900)))
      }, requestID: "request")
  }

  /// An answer to a new challenge of `caller`.
  func answer(
    as caller: Caller? = nil, subject: String = "ada", signedBy other: TestProvider? = nil,
    _ change: (inout ProviderClaims) -> Void = { _ in }
  ) async throws -> Federation.Answer {
    let challenge = try await federation.challenge(for: caller ?? self.caller())
    return Federation.Answer(
      challengeID: challenge.id,
      idToken: try await provider.token(
        for: Base64.encode(challenge.bytes), subject: subject, at: clock.now, signedBy: other, change))
  }

  /// A live session of the user on the device.
  func session(
    _ scope: LoginSession.Scope = .full, methods: [String] = ["pop", "otp", "mfa"], of other: User? = nil
  ) async throws -> LoginSession {
    let session = LoginSession(
      id: UUID(), userID: (other ?? user).id, deviceID: deviceID, binding: .attestedKey("phone"), scope: scope,
      methods: methods, authenticatedAt: clock.now, createdAt: clock.now,
      expiresAt: clock.now.advanced(by: LoginSession.lifetime), rotatedAt: clock.now)
    try await context.store.write { try $0.insert(session) }
    return session
  }

  /// The reasons of the refusals in the history, oldest first.
  var reasons: [String] {
    get async throws {
      try await context.store.read { records in
        try records.auditEntries(before: .max, account: nil, atMost: 100).reversed()
          .filter { $0.event == AuditEvent.identityRefused.rawValue }.map(\.detail)
      }
    }
  }

  func identities(of user: User) async throws -> [ProviderSubject] {
    try await context.store.read { try $0.federatedIdentities(of: user.id).map(\.subject) }
  }
}

/// Access tokens for tests that do not look at them.
private struct NamedTokens: AccessTokenIssuer {
  let lifetime = Duration.seconds(900)
  func issue(for session: LoginSession, of user: User, at now: Timestamp) -> String { session.id.uuidString }
}

extension Federation {
  /// The rejection of a sign-in; `nil` if it succeeds.
  fileprivate func rejection(of answer: Answer, by caller: Caller) async throws -> FederationRejection? {
    do {
      _ = try await signIn(answer, by: caller)
      return nil
    } catch MFARefusal.federationRefused(let rejection) {
      return rejection
    }
  }
}

@Suite("Signing in with an identity provider", .timeLimit(.minutes(1)))
struct FederationTests {
  /// A fault of a token, and the rejection that it causes.
  struct Fault: Sendable, CustomTestStringConvertible {
    let rejection: FederationRejection
    let change: @Sendable (inout ProviderClaims) -> Void
    var testDescription: String { rejection.rawValue }
  }

  static let faults = [
    Fault(rejection: .issuer) { $0.iss = "https://login.example.com/" },
    Fault(rejection: .issuer) { $0.iss = nil },
    Fault(rejection: .audience) { $0.aud = ["another"] },
    Fault(rejection: .audience) { $0.aud = [TestProvider.clientID, "another"] },
    Fault(rejection: .authorizedParty) { $0.aud = [TestProvider.clientID, "app-android"] },
    Fault(rejection: .authorizedParty) { $0.azp = "another" },
    // The audience that is trusted is no client, alone or as authorized party.
    Fault(rejection: .audience) {
      $0.aud = ["project"]
      $0.azp = TestProvider.clientID
    },
    Fault(rejection: .authorizedParty) {
      $0.aud = [TestProvider.clientID, "project"]
      $0.azp = "project"
    },
    Fault(rejection: .authorizedParty) { $0.aud = [TestProvider.clientID, "project"] },
    Fault(rejection: .audience) {
      $0.aud = [TestProvider.clientID, "project", "another"]
      $0.azp = TestProvider.clientID
    },
    // Google's way, with a client of another app.
    Fault(rejection: .authorizedParty) {
      $0.aud = [TestProvider.clientID]
      $0.azp = "project"
    },
    Fault(rejection: .audience) {
      $0.aud = ["another"]
      $0.azp = "app-android"
    },
    Fault(rejection: .expired) { $0.exp = $0.iat.map { $0 - 300 } },
    Fault(rejection: .issuedAt) { $0.iat = $0.iat.map { $0 - 901 } },
    Fault(rejection: .issuedAt) { $0.iat = $0.iat.map { $0 + 301 } },
    Fault(rejection: .nonce) { $0.nonce = nil },
    Fault(rejection: .nonce) { $0.nonce = FederationChallenge.nonce(of: [UInt8](repeating: 0, count: 32)) },
    Fault(rejection: .subject) { $0.sub = nil },
  ]

  @Test("a token with one fault is refused, and leaves the challenge to the right token", arguments: faults)
  func fault(_ fault: Fault) async throws {
    let scene = try await Scene()
    let challenge = try await scene.federation.challenge(for: scene.caller())
    func answer(_ change: (inout ProviderClaims) -> Void) async throws -> Federation.Answer {
      let token = try await scene.provider.token(
        for: Base64.encode(challenge.bytes), at: scene.clock.now, change)
      return Federation.Answer(challengeID: challenge.id, idToken: token)
    }
    let wrong = try await answer(fault.change)
    #expect(try await scene.federation.rejection(of: wrong, by: scene.caller()) == fault.rejection)
    #expect(try await scene.reasons == ["reason=\(fault.rejection.rawValue)"])
    #expect(try await scene.federation.rejection(of: answer { _ in }, by: scene.caller()) == nil)
  }

  @Test(
    "a token for another client id of the app is accepted, alone or with its authorized party",
    arguments: [
      ["app-android"], ["app-android", "app"],
      // Google on phones: for the server's client id, to the app's.
      ["app"],
      // Zitadel: a project that is trusted.
      ["app-android", "project"], ["app", "project", "app-android"],
    ])
  func audiences(_ audiences: [String]) async throws {
    let scene = try await Scene()
    let answer = try await scene.answer {
      $0.aud = audiences
      $0.azp = "app-android"
    }
    #expect(try await scene.federation.rejection(of: answer, by: scene.caller()) == nil)
  }

  @Test("a token that another provider signed is refused, and one that is no token")
  func signature() async throws {
    let scene = try await Scene()
    let forged = try await scene.answer(signedBy: TestProvider())
    #expect(try await scene.federation.rejection(of: forged, by: scene.caller()) == .signature)
    let text = Federation.Answer(challengeID: forged.challengeID, idToken: "a.b.c")
    #expect(try await scene.federation.rejection(of: text, by: scene.caller()) == .malformed)
  }

  @Test("the nonce is the SHA-256 of the challenge in base64url, not the challenge")
  func nonce() async throws {
    let scene = try await Scene()
    let challenge = try await scene.federation.challenge(for: scene.caller())
    #expect(challenge.bytes.count == 32)
    let hash = Base64URL.encode(Array(SHA256.hash(data: challenge.bytes)))
    #expect(hash.count == 43)
    for (nonce, rejection) in [(Base64URL.encode(challenge.bytes), FederationRejection.nonce), (hash, nil)] {
      let token = try await scene.provider.token(for: "", at: scene.clock.now) { $0.nonce = nonce }
      let answer = Federation.Answer(challengeID: challenge.id, idToken: token)
      #expect(try await scene.federation.rejection(of: answer, by: scene.caller()) == rejection)
    }
  }

  @Test("a token is useless to another app instance, with its own challenge and with that of the token")
  func anotherInstance() async throws {
    let scene = try await Scene()
    let (answer, thief) = (try await scene.answer(), scene.caller("thief"))
    #expect(try await scene.federation.rejection(of: answer, by: thief) == .attestedKey)
    let own = try await scene.federation.challenge(for: thief)
    let replayed = Federation.Answer(challengeID: own.id, idToken: answer.idToken)
    #expect(try await scene.federation.rejection(of: replayed, by: thief) == .nonce)
    // A right token alone does not make an app instance a device of the account.
    let answered = try await scene.answer(as: thief)
    #expect(try await scene.federation.rejection(of: answered, by: thief) == .deviceUnknown)
    #expect(try await scene.federation.rejection(of: answer, by: scene.caller()) == nil)
  }

  @Test("a token is used once, and of 50 parallel uses one succeeds")
  func once() async throws {
    let scene = try await Scene()
    let answer = try await scene.answer()
    let (federation, caller) = (scene.federation, scene.caller())
    let results = try await withThrowingTaskGroup { group in
      for _ in 1...50 { group.addTask { try await federation.rejection(of: answer, by: caller) } }
      return try await group.reduce(into: [FederationRejection?]()) { $0.append($1) }
    }
    #expect(results.count { $0 == nil } == 1)
    #expect(results.count { $0 == .challengeUsed } == 49)
    #expect(try await scene.context.store.read { try $0.sessions(of: scene.user.id).count } == 1)
  }

  @Test("a challenge expires, and an unknown one is refused")
  func expired() async throws {
    let scene = try await Scene()
    let challenge = try await scene.federation.challenge(for: scene.caller())
    func answer() async throws -> Federation.Answer {
      Federation.Answer(
        challengeID: challenge.id,
        idToken: try await scene.provider.token(for: Base64.encode(challenge.bytes), at: scene.clock.now))
    }
    scene.clock.advance(by: FederationChallenge.lifetime)
    #expect(try await scene.federation.rejection(of: answer(), by: scene.caller()) == .challengeExpired)
    let unknown = Federation.Answer(challengeID: UUID(), idToken: try await scene.answer().idToken)
    #expect(try await scene.federation.rejection(of: unknown, by: scene.caller()) == .challengeUnknown)
    try await RecordMaintenance(scene.context).clean()
    scene.clock.advance(by: .milliseconds(1))
    try await RecordMaintenance(scene.context).clean()
    #expect(try await scene.context.store.read { try $0.federationChallenge(challenge.id) } == nil)
  }

  @Test("an ID token alone never begins a full session, and the first factor stays in its methods")
  func scope() async throws {
    for (hasSecondFactor, scope) in [(true, LoginSession.Scope.pending), (false, .setup)] {
      let scene = try await Scene(hasSecondFactor: hasSecondFactor)
      let tokens = try await scene.federation.signIn(scene.answer(), by: scene.caller())
      #expect(tokens.scope == scope)
      let session = try #require(try await scene.context.store.read { try $0.sessions(of: scene.user.id).first })
      #expect(session.scope == scope && session.methods == ["fed"] && session.deviceID == scene.deviceID)
      // A renewal does not complete it.
      #expect(try await Sessions(scene.context).refresh(tokens.refresh, by: scene.caller()).scope == scope)
    }
  }

  @Test("a sign-in does not count as a use of the device's own factor")
  func lastUsed() async throws {
    let scene = try await Scene()
    _ = try await scene.federation.signIn(scene.answer(), by: scene.caller())
    #expect(try await scene.context.store.read { try $0.device(scene.deviceID)?.lastUsed } == nil)
    let identity = try await scene.context.store.read { try $0.federatedIdentities(of: scene.user.id).first }
    #expect(identity?.lastUsedAt == scene.clock.now)
  }

  @Test("a user of the provider without an account is refused, and the challenge can still connect an account")
  func unknownUser() async throws {
    let scene = try await Scene(isConnected: false)
    let answer = try await scene.answer()
    #expect(try await scene.federation.rejection(of: answer, by: scene.caller()) == .identityUnknown)
    try await scene.federation.connect(answer, by: scene.caller(session: scene.session()))
    #expect(try await scene.identities(of: scene.user).map(\.subject) == ["ada"])
  }

  @Test("an account that an operator has locked is refused, and the challenge is spent")
  func locked() async throws {
    let scene = try await Scene()
    let answer = try await scene.answer()
    var locked = scene.user
    locked.lockedAt = scene.clock.now
    try await scene.context.store.write { [locked] in try $0.update(locked) }
    await #expect(throws: MFARefusal.accountLocked(retryAfter: nil)) {
      try await scene.federation.signIn(answer, by: scene.caller())
    }
    #expect(try await scene.context.store.read { try $0.federationChallenge(answer.challengeID)?.isUsed } == true)
    #expect(try await scene.context.store.read { try $0.sessions(of: scene.user.id) } == [])
  }

  @Test("where biometry is required, an ID token does not sign in")
  func biometry() async throws {
    var policy = Policy()
    policy.deviceUnlock = .biometric
    let scene = try await Scene(policy: policy)
    #expect(try await scene.federation.rejection(of: scene.answer(), by: scene.caller()) == .unlock)
  }

  @Test("a removed device no longer signs in")
  func removedDevice() async throws {
    let scene = try await Scene()
    let session = try await scene.session()
    try await Enrolment(scene.context).unenrol(
      scene.user.username, scene.deviceID, by: scene.caller(session: session))
    #expect(try await scene.federation.rejection(of: scene.answer(), by: scene.caller()) == .deviceUnknown)
  }

  @Test("without keys of the provider the answer is an outage, and nothing is spent")
  func outage() async throws {
    let scene = try await Scene()
    let answer = try await scene.answer()
    scene.provider.isAvailable = false
    await #expect(throws: MFAStoreError.self) { try await scene.federation.signIn(answer, by: scene.caller()) }
    scene.provider.isAvailable = true
    #expect(try await scene.federation.rejection(of: answer, by: scene.caller()) == nil)
  }
}

@Suite("Connecting an account to an identity provider", .timeLimit(.minutes(1)))
struct FederationConnectionTests {
  @Test("a full session connects its account, once, and a second connection is refused")
  func connect() async throws {
    let scene = try await Scene(isConnected: false)
    let caller = scene.caller(session: try await scene.session())
    let answer = try await scene.answer()
    try await scene.federation.connect(answer, by: caller)
    await #expect(throws: MFARefusal.federationRefused(.challengeUsed)) {
      try await scene.federation.connect(answer, by: caller)
    }
    // The same identity again changes nothing.
    try await scene.federation.connect(scene.answer(), by: caller)
    await #expect(throws: MFARefusal.identityConnected) {
      try await scene.federation.connect(scene.answer(subject: "other"), by: caller)
    }
    #expect(try await scene.identities(of: scene.user).map(\.subject) == ["ada"])
    let notices = try await scene.context.store.read { try $0.notices(of: scene.user.id, after: 0, atMost: 9) }
    #expect(notices.map(\.kind) == [.identityConnected])
  }

  @Test("a user of the provider who is connected to another account is refused")
  func taken() async throws {
    let scene = try await Scene()
    let other = User(id: UUID(), username: try Username("bob"), createdAt: scene.clock.now)
    try await scene.context.store.write { try $0.insert(other) }
    let caller = scene.caller(session: try await scene.session(methods: ["pop"], of: other))
    await #expect(throws: MFARefusal.identityConnected) {
      try await scene.federation.connect(scene.answer(), by: caller)
    }
    #expect(try await scene.identities(of: other).isEmpty)
    #expect(try await scene.reasons == ["reason=identity_connected"])
  }

  @Test("a session without its second factor, without a recent proof or without the factor itself cannot connect")
  func weakSessions() async throws {
    let scene = try await Scene(isConnected: false)
    let answer = try await scene.answer()
    for (scope, methods) in [(LoginSession.Scope.pending, ["fed"]), (.setup, ["fed"]), (.full, ["pop"])] {
      let session = try await scene.session(scope, methods: methods)
      await #expect(throws: MFARefusal.secondFactorRequired) {
        try await scene.federation.connect(answer, by: scene.caller(session: session))
      }
    }
    let old = try await scene.session()
    scene.clock.advance(by: .seconds(301))
    await #expect(throws: MFARefusal.freshProofRequired(maximumAge: .seconds(300))) {
      try await scene.federation.connect(answer, by: scene.caller(session: old))
    }
    #expect(try await scene.identities(of: scene.user).isEmpty)
  }

  @Test("a disconnected account no longer signs in, and can be connected to another user")
  func disconnect() async throws {
    let scene = try await Scene()
    let caller = scene.caller(session: try await scene.session())
    try await scene.federation.disconnect(by: caller)
    await #expect(throws: MFARefusal.notFound) { try await scene.federation.disconnect(by: caller) }
    #expect(try await scene.federation.rejection(of: scene.answer(), by: scene.caller()) == .identityUnknown)
    try await scene.federation.connect(scene.answer(subject: "other"), by: caller)
    #expect(try await scene.identities(of: scene.user).map(\.subject) == ["other"])
  }

  @Test("an operator's reset ends the connection")
  func reset() async throws {
    let scene = try await Scene()
    _ = try await Administration(scene.context).resetFactors(scene.user.username, by: .command(name: "test"))
    #expect(try await scene.identities(of: scene.user).isEmpty)
  }

  // MARK: Enrolment

  private func application(
    _ name: String, _ device: String, _ answer: Federation.Answer?, linkCode: CodeGuess? = nil
  ) throws -> Enrolment.Application {
    try Enrolment.Application(
      username: Username(name), deviceID: DeviceID(device), model: DeviceModel("phone"), method: .secureEnclave,
      authMethod: nil, publicKey: .decoy, phoneNumber: nil, linkCode: linkCode, identity: answer)
  }

  @Test("the first enrolment of an account connects it, and a repetition has the same result")
  func firstEnrolment() async throws {
    let scene = try await Scene(isConnected: false)
    let (caller, enrolment) = (scene.caller("new"), Enrolment(scene.context))
    let answer = try await scene.answer(as: caller, subject: "eve")
    let application = try application("eve", "eve-phone", answer)
    _ = try await enrolment.enrol(application, by: caller)
    _ = try await enrolment.enrol(application, by: caller)
    let eve = try #require(try await scene.context.store.read { try $0.user(named: "eve") })
    #expect(try await scene.identities(of: eve).map(\.subject) == ["eve"])
    #expect(
      try await scene.federation.rejection(of: scene.answer(as: caller, subject: "eve"), by: caller) == nil)
  }

  @Test("a refused identity makes no account")
  func refusedEnrolment() async throws {
    let scene = try await Scene()
    let (caller, enrolment) = (scene.caller("new"), Enrolment(scene.context))
    let connected = try await scene.answer(as: caller)
    let wrong = try await scene.answer(as: caller, subject: "eve") { $0.aud = ["another"] }
    let foreign = try await scene.answer(subject: "eve")
    for (answer, refusal) in [
      (connected, MFARefusal.identityConnected), (wrong, .federationRefused(.audience)),
      (foreign, .federationRefused(.attestedKey)),
    ] {
      await #expect(throws: refusal) { try await enrolment.enrol(application("eve", "d", answer), by: caller) }
    }
    #expect(try await scene.context.store.read { try $0.user(named: "eve") } == nil)
    #expect(try await scene.context.store.read { try $0.device(DeviceID("d")) } == nil)
  }

  @Test("an enrolment does not connect an existing account, whatever its proof")
  func existingAccount() async throws {
    let scene = try await Scene(isConnected: false)
    let enrolment = Enrolment(scene.context)
    let answer = try await scene.answer()
    let caller = scene.caller(session: try await scene.session())
    await #expect(throws: InvalidValue.self) {
      try await enrolment.enrol(application("ada", "second", answer), by: caller)
    }
    #expect(throws: InvalidValue.self) { try application("ada", "second", answer, linkCode: CodeGuess("12345678")) }
    #expect(try await scene.identities(of: scene.user).isEmpty)
  }

  @Test("without a provider every operation that needs one is off")
  func off() async throws {
    let scene = try await Scene()
    let context = DomainContext(
      store: scene.context.store, vault: scene.context.vault, outbox: CapturedOutbox(), tokens: NamedTokens(),
      clock: scene.clock.wall)
    let answer = try await scene.answer()
    let caller = scene.caller(session: try await scene.session())
    await #expect(throws: MFARefusal.federationOff) { try await Federation(context).challenge(for: caller) }
    await #expect(throws: MFARefusal.federationOff) { try await Federation(context).signIn(answer, by: caller) }
    await #expect(throws: MFARefusal.federationOff) { try await Federation(context).connect(answer, by: caller) }
    await #expect(throws: MFARefusal.federationOff) {
      try await Enrolment(context).enrol(application("eve", "d", answer), by: caller)
    }
    // A connection can be ended without the provider.
    try await Federation(context).disconnect(by: caller)
  }
}
