import ByteCoding
import Foundation
import MFADomain
import MFAFixtures
import Testing

@Suite("Sessions and their tokens")
struct SessionTests {
  private func refresh(_ backend: TestBackend, _ token: String?, as app: AppInstance) async throws -> Answer {
    try await backend.post("/auth/token/refresh", ["refreshToken": .string(token ?? "")], as: app)
  }

  private func claims(_ token: String?) throws -> JSONValue {
    let part = token?.split(separator: ".").dropFirst().first ?? ""
    return try JSONValue(Data(Base64URL.decode(part) ?? []))
  }

  @Test("X-040 an access token has the claims of RFC 9068, and names the attested key")
  func claims() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      let start = Int(backend.clock.now.seconds)
      let signedIn = try await backend.signIn(phone)
      backend.clock.advance(by: .seconds(60))
      let refreshed = try await refresh(backend, signedIn["refreshToken"]?.text, as: phone.app)
      for (answer, issuedAt) in [(signedIn, start), (refreshed, start + 60)] {
        let claims = try claims(answer["token"]?.text)
        #expect(claims["iss"] == "mfa-backend")
        #expect(claims["aud"] == "mfa")
        #expect(claims["amr"] == ["pop"])
        #expect(claims["acr"] == "aal1")
        #expect(claims["cnf"]?["attest_key"] == .string(phone.app.keyHash))
        #expect(claims["iat"]?.int == issuedAt && claims["exp"]?.int == issuedAt + 900)
        // A refresh is no new authentication.
        #expect(claims["auth_time"]?.int == start)
      }
    }
  }

  @Test("X-014 a debug build's key is never treated as a hardware key, and gives a lower acr")
  func debugAssurance() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone(app: .debugBuild)
      try await backend.enrol(phone)
      let claims = try claims(await backend.signIn(phone)["token"]?.text)
      #expect(claims["amr"] == ["swk"])
      #expect(claims["acr"] == "aal1")
      #expect(claims["cnf"] == nil)
      // A second factor does not change that.
      let other = TestPhone(username: "other", app: .debugBuild)
      let (_, authenticator) = try await backend.setUp(other)
      let pending = try await backend.pendingToken(other)
      let answer = try await backend.verifyLogin(authenticator.code(), other, token: pending)
      let full = try self.claims(answer["token"]?.text)
      #expect(full["scope"] == "full" && full["acr"] == "aal1")
    }
  }

  @Test("A-083 a session by SMS has a lower acr than one by a key")
  func lowerAssurance() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone, method: "smsOTP")
      _ = try await backend.challenge(phone)
      let answer = try await backend.post(
        "/auth/verify-otp", ["username": "testuser", "otp": .string(backend.outbox.lastCode ?? "")], as: phone.app)
      let claims = try claims(answer["token"]?.text)
      #expect(claims["acr"] == "aal1")
      #expect(claims["amr"] == ["sms"])
    }
  }

  @Test("A-231 an access token is valid for 15 minutes, and a refresh token for 30 days")
  func lifetimes() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      var tokens = try await backend.signIn(phone)
      let path = "/devices/testuser"
      backend.clock.advance(by: .seconds(899))
      #expect(try await backend.get(path, as: phone.app, token: tokens["token"]?.text).status == 200)
      backend.clock.advance(by: .seconds(1))
      #expect(try await backend.get(path, as: phone.app, token: tokens["token"]?.text).status == 401)
      backend.clock.advance(by: .seconds(29 * 86400))
      tokens = try await refresh(backend, tokens["refreshToken"]?.text, as: phone.app)
      #expect(tokens.status == 200)
      backend.clock.advance(by: .seconds(86400))
      #expect(try await refresh(backend, tokens["refreshToken"]?.text, as: phone.app).status == 401)
    }
  }

  @Test(
    "A-172 a token that is longer than its schema allows gets 400, and one of the maximum length the usual answer",
    arguments: [
      ("/auth/token/refresh", "refreshToken", 401), ("/auth/token/revoke", "refreshToken", 401),
      ("/auth/verify-signature", "trustToken", 401), ("/auth/verify-otp", "trustToken", 401),
      ("/mfa/enroll", "recoveryToken", 401), ("/mfa/recovery/status", "recoveryToken", 401),
    ])
  func longToken(_ path: String, _ field: String, _ usual: Int) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      let proof = try #require(try backend.proof(phone, of: await backend.challenge(phone)).members)
      for (length, status) in [(129, 400), (128, usual)] {
        // Fields of other operations are ignored.
        var body = proof.merging(path == "/mfa/enroll" ? ["method": "smsOTP", "phoneNumber": "+1234567890"] : [:]) {
          $1
        }
        body["otp"] = "000000"
        body["signature"] = .string(TestPhone().publicKey)
        body[field] = .string(String(repeating: "x", count: length))
        let answer = try await backend.post(path, .object(body), as: phone.app, token: token)
        #expect(answer.status == status, "\(length)")
        if status == 400 { #expect(answer["error"]?.text?.contains(field) == true, "\(answer["error"] ?? nil)") }
      }
    }
  }

  @Test("X-041 a refresh token returns the same next token again within ten seconds")
  func grace() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      let first = try await backend.signIn(phone)["refreshToken"]?.text
      let second = try await refresh(backend, first, as: phone.app)["refreshToken"]
      backend.clock.advance(by: .seconds(10))
      #expect(try await refresh(backend, first, as: phone.app)["refreshToken"] == second)
    }
  }

  @Test("X-041 a later reuse of a refresh token ends the session for both holders")
  func reuse() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      let first = try await backend.signIn(phone)["refreshToken"]?.text
      let second = try await refresh(backend, first, as: phone.app)
      backend.clock.advance(by: .seconds(11))
      #expect(try await refresh(backend, first, as: phone.app).status == 401)
      #expect(try await refresh(backend, second["refreshToken"]?.text, as: phone.app).status == 401)
      let list = try await backend.get("/devices/testuser", as: phone.app, token: second["token"]?.text)
      #expect(list.status == 401)
    }
  }

  @Test(
    "X-041 a renewal that lies in the future, after a clock was set back, is not taken for one of the last seconds",
    arguments: [(60, 200), (61, 401)])
  func renewedAhead(_ seconds: Int, _ status: Int) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      let first = try await backend.signIn(phone)["refreshToken"]?.text
      _ = try await refresh(backend, first, as: phone.app)
      backend.clock.advance(by: .seconds(-seconds))
      #expect(try await refresh(backend, first, as: phone.app).status == status)
    }
  }

  @Test(
    "X-020 a proof that lies in the future, after a clock was set back, is not taken for a recent one",
    arguments: [(60, 200), (61, 401)])
  func provedAhead(_ seconds: Int, _ status: Int) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      backend.clock.advance(by: .seconds(-seconds))
      let answer = try await backend.post("/mfa/link", [:], as: phone.app, token: token)
      #expect(answer.status == status)
      if status == 401 { #expect(answer["code"] == "insufficient_user_authentication") }
    }
  }

  @Test("X-041 50 parallel uses of one refresh token all get the same next token")
  func parallelRefresh() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      let token = try await backend.signIn(phone)["refreshToken"]?.text
      let newProcesses = try await withThrowingTaskGroup { group in
        for _ in 1...50 {
          group.addTask { try await refresh(backend, token, as: phone.app)["refreshToken"]?.text }
        }
        return try await group.reduce(into: Set<String?>()) { $0.insert($1) }
      }
      #expect(newProcesses.count == 1)
      #expect(!newProcesses.contains(nil))
    }
  }

  @Test("X-041 a refresh token is refused from another app instance, and the session continues")
  func stolen() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      let token = try await backend.signIn(phone)["refreshToken"]?.text
      #expect(try await refresh(backend, token, as: .genuine()).status == 403)
      #expect(try await refresh(backend, token, as: phone.app).status == 200)
    }
  }

  @Test(
    "A-221 a text that is not a refresh token of the backend gets 401",
    arguments: ["", "x", "a.b.c", "00000000-0000-4000-8000-000000000000.0.AAAA", String(repeating: "x", count: 128)])
  func forged(_ token: String) async throws {
    try await TestBackend.with { backend async throws in
      #expect(try await refresh(backend, token, as: .genuine()).status == 401)
    }
  }

  @Test("A-221 a refresh token with a changed number gets 401")
  func renumbered() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      let token = try await backend.signIn(phone)["refreshToken"]?.text ?? ""
      let changed = token.replacing(".0.", with: ".1.")
      #expect(changed != token)
      #expect(try await refresh(backend, changed, as: phone.app).status == 401)
    }
  }

  @Test("B-06A revoking a session ends it together with its tokens", arguments: [true, false])
  func revoke(_ byRefreshToken: Bool) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      let tokens = try await backend.signIn(phone)
      let answer = try await backend.post(
        "/auth/token/revoke", byRefreshToken ? ["refreshToken": tokens["refreshToken"] ?? nil] : [:], as: phone.app,
        token: byRefreshToken ? nil : tokens["token"]?.text)
      #expect(answer.json == ["success": true, "message": "Session revoked"])
      #expect(try await backend.get("/devices/testuser", as: phone.app, token: tokens["token"]?.text).status == 401)
      #expect(try await refresh(backend, tokens["refreshToken"]?.text, as: phone.app).status == 401)
    }
  }

  @Test("X-040 a changed token, or one by another issuer, gets 401")
  func tampered() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      let parts = token.split(separator: ".").map(String.init)
      let none = Base64URL.encode(Array(#"{"alg":"none","typ":"JWT"}"#.utf8))
      let forged = [
        parts[0] + "." + parts[1] + ".", none + "." + parts[1] + ".",
        parts[0] + "." + Base64URL.encode(Array("{}".utf8)) + "." + parts[2],
        try await backend.gate.assertion(for: phone.app),
      ]
      for token in forged {
        #expect(try await backend.get("/devices/testuser", as: phone.app, token: token).status == 401)
      }
    }
  }
}
