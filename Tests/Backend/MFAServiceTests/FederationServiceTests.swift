import ByteCoding
import Foundation
import Logging
import MFADomain
import MFAFixtures
@testable import MFAService
import MFAStore
import OIDCClient
import Testing

/// A phone with a session and an authenticator, on a backend with an identity provider.
private struct ProviderScene: Sendable {
  let provider: TestProvider
  let backend: TestBackend
  let phone: TestPhone
  let token: String
  let authenticator: TestAuthenticator
  let client: AppClient

  static func with(
    _ wire: Wire = .rest, _ database: TestDatabase = .sqlite, _ body: (ProviderScene) async throws -> Void
  ) async throws {
    let provider = TestProvider()
    try await TestBackend.with(store: try await database.open(), provider: provider) { backend in
      let phone = TestPhone()
      let (token, authenticator) = try await backend.setUp(phone)
      try await AppClient.with(backend, wire, as: phone.app) { client in
        try await body(
          ProviderScene(
            provider: provider, backend: backend, phone: phone, token: token, authenticator: authenticator,
            client: client))
      }
    }
  }

  /// A new answer of the provider to a challenge of `client`.
  func identity(
    of client: AppClient? = nil, subject: String = "ada", _ change: (inout ProviderClaims) -> Void = { _ in }
  ) async throws -> JSONValue {
    try await (client ?? self.client).identity(from: provider, subject: subject, at: backend.clock.now, change)
  }

  /// Connects the account to the user `ada` of the provider.
  func connect() async throws {
    let answer = try await client.call("auth.oidc-bind", identity(), token: token)
    #expect(answer["message"] == "Identity provider connected", "\(answer)")
  }

  func history() async throws -> [String] {
    try await Administration(backend.context).history(of: nil, before: nil, atMost: 1000, by: .command(name: "test"))
      .reversed().filter { $0.event.hasPrefix("identity.") }.map { ($0.event + " " + $0.detail) }
  }
}

@Suite("Signing in with an identity provider, over both transports", .serialized, .timeLimit(.minutes(5)))
struct FederationServiceTests {
  @Test(
    "B-050 an ID token alone opens nothing, and with the second factor it is a full session",
    arguments: Wire.allCases, TestDatabase.allCases)
  func signIn(_ wire: Wire, _ database: TestDatabase) async throws {
    try await ProviderScene.with(wire, database) { scene async throws in
      try await scene.connect()
      let first = try await scene.client.call("auth.oidc", scene.identity())
      #expect(first["scope"] == "mfa", "\(first)")
      let pending = try #require(first["token"]?.text)
      for (operation, body) in [
        ("devices.list", ["username": "testuser"]), ("auth.oidc-identities", [:]), ("auth.oidc-unbind", [:]),
        ("auth.oidc-bind", try await scene.identity()), ("mfa.enroll-totp", [:]), ("mfa.link", [:]),
      ] as [(String, JSONValue)] {
        let answer = try await scene.client.call(operation, body, token: pending)
        #expect(answer["code"] == "mfa_required", "\(operation): \(answer)")
      }
      #expect(try await scene.client.call("mfa.status", token: pending)["challenge_required"] == true)
      let second = try await scene.client.call(
        "mfa.verify-login", ["code": .string(scene.authenticator.code())], token: pending)
      let full = try #require(second["token"]?.text, "\(second)")
      let list = try await scene.client.call("devices.list", ["username": "testuser"], token: full)
      #expect(list["devices"]?.count == 1)
      let identities = try await scene.client.call("auth.oidc-identities", token: full)["identities"]
      #expect(identities?[0]?["issuer"] == .string(scene.provider.issuer) && identities?[0]?["subject"] == "ada")
      #expect(
        try await scene.history() == [
          "identity.connected ", "identity.accepted device=\(scene.phone.deviceID)",
        ])
      #expect(try await scene.backend.trail.verify().fault == nil)
    }
  }

  @Test(
    "B-050 of 20 parallel uses of one token exactly one succeeds, on both databases", arguments: TestDatabase.allCases)
  func once(_ database: TestDatabase) async throws {
    try await ProviderScene.with(.rest, database) { scene async throws in
      try await scene.connect()
      let (body, backend, app) = (try await scene.identity(), scene.backend, scene.phone.app)
      let answers = try await withThrowingTaskGroup { group in
        for _ in 1...20 { group.addTask { try await backend.post("/auth/oidc", body, as: app) } }
        return try await group.reduce(into: [Answer]()) { $0.append($1) }
      }
      #expect(answers.count { $0.status == 200 } == 1)
      #expect(answers.count { $0.status == 401 && $0["code"] == "authentication_failed" } == 19)
    }
  }

  @Test(
    "B-050 the answer to a wrong token, an unknown user, a used and a foreign challenge is the same",
    arguments: Wire.allCases)
  func refusals(_ wire: Wire) async throws {
    try await ProviderScene.with(wire) { scene async throws in
      try await scene.connect()
      let used = try await scene.identity()
      _ = try await scene.client.call("auth.oidc", used)
      let (foreign, thief) = (try await scene.identity(), AppInstance.genuine())
      let own = [
        try await scene.identity { $0.aud = ["another"] }, try await scene.identity { $0.nonce = "another" },
        try await scene.identity(subject: "eve"), used,
        foreign.with(["challengeId": "00000000-0000-4000-8000-000000000000"]), foreign.with(["idToken": "a.b.c"]),
      ]
      var answers: [JSONValue] = []
      for body in own { answers.append(try await scene.client.call("auth.oidc", body)) }
      try await AppClient.with(scene.backend, wire, as: thief) { client in
        answers.append(try await client.call("auth.oidc", foreign))
        answers.append(try await client.call("auth.oidc", scene.identity(of: client)))
      }
      for answer in answers {
        #expect(
          answer.with(["requestId": nil])
            == [
              "success": false, "error": "Authentication failed", "message": "Authentication failed",
              "code": "authentication_failed", "requestId": nil,
            ])
      }
      #expect(
        try await scene.history().filter { $0.hasPrefix("identity.refused") }.map { $0.split(separator: "=")[1] } == [
          "wrong_audience", "wrong_nonce", "identity_unknown", "challenge_used", "challenge_unknown",
          "token_malformed", "attested_key", "device_unknown",
        ])
      // The token of the foreign challenge is still good for its owner.
      #expect(try await scene.client.call("auth.oidc", foreign)["scope"] == "mfa")
    }
  }

  @Test(
    "a subject with U+0000, another control character or a line separator is no user, and never another one",
    arguments: TestDatabase.allCases)
  func cutSubjects(_ database: TestDatabase) async throws {
    try await ProviderScene.with(.rest, database) { scene async throws in
      try await scene.connect()
      for subject in ["ada\u{0}evil", "ada\u{0}", "\u{0}", "ada\n", "ada\u{85}", "ada\u{2028}", "ada\u{FE0F}"] {
        let answer = try await scene.client.call("auth.oidc", scene.identity(subject: subject))
        #expect(answer["code"] == "authentication_failed", "\(subject.debugDescription): \(answer)")
        let new = TestPhone(username: "eve", app: scene.phone.app)
        let enrolled = try await scene.client.call(
          "mfa.enroll", new.enrolment().with(try #require(try await scene.identity(subject: subject).members)))
        #expect(enrolled["code"] == "authentication_failed", "\(subject.debugDescription): \(enrolled)")
      }
      #expect(Set(try await scene.history().dropFirst()) == ["identity.refused reason=wrong_subject"])
      // The same letters in another composition are another user of the provider.
      for subject in ["jos\u{E9}", "jose\u{301}"] {
        let user = ProviderSubject(issuer: scene.provider.issuer, subject: subject)
        #expect(try await scene.backend.context.store.read { try $0.federatedIdentity(of: user) } == nil)
      }
      #expect(
        ProviderSubject(issuer: "i", subject: "jos\u{E9}") != ProviderSubject(issuer: "i", subject: "jose\u{301}"))
      #expect(try await scene.client.call("auth.oidc", scene.identity())["scope"] == "mfa")
    }
  }

  @Test(
    "B-050 an account that is connected at its first enrolment must set up a second factor", arguments: Wire.allCases)
  func firstEnrolment(_ wire: Wire) async throws {
    let provider = TestProvider()
    try await TestBackend.with(provider: provider) { backend in
      let phone = TestPhone()
      try await AppClient.with(backend, wire, as: phone.app) { client in
        let body = phone.enrolment().with(
          try #require(try await client.identity(from: provider, at: backend.clock.now).members))
        let enrolled = try await client.call("mfa.enroll", body)
        #expect(enrolled["success"] == true, "\(enrolled)")
        // The answer was lost: the app sends the same again.
        #expect(try await client.call("mfa.enroll", body) == enrolled)
        let first = try await client.call(
          "auth.oidc", client.identity(from: provider, at: backend.clock.now))
        #expect(first["scope"] == "mfa_setup")
        let token = try #require(first["token"]?.text)
        #expect(
          try await client.call("devices.list", ["username": "testuser"], token: token)["code"] == "mfa_required")
        let authenticator = try await backend.offerAuthenticator(phone, token: token)
        let confirmed = try await client.call(
          "mfa.verify-enrollment", ["code": .string(authenticator.code())], token: token)
        #expect(confirmed["message"] != nil, "\(confirmed)")
        #expect(try await client.call("devices.list", ["username": "testuser"], token: token)["devices"] != nil)
      }
    }
  }

  @Test("an identity is connected to one account, and can be disconnected", arguments: Wire.allCases)
  func connection(_ wire: Wire) async throws {
    try await ProviderScene.with(wire) { scene async throws in
      try await scene.connect()
      let other = TestPhone(username: "bob")
      let token = try await scene.backend.token(other)
      try await AppClient.with(scene.backend, wire, as: other.app) { client in
        let taken = try await client.call("auth.oidc-bind", scene.identity(of: client), token: token)
        #expect(taken["code"] == "identity_connected")
        let body = TestPhone(username: "carol", app: other.app).enrolment().with(
          try #require(try await scene.identity(of: client).members))
        #expect(try await client.call("mfa.enroll", body)["code"] == "identity_connected")
      }
      let unbound = try await scene.client.call("auth.oidc-unbind", [:], token: scene.token)
      #expect(unbound["message"] == "Identity provider disconnected")
      #expect(try await scene.client.call("auth.oidc-unbind", [:], token: scene.token)["code"] == "not_found")
      #expect(try await scene.client.call("auth.oidc", scene.identity())["code"] == "authentication_failed")
      #expect(try await scene.client.call("auth.oidc-identities", token: scene.token)["identities"] == [])
      let notices = try await scene.client.call("notices.list", [:], token: scene.token)["notices"]
      let kinds = (0..<(notices?.count ?? 0)).compactMap { notices?[$0]?["kind"]?.text }
      #expect(kinds.suffix(2) == ["identityConnected", "identityDisconnected"])
    }
  }

  @Test("a malformed field is named", arguments: Wire.allCases)
  func fields(_ wire: Wire) async throws {
    try await ProviderScene.with(wire) { scene async throws in
      let good = try await scene.identity()
      for (field, value) in [
        ("challengeId", "x"), ("idToken", ""), ("idToken", .string(String(repeating: "a", count: 49_153))),
      ] as [(String, JSONValue)] {
        let answer = try await scene.client.call("auth.oidc", good.with([field: value]))
        #expect(answer["code"] == "invalid_request" && answer["error"]?.text?.hasPrefix(field) == true, "\(answer)")
      }
      // The longest token fits into a request and a message.
      let longest = good.with(["idToken": .string(String(repeating: "a", count: 49_152))])
      #expect(try await scene.client.call("auth.oidc", longest)["code"] == "authentication_failed")
      let new = TestPhone(username: "eve", app: scene.phone.app)
      let alone = try await scene.client.call("mfa.enroll", new.enrolment().with(["idToken": good["idToken"] ?? nil]))
      #expect(alone["error"] == "challengeId is required with idToken", "\(alone)")
      // An account that exists is connected by its session alone.
      let second = TestPhone(app: scene.phone.app)
      let answer = try await scene.client.call(
        "mfa.enroll", second.enrolment().with(try #require(good.members)), token: scene.token)
      #expect(answer["code"] == "invalid_request")
    }
  }

  @Test("without a provider the operations answer that they are unavailable, which is no fault of the server")
  func off() async throws {
    let log = CapturedLog()
    try await TestBackend.with(logger: log.logger) { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      let body: JSONValue = ["challengeId": "00000000-0000-4000-8000-000000000000", "idToken": "a.b.c"]
      try await AppClient.with(backend, .rest, as: phone.app) { client in
        for (operation, body) in [("auth.oidc-challenge", [:]), ("auth.oidc", body), ("auth.oidc-bind", body)] {
          let answer = try await client.call(operation, body, token: token)
          #expect(
            answer["code"] == "unavailable"
              && answer["error"] == "Signing in with an identity provider is turned off", "\(operation)")
        }
        #expect(try await client.call("auth.oidc-identities", token: token)["identities"] == [])
      }
      #expect(!log.lines.contains { $0.level >= .warning })
    }
  }

  @Test("a provider without reachable keys is an outage with 503, which the log reports as an error")
  func outage() async throws {
    let (log, provider) = (CapturedLog(), TestProvider())
    try await TestBackend.with(provider: provider, logger: log.logger) { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      try await AppClient.with(backend, .rest, as: phone.app) { client in
        let body = try await client.identity(from: provider, at: backend.clock.now)
        provider.isAvailable = false
        let answer = try await backend.post("/auth/oidc", body, as: phone.app)
        #expect(answer.status == 503 && answer.headers["retry-after"] == "1")
        #expect(
          log.lines.contains {
            $0.level == .error && $0.metadata["reason"]?.contains("keys of the identity provider") == true
          })
      }
    }
  }
}

@Suite("Rejections of ID tokens")
struct FederationRejectionTests {
  @Test(
    "the history names the rule of an ID token by the code of its verifier",
    arguments: [
      IDTokenRejection.malformed(""), .type("at+jwt"), .issuer(nil), .audience([]), .authorizedParty(nil),
      .algorithm("none"),
      .unknownKey(nil), .ambiguousKey, .signature, .expired, .issuedAt, .nonce, .accessTokenHash, .subject,
    ])
  func codes(_ rejection: IDTokenRejection) {
    #expect(FederationRejection(rejection).rawValue == rejection.code)
    #expect(MFARefusal.federationRefused(FederationRejection(rejection)).cause == rejection.code)
  }
}

@Suite("Store of identities", .serialized, .timeLimit(.minutes(5)))
struct FederationStoreTests {
  @Test(
    "the database refuses a second account for a subject, and a second subject of an issuer for an account",
    arguments: TestDatabase.allCases)
  func unique(_ database: TestDatabase) async throws {
    let (store, now) = (try await database.open(), Timestamp(seconds: 1_767_225_600))
    let users = try ["ada", "bob"].map { MFADomain.User(id: UUID(), username: try Username($0), createdAt: now) }
    func identity(_ user: MFADomain.User, _ issuer: String, _ subject: String) -> FederatedIdentity {
      FederatedIdentity(
        userID: user.id, subject: ProviderSubject(issuer: issuer, subject: subject), createdAt: now)
    }
    let first = identity(users[0], "https://a", "1")
    try await store.write { records in
      for user in users { try records.insert(user) }
      try records.insert(first)
    }
    for second in [identity(users[1], "https://a", "1"), identity(users[0], "https://a", "2")] {
      await #expect(throws: MFAStoreError.self) { try await store.write { try $0.insert(second) } }
    }
    // The same subject of another issuer is another user.
    let others = [identity(users[1], "https://b", "1"), identity(users[0], "https://b", "2")]
    try await store.write { records in for other in others { try records.insert(other) } }
    #expect(try await store.read { try $0.federatedIdentities(of: users[0].id) } == [first, others[1]])
    #expect(try await store.read { try $0.federatedIdentity(of: others[0].subject) } == others[0])
    let used = FederatedIdentity(
      userID: first.userID, subject: first.subject, createdAt: now, lastUsedAt: now.advanced(by: .seconds(5)))
    try await store.write { try $0.update(used) }
    #expect(try await store.read { try $0.federatedIdentity(of: used.subject) } == used)
    #expect(try await store.write { try $0.removeFederatedIdentities(of: users[0].id) } == 2)
    #expect(try await store.read { try $0.federatedIdentity(of: first.subject) } == nil)
  }

  @Test("of 50 simultaneous uses of a challenge one succeeds; at its expiry none", arguments: TestDatabase.allCases)
  func spent(_ database: TestDatabase) async throws {
    let (store, now) = (try await database.open(), Timestamp(seconds: 1_767_225_600))
    let challenges = (1...2).map { _ in
      FederationChallenge(
        id: UUID(), bytes: [UInt8](repeating: 7, count: 32), binding: .attestedKey("k"),
        expiresAt: now.advanced(by: FederationChallenge.lifetime))
    }
    try await store.write { records in for challenge in challenges { try records.insert(challenge) } }
    let count = try await withThrowingTaskGroup { group in
      for _ in 1...50 {
        group.addTask {
          try await store.write { try $0.spend(federationChallenge: challenges[0].id, at: now) } ? 1 : 0
        }
      }
      return try await group.reduce(0, +)
    }
    #expect(count == 1)
    let (second, end) = (challenges[1], challenges[1].expiresAt)
    #expect(try await store.write { try $0.spend(federationChallenge: second.id, at: end) } == false)
    #expect(try await store.read { try $0.federationChallenge(second.id) } == second)
    #expect(
      try await store.write { try $0.removeFederationChallenges(expiredBefore: end, atMost: 9) } == 0)
    let later = Timestamp(milliseconds: end.milliseconds + 1)
    #expect(try await store.write { try $0.removeFederationChallenges(expiredBefore: later, atMost: 9) } == 2)
  }
}
