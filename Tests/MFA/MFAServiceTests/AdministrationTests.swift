import Foundation
import MFADomain
import MFAFixtures
import Testing

@Suite("Administration")
struct AdministrationTests {
  /// An admin's telephone, and a token of theirs with two factors.
  private func admin(_ backend: TestBackend) async throws -> (phone: TestPhone, token: String) {
    let phone = TestPhone(username: "root")
    let (token, _) = try await backend.setUp(phone)
    try await Administration(backend.context).setAdmin(true, Username("root"), by: .command(name: "test"))
    return (phone, token)
  }

  @Test("X-053 an admin lists accounts, and the list pages by name")
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

  @Test("X-053 of more accounts than a page holds none is lost and none comes twice, whatever the case of the names")
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

  @Test("X-053 nobody but an admin gets at any of it", arguments: operations)
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

  @Test("X-053 an admin without a second factor, or with one proved long ago, is refused")
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

  @Test("A-226 a locked account's sessions end, its sign-ins are refused, and unlocking lets it in again")
  func lock() async throws {
    try await TestBackend.with { backend in
      let (root, token) = try await admin(backend)
      let phone = TestPhone(username: "ada")
      let session = try await backend.token(phone)
      let body: JSONValue = ["username": "ada"]
      #expect(try await backend.post("/admin/lock", body, as: root.app, token: token).status == 200)
      #expect(try await backend.get("/devices/ada", as: phone.app, token: session).status == 401)
      #expect(try await backend.signIn(phone).status == 423)
      #expect(try await backend.post("/admin/unlock", body, as: root.app, token: token).status == 200)
      #expect(try await backend.signIn(phone).status == 200)
    }
  }

  @Test("X-053 unlocking lifts the brakes of all factors")
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

  @Test("A-229 a reset gives a code that brings a new telephone in, and takes the second factor away")
  func reset() async throws {
    try await TestBackend.with { backend in
      let (root, token) = try await admin(backend)
      let lost = TestPhone(username: "ada")
      _ = try await backend.setUp(lost)
      let answer = try await backend.post("/admin/reset", ["username": "ada"], as: root.app, token: token)
      #expect(answer["expiresIn"] == 1800)
      let new = TestPhone(username: "ada")
      guard case .object(var body) = new.enrolment() else { return }
      body["linkCode"] = answer["temporaryCode"] ?? nil
      #expect(try await backend.post("/mfa/enroll", .object(body), as: new.app).status == 200)
      #expect(try await backend.signIn(new)["scope"] == "full")
    }
  }

  /// The body that enrols `phone` by `code`.
  private func enrolment(_ phone: TestPhone, by code: JSONValue?) -> JSONValue {
    guard case .object(var body) = phone.enrolment() else { return .null }
    body["linkCode"] = code
    return .object(body)
  }

  @Test("A-229 a reset takes all devices, and the lost one walks in neither by itself nor with a new key")
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
      // A code that the lost device made before is void.
      #expect(try await backend.post("/mfa/enroll", enrolment(thief, by: early), as: thief.app).status == 401)
      // The same telephone with its app installed anew: the id is the old one, the attested key is not.
      let again = TestPhone(username: "ada", deviceID: lost.deviceID)
      #expect(try await backend.post("/mfa/enroll", enrolment(again, by: code), as: again.app).status == 200)
      #expect(try await backend.signIn(again)["scope"] == "full")
    }
  }

  @Test("X-030 a stranger's wrong guesses leave the operator's code in use")
  func strangersGuesses() async throws {
    try await TestBackend.with { backend in
      try await backend.enrol(TestPhone(username: "ada"))
      let code = try await Administration(backend.context).resetFactors(Username("ada"), by: .command(name: "test"))
      for _ in 1...3 {
        let stranger = TestPhone(username: "ada")
        for _ in 1...5 {
          let answer = try await backend.post("/mfa/enroll", enrolment(stranger, by: "WRONGONE"), as: stranger.app)
          #expect(answer.status == 401)
        }
      }
      let new = TestPhone(username: "ada")
      #expect(try await backend.post("/mfa/enroll", enrolment(new, by: .string(code)), as: new.app).status == 200)
    }
  }

  @Test(
    "A-226 a removed device does not come back by itself, whoever removed it", arguments: [true, false],
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

  @Test("A-226 a device that an admin removes is gone, with its sessions")
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

  @Test("X-053 what an admin does stands in the account's history, with who did it")
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
}
