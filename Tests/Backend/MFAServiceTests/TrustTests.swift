import ByteCoding
import MFADomain
import MFAFixtures
import Testing

@Suite("Trusted devices")
struct TrustTests {
  /// Sets up an authenticator for `phone` and trusts it. Returns the trust token and the token of a full session.
  private func trusted(_ backend: TestBackend, _ phone: TestPhone) async throws -> (trust: String, token: String) {
    let (_, authenticator) = try await backend.setUp(phone)
    return try await trust(backend, phone, by: authenticator.code())
  }

  /// Signs in with the second factor `code` and trusts `phone`.
  private func trust(
    _ backend: TestBackend, _ phone: TestPhone, by code: String, named name: String = "My phone",
    userAgent: String = "App/1"
  ) async throws -> (trust: String, token: String) {
    let answer = try await backend.send(
      "POST", "/api/v1/auth/mfa/verify-login",
      ["code": .string(code), "trust_device": true, "device_name": .string(name)], as: phone.app,
      token: try await backend.pendingToken(phone), headers: [("User-Agent", userAgent)])
    #expect(answer.status == 200)
    return (answer["trust_token"]?.text ?? "", answer["token"]?.text ?? "")
  }

  private func signIn(
    _ backend: TestBackend, _ phone: TestPhone, trust: String, userAgent: String = "App/1"
  ) async throws -> Answer {
    let challenge = try await backend.challenge(phone)
    var body = try #require(try backend.proof(phone, of: challenge).members)
    body["trustToken"] = .string(trust)
    return try await backend.send(
      "POST", "/api/v1/auth/verify-signature", .object(body), as: phone.app, headers: [("User-Agent", userAgent)])
  }

  /// The trusted devices of the account whose session `token` is.
  private func list(_ backend: TestBackend, _ phone: TestPhone, token: String) async throws -> [JSONValue] {
    let answer = try await backend.get("/auth/mfa/trusted-devices", as: phone.app, token: token)
    let devices = try #require(answer["devices"])
    return try (0..<(try #require(devices.count))).map { try #require(devices[$0]) }
  }

  @Test("B-077 a trusted device skips the second factor, and a device without the trust token does not")
  func skipsSecondFactor() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (trust, _) = try await trusted(backend, phone)
      #expect(try await signIn(backend, phone, trust: trust)["scope"] == "full")
      #expect(try await signIn(backend, phone, trust: "another token")["scope"] == "mfa")
      #expect(try await backend.signIn(phone)["scope"] == "mfa")
    }
  }

  @Test("B-065 trust expires after 30 days, and use does not prolong it", arguments: [(-60, "full"), (1, "mfa")])
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

  @Test("X-021 a downgrade ends the device's sessions and trust, so a code by SMS does not avoid the second factor")
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

  @Test("X-021 an enrolment of the same device without its key ends its sessions and trust; with another number, trust")
  func enrolledAgain() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (trust, token) = try await trusted(backend, phone)
      var body = try #require(phone.enrolment().members)
      // The same request again, as after a lost answer.
      #expect(try await backend.post("/mfa/enroll", .object(body), as: phone.app, token: token).status == 200)
      #expect(try await signIn(backend, phone, trust: trust)["scope"] == "full")
      body["phoneNumber"] = "+15550001111"
      #expect(try await backend.post("/mfa/enroll", .object(body), as: phone.app, token: token).status == 200)
      #expect(try await signIn(backend, phone, trust: trust)["scope"] == "mfa")
      #expect(try await backend.get("/devices/testuser", as: phone.app, token: token).status == 200)
      let keyless = phone.enrolment(method: "smsOTP")
      #expect(try await backend.post("/mfa/enroll", keyless, as: phone.app, token: token).status == 200)
      #expect(try await backend.get("/devices/testuser", as: phone.app, token: token).status == 401)
    }
  }

  @Test("X-021 a code by SMS to a device that still has its key does not avoid the second factor")
  func smsCodeWithKey() async throws {
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

  @Test("B-066 trusting a device again replaces its earlier trust, so the list has one entry to revoke")
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

  @Test("T-24 B-067 trust is bound to the attested key and a token of 256 bits: another device cannot use the token")
  func bound() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (trust, token) = try await trusted(backend, phone)
      #expect(Base64URL.decode(trust)?.count == 32)
      let other = TestPhone()
      #expect(try await backend.link(other, to: phone, token: token).status == 200)
      #expect(try await signIn(backend, other, trust: trust)["scope"] == "mfa")
      #expect(try await signIn(backend, phone, trust: trust)["scope"] == "full")
    }
  }

  @Test(
    "B-067 trust remains valid after a change of address or user agent, and the list keeps what was recorded first",
    arguments: [("198.51.100.7", "App/1"), ("192.0.2.1", "App/2"), ("198.51.100.7", "App/2")])
  func changed(_ address: String, _ userAgent: String) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (_, authenticator) = try await backend.setUp(phone)
      let (trust, token) = try await trust(backend, phone, by: authenticator.code(), userAgent: "App/1")
      let before = try #require(try await list(backend, phone, token: token).first)
      backend.clock.advance(by: .seconds(60))
      #expect(try await signIn(backend, phone.at(address), trust: trust, userAgent: userAgent)["scope"] == "full")
      let after = try #require(try await list(backend, phone, token: token).first)
      #expect(before["last_used_at"] == "2026-01-01T00:00:30Z" && after["last_used_at"] == "2026-01-01T00:01:30Z")
      #expect(after["fingerprint"] == before["fingerprint"])
      #expect(before["ip_address"] == "192.0.2.1" && after["ip_address"] == "192.0.2.1")
    }
  }

  @Test("B-067 the fingerprint depends on address and user agent, and the list shows the address")
  func fingerprint() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (_, authenticator) = try await backend.setUp(phone)
      var fingerprints: [String] = []
      let origins = [
        ("192.0.2.1", "App/1"), ("198.51.100.7", "App/1"), ("192.0.2.1", "App/2"), ("192.0.2.1", "App/1"),
      ]
      for ((address, userAgent), code) in zip(origins, authenticator.backupCodes) {
        let moved = phone.at(address)
        let (_, token) = try await trust(backend, moved, by: code, userAgent: userAgent)
        let entry = try #require(try await list(backend, moved, token: token).first)
        #expect(entry["ip_address"] == .string(address))
        fingerprints.append(try #require(entry["fingerprint"]?.text))
      }
      #expect(Set(fingerprints).count == 3 && fingerprints[0] == fingerprints[3])
    }
  }

  @Test("A-081 unenrolment removes the trust of the device, and of no other device")
  func unenrolled() async throws {
    try await TestBackend.with { backend in
      let (phone, other) = (TestPhone(), TestPhone())
      let (_, authenticator) = try await backend.setUp(phone)
      let own = try await trust(backend, phone, by: authenticator.backupCodes[0], named: "First")
      #expect(try await backend.link(other, to: phone, token: own.token).status == 200)
      let remaining = try await trust(backend, other, by: authenticator.backupCodes[1], named: "Second")
      #expect(try await list(backend, other, token: remaining.token).map { $0["device_name"] } == ["First", "Second"])
      #expect(try await backend.post("/mfa/unenroll", phone.naming, as: phone.app, token: own.token).status == 200)
      #expect(try await list(backend, other, token: remaining.token).map { $0["device_name"] } == ["Second"])
      // The same app instance enrols the same device again. Its old trust token remains invalid.
      #expect(try await backend.link(phone, to: other, token: remaining.token).status == 200)
      #expect(try await signIn(backend, phone, trust: own.trust)["scope"] == "mfa")
      #expect(try await signIn(backend, other, trust: remaining.trust)["scope"] == "full")
    }
  }

  @Test("A-172 the refusal of an invalid name of a trusted device names the field as the request does")
  func badName() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (_, authenticator) = try await backend.setUp(phone)
      let answer = try await backend.verifyLogin(
        authenticator.code(), phone, token: try await backend.pendingToken(phone), ["device_name": "a\nb"])
      #expect(answer.status == 400 && answer["message"]?.text?.hasPrefix("device_name ") == true)
    }
  }

  @Test("B-064 a client that only claims to be trusted must give the second factor")
  func claimOnly() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      _ = try await backend.setUp(phone)
      var body = try #require(try backend.proof(phone, of: await backend.challenge(phone)).members)
      body["trust_device"] = true
      body["device_trusted"] = true
      let answer = try await backend.post("/auth/verify-signature", .object(body), as: phone.app)
      #expect(answer["scope"] == "mfa")
    }
  }

  @Test("B-023 the list has the documented fields")
  func listed() async throws {
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

  @Test("B-023 the list contains no device of another user")
  func onlyOwn() async throws {
    try await TestBackend.with { backend in
      let (ada, eve) = (TestPhone(username: "ada"), TestPhone(username: "eve"))
      var tokens: [String] = []
      for phone in [ada, eve] {
        let (_, authenticator) = try await backend.setUp(phone)
        tokens.append(try await trust(backend, phone, by: authenticator.code(), named: phone.username).token)
      }
      #expect(try await list(backend, ada, token: tokens[0]).map { $0["device_name"] } == ["ada"])
      #expect(try await list(backend, eve, token: tokens[1]).map { $0["device_name"] } == ["eve"])
    }
  }

  @Test("B-023 the list contains no expired device")
  func expired() async throws {
    try await TestBackend.with { backend in
      let (phone, other) = (TestPhone(), TestPhone())
      let (_, authenticator) = try await backend.setUp(phone)
      let codes = authenticator.backupCodes
      let (_, token) = try await trust(backend, phone, by: codes[0], named: "First")
      #expect(try await backend.link(other, to: phone, token: token).status == 200)
      backend.clock.advance(by: .seconds(86400))
      _ = try await trust(backend, other, by: codes[1], named: "Second")
      // One second before the first device's trust expires.
      backend.clock.advance(by: .seconds(29 * 86400 - 1))
      let pending = try await backend.pendingToken(other)
      let session = try #require(try await backend.verifyLogin(codes[2], other, token: pending)["token"]?.text)
      #expect(try await list(backend, other, token: session).map { $0["device_name"] } == ["First", "Second"])
      backend.clock.advance(by: .seconds(1))
      #expect(try await list(backend, other, token: session).map { $0["device_name"] } == ["Second"])
    }
  }

  @Test(
    "B-024 open sockets of the user receive a notice when trust is revoked, and those of other users do not",
    .timeLimit(.minutes(1)))
  func noticeOfRevocation() async throws {
    try await TestBackend.with { backend in
      let (phone, other, foreign) = (TestPhone(), TestPhone(), TestPhone(username: "other"))
      let (_, authenticator) = try await backend.setUp(phone)
      let (_, token) = try await trust(backend, phone, by: authenticator.backupCodes[0])
      #expect(try await backend.link(other, to: phone, token: token).status == 200)
      let (_, otherToken) = try await trust(backend, other, by: authenticator.backupCodes[1])
      let foreignToken = try await backend.token(foreign)
      let id = try #require(try await list(backend, phone, token: token).first?["id"]?.int)
      try await TestSocket.with(backend, as: phone.app, token: token) { own in
        try await TestSocket.with(backend, as: other.app, token: otherToken) { second in
          // With `after`, the sockets receive the earlier notices too, so none is lost before they are attached.
          for (socket, token) in [(own, token), (second, otherToken)] {
            let attached = try await socket.call("session.attach", ["token": .string(token), "after": 0])
            #expect(attached["result"]?["success"] == true)
          }
          let answer = try await backend.send(
            "DELETE", "/api/v1/auth/mfa/trusted-devices/\(id)", as: phone.app, token: token)
          #expect(answer.status == 200)
          for socket in [own, second] {
            let notice = try await socket.next { $0["params"]?["kind"] == "trustRevoked" }
            #expect(notice["params"]?["concerning"] == .string(String(id)))
          }
        }
      }
      // A socket receives what this list contains.
      let notices = try await backend.get("/auth/notices", as: foreign.app, token: foreignToken)["notices"]
      #expect(notices?.count == 1 && notices?[0]?["kind"] == "deviceEnrolled")
    }
  }

  @Test("B-024 a device whose trust is revoked must give the second factor, and another user's device gets 404")
  func revoke() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (trust, token) = try await trusted(backend, phone)
      let id = try await backend.get("/auth/mfa/trusted-devices", as: phone.app, token: token)["devices"]?[0]?["id"]
      let path = "/api/v1/auth/mfa/trusted-devices/\(id?.int ?? 0)"
      let outsider = TestPhone(username: "outsider")
      let foreign = try await backend.send(
        "DELETE", path, as: outsider.app, token: try await backend.token(outsider))
      #expect(foreign.status == 404)
      #expect(try await signIn(backend, phone, trust: trust)["scope"] == "full")
      let answer = try await backend.send("DELETE", path, as: phone.app, token: token)
      #expect(answer.json == ["message": "Trusted device revoked successfully"])
      #expect(try await signIn(backend, phone, trust: trust)["scope"] == "mfa")
    }
  }

  @Test("B-024 an id that is not a number gets 400")
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
