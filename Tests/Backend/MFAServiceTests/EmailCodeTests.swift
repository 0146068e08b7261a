import Foundation
import MFADomain
import MFAFixtures
import Testing

@Suite("Codes by e-mail")
struct EmailCodeTests {
  /// A phone with an authenticator and a confirmed address, signed in up to the second factor.
  private func pending(_ backend: TestBackend, _ phone: TestPhone) async throws -> (String, TestAuthenticator) {
    let (token, authenticator) = try await backend.setUp(phone)
    let email: JSONValue = "user@example.com"
    _ = try await backend.post("/auth/mfa/email", ["email": email], as: phone.app, token: token)
    let code = backend.outbox.lastCode ?? ""
    let answer = try await backend.post(
      "/auth/mfa/email/verify", ["email": email, "code": .string(code)], as: phone.app, token: token)
    #expect(answer.status == 200)
    return (try await backend.pendingToken(phone), authenticator)
  }

  private func resend(_ backend: TestBackend, _ phone: TestPhone, _ token: String) async throws -> Answer {
    try await backend.post("/auth/mfa/resend-email-otp", [:], as: phone.app, token: token)
  }

  @Test("B-074 a code by e-mail is accepted once as the second factor")
  func verify() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (token, _) = try await pending(backend, phone)
      #expect(try await resend(backend, phone, token).status == 200)
      #expect(backend.outbox.messages.last?.destination == .email(try EmailAddress("user@example.com")))
      let code = backend.outbox.lastCode ?? ""
      #expect(try await backend.verifyLogin(code, phone, token: token).status == 200)
      #expect(try await backend.verifyLogin(code, phone, token: token).status == 401)
    }
  }

  @Test("B-052 a code can be sent again after 60 s, and not before", arguments: [(59, 429, 1), (60, 200, nil)])
  func cooldown(_ seconds: Int, _ status: Int, _ retryAfter: Int?) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (token, _) = try await pending(backend, phone)
      _ = try await resend(backend, phone, token)
      backend.clock.advance(by: .seconds(seconds))
      let answer = try await resend(backend, phone, token)
      #expect(answer.status == status)
      #expect(answer["retryAfter"]?.int == retryAfter)
      #expect(answer.headers["retry-after"] == retryAfter.map(String.init))
    }
  }

  @Test("B-074 disabling the authenticator removes the address, which is no factor next to a later authenticator")
  func disabled() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (pending, authenticator) = try await pending(backend, phone)
      _ = try await resend(backend, phone, pending)
      let mailed = backend.outbox.lastCode ?? ""
      let full = try await backend.verifyLogin(authenticator.backupCodes[0], phone, token: pending)["token"]?.text ?? ""
      let code: JSONValue = ["code": .string(authenticator.backupCodes[1])]
      #expect(try await backend.post("/auth/mfa/disable", code, as: phone.app, token: full).status == 200)
      let next = try await backend.offerAuthenticator(phone, token: full)
      backend.clock.advance(by: .seconds(30))
      _ = try await backend.post(
        "/auth/mfa/verify-enrollment", ["code": .string(next.code())], as: phone.app, token: full)
      #expect(try await backend.get("/auth/mfa/status", as: phone.app, token: full)["methods"]?.count == 2)
      // A code that was on its way proves nothing any more.
      let later = try await backend.pendingToken(phone)
      #expect(try await backend.verifyLogin(mailed, phone, token: later).status == 401)
    }
  }

  @Test("B-074 a code to the address before is refused once another address is confirmed")
  func formerAddress() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (pending, authenticator) = try await pending(backend, phone)
      _ = try await resend(backend, phone, pending)
      let mailed = backend.outbox.lastCode ?? ""
      let full = try await backend.verifyLogin(authenticator.backupCodes[0], phone, token: pending)["token"]?.text
      backend.clock.advance(by: .seconds(60))
      let address: JSONValue = "other@example.com"
      _ = try await backend.post("/auth/mfa/email", ["email": address], as: phone.app, token: full)
      let given: JSONValue = ["email": address, "code": .string(backend.outbox.lastCode ?? "")]
      #expect(try await backend.post("/auth/mfa/email/verify", given, as: phone.app, token: full).status == 200)
      let later = try await backend.pendingToken(phone)
      #expect(try await backend.verifyLogin(mailed, phone, token: later).status == 401)
      #expect(try await resend(backend, phone, later).status == 200)
      #expect(try await backend.verifyLogin(backend.outbox.lastCode ?? "", phone, token: later).status == 200)
    }
  }

  @Test("B-074 an address that was confirmed before the first authenticator is no factor next to it")
  func addressBeforeFactor() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      let address: JSONValue = ["email": "user@example.com"]
      #expect(try await backend.post("/auth/mfa/email", address, as: phone.app, token: token).status == 200)
      let given: JSONValue = ["email": "user@example.com", "code": .string(backend.outbox.lastCode ?? "")]
      #expect(try await backend.post("/auth/mfa/email/verify", given, as: phone.app, token: token).status == 200)
      let authenticator = try await backend.offerAuthenticator(phone, token: token)
      let first: JSONValue = ["code": .string(authenticator.code())]
      #expect(try await backend.post("/auth/mfa/verify-enrollment", first, as: phone.app, token: token).status == 200)
      let status = try await backend.get("/auth/mfa/status", as: phone.app, token: token)
      #expect(status["methods"] == ["totp", "backup_code"])
      let pending = try await backend.pendingToken(phone)
      let refused = try await resend(backend, phone, pending)
      #expect(refused.status != 200, "\(refused)")
      let history = try await Administration(backend.context).history(
        of: Username(phone.username), before: nil, atMost: 1000, by: AppScene.operatorName)
      #expect(history.contains { $0.event == "totp.confirmed" && $0.detail == "email=forgotten" })
      // The session has given the factor, so it may add the address again.
      backend.clock.advance(by: .seconds(60))
      #expect(try await backend.post("/auth/mfa/email", address, as: phone.app, token: token).status == 200)
      let again: JSONValue = ["email": "user@example.com", "code": .string(backend.outbox.lastCode ?? "")]
      #expect(try await backend.post("/auth/mfa/email/verify", again, as: phone.app, token: token).status == 200)
      let later = try await backend.get("/auth/mfa/status", as: phone.app, token: token)
      #expect(later["methods"] == ["totp", "email", "backup_code"])
    }
  }

  @Test("B-074 only a session with its second factor adds an address, and the user gets a notice")
  func addingAddress() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      // This session was full before there was a second factor, and has not given it.
      let early = try await backend.token(phone)
      let later = try await backend.signIn(phone)["token"]?.text ?? ""
      let authenticator = try await backend.offerAuthenticator(phone, token: later)
      _ = try await backend.post(
        "/auth/mfa/verify-enrollment", ["code": .string(authenticator.code())], as: phone.app, token: later)
      let address: JSONValue = ["email": "user@example.com"]
      let refused = try await backend.post("/auth/mfa/email", address, as: phone.app, token: early)
      #expect(refused.status == 403 && refused["code"] == "mfa_required")
      #expect(backend.outbox.messages.isEmpty)
      #expect(try await backend.post("/auth/mfa/email", address, as: phone.app, token: later).status == 200)
      let given: JSONValue = ["email": "user@example.com", "code": .string(backend.outbox.lastCode ?? "")]
      #expect(try await backend.post("/auth/mfa/email/verify", given, as: phone.app, token: early).status == 403)
      #expect(try await backend.post("/auth/mfa/email/verify", given, as: phone.app, token: later).status == 200)
      let notices = try await backend.get("/auth/notices", as: phone.app, token: later)["notices"]
      #expect(notices?[2]?["kind"] == "emailConfirmed")
      let entries = try await backend.context.store.read {
        try $0.auditEntries(before: .max, account: "testuser", atMost: 100)
      }
      #expect(entries.contains { $0.event == AuditEvent.emailConfirmed.rawValue })
    }
  }

  @Test("X-030 the counts treat addresses that differ in case as one")
  func spelling() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (token, _) = try await backend.setUp(phone)
      for (email, status) in [("user@example.com", 200), ("User@Example.com", 429), ("other@example.com", 429)] {
        let answer = try await backend.post(
          "/auth/mfa/email", ["email": .string(email)], as: phone.app, token: token)
        #expect(answer.status == status, "\(email)")
      }
    }
  }

  @Test(
    "X-030 all spellings of a mailbox have one limit for all app instances, and another mailbox has its own",
    arguments: TestDatabase.allCases)
  func oneMailbox(_ database: TestDatabase) async throws {
    try await TestBackend.with(store: try await database.open()) { backend async throws in
      func offer(_ email: String) async throws -> Int {
        let phone = TestPhone(username: "user-\(UUID().uuidString.prefix(8))")
        let token = try await backend.token(phone)
        return try await backend.post("/auth/mfa/email", ["email": .string(email)], as: phone.app, token: token).status
      }
      for email in [
        "victim@example.com", "victim+1@example.com", "Victim+2@Example.com", "victim+a+b@example.com",
        "VICTIM@example.com",
      ] { #expect(try await offer(email) == 200, "\(email)") }
      for email in [
        "victim@example.com", "victim+3@example.com", "VICTIM+4@EXAMPLE.COM", "victim+\u{301}a@example.com",
        "victim+\u{D4E}@example.com",
      ] {
        #expect(try await offer(email) == 429, "\(email)")
      }
      for email in ["victim2@example.com", "vic.tim@example.com", "+victim@example.com", "victim@example.org"] {
        #expect(try await offer(email) == 200, "\(email)")
      }
      // Gmail ignores dots, and has a second domain.
      for email in [
        "v.i.ctim@gmail.com", "victim@googlemail.com", "vic.tim+1@gmail.com", "victim@gmail.com", "vi.ctim@GMail.com",
      ] { #expect(try await offer(email) == 200, "\(email)") }
      #expect(try await offer("victi.m+x@googlemail.com") == 429)
    }
  }

  @Test("a code confirms the address that it was sent to, and no other spelling of the mailbox")
  func confirmedSpelling() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (token, _) = try await backend.setUp(phone)
      _ = try await backend.post("/auth/mfa/email", ["email": "user+1@example.com"], as: phone.app, token: token)
      let code = JSONValue.string(backend.outbox.lastCode ?? "")
      for (email, status) in [("user@example.com", 401), ("user+2@example.com", 401), ("user+1@example.com", 200)] {
        let answer = try await backend.post(
          "/auth/mfa/email/verify", ["email": .string(email), "code": code], as: phone.app, token: token)
        #expect(answer.status == status, "\(email)")
      }
    }
  }

  @Test("X-030 codes to several addresses, and guesses at them, count against the account")
  func manyAddresses() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (token, _) = try await backend.setUp(phone)
      func offer(_ number: Int) async throws -> Answer {
        try await backend.post(
          "/auth/mfa/email", ["email": .string("user\(number)@example.com")], as: phone.app, token: token)
      }
      #expect(try await offer(1).status == 200)
      let soon = try await offer(2)
      #expect(soon.status == 429 && soon["retryAfter"] == 60)
      for number in 2...5 {
        backend.clock.advance(by: .seconds(60))
        #expect(try await offer(number).status == 200)
      }
      let refused = try await offer(6)
      // The first of the five was sent 240 s ago.
      #expect(refused.status == 429 && refused["retryAfter"] == 3360, "\(refused.status)")
      #expect(backend.outbox.messages.count == 5)
      var statuses: [Int] = []
      for number in 1...6 {
        let body: JSONValue = ["email": .string("user\(number)@example.com"), "code": "000000"]
        statuses.append(try await backend.post("/auth/mfa/email/verify", body, as: phone.app, token: token).status)
      }
      #expect(statuses == [401, 401, 401, 401, 401, 429])
    }
  }

  @Test("B-041 an expired code gets 410 with the documented text")
  func expired() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (token, _) = try await pending(backend, phone)
      _ = try await resend(backend, phone, token)
      let code = backend.outbox.lastCode ?? ""
      backend.clock.advance(by: .seconds(300))
      let answer = try await backend.verifyLogin(code, phone, token: token)
      #expect(answer.status == 410)
      #expect(answer["error"] == "Code has expired. Please generate a new one.")
    }
  }

  @Test("A-184 of 50 parallel verifications of one code, exactly one succeeds", arguments: TestDatabase.allCases)
  func race(_ database: TestDatabase) async throws {
    try await TestBackend.with(store: try await database.open()) { backend in
      let phone = TestPhone()
      let (token, _) = try await pending(backend, phone)
      #expect(try await resend(backend, phone, token).status == 200)
      let code = try #require(backend.outbox.lastCode)
      let statuses = try await withThrowingTaskGroup { group in
        for _ in 1...50 { group.addTask { try await backend.verifyLogin(code, phone, token: token).status } }
        return try await group.reduce(into: [Int: Int]()) { $0[$1, default: 0] += 1 }
      }
      #expect(statuses == [200: 1, 401: 5, 429: 44])
    }
  }

  @Test("T-18 B-027 a code is sent again on request: the answer is a message, and only the newer code is valid")
  func sentAgain() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (token, _) = try await pending(backend, phone)
      let sent = backend.outbox.messages.count
      var codes: [String] = []
      for _ in 1...2 {
        let answer = try await resend(backend, phone, token)
        #expect(answer.status == 200)
        #expect(answer.json == ["message": "Verification code sent"])
        codes.append(try #require(backend.outbox.lastCode))
        backend.clock.advance(by: .seconds(60))
      }
      let address = try EmailAddress("user@example.com")
      #expect(backend.outbox.messages.dropFirst(sent).map(\.destination) == [.email(address), .email(address)])
      // One pair of codes in a million is equal.
      if codes[0] != codes[1] { #expect(try await backend.verifyLogin(codes[0], phone, token: token).status == 401) }
      #expect(try await backend.verifyLogin(codes[1], phone, token: token).status == 200)
    }
  }

  @Test("B-027 a request without a session gets 401, and nothing is sent")
  func withoutSession() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      _ = try await pending(backend, phone)
      let sent = backend.outbox.messages.count
      let answer = try await backend.post("/auth/mfa/resend-email-otp", [:], as: phone.app)
      #expect(answer.status == 401 && answer["code"] == "session_required")
      #expect(backend.outbox.messages.count == sent)
    }
  }

  @Test("B-027 a user without an address gets 409, and nothing is sent")
  func noAddress() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      _ = try await backend.setUp(phone)
      let token = try await backend.pendingToken(phone)
      let answer = try await resend(backend, phone, token)
      #expect(answer.status == 409 && answer["code"] == "no_email_address")
      #expect(backend.outbox.messages.isEmpty)
    }
  }

  @Test("B-074 an address becomes a factor only after its code was confirmed")
  func unconfirmed() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (token, _) = try await backend.setUp(phone)
      _ = try await backend.post("/auth/mfa/email", ["email": "a@example.com"], as: phone.app, token: token)
      let code = backend.outbox.lastCode ?? ""
      let other = try await backend.post(
        "/auth/mfa/email/verify", ["email": "b@example.com", "code": .string(code)], as: phone.app, token: token)
      #expect(other.status == 401)
      #expect(try await backend.get("/auth/mfa/status", as: phone.app, token: token)["methods"]?.count == 2)
    }
  }

  @Test(
    "A-172 an invalid address gets 400",
    arguments: [
      "", "x", "@example.com", "a@", "a@b@c", "a b@example.com", "a@example.com\r\nBcc: b@example.com",
      "a@localhost", "a@[127.0.0.1]", "a@-b..c", "a@127.0.0.1", "a@b-.example", ".a@example.com", "a..b@example.com",
      // A mark combines with the sign or the dot before it.
      "a@\u{301}b.com", "a@\u{903}b.com", "a.\u{301}b@x.com", "x@a.\u{301}b.com", "a@\u{FF9E}b.com",
    ])
  func badAddress(_ address: String) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      let answer = try await backend.post("/auth/mfa/email", ["email": .string(address)], as: phone.app, token: token)
      #expect(answer.status == 400)
      let confirmed = try await backend.post(
        "/auth/mfa/email/verify", ["email": .string(address), "code": "000000"], as: phone.app, token: token)
      #expect(confirmed.status == 400)
    }
  }

  @Test("B-021 a code of digits is compared with authenticator and e-mail, and counts as one guess")
  func oneGuess() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (token, authenticator) = try await pending(backend, phone)
      _ = try await resend(backend, phone, token)
      for _ in 1...4 { #expect(try await backend.verifyLogin("000000", phone, token: token).status == 401) }
      #expect(try await backend.verifyLogin(authenticator.code(), phone, token: token).status == 200)
    }
  }
}
