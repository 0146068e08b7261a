import MFADomain
import MFAFixtures
import Testing

@Suite("Trusted devices")
struct TrustTests {
  /// A phone with an authenticator, trusted, and the token that says so.
  private func trusted(_ backend: TestBackend, _ phone: TestPhone) async throws -> (trust: String, token: String) {
    let (_, authenticator) = try await backend.setUp(phone)
    let pending = try await backend.pendingToken(phone)
    let answer = try await backend.verifyLogin(
      authenticator.code(), phone, token: pending, ["trust_device": true, "device_name": "My phone"])
    return (answer["trust_token"]?.text ?? "", answer["token"]?.text ?? "")
  }

  private func signIn(
    _ backend: TestBackend, _ phone: TestPhone, trust: String, as app: AppInstance? = nil
  ) async throws -> Answer {
    guard case .object(var body) = try backend.proof(phone, of: await backend.challenge(phone)) else {
      throw CancellationError()
    }
    body["trustToken"] = .string(trust)
    return try await backend.post("/auth/verify-signature", .object(body), as: app ?? phone.app)
  }

  @Test("B-077 a trusted device is spared the second factor, and one without the token is not")
  func spared() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (trust, _) = try await trusted(backend, phone)
      #expect(try await signIn(backend, phone, trust: trust)["scope"] == "full")
      #expect(try await signIn(backend, phone, trust: "another token")["scope"] == "mfa")
      #expect(try await backend.signIn(phone)["scope"] == "mfa")
    }
  }

  @Test("B-065 trust ends after 30 days, and is not prolonged by use", arguments: [(-60, "full"), (1, "mfa")])
  func expiry(_ seconds: Int, _ scope: JSONValue) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (trust, _) = try await trusted(backend, phone)
      backend.clock.advance(by: .seconds(15 * 86400))
      #expect(try await signIn(backend, phone, trust: trust)["scope"] == "full")
      backend.clock.advance(by: .seconds(15 * 86400 + seconds))
      #expect(try await signIn(backend, phone, trust: trust)["scope"] == scope)
    }
  }

  @Test("X-021 a downgrade ends the device's sessions and its trust: the code by SMS is no way round the second factor")
  func downgrade() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (trust, token) = try await trusted(backend, phone)
      #expect(try await backend.post("/mfa/downgrade", phone.naming, as: phone.app).status == 200)
      #expect(try await backend.get("/devices/testuser", as: phone.app, token: token).status == 401)
      _ = try await backend.challenge(phone)
      let guess: JSONValue = [
        "username": .string(phone.username), "otp": .string(backend.outbox.lastCode ?? ""),
        "trustToken": .string(trust),
      ]
      let answer = try await backend.post("/auth/verify-otp", guess, as: phone.app)
      #expect(answer.status == 200 && answer["scope"] == "mfa")
    }
  }

  @Test("X-021 nor is a code by SMS to a device that has its key still")
  func textedWithKey() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (trust, _) = try await trusted(backend, phone)
      let asked: JSONValue = ["username": .string(phone.username), "phoneNumber": .string(phone.number)]
      #expect(try await backend.post("/auth/request-otp", asked, as: phone.app).status == 200)
      let guess: JSONValue = [
        "username": .string(phone.username), "otp": .string(backend.outbox.lastCode ?? ""),
        "trustToken": .string(trust),
      ]
      let answer = try await backend.post("/auth/verify-otp", guess, as: phone.app)
      #expect(answer.status == 200 && answer["scope"] == "mfa")
      #expect(try await signIn(backend, phone, trust: trust)["scope"] == "full")
    }
  }

  @Test("B-066 trust that is given anew takes the place of the old, so revoking the one listed ends it")
  func replaced() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (_, authenticator) = try await backend.setUp(phone)
      var tokens: [String] = []
      var session = ""
      for code in authenticator.backupCodes.prefix(2) {
        let pending = try await backend.pendingToken(phone)
        let answer = try await backend.verifyLogin(code, phone, token: pending, ["trust_device": true])
        tokens.append(answer["trust_token"]?.text ?? "")
        session = answer["token"]?.text ?? ""
      }
      let listed = try await backend.get("/auth/mfa/trusted-devices", as: phone.app, token: session)["devices"]
      #expect(listed?.count == 1)
      #expect(try await signIn(backend, phone, trust: tokens[0])["scope"] == "mfa")
      #expect(try await signIn(backend, phone, trust: tokens[1])["scope"] == "full")
    }
  }

  @Test("B-067 trust is bound to the attested key: the token alone does nothing for another device of the user")
  func bound() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (trust, token) = try await trusted(backend, phone)
      let other = TestPhone()
      #expect(try await backend.link(other, to: phone, token: token).status == 200)
      #expect(try await signIn(backend, other, trust: trust)["scope"] == "mfa")
      #expect(try await signIn(backend, phone, trust: trust)["scope"] == "full")
    }
  }

  @Test("A-172 a name of a trusted device that breaks its rule is refused by the name that the field has")
  func badName() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (_, authenticator) = try await backend.setUp(phone)
      let answer = try await backend.verifyLogin(
        authenticator.code(), phone, token: try await backend.pendingToken(phone), ["device_name": "a\nb"])
      #expect(answer.status == 400 && answer["message"]?.text?.hasPrefix("device_name ") == true)
    }
  }

  @Test("B-064 a client that merely says that it is trusted is asked for the second factor")
  func flagAlone() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      _ = try await backend.setUp(phone)
      guard case .object(var body) = try backend.proof(phone, of: await backend.challenge(phone)) else { return }
      body["trust_device"] = true
      body["device_trusted"] = true
      let answer = try await backend.post("/auth/verify-signature", .object(body), as: phone.app)
      #expect(answer["scope"] == "mfa")
    }
  }

  @Test("B-023 the list shows the caller's own trusted devices in the origin's fields")
  func list() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (_, token) = try await trusted(backend, phone)
      let answer = try await backend.get("/auth/mfa/trusted-devices", as: phone.app, token: token)
      let entry = answer["devices"]?[0]
      #expect(answer["devices"]?.count == 1)
      #expect(
        entry?.keys == [
          "id", "device_name", "fingerprint", "created_at", "last_used_at", "expires_at", "ip_address",
        ])
      #expect(entry?["device_name"] == "My phone")
      #expect(entry?["ip_address"] == "192.0.2.1")
      #expect(entry?["expires_at"] == "2026-01-31T00:00:30Z")
    }
  }

  @Test("B-024 a revoked device is asked again, and another user's cannot be revoked")
  func revoke() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (trust, token) = try await trusted(backend, phone)
      let id = try await backend.get("/auth/mfa/trusted-devices", as: phone.app, token: token)["devices"]?[0]?["id"]
      let path = "/api/v1/auth/mfa/trusted-devices/\(id?.int ?? 0)"
      let stranger = TestPhone(username: "stranger")
      let foreign = try await backend.send(
        "DELETE", path, as: stranger.app, token: try await backend.token(stranger))
      #expect(foreign.status == 404)
      #expect(try await signIn(backend, phone, trust: trust)["scope"] == "full")
      let answer = try await backend.send("DELETE", path, as: phone.app, token: token)
      #expect(answer.json == ["message": "Trusted device revoked successfully"])
      #expect(try await signIn(backend, phone, trust: trust)["scope"] == "mfa")
    }
  }

  @Test("B-024 an id that is no number gets 400")
  func badID() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (_, token) = try await trusted(backend, phone)
      let answer = try await backend.send("DELETE", "/api/v1/auth/mfa/trusted-devices/x", as: phone.app, token: token)
      #expect(answer.status == 400)
    }
  }

  @Test("X-014 a debug build is never trusted")
  func debug() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone(app: .debugBuild)
      let (trust, token) = try await trusted(backend, phone)
      #expect(trust == "")
      #expect(try await backend.get("/auth/mfa/trusted-devices", as: phone.app, token: token)["devices"]?.count == 0)
    }
  }
}
