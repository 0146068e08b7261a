import Crypto
import MFADomain
import MFAFixtures
import Testing

@Suite("Upgrade, downgrade, removal")
struct DeviceChangeTests {
  @Test("A-081 unenrol answers in the seed's words, and the device is gone for its app")
  func unenrol() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      let answer = try await backend.post("/mfa/unenroll", phone.naming, as: phone.app, token: token)
      #expect(answer.status == 200)
      #expect(answer.json == ["success": true, "message": "Device unenrolled"])
      #expect(try await backend.challenge(phone).status == 404)
      // Its sessions ended with it.
      #expect(try await backend.get("/devices/testuser", as: phone.app, token: token).status == 401)
      #expect(try await backend.get("/device/\(phone.deviceID)/status", as: phone.app)["enrolled"] == false)
    }
  }

  @Test("A-081 a challenge that was open when its device went cannot be answered any more")
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

  @Test("A-082 upgrade of an SMS device answers in the seed's words, and the key signs in")
  func upgrade() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone, method: "smsOTP")
      _ = try await backend.challenge(phone)
      let code = backend.outbox.lastCode ?? ""
      let token = try await backend.post(
        "/auth/verify-otp", ["username": "testuser", "otp": .string(code)], as: phone.app)["token"]?.text
      guard case .object(var body) = phone.naming else { return }
      body["publicKey"] = .string(phone.publicKey)
      let answer = try await backend.post("/mfa/upgrade", .object(body), as: phone.app, token: token)
      #expect(
        answer.json == ["success": true, "method": "secureEnclave", "message": "Upgraded to Secure Enclave MFA"])
      #expect(try await backend.signIn(phone).status == 200)
    }
  }

  @Test("A-S10 after a switch of keys the old key is refused and the new one signs in")
  func replaceKey() async throws {
    try await TestBackend.with { backend in
      let old = TestPhone()
      let token = try await backend.token(old)
      var new = old
      new.key = P256.Signing.PrivateKey()
      guard case .object(var body) = new.naming else { return }
      body["publicKey"] = .string(new.publicKey)
      body["authMethod"] = "passcode"
      #expect(try await backend.post("/mfa/upgrade", .object(body), as: new.app, token: token).status == 200)
      #expect(try await backend.signIn(old).status == 401)
      #expect(try await backend.signIn(new).status == 200)
    }
  }

  @Test("A-083 downgrade answers in the seed's words, and takes the key away")
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

  @Test("A-083 downgrade without a number on file gets 409, and the key stays")
  func downgradeWithoutNumber() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      guard case .object(var body) = phone.enrolment() else { return }
      body["phoneNumber"] = nil
      _ = try await backend.post("/mfa/enroll", .object(body), as: phone.app)
      let answer = try await backend.post("/mfa/downgrade", phone.naming, as: phone.app)
      #expect(answer.status == 409)
      #expect(answer["code"] == "no_phone_number")
      #expect(try await backend.signIn(phone).status == 200)
    }
  }

  @Test("X-021 after the automatic downgrade nobody is in before the code to the enrolled number")
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
      guard case .object(var body) = owner.naming else { return }
      body["publicKey"] = .string(owner.publicKey)
      let answer = try await backend.post(path, .object(body), as: .genuine(), token: token)
      #expect(answer.status == 403)
      #expect(answer["code"] == "device_mismatch")
    }
  }

  @Test(
    "X-014 a debug build never acts for a device that an attested key enrolled",
    arguments: ["/mfa/downgrade", "/auth/initiate"])
  func debugIsNoDevice(_ path: String) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      #expect(try await backend.post(path, phone.naming, as: .debugBuild).status == 403)
    }
  }

  @Test("X-014 a debug build's own device cannot be downgraded without a session")
  func debugNeedsSession() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone(app: .debugBuild)
      let token = try await backend.token(phone)
      #expect(try await backend.post("/mfa/downgrade", phone.naming, as: phone.app).status == 401)
      #expect(try await backend.post("/mfa/downgrade", phone.naming, as: phone.app, token: token).status == 200)
    }
  }

  @Test(
    "X-020 what cannot be undone needs a proof of the last five minutes", arguments: ["/mfa/unenroll", "/mfa/upgrade"])
  func freshProof(_ path: String) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      guard case .object(var body) = phone.naming else { return }
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

  @Test("A-187 the same without any token gets 401", arguments: ["/mfa/unenroll", "/mfa/upgrade"])
  func noToken(_ path: String) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      guard case .object(var body) = phone.naming else { return }
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

  @Test("X-013 a token is worth nothing in another app instance")
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
