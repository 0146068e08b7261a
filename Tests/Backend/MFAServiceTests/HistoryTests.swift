import MFADomain
import MFAFixtures
import Testing

@Suite("The history of sign-ins and refusals")
struct HistoryTests {
  /// Two users: Ada with an authenticator and a trusted phone, and Eve with a phone.
  struct Scene: Sendable {
    let backend: TestBackend
    let ada: TestPhone
    let eve: TestPhone
    let tokens: Answer
    let authenticator: TestAuthenticator
    let trust: String

    var token: String { tokens["token"]?.text ?? "" }

    func signIn(trust: String, as app: AppInstance? = nil) async throws {
      var body = try #require(try backend.proof(ada, of: await backend.challenge(ada)).members)
      body["trustToken"] = .string(trust)
      _ = try await backend.post("/auth/verify-signature", .object(body), as: app ?? ada.app)
    }

    func verify(_ challenge: Answer, _ changes: [String: JSONValue] = [:], as app: AppInstance? = nil) async throws {
      let body = try #require(try backend.proof(ada, of: challenge).members)
      _ = try await backend.post(
        "/auth/verify-signature", .object(body.merging(changes) { $1 }), as: app ?? ada.app)
    }

    func administer(_ body: (Administration, Administration.Actor) async throws -> Void) async throws {
      try await body(Administration(backend.context), .command(name: "test"))
    }

    func history(before sequence: Int64? = nil) async throws -> [AuditEntry] {
      try await Administration(backend.context).history(
        of: nil, before: sequence, atMost: 1000, by: .command(name: "test"))
    }
  }

  private func withScene(_ log: CapturedLog, _ body: (Scene) async throws -> Void) async throws {
    try await TestBackend.with(logger: log.logger) { backend in
      let (ada, eve) = (TestPhone(username: "ada", deviceID: "hers"), TestPhone(username: "eve"))
      try await backend.enrol(eve)
      let (_, authenticator) = try await backend.setUp(ada)
      let pending = try await backend.pendingToken(ada)
      let tokens = try await backend.verifyLogin(
        authenticator.code(), ada, token: pending, ["trust_device": true, "device_name": "Hers"])
      let trust = tokens["trust_token"]?.text ?? ""
      try await body(
        Scene(
          backend: backend, ada: ada, eve: eve, tokens: tokens, authenticator: authenticator, trust: trust))
    }
  }

  struct EventCase: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let event: String
    /// A part of the entry's detail.
    let detail: String
    /// The reason in the log.
    let reason: String?
    let act: @Sendable (Scene) async throws -> Void

    init(
      _ description: String, _ event: String, _ detail: String, reason: String? = nil,
      _ act: @escaping @Sendable (Scene) async throws -> Void
    ) {
      testDescription = description
      self.event = event
      self.detail = detail
      self.reason = reason
      self.act = act
    }
  }

  static let signIns = [
    EventCase("a challenge is answered twice", "signature.refused", "reason=challenge_used", reason: "challenge_used") {
      let challenge = try await $0.backend.challenge($0.ada)
      for _ in 1...2 { try await $0.verify(challenge) }
    },
    EventCase("a challenge is answered too late", "signature.refused", "device=hers reason=challenge_expired") {
      let challenge = try await $0.backend.challenge($0.ada)
      $0.backend.clock.advance(by: .seconds(300))
      try await $0.verify(challenge)
    },
    EventCase("an answer is signed by another key", "signature.refused", "reason=signature", reason: "signature") {
      try await $0.verify($0.backend.challenge($0.ada), ["signature": .string($0.eve.sign("AAAA"))])
    },
    EventCase("a challenge is unknown", "signature.refused", "reason=challenge_unknown", reason: "challenge_unknown") {
      try await $0.verify(
        $0.backend.challenge($0.ada), ["challengeId": "00000000-0000-4000-8000-000000000000"])
    },
    EventCase("a challenge belongs to another device", "signature.refused", "reason=challenge_of_another") {
      try await $0.verify($0.backend.challenge($0.ada), ["deviceId": "another"])
    },
    EventCase("another app instance answers", "signature.refused", "reason=attested_key", reason: "attested_key") {
      try await $0.verify($0.backend.challenge($0.ada), as: $0.eve.app)
    },
    EventCase("a locked account signs in", "signature.refused", "reason=locked", reason: "locked") { scene in
      let challenge = try await scene.backend.challenge(scene.ada)
      try await scene.administer { try await $0.lock(Username("ada"), by: $1) }
      try await scene.verify(challenge)
    },
    EventCase("a removed device comes back", "challenge.refused", "reason=device_not_enrolled") { scene in
      try await scene.administer { try await $0.removeDevice(DeviceID("hers"), of: Username("ada"), by: $1) }
      _ = try await scene.backend.challenge(scene.ada)
    },
    EventCase("trust replaces the second factor", "trust.used", "trusted=1") { try await $0.signIn(trust: $0.trust) },
    EventCase("an unknown trust token is sent", "trust.refused", "") { try await $0.signIn(trust: "none") },
  ]

  static let codes = [
    EventCase("a code is sent", "code.sent", "channel=sms device=hers") {
      _ = try await $0.backend.post(
        "/auth/request-otp", ["username": "ada", "phoneNumber": .string($0.ada.number)], as: $0.ada.app)
    },
    EventCase("codes are requested too fast", "code.withheld", "channel=sms reason=rate", reason: "rate") {
      for _ in 1...2 {
        _ = try await $0.backend.post(
          "/auth/request-otp", ["username": "ada", "phoneNumber": .string($0.ada.number)], as: $0.ada.app)
      }
    },
    EventCase("another app instance requests a code", "code.withheld", "channel=sms reason=no_target") {
      _ = try await $0.backend.post(
        "/auth/request-otp", ["username": "ada", "phoneNumber": .string($0.ada.number)], as: $0.eve.app)
    },
    EventCase("a wrong code is given", "code.refused", "channel=sms reason=code_wrong", reason: "code_wrong") {
      _ = try await $0.backend.post(
        "/auth/request-otp", ["username": "ada", "phoneNumber": .string($0.ada.number)], as: $0.ada.app)
      _ = try await $0.backend.post("/auth/verify-otp", ["username": "ada", "otp": "no"], as: $0.ada.app)
    },
    EventCase("a code by SMS is given twice", "code.refused", "channel=sms reason=code_used", reason: "code_used") {
      _ = try await $0.backend.post(
        "/auth/request-otp", ["username": "ada", "phoneNumber": .string($0.ada.number)], as: $0.ada.app)
      let guess: JSONValue = ["username": "ada", "otp": .string($0.backend.outbox.lastCode ?? "")]
      for _ in 1...2 { _ = try await $0.backend.post("/auth/verify-otp", guess, as: $0.ada.app) }
    },
    EventCase("an authenticator's code is given twice", "code.refused", "reason=code_used", reason: "code_used") {
      _ = try await $0.backend.verifyLogin($0.authenticator.code(), $0.ada, token: $0.token)
    },
    EventCase("a backup code is given twice", "code.refused", "factor=second reason=code_used", reason: "code_used") {
      for _ in 1...2 {
        _ = try await $0.backend.verifyLogin($0.authenticator.backupCodes[0], $0.ada, token: $0.token)
      }
    },
    EventCase("a wrong second factor is given", "code.refused", "factor=second reason=code_wrong") {
      _ = try await $0.backend.verifyLogin("00000000", $0.ada, token: $0.token)
    },
  ]

  static let rights = [
    EventCase("another app instance uses a token", "binding.refused", "operation=devices.list", reason: "attested_key")
    {
      _ = try await $0.backend.get("/devices/ada", as: $0.eve.app, token: $0.token)
    },
    EventCase("another app instance attaches a token", "binding.refused", "operation=session.attach") { scene in
      let token = scene.token
      try await TestSocket.with(scene.backend, as: scene.eve.app) {
        _ = try await $0.call("session.attach", ["token": .string(token)])
      }
    },
    EventCase("another app uses a refresh token", "binding.refused", "operation=auth.refresh", reason: "attested_key") {
      _ = try await $0.backend.post(
        "/auth/token/refresh", ["refreshToken": $0.tokens["refresh_token"] ?? nil], as: $0.eve.app)
    },
    EventCase("a refresh token of a closed session is used", "session.refresh_refused", "reason=session_ended") {
      _ = try await $0.backend.post("/auth/token/revoke", [:], as: $0.ada.app, token: $0.token)
      _ = try await $0.backend.post(
        "/auth/token/refresh", ["refreshToken": $0.tokens["refresh_token"] ?? nil], as: $0.ada.app)
    },
    EventCase("another app instance acts for a device", "binding.refused", "operation=mfa.downgrade") {
      _ = try await $0.backend.post("/mfa/downgrade", $0.ada.naming, as: $0.eve.app)
    },
    EventCase("another app instance requests a challenge", "binding.refused", "operation=auth.initiate") {
      _ = try await $0.backend.post("/auth/initiate", $0.ada.naming, as: $0.eve.app)
    },
    EventCase("a user without admin rights administers", "access.refused", "operation=admin.lock", reason: "forbidden")
    {
      _ = try await $0.backend.post("/admin/lock", ["username": "eve"], as: $0.ada.app, token: $0.token)
    },
    EventCase(
      "a device enrols under another user's name", "enrolment.refused", "device=new reason=no_session",
      reason: "no_session"
    ) {
      try await $0.backend.enrol(TestPhone(username: "ada", deviceID: "new"))
    },
  ]

  @Test(
    "A-173 the account's history records sign-ins, codes and rights for the operator",
    arguments: signIns + codes + rights)
  func kept(_ eventCase: EventCase) async throws {
    let log = CapturedLog()
    try await withScene(log) { scene in
      let before = try await scene.history().first?.sequence ?? 0
      try await eventCase.act(scene)
      let new = try await scene.history().filter { $0.sequence > before && $0.account == "ada" }
      #expect(
        new.contains { $0.event == eventCase.event && $0.detail.contains(eventCase.detail) },
        "\(new.map { "\($0.event) \($0.detail)" })")
      #expect(try await scene.backend.trail.verify().fault == nil)
      if let reason = eventCase.reason { #expect(log.lines.last?.metadata["reason"] == reason) }
    }
  }

  @Test("A-146 the log names the failed step of a refusal, and the answer does not")
  func reasons() async throws {
    let log = CapturedLog()
    try await withScene(log) { scene in
      let phone = TestPhone(username: "nobody")
      let answer = try await scene.backend.signIn(phone)
      #expect(answer.status == 401 && answer["error"] == "Authentication failed")
      let line = try #require(log.lines.last)
      #expect(line.metadata["code"] == "authentication_failed" && line.metadata["reason"] == "device_unknown")
      #expect(!answer.json.map(\.encoded).debugDescription.contains("device_unknown"))
    }
  }

  @Test("X-053 the pages of the history contain every entry once, newest first")
  func pages() async throws {
    try await withScene(CapturedLog()) { scene in
      let root = TestPhone(username: "root")
      let (token, _) = try await scene.backend.setUp(root)
      try await scene.administer { try await $0.setAdmin(true, Username("root"), by: $1) }
      let now = scene.backend.clock.now
      try await scene.backend.context.store.write { records in
        for _ in 1...230 {
          let last = try #require(try records.lastAuditEntry())
          try records.append(
            AuditEntry(
              sequence: last.sequence + 1, at: now, requestID: "test", actor: "test", account: "ada", event: "test",
              detail: "", previous: last.hash, keyNumber: last.keyNumber), hash: last.hash)
        }
      }
      let path = "/admin/users/ADA/history"
      let all = try await scene.history().filter { $0.account == "ada" }.map(\.sequence)
      var (seen, next): ([Int64], String) = ([], "")
      for _ in 1...10 {
        let page = try await scene.backend.get(path + next, as: root.app, token: token)
        let entries = page["entries"]
        #expect(entries?.count ?? 0 <= 100)
        seen += (0..<(entries?.count ?? 0)).compactMap { entries?[$0]?["sequence"]?.int.map(Int64.init) }
        // A new entry between two pages does not shift them.
        _ = try await scene.backend.signIn(scene.ada)
        guard let before = page["next"]?.int else { break }
        next = "?before=\(before)"
      }
      #expect(all.count > 230 && seen == all)
    }
  }
}
