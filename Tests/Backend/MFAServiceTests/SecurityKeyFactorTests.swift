import ByteCoding
import Foundation
import Logging
import MFADomain
import MFAFixtures
import MFAService
import Testing

@Suite("Security keys as a factor")
struct SecurityKeyFactorTests {
  @Test(
    "A-223 a security key is a recent proof, and registering and removing one need a recent proof",
    arguments: Wire.allCases)
  func fresh(_ wire: Wire) async throws {
    try await KeyScene.with(wire) { scene async throws in
      let (key, id) = try await scene.key()
      scene.backend.clock.advance(by: .seconds(301))
      for (operation, body) in [
        ("webauthn.registration-options", [:]), ("webauthn.remove-key", ["id": id]),
        ("webauthn.register", try TestSecurityKey().register("AAAA").json), ("mfa.unenroll", scene.phone.naming),
      ] as [(String, JSONValue)] {
        let answer = try await scene.client.call(operation, body, token: scene.token)
        #expect(answer["code"] == "insufficient_user_authentication", "\(operation)")
      }
      #expect(try await scene.client.prove(key, token: scene.token)["token"] != nil)
      #expect(try await scene.client.call("webauthn.remove-key", ["id": id], token: scene.token)["message"] != nil)
      #expect(try await scene.client.call("mfa.unenroll", scene.phone.naming, token: scene.token)["success"] == true)
    }
  }

  @Test("A-223 a trusted device skips the security key, and can then neither add nor remove a factor")
  func trust() async throws {
    try await KeyScene.with { scene async throws in
      let (key, id) = try await scene.key()
      let pending = try await scene.pending()
      let proved = try await scene.client.prove(key, token: pending, ["trust_device": true, "device_name": "Mine"])
      let trust = try #require(proved["trust_token"]?.text)
      #expect(try await scene.status(scene.token)["trusted_devices_count"] == 1)
      let challenge = try await scene.backend.challenge(scene.phone)
      var body = try #require(try scene.backend.proof(scene.phone, of: challenge).members)
      body["trustToken"] = .string(trust)
      let signedIn = try await scene.backend.post("/auth/verify-signature", .object(body), as: scene.phone.app)
      #expect(signedIn["scope"] == "full")
      let token = signedIn["token"]?.text ?? ""
      for (operation, body) in [
        ("webauthn.registration-options", [:]), ("webauthn.remove-key", ["id": id]), ("mfa.enroll-totp", [:]),
        ("mfa.offer-email", ["email": "ada@example.com"]),
      ] as [(String, JSONValue)] {
        #expect(try await scene.client.call(operation, body, token: token)["code"] == "mfa_required", "\(operation)")
      }
      // After the key has been given, it can.
      #expect(try await scene.client.prove(key, token: token)["token"] != nil)
      #expect(try await scene.client.call("mfa.enroll-totp", [:], token: token)["secret"] != nil)
      // Removing the last factor removes trust.
      #expect(try await scene.client.call("webauthn.remove-key", ["id": id], token: token)["message"] != nil)
      let status = try await scene.status(token)
      #expect(status["enabled"] == false && status["trusted_devices_count"] == 0 && status["methods"] == [])
    }
  }

  @Test("B-085 a network is known after a sign-in with the key in it")
  func network() async throws {
    var policy = Policy.withSecurityKeys()
    policy.bindsTrustToNetwork = true
    try await KeyScene.with(policy: policy) { scene async throws in
      let (key, _) = try await scene.key()
      let proved = try await scene.client.prove(
        key, token: try await scene.pending(), ["trust_device": true, "device_name": "Mine"])
      let trust = try #require(proved["trust_token"])
      let there = scene.phone.at("198.51.100.7")
      func signIn() async throws -> Answer {
        let challenge = try await scene.backend.challenge(there)
        var body = try #require(try scene.backend.proof(there, of: challenge).members)
        body["trustToken"] = trust
        return try await scene.backend.post("/auth/verify-signature", .object(body), as: there.app)
      }
      let first = try await signIn()
      #expect(first["scope"] == "mfa")
      try await AppClient.with(scene.backend, .rest, as: there.app) { client in
        _ = try await client.prove(key, token: try #require(first["token"]?.text))
      }
      #expect(try await signIn()["scope"] == "full")
    }
  }

  @Test("A-223 a debug build is not trusted, even on request")
  func debugBuild() async throws {
    try await TestBackend.with(policy: .withSecurityKeys()) { backend in
      let phone = TestPhone(app: .debugBuild)
      let token = try await backend.token(phone)
      try await AppClient.with(backend, .rest, as: phone.app) { client in
        let key = try TestSecurityKey()
        #expect(try await client.register(key, token: token)["id"] != nil)
        let proved = try await client.prove(key, token: backend.pendingToken(phone), ["trust_device": true])
        #expect(proved["token"] != nil && proved["trust_token"] == nil)
      }
    }
  }

  @Test("A-223 with an authenticator and a security key, either one is accepted, and disabling removes both")
  func besideAuthenticator() async throws {
    try await TestBackend.with(policy: .withSecurityKeys()) { backend in
      let phone = TestPhone()
      let (token, authenticator) = try await backend.setUp(phone)
      try await AppClient.with(backend, .rest, as: phone.app) { client in
        let key = try TestSecurityKey()
        #expect(try await client.register(key, token: token)["id"] != nil)
        let status = try await client.call("mfa.status", token: token)
        #expect(status["methods"] == ["totp", "backup_code", "webauthn"])
        #expect(try await client.prove(key, token: backend.pendingToken(phone))["token"] != nil)
        let pending = try await backend.pendingToken(phone)
        // The method webauthn is not accepted for a code.
        let named = try await backend.verifyLogin("123456", phone, token: pending, ["method": "webauthn"])
        #expect(named.status == 400 && named["error"] == "method must be totp, email or backup_code")
        #expect(try await backend.verifyLogin(authenticator.code(), phone, token: pending).status == 200)
        backend.clock.advance(by: .seconds(30))
        let disabled = try await client.call("mfa.disable", ["code": .string(authenticator.code())], token: token)
        #expect(disabled["message"] == "MFA disabled successfully")
        #expect(try await client.call("webauthn.keys", token: token)["keys"] == [])
        #expect(try await backend.signIn(phone)["scope"] == "full")
      }
    }
  }

  @Test("A-223 a user with security keys only cannot use backup codes of an offered authenticator or codes by e-mail")
  func keysAlone() async throws {
    try await KeyScene.with { scene async throws in
      let authenticator = try await scene.backend.offerAuthenticator(scene.phone, token: scene.token)
      let email: JSONValue = ["email": "ada@example.com"]
      _ = try await scene.client.call("mfa.offer-email", email, token: scene.token)
      let code = JSONValue.string(scene.backend.outbox.lastCode ?? "")
      #expect(
        try await scene.client.call("mfa.verify-email", email.with(["code": code]), token: scene.token)["message"]
          != nil)
      _ = try await scene.key()
      let pending = try await scene.pending()
      #expect(try await scene.status(pending)["methods"] == ["webauthn"])
      scene.backend.clock.advance(by: .seconds(60))
      _ = try await scene.client.call("mfa.resend-email-otp", [:], token: pending)
      for guess in [authenticator.code(), authenticator.backupCodes[0], scene.backend.outbox.lastCode ?? ""] {
        let answer = try await scene.backend.verifyLogin(guess, scene.phone, token: pending)
        #expect(answer["code"] == "not_enabled", "\(guess)")
      }
    }
  }

  @Test("A-223 a session that must set up a second factor can register a security key")
  func duty() async throws {
    let policy = Policy.withSecurityKeys {
      $0.secondFactorPolicy = .everyone
      $0.gracePeriod = .zero
    }
    try await KeyScene.with(policy: policy) { scene async throws in
      #expect(try await scene.client.call("webauthn.keys", token: scene.token)["code"] == "mfa_required")
      let (key, _) = try await scene.key()
      #expect(try await scene.client.call("webauthn.keys", token: scene.token)["keys"]?.count == 1)
      #expect(try await scene.backend.signIn(scene.phone)["scope"] == "mfa")
      #expect(try await scene.client.prove(key, token: scene.pending())["token"] != nil)
    }
  }

  @Test("A-223 an operator's reset removes the security keys", arguments: TestDatabase.allCases)
  func reset(_ database: TestDatabase) async throws {
    try await KeyScene.with(.rest, database) { scene async throws in
      _ = try await scene.key()
      let administration = Administration(scene.backend.context)
      let accounts = try await administration.accounts(after: nil, atMost: 10, by: .command(name: "test"))
      #expect(accounts.first?.secondFactorSince == scene.backend.clock.now && accounts.first?.securityKeys == 1)
      let code = try await administration.resetFactors(Username("testuser"), by: .command(name: "test"))
      let store = scene.backend.context.store
      let left = try await store.read { records in
        try records.user(named: "testuser").map { try records.securityKeys(of: $0.id).count }
      }
      #expect(left == 0)
      let phone = TestPhone()
      let enrolled = try await scene.backend.post(
        "/mfa/enroll", phone.enrolment().with(["linkCode": .string(code)]), as: phone.app)
      #expect(enrolled.status == 200)
      #expect(try await scene.backend.signIn(phone)["scope"] == "full")
    }
  }

  @Test(
    "A-224 the user's devices get notices, and the history records each step and verifies",
    arguments: TestDatabase.allCases)
  func noticesAndHistory(_ database: TestDatabase) async throws {
    try await KeyScene.with(.rest, database) { scene async throws in
      let (key, id) = try await scene.key()
      _ = try await scene.client.prove(key, token: scene.token)
      _ = try await scene.client.call("webauthn.rename-key", ["id": id, "name": "Red"], token: scene.token)
      _ = try await scene.client.call("webauthn.remove-key", ["id": id], token: scene.token)
      #expect(
        try await scene.notices() == [
          "deviceEnrolled", "securityKeyAdded", "mfaEnabled", "securityKeyRemoved", "mfaDisabled",
        ])
      let number = "key=\(id.text ?? "")"
      #expect(
        try await scene.history().filter { $0.event.hasPrefix("security_key.") }.map { "\($0.event) \($0.detail)" } == [
          "security_key.removed \(number)", "security_key.renamed \(number)", "security_key.accepted \(number)",
          "security_key.registered \(number)",
        ])
      #expect(try await scene.backend.trail.verify().fault == nil)
    }
  }

  @Test("A-224 an open socket of the user receives a notice of a new security key")
  func noticeOnSocket() async throws {
    try await KeyScene.with { scene async throws in
      try await TestSocket.with(scene.backend, as: scene.phone.app, token: scene.token) { socket in
        _ = try await socket.call("mfa.status", [:])
        _ = try await scene.key()
        let notice = try await socket.next { $0["params"]?["kind"] == "securityKeyAdded" }
        #expect(notice["method"] == "notice")
      }
    }
  }

  @Test("A-224 expired challenges are deleted", arguments: TestDatabase.allCases)
  func maintenance(_ database: TestDatabase) async throws {
    try await KeyScene.with(.rest, database) { scene async throws in
      _ = try await scene.key()
      let store = scene.backend.context.store
      let session = try #require(
        try await store.read { records in
          try records.user(named: "testuser").flatMap { try records.sessions(of: $0.id).first }
        })
      func isKept() async throws -> Bool {
        try await store.read { try $0.keyChallenge(.registration, of: session.id) } != nil
      }
      try await RecordMaintenance(scene.backend.context).clean()
      #expect(try await isKept())
      scene.backend.clock.advance(by: .seconds(301))
      try await RecordMaintenance(scene.backend.context).clean()
      #expect(try await !isKept())
    }
  }

  // MARK: Disabled

  static let operations: [(String, JSONValue)] = [
    ("webauthn.registration-options", [:]), ("webauthn.keys", [:]), ("webauthn.authentication-options", [:]),
    ("webauthn.rename-key", ["id": "00000000-0000-4000-8000-000000000000", "name": "x"]),
    ("webauthn.remove-key", ["id": "00000000-0000-4000-8000-000000000000"]),
  ]

  @Test(
    "B-085 without a relying party, every operation of security keys answers that it is unavailable",
    arguments: Wire.allCases)
  func off(_ wire: Wire) async throws {
    let log = CapturedLog()
    try await TestBackend.with(logger: log.logger) { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      let key = try TestSecurityKey()
      let given = [
        ("webauthn.register", try key.register("AAAA").json),
        ("webauthn.verify-login", try key.authenticate("AAAA").json),
      ]
      try await AppClient.with(backend, wire, as: phone.app) { client in
        for (operation, body) in Self.operations + given {
          let answer = try await client.call(operation, body, token: token)
          #expect(
            answer["code"] == "unavailable" && answer["error"] == "Security keys are turned off", "\(operation)"
          )
        }
        #expect(
          Set((Self.operations + given).map(\.0))
            == Set(backend.operations.map(\.name).filter { $0.hasPrefix("webauthn.") }))
        #expect(try await client.call("mfa.status", token: token)["methods"] == [])
      }
      // A feature that the operator has not enabled is no error of the server.
      #expect(!log.lines.contains { $0.level >= .warning })
    }
  }

  @Test(
    "B-085 after security keys are disabled again, registered ones still count as a second factor",
    arguments: Wire.allCases
  )
  func offAgain(_ wire: Wire) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      let key = try TestSecurityKey()
      let made = try TestSecurityKey.party.verify(
        key.register("BwcH"), challenge: [7, 7, 7])
      let now = backend.clock.now
      try await backend.context.store.write { records in
        let user = try #require(try records.user(named: phone.username))
        try records.insert(
          SecurityKey(
            id: UUID(), userID: user.id, credentialID: made.id, publicKey: made.publicKey, signatureCount: 0,
            isBackupEligible: false, isBackedUp: false, transports: [], name: DeviceModel("Left"), createdAt: now))
      }
      let pending = try await backend.pendingToken(phone)
      try await AppClient.with(backend, wire, as: phone.app) { client in
        let status = try await client.call("mfa.status", token: pending)
        #expect(status["enabled"] == true && status["challenge_required"] == true && status["methods"] == [])
        #expect(try await client.prove(key, token: pending)["code"] == "unavailable")
        #expect(
          try await client.call("devices.list", ["username": "testuser"], token: pending)["code"] == "mfa_required")
      }
    }
  }
}
