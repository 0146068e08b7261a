import MFADomain
import MFAFixtures
import OneTimePasswords
import Testing

@Suite("Authenticators and backup codes")
struct AuthenticatorTests {
  @Test("an authenticator app shows the name of the service")
  func issuer() async throws {
    var policy = Policy()
    policy.issuer = "Ada & Söhne"
    try await TestBackend.with(policy: policy) { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      let offer = try await backend.post("/auth/mfa/enroll", [:], as: phone.app, token: token)
      let uri = offer["qr_code_url"]?.text ?? ""
      #expect(uri.hasPrefix("otpauth://totp/Ada%20%26%20S%C3%B6hne:testuser?"))
      #expect(uri.contains("&issuer=Ada%20%26%20S%C3%B6hne&"))
    }
  }

  @Test("B-080 an offer has a secret of 160 bits, its URI and the backup codes")
  func offer() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      let answer = try await backend.post("/auth/mfa/enroll", [:], as: phone.app, token: token)
      #expect(answer.status == 200)
      #expect(answer.json?.keys == ["secret", "qr_code_url", "backup_codes"])
      let secret = answer["secret"]?.text ?? ""
      #expect(secret.count == 32)
      #expect(
        answer["qr_code_url"]
          == .string(
            "otpauth://totp/Sallyport:testuser?secret=\(secret)&issuer=Sallyport&algorithm=SHA1&digits=6&period=30"))
    }
  }

  @Test("T-17 B-081 an offer has ten different backup codes of eight characters, each with a letter")
  func backupCodes() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let codes = try await backend.offerAuthenticator(phone, token: backend.token(phone)).backupCodes
      #expect(Set(codes).count == 10)
      #expect(codes.allSatisfy { $0.count == 8 && $0.contains(where: \.isLetter) })
    }
  }

  @Test("B-082 a second factor is required only after the first code of the authenticator")
  func confirmation() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      let authenticator = try await backend.offerAuthenticator(phone, token: token)
      #expect(try await backend.signIn(phone)["scope"] == "full")
      let answer = try await backend.post(
        "/auth/mfa/verify-enrollment", ["code": .string(authenticator.code())], as: phone.app, token: token)
      #expect(answer.status == 200)
      #expect(try await backend.signIn(phone)["scope"] == "mfa")
    }
  }

  @Test("B-082 a wrong code does not complete the setup")
  func wrongConfirmation() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      let authenticator = try await backend.offerAuthenticator(phone, token: token)
      let answer = try await backend.post(
        "/auth/mfa/verify-enrollment", ["code": .string(authenticator.code(5))], as: phone.app, token: token)
      #expect(answer.status == 401)
      #expect(try await backend.signIn(phone)["scope"] == "full")
    }
  }

  @Test("B-082 a sign-in refuses the code of the setup")
  func setupCodeIsSpent() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      let authenticator = try await backend.offerAuthenticator(phone, token: token)
      let code = authenticator.code()
      _ = try await backend.post(
        "/auth/mfa/verify-enrollment", ["code": .string(code)], as: phone.app, token: token)
      let pending = try await backend.pendingToken(phone)
      #expect(try await backend.verifyLogin(code, phone, token: pending).status == 401)
      #expect(try await backend.verifyLogin(authenticator.code(1), phone, token: pending).status == 200)
    }
  }

  @Test("B-080 a second offer replaces the first before the setup, and gets 409 after it")
  func secondOffer() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      let first = try await backend.offerAuthenticator(phone, token: token)
      let second = try await backend.offerAuthenticator(phone, token: token)
      let path = "/auth/mfa/verify-enrollment"
      #expect(try await backend.post(path, ["code": .string(first.code())], as: phone.app, token: token).status == 401)
      #expect(try await backend.post(path, ["code": .string(second.code())], as: phone.app, token: token).status == 200)
      let third = try await backend.post("/auth/mfa/enroll", [:], as: phone.app, token: token)
      #expect(third.status == 409)
      #expect(third["error"] == "MFA is already enabled for this account")
    }
  }

  @Test(
    "B-082 a session of another device that began before the first authenticator waits for its code",
    arguments: TestDatabase.allCases)
  func earlierSession(_ database: TestDatabase) async throws {
    try await TestBackend.with(store: try await database.open()) { backend in
      let (phone, other) = (TestPhone(), TestPhone())
      let token = try await backend.token(phone)
      #expect(try await backend.link(other, to: phone, token: token).status == 200)
      let earlier = try await backend.signIn(other)
      let authenticator = try await backend.offerAuthenticator(phone, token: token)
      let first: JSONValue = ["code": .string(authenticator.code())]
      #expect(try await backend.post("/auth/mfa/verify-enrollment", first, as: phone.app, token: token).status == 200)
      backend.clock.advance(by: .seconds(30))
      let removal = try await backend.post(
        "/mfa/unenroll", phone.naming, as: other.app, token: earlier["token"]?.text)
      #expect(removal.status == 403 && removal["code"] == "mfa_required")
      let renewed = try await backend.post(
        "/auth/token/refresh", ["refreshToken": earlier["refreshToken"] ?? nil], as: other.app)
      #expect(renewed.status == 200 && renewed["scope"] == "mfa")
      // The session that has given the code stays full, and the other one is full after a code.
      let own = try await backend.get("/auth/mfa/status", as: phone.app, token: token)
      #expect(own["challenge_required"] == false)
      let proved = try await backend.verifyLogin(
        authenticator.code(), other, token: renewed["token"]?.text ?? "")
      #expect(proved.status == 200)
      let history = try await Administration(backend.context).history(
        of: Username(phone.username), before: nil, atMost: 1000, by: AppScene.operatorName)
      #expect(history.contains { $0.event == "totp.confirmed" && $0.detail == "sessions=1" })
    }
  }

  @Test("B-082 a trusted device keeps its session when the operator assigns a token as a further factor")
  func furtherFactor() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (_, authenticator) = try await backend.setUp(phone)
      let proved = try await backend.verifyLogin(
        authenticator.code(), phone, token: backend.pendingToken(phone), ["trust_device": true])
      let challenge = try await backend.challenge(phone)
      var body = try #require(try backend.proof(phone, of: challenge).members)
      body["trustToken"] = proved["trust_token"] ?? nil
      let trusted = try await backend.post("/auth/verify-signature", .object(body), as: phone.app)
      #expect(trusted["scope"] == "full")
      let token = try ImportedToken(
        place: "line 1", serial: "H1", kind: .hotp, secret: Array("12345678901234567890".utf8), period: 30,
        counter: 0, drift: 0, username: Username(phone.username))
      _ = try await Administration(backend.context).importTokens(
        [token], from: "pskc", changes: true, by: AppScene.operatorName)
      let status = try await backend.get("/auth/mfa/status", as: phone.app, token: trusted["token"]?.text)
      #expect(status["challenge_required"] == false)
    }
  }

  @Test("B-082 sessions wait for the token that an operator assigns as the first factor")
  func firstToken() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let session = try await backend.token(phone)
      let token = try ImportedToken(
        place: "line 1", serial: "H1", kind: .hotp, secret: Array("12345678901234567890".utf8), period: 30,
        counter: 0, drift: 0, username: nil)
      let administration = Administration(backend.context)
      _ = try await administration.importTokens([token], from: "pskc", changes: true, by: AppScene.operatorName)
      _ = try await administration.assignToken(
        TokenSerial("H1"), to: Username(phone.username), by: AppScene.operatorName)
      let status = try await backend.get("/auth/mfa/status", as: phone.app, token: session)
      #expect(status["challenge_required"] == true)
      #expect(try await backend.get("/devices/testuser", as: phone.app, token: session).status == 403)
    }
  }

  @Test("B-081 the backup codes of an offer replace those of an operator's token when it is confirmed, not before")
  func codesOfOffer() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      let secret = Array("12345678901234567890".utf8)
      let imported = try ImportedToken(
        place: "line 1", serial: "H1", kind: .hotp, secret: secret, period: 30, counter: 0, drift: 0,
        username: Username(phone.username))
      _ = try await Administration(backend.context).importTokens(
        [imported], from: "pskc", changes: true, by: AppScene.operatorName)
      func code(_ counter: UInt64) throws -> String {
        try OneTimePassword(digits: 6).code(secret: secret, counter: counter)
      }
      let pending = try await backend.pendingToken(phone)
      let session = try await backend.verifyLogin(code(0), phone, token: pending)["token"]?.text ?? ""
      let made = try await backend.post(
        "/auth/mfa/regenerate-backup-codes", ["code": .string(code(1))], as: phone.app, token: session)
      let printed = try #require(made["backup_codes"]?[0]?.text)
      let offer = try await backend.offerAuthenticator(phone, token: session)
      #expect(Set(offer.backupCodes).count == 10)
      let next = try await backend.pendingToken(phone)
      #expect(try await backend.verifyLogin(offer.backupCodes[0], phone, token: next).status == 401)
      #expect(try await backend.verifyLogin(printed, phone, token: next).status == 200)
      let first: JSONValue = ["code": .string(offer.code())]
      #expect(try await backend.post("/auth/mfa/verify-enrollment", first, as: phone.app, token: session).status == 200)
      let other = try #require(made["backup_codes"]?[1]?.text)
      let last = try await backend.pendingToken(phone)
      #expect(try await backend.verifyLogin(other, phone, token: last).status == 401)
      for code in offer.backupCodes {
        let waiting = try await backend.pendingToken(phone)
        #expect(try await backend.verifyLogin(code, phone, token: waiting).status == 200, "\(code)")
      }
    }
  }

  @Test("B-081 new backup codes invalidate the old ones")
  func regenerate() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (token, authenticator) = try await backend.setUp(phone)
      let answer = try await backend.post(
        "/auth/mfa/regenerate-backup-codes", ["code": .string(authenticator.code())], as: phone.app, token: token)
      #expect(answer["backup_codes"]?.count == 10)
      let pending = try await backend.pendingToken(phone)
      #expect(try await backend.verifyLogin(authenticator.backupCodes[0], phone, token: pending).status == 401)
      let fresh = answer["backup_codes"]?[0]?.text ?? ""
      #expect(try await backend.verifyLogin(fresh, phone, token: pending).status == 200)
    }
  }

  @Test("B-083 disabling requires a code and removes trust and backup codes")
  func disable() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (token, authenticator) = try await backend.setUp(phone)
      let pending = try await backend.pendingToken(phone)
      _ = try await backend.verifyLogin(authenticator.code(), phone, token: pending, ["trust_device": true])
      let path = "/auth/mfa/disable"
      #expect(try await backend.post(path, ["code": "000000"], as: phone.app, token: token).status == 401)
      backend.clock.advance(by: .seconds(30))
      #expect(
        try await backend.post(path, ["code": .string(authenticator.code())], as: phone.app, token: token).status
          == 200)
      let status = try await backend.get("/auth/mfa/status", as: phone.app, token: token)
      #expect(status["enabled"] == false)
      #expect(status["trusted_devices_count"] == 0)
      #expect(status["backup_codes_remaining"] == 0)
      #expect(try await backend.signIn(phone)["scope"] == "full")
    }
  }
}
