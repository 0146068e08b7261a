import Foundation
import MFADomain
import MFAFixtures
import Testing

@Suite("Administration")
struct AdministrationTests {
  /// An admin's phone, and a token of a session with two factors.
  private func admin(_ backend: TestBackend) async throws -> (phone: TestPhone, token: String) {
    let phone = TestPhone(username: "root")
    let (token, _) = try await backend.setUp(phone)
    try await Administration(backend.context).setAdmin(true, Username("root"), by: .command(name: "test"))
    return (phone, token)
  }

  @Test("X-053 an admin lists accounts in pages, ordered by name")
  func list() async throws {
    try await TestBackend.with { backend in
      let (phone, token) = try await admin(backend)
      try await backend.enrol(TestPhone(username: "ada"))
      let all = try await backend.get("/admin/users", as: phone.app, token: token)
      #expect(all["users"]?.count == 2)
      #expect(all["users"]?[0]?["username"] == "ada")
      #expect(all["users"]?[1]?["admin"] == true)
      let rest = try await backend.get("/admin/users?after=ada", as: phone.app, token: token)
      #expect(rest["users"]?.count == 1)
    }
  }

  @Test("X-053 the pages of the list contain every account once, whatever the case of the names")
  func pages() async throws {
    try await TestBackend.with { backend in
      let (phone, token) = try await admin(backend)
      let now = backend.clock.now
      let names = (1...210).map { $0.isMultiple(of: 2) ? "User \($0)+é&" : "user-\($0)" }
      try await backend.context.store.write { records in
        for name in names { try records.insert(User(id: UUID(), username: try Username(name), createdAt: now)) }
      }
      var (seen, next): ([String], String) = ([], "")
      for _ in 1...10 {
        let page = try await backend.get("/admin/users" + next, as: phone.app, token: token)
        let users = page["users"]
        seen += (0..<(users?.count ?? 0)).compactMap { users?[$0]?["username"]?.text }
        guard let name = page["next"]?.text else { break }
        next = "?after=" + (name.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "")
      }
      #expect(seen.count == 211 && Set(seen) == Set(names + ["root"]))
      #expect(try await backend.get("/admin/users?after=%0A", as: phone.app, token: token).status == 400)
    }
  }

  static let operations: [(String, String)] = [
    ("GET", "/admin/users"), ("POST", "/admin/lock"), ("POST", "/admin/unlock"), ("POST", "/admin/reset"),
    ("POST", "/admin/remove-device"), ("GET", "/admin/users/ada/history"),
    ("GET", "/admin/recoveries"), ("POST", "/admin/cancel-recovery"),
  ]

  @Test("X-053 every operation of administration refuses a user who is not an admin", arguments: operations)
  func roles(_ method: String, _ path: String) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone(username: "ada", deviceID: "device-1")
      let (token, _) = try await backend.setUp(phone)
      let body: JSONValue? = method == "POST" ? phone.naming : nil
      let answer = try await backend.send(method, "/api/v1" + path, body, as: phone.app, token: token)
      #expect(answer.status == 403)
      #expect(try await backend.send(method, "/api/v1" + path, body, as: phone.app).status == 401)
      #expect(try await backend.signIn(phone).status == 200)
    }
  }

  @Test("X-053 an admin without a second factor, or with an old proof of it, is refused")
  func stepUp() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone(username: "root")
      let token = try await backend.token(phone)
      try await Administration(backend.context).setAdmin(true, Username("root"), by: .command(name: "test"))
      #expect(try await backend.get("/admin/users", as: phone.app, token: token).status == 403)
      let authenticator = try await backend.offerAuthenticator(phone, token: token)
      _ = try await backend.post(
        "/auth/mfa/verify-enrollment", ["code": .string(authenticator.code())], as: phone.app, token: token)
      #expect(try await backend.get("/admin/users", as: phone.app, token: token).status == 200)
      backend.clock.advance(by: .seconds(301))
      #expect(try await backend.get("/admin/users", as: phone.app, token: token).status == 401)
    }
  }

  @Test("A-226 locking an account ends its sessions and refuses its sign-ins until it is unlocked")
  func lock() async throws {
    try await TestBackend.with { backend in
      let (root, token) = try await admin(backend)
      let phone = TestPhone(username: "ada")
      let session = try await backend.token(phone)
      let body: JSONValue = ["username": "ada"]
      #expect(try await backend.post("/admin/lock", body, as: root.app, token: token).status == 200)
      #expect(try await backend.get("/devices/ada", as: phone.app, token: session).status == 401)
      let refused = try await backend.signIn(phone)
      #expect(refused.status == 423 && refused["code"] == "account_locked")
      // The user has guessed nothing, and waiting does not help.
      #expect(refused["message"] == "The account is locked. Its operator can unlock it.")
      #expect(refused.headers["retry-after"] == nil)
      #expect(try await backend.post("/admin/unlock", body, as: root.app, token: token).status == 200)
      #expect(try await backend.signIn(phone).status == 200)
    }
  }

  @Test("X-053 unlocking resets the attempt limits of all factors")
  func unlockAttemptLimiters() async throws {
    try await TestBackend.with { backend in
      let (root, token) = try await admin(backend)
      let phone = TestPhone(username: "ada")
      let (_, authenticator) = try await backend.setUp(phone)
      let pending = try await backend.pendingToken(phone)
      let guess: JSONValue = ["username": "ada", "otp": "000000"]
      for _ in 1...5 {
        _ = try await backend.verifyLogin("000000", phone, token: pending)
        _ = try await backend.post("/auth/verify-otp", guess, as: phone.app)
      }
      #expect(try await backend.verifyLogin(authenticator.code(), phone, token: pending).status == 429)
      #expect(try await backend.post("/auth/verify-otp", guess, as: phone.app).status == 429)
      _ = try await backend.post("/admin/unlock", ["username": "ada"], as: root.app, token: token)
      #expect(try await backend.verifyLogin(authenticator.code(), phone, token: pending).status == 200)
      #expect(try await backend.post("/auth/verify-otp", guess, as: phone.app).status == 401)
    }
  }

  @Test("A-229 a reset issues a code that enrols a new phone, and removes the second factor")
  func reset() async throws {
    try await TestBackend.with { backend in
      let (root, token) = try await admin(backend)
      let lost = TestPhone(username: "ada")
      _ = try await backend.setUp(lost)
      let answer = try await backend.post("/admin/reset", ["username": "ada"], as: root.app, token: token)
      #expect(answer["expiresIn"] == 1800)
      let new = TestPhone(username: "ada")
      var body = try #require(new.enrolment().members)
      body["linkCode"] = answer["temporaryCode"] ?? nil
      #expect(try await backend.post("/mfa/enroll", .object(body), as: new.app).status == 200)
      #expect(try await backend.signIn(new)["scope"] == "full")
    }
  }

  /// The body that enrols `phone` with `code`.
  private func enrolment(_ phone: TestPhone, by code: JSONValue?) throws -> JSONValue {
    var body = try #require(phone.enrolment().members)
    body["linkCode"] = code
    return .object(body)
  }

  @Test("A-229 a reset removes all devices, and the lost one enrols neither with its old key nor with a new one")
  func resetTakesDevices() async throws {
    try await TestBackend.with { backend in
      let (root, token) = try await admin(backend)
      let lost = TestPhone(username: "ada")
      let session = try await backend.token(lost)
      let early = try await backend.post("/mfa/link", [:], as: lost.app, token: session)["linkCode"]
      let reset = try await backend.post("/admin/reset", ["username": "ada"], as: root.app, token: token)
      let code = reset["temporaryCode"]
      #expect(try await backend.challenge(lost).status == 404)
      let thief = TestPhone(username: "ada", deviceID: lost.deviceID, app: lost.app)
      #expect(try await backend.enrol(thief).status == 401)
      // A code that the lost device requested before the reset is invalid.
      #expect(try await backend.post("/mfa/enroll", enrolment(thief, by: early), as: thief.app).status == 401)
      // The same phone after its app was installed again: the id is the old one, the attested key is new.
      let again = TestPhone(username: "ada", deviceID: lost.deviceID)
      #expect(try await backend.post("/mfa/enroll", enrolment(again, by: code), as: again.app).status == 200)
      #expect(try await backend.signIn(again)["scope"] == "full")
    }
  }

  @Test("An operator's code that is used while the account is locked serves when it is unlocked")
  func lockedReset() async throws {
    try await TestBackend.with { backend in
      try await backend.enrol(TestPhone(username: "ada"))
      let administration = Administration(backend.context)
      let code = try await administration.resetFactors(Username("ada"), by: .command(name: "test"))
      _ = try await administration.lock(Username("ada"), by: .command(name: "test"))
      let new = TestPhone(username: "ada")
      #expect(try await backend.post("/mfa/enroll", enrolment(new, by: .string(code)), as: new.app).status == 423)
      _ = try await administration.unlock(Username("ada"), by: .command(name: "test"))
      #expect(try await backend.post("/mfa/enroll", enrolment(new, by: .string(code)), as: new.app).status == 200)
    }
  }

  @Test("X-030 wrong guesses of another app instance leave the operator's code valid")
  func outsidersGuesses() async throws {
    try await TestBackend.with { backend in
      try await backend.enrol(TestPhone(username: "ada"))
      let code = try await Administration(backend.context).resetFactors(Username("ada"), by: .command(name: "test"))
      for _ in 1...3 {
        let outsider = TestPhone(username: "ada")
        for _ in 1...5 {
          let answer = try await backend.post("/mfa/enroll", enrolment(outsider, by: "WRONGONE"), as: outsider.app)
          #expect(answer.status == 401)
        }
      }
      let new = TestPhone(username: "ada")
      #expect(try await backend.post("/mfa/enroll", enrolment(new, by: .string(code)), as: new.app).status == 200)
    }
  }

  @Test(
    "A-226 a removed device cannot enrol by itself, whether the user or an operator removed it",
    arguments: [true, false],
    [AppInstance.genuine(), .debugBuild])
  func noReturn(_ byOperator: Bool, _ app: AppInstance) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone(username: "ada", app: app)
      let token = try await backend.token(phone)
      if byOperator {
        try await Administration(backend.context).removeDevice(
          DeviceID(phone.deviceID), of: Username("ada"), by: .command(name: "test"))
      } else {
        _ = try await backend.post("/mfa/unenroll", phone.naming, as: phone.app, token: token)
      }
      let back = TestPhone(username: "ada", deviceID: phone.deviceID, app: app)
      #expect(try await backend.enrol(back).status == 401)
      #expect(try await backend.challenge(back).status == 404)
    }
  }

  @Test("A-226 an admin removes a device together with its sessions")
  func removeDevice() async throws {
    try await TestBackend.with { backend in
      let (root, token) = try await admin(backend)
      let phone = TestPhone(username: "ada")
      let session = try await backend.token(phone)
      #expect(try await backend.post("/admin/remove-device", phone.naming, as: root.app, token: token).status == 200)
      #expect(try await backend.get("/devices/ada", as: phone.app, token: session).status == 401)
      #expect(try await backend.challenge(phone).status == 404)
      let again = try await backend.post("/admin/remove-device", phone.naming, as: root.app, token: token)
      #expect(again.status == 404)
    }
  }

  @Test("X-053 the account's history records what an admin does, and which admin")
  func history() async throws {
    try await TestBackend.with { backend in
      let (root, token) = try await admin(backend)
      try await backend.enrol(TestPhone(username: "ada"))
      _ = try await backend.post("/admin/lock", ["username": "ada"], as: root.app, token: token)
      let entries = try await backend.get("/admin/users/ada/history", as: root.app, token: token)["entries"]
      #expect(entries?.count == 2)
      #expect(entries?[0]?["event"] == "user.locked")
      #expect(entries?[0]?["actor"] == .string(root.app.keyHash))
      #expect(entries?[1]?["event"] == "device.enrolled")
    }
  }

  @Test("X-053 the history says whether the right was granted or withdrawn")
  func role() async throws {
    try await TestBackend.with { backend in
      _ = try await backend.enrol(TestPhone())
      let administration = Administration(backend.context)
      for isAdmin in [true, false] {
        try await administration.setAdmin(isAdmin, Username("testuser"), by: .command(name: "test"))
      }
      let entries = try await backend.context.store.read {
        try $0.auditEntries(before: .max, account: "testuser", atMost: 10)
      }
      #expect(entries.prefix(2).map(\.detail) == ["admin=false", "admin=true"])
    }
  }
}
