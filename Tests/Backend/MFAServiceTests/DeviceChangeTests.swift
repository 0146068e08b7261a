import Crypto
import MFADomain
import MFAFixtures
import Testing

@Suite("Upgrade, downgrade, removal")
struct DeviceChangeTests {
  @Test("A-081 unenrolment answers with the documented JSON, and removes the device with its key and tokens")
  func unenrol() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      let tokens = try await backend.signIn(phone)
      let token = try #require(tokens["token"]?.text)
      let answer = try await backend.post("/mfa/unenroll", phone.naming, as: phone.app, token: token)
      #expect(answer.status == 200)
      #expect(answer.json == ["success": true, "message": "Device unenrolled"])
      #expect(try await backend.challenge(phone).status == 404)
      // Its sessions end with it.
      #expect(try await backend.get("/devices/testuser", as: phone.app, token: token).status == 401)
      let refreshed = try await backend.post(
        "/auth/token/refresh", ["refreshToken": try #require(tokens["refreshToken"])], as: phone.app)
      #expect(refreshed.status == 401)
      let status = try await backend.get("/device/\(phone.deviceID)/status", as: phone.app)
      #expect(status["enrolled"] == false && status["hasPublicKey"] == false)
    }
  }

  @Test("A-081 an open challenge of a removed device is refused")
  func unenrolTakesChallenges() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      let challenge = try await backend.challenge(phone)
      _ = try await backend.post("/mfa/unenroll", phone.naming, as: phone.app, token: token)
      let answer = try await backend.post("/auth/verify-signature", backend.proof(phone, of: challenge), as: phone.app)
      #expect(answer.status == 401)
    }
  }

  @Test("A-082 the upgrade of an SMS device answers with the documented JSON, and the new key signs in")
  func upgrade() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone, method: "smsOTP")
      _ = try await backend.challenge(phone)
      let code = backend.outbox.lastCode ?? ""
      let token = try await backend.post(
        "/auth/verify-otp", ["username": "testuser", "otp": .string(code)], as: phone.app)["token"]?.text
      var body = try #require(phone.naming.members)
      body["publicKey"] = .string(phone.publicKey)
      let answer = try await backend.post("/mfa/upgrade", .object(body), as: phone.app, token: token)
      #expect(
        answer.json == ["success": true, "method": "secureEnclave", "message": "Upgraded to Secure Enclave MFA"])
      #expect(try await backend.signIn(phone).status == 200)
    }
  }

  @Test("T-9 A-S10 after the replacement of a key, the old key is refused and the new one signs in")
  func replaceKey() async throws {
    try await TestBackend.with { backend in
      let old = TestPhone()
      let token = try await backend.token(old)
      var new = old
      new.key = P256.Signing.PrivateKey()
      var body = try #require(new.naming.members)
      body["publicKey"] = .string(new.publicKey)
      body["authMethod"] = "passcode"
      #expect(try await backend.post("/mfa/upgrade", .object(body), as: new.app, token: token).status == 200)
      #expect(try await backend.signIn(old).status == 401)
      #expect(try await backend.signIn(new).status == 200)
    }
  }

  /// The number of entries of the history with this event.
  private func count(_ event: AuditEvent, _ backend: TestBackend) async throws -> Int {
    try await backend.context.store.read { records in
      try records.auditEntries(before: .max, account: "testuser", atMost: 100).count { $0.event == event.rawValue }
    }
  }

  @Test("A-082 an upgrade that is repeated with the same key changes nothing, and the history has it once")
  func upgradeAgain() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      var body = try #require(phone.naming.members)
      body["publicKey"] = .string(TestPhone().publicKey)
      for _ in 1...2 {
        let answer = try await backend.post("/mfa/upgrade", .object(body), as: phone.app, token: token)
        #expect(answer.status == 200 && answer["method"] == "secureEnclave")
      }
      #expect(try await count(.deviceUpgraded, backend) == 1)
      body["authMethod"] = "passcode"
      #expect(try await backend.post("/mfa/upgrade", .object(body), as: phone.app, token: token).status == 200)
      #expect(try await count(.deviceUpgraded, backend) == 2)
    }
  }

  @Test("A-083 a repeated downgrade changes nothing, and a session that began by a code meanwhile stays valid")
  func downgradeAgain() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      _ = try await backend.token(phone)
      #expect(try await backend.post("/mfa/downgrade", phone.naming, as: phone.app).status == 200)
      _ = try await backend.challenge(phone)
      let code: JSONValue = .string(backend.outbox.lastCode ?? "")
      let signedIn = try await backend.post("/auth/verify-otp", ["username": "testuser", "otp": code], as: phone.app)
      let token = signedIn["token"]?.text
      let again = try await backend.post("/mfa/downgrade", phone.naming, as: phone.app)
      #expect(again.json == ["success": true, "method": "smsOTP", "message": "Downgraded to SMS OTP"])
      #expect(try await backend.get("/devices/testuser", as: phone.app, token: token).status == 200)
      #expect(try await count(.deviceDowngraded, backend) == 1)
      let notices = try await backend.get("/auth/notices", as: phone.app, token: token)["notices"]
      let kinds = (0..<(notices?.count ?? 0)).compactMap { notices?[$0]?["kind"]?.text }
      #expect(kinds == ["deviceEnrolled", "methodChanged", "sessionRevoked"])
    }
  }

  @Test("A-083 a downgrade answers with the documented JSON, and removes the key")
  func downgrade() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      let answer = try await backend.post("/mfa/downgrade", phone.naming, as: phone.app)
      #expect(answer.json == ["success": true, "method": "smsOTP", "message": "Downgraded to SMS OTP"])
      let status = try await backend.get("/device/\(phone.deviceID)/status", as: phone.app)
      #expect(status["hasPublicKey"] == false)
      #expect(try await backend.challenge(phone)["method"] == "smsOTP")
    }
  }

  @Test("A-083 a downgrade without an enrolled number gets 409, and the key remains")
  func downgradeWithoutNumber() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      var body = try #require(phone.enrolment().members)
      body["phoneNumber"] = nil
      _ = try await backend.post("/mfa/enroll", .object(body), as: phone.app)
      let answer = try await backend.post("/mfa/downgrade", phone.naming, as: phone.app)
      #expect(answer.status == 409)
      #expect(answer["code"] == "no_phone_number")
      #expect(try await backend.signIn(phone).status == 200)
    }
  }

  @Test("T-10 X-021 after the automatic downgrade, only the code to the enrolled number signs in")
  func downgradeIsSafe() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      _ = try await backend.post("/mfa/downgrade", phone.naming, as: phone.app)
      #expect(try await backend.signIn(phone).status == 401)
      let enrolled = try phone.enrolledNumber
      #expect(backend.outbox.messages.map(\.destination) == [.phone(enrolled)])
      let right = try await backend.post(
        "/auth/verify-otp", ["username": "testuser", "otp": .string(backend.outbox.lastCode ?? "")], as: phone.app)
      #expect(right.status == 200)
    }
  }

  @Test(
    "X-013 an app instance that the device is not bound to gets 403",
    arguments: ["/mfa/downgrade", "/auth/initiate", "/mfa/upgrade"])
  func boundElsewhere(_ path: String) async throws {
    try await TestBackend.with { backend in
      let owner = TestPhone()
      let token = try await backend.token(owner)
      var body = try #require(owner.naming.members)
      body["publicKey"] = .string(owner.publicKey)
      let answer = try await backend.post(path, .object(body), as: .genuine(), token: token)
      #expect(answer.status == 403)
      #expect(answer["code"] == "device_mismatch")
    }
  }

  @Test(
    "X-014 a debug build is refused for a device that an attested key enrolled",
    arguments: ["/mfa/downgrade", "/auth/initiate"])
  func debugIsNoDevice(_ path: String) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      #expect(try await backend.post(path, phone.naming, as: .debugBuild).status == 403)
    }
  }

  @Test("T-49 X-014 the downgrade of a debug build's own device needs a session")
  func debugNeedsSession() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone(app: .debugBuild)
      let token = try await backend.token(phone)
      #expect(try await backend.post("/mfa/downgrade", phone.naming, as: phone.app).status == 401)
      #expect(try await backend.post("/mfa/downgrade", phone.naming, as: phone.app, token: token).status == 200)
    }
  }

  @Test(
    "X-020 operations that cannot be undone need a proof that is at most five minutes old",
    arguments: ["/mfa/unenroll", "/mfa/upgrade"])
  func freshProof(_ path: String) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      var body = try #require(phone.naming.members)
      body["publicKey"] = .string(phone.publicKey)
      backend.clock.advance(by: .seconds(301))
      let stale = try await backend.post(path, .object(body), as: phone.app, token: token)
      #expect(stale.status == 401)
      #expect(stale["code"] == "insufficient_user_authentication")
      #expect(stale.headers["www-authenticate"]?.contains("max_age=300") == true)
      let fresh = try await backend.signIn(phone)["token"]?.text
      #expect(try await backend.post(path, .object(body), as: phone.app, token: fresh).status == 200)
    }
  }

  @Test(
    "T-5 A-187 operations that cannot be undone get 401 without a token", arguments: ["/mfa/unenroll", "/mfa/upgrade"])
  func noToken(_ path: String) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      var body = try #require(phone.naming.members)
      body["publicKey"] = .string(phone.publicKey)
      #expect(try await backend.post(path, .object(body), as: phone.app).status == 401)
      #expect(try await backend.signIn(phone).status == 200)
    }
  }

  @Test("A-187 another user's token gets 403")
  func foreignToken() async throws {
    try await TestBackend.with { backend in
      let (owner, other) = (TestPhone(username: "owner"), TestPhone(username: "other"))
      try await backend.enrol(owner)
      let token = try await backend.token(other)
      let answer = try await backend.post("/mfa/unenroll", owner.naming, as: other.app, token: token)
      #expect(answer.status == 403)
    }
  }

  @Test("X-013 a token is refused from another app instance")
  func stolenToken() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      let answer = try await backend.get("/devices/testuser", as: .genuine(), token: token)
      #expect(answer.status == 403)
      #expect(answer["code"] == "device_mismatch")
    }
  }
}
