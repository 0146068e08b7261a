import ByteCoding
import Foundation
import Locking
import MFADomain
import MFAFixtures
import OneTimePasswords
import Testing

@Suite("Recovery with a backup code")
struct RecoveryTests {
  /// A user with an old phone that has a number and an authenticator, and a new phone.
  struct Scene: Sendable {
    let backend: TestBackend
    let old = TestPhone(username: "ada")
    let new = TestPhone(username: "ada")
    let session: String
    let authenticator: TestAuthenticator

    init(_ backend: TestBackend) async throws {
      self.backend = backend
      (session, authenticator) = try await backend.setUp(old)
    }

    func backupCode(_ index: Int) -> JSONValue { .string(authenticator.backupCodes[index]) }

    func start(_ index: Int = 0, as app: AppInstance? = nil) async throws -> Answer {
      try await backend.post("/mfa/recovery", ["username": "Ada", "code": backupCode(index)], as: app ?? new.app)
    }

    func enrolment(_ phone: TestPhone, _ token: JSONValue?) throws -> JSONValue {
      var body = try #require(phone.enrolment().members)
      body["recoveryToken"] = token
      return .object(body)
    }

    func complete(_ start: Answer, with phone: TestPhone? = nil) async throws -> Answer {
      let phone = phone ?? new
      return try await backend.post("/mfa/enroll", enrolment(phone, start["recoveryToken"]), as: phone.app)
    }

    func wait(_ duration: Duration = .seconds(86400)) { backend.clock.advance(by: duration) }

    func state(_ start: Answer, as app: AppInstance? = nil) async throws -> JSONValue? {
      try await backend.post(
        "/mfa/recovery/status", ["recoveryToken": start["recoveryToken"] ?? nil], as: app ?? new.app)["state"]
    }

    func events() async throws -> [String] {
      try await backend.context.store.read {
        try $0.auditEntries(before: .max, account: "ada", atMost: 1000).map { "\($0.event) \($0.detail)" }
      }
    }

    func codesLeft() async throws -> Int {
      try await backend.context.store.read { records in
        try records.user(named: "ada").map { try records.countBackupCodes(of: $0.id) } ?? 0
      }
    }
  }

  private func withScene(
    _ database: TestDatabase = .sqlite, policy: Policy = Policy(), _ body: (Scene) async throws -> Void
  ) async throws {
    try await TestBackend.with(store: try await database.open(), policy: policy) { backend in
      try await body(Scene(backend))
    }
  }

  @Test(
    "A-229 a backup code enrols a new device after the waiting period, and removes all others",
    arguments: TestDatabase.allCases, Wire.allCases)
  func comesBack(_ database: TestDatabase, _ wire: Wire) async throws {
    try await withScene(database) { scene in
      let (new, clock) = (scene.new, scene.backend.clock)
      try await AppClient.with(scene.backend, wire, as: new.app) { client in
        let start = try await client.call("recovery.start", ["username": "ada", "code": scene.backupCode(0)])
        #expect(start["state"] == "waiting" && start["backupCodesRemaining"] == 9)
        #expect(start["readyAt"] == "2026-01-02T00:00:30Z" && start["expiresAt"] == "2026-01-09T00:00:30Z")
        let token = start["recoveryToken"] ?? .null
        let enrolment = try scene.enrolment(new, token)
        clock.advance(by: .seconds(86399))
        let early = try await client.call("mfa.enroll", enrolment)
        #expect(early["code"] == "recovery_pending" && early["retryAfter"] == 1)
        #expect(try await scene.backend.challenge(scene.old).status == 200)
        #expect(try await client.call("recovery.status", ["recoveryToken": token])["state"] == "waiting")
        clock.advance(by: .seconds(1))
        #expect(try await client.call("recovery.status", ["recoveryToken": token])["state"] == "ready")
        #expect(try await client.call("mfa.enroll", enrolment)["message"] == "Device enrolled successfully")
        #expect(try await client.call("recovery.status", ["recoveryToken": token])["state"] == "completed")
        #expect(try await scene.backend.challenge(scene.old).status == 404)
        // The spent backup code is not accepted as the second factor.
        let pending = try await scene.backend.pendingToken(new)
        let spent = try await scene.backend.verifyLogin(scene.authenticator.backupCodes[0], new, token: pending)
        #expect(spent.status == 401)
        let next = try await scene.backend.verifyLogin(scene.authenticator.backupCodes[1], new, token: pending)
        #expect(next.status == 200)
      }
    }
  }

  @Test("A-229 a recovery removes the sessions of the devices, and all trust")
  func takesAll() async throws {
    try await withScene { scene in
      let backend = scene.backend
      let pending = try await backend.pendingToken(scene.old)
      let verified = try await backend.verifyLogin(
        scene.authenticator.code(), scene.old, token: pending, ["trust_device": true])
      let start = try await scene.start()
      scene.wait()
      #expect(try await scene.complete(start).status == 200)
      let refreshed = try await backend.post(
        "/auth/token/refresh", ["refreshToken": verified["refresh_token"] ?? nil], as: scene.old.app)
      #expect(refreshed.status == 401)
      let now = backend.clock.now
      let trusted = try await backend.context.store.read { records in
        try records.user(named: "ada").map { try records.trustedDevices(of: $0.id, at: now).count }
      }
      #expect(trusted == 0)
    }
  }

  @Test("A-229 the devices that a recovery removes get a push notification of it")
  func notifiesRemovedDevice() async throws {
    var policy = Policy()
    policy.pushServices = [.apns]
    policy.pushesNotices = true
    try await withScene(policy: policy) { scene in
      let (backend, old) = (scene.backend, scene.old)
      let address: JSONValue = ["token": .string(PushNotification.deviceToken)]
      let registered = try await backend.post("/auth/push/address", address, as: old.app, token: scene.session)
      #expect(registered["active"] == true)
      let start = try await scene.start()
      #expect(backend.pushes.notifications.count == 1)
      scene.wait()
      #expect(try await scene.complete(start).status == 200)
      #expect(backend.pushes.notifications.map(\.address.deviceID.text) == [old.deviceID, old.deviceID])
    }
  }

  @Test("A-229 a user without a device recovers the account without an operator", arguments: TestDatabase.allCases)
  func withoutDevice(_ database: TestDatabase) async throws {
    try await withScene(database) { scene in
      _ = try await scene.backend.post("/mfa/unenroll", scene.old.naming, as: scene.old.app, token: scene.session)
      let start = try await scene.start()
      #expect(start.status == 200)
      scene.wait()
      // The same phone after its app was installed again.
      let again = TestPhone(username: "ada", deviceID: scene.old.deviceID, app: scene.new.app)
      #expect(try await scene.complete(start, with: again).status == 200)
      #expect(try await scene.backend.signIn(again)["scope"] == "mfa")
    }
  }

  @Test("a user whose only second factor is a token of the operator recovers the account by its backup codes")
  func withToken() async throws {
    try await TestBackend.with { backend in
      let (old, new) = (TestPhone(username: "ada"), TestPhone(username: "ada"))
      try await backend.enrol(old)
      let secret = Array("12345678901234567890".utf8)
      func code(_ counter: UInt64) throws -> String { try OneTimePassword().code(secret: secret, counter: counter) }
      let token = try ImportedToken(
        place: "line 1", serial: "H1", kind: .hotp, secret: secret, username: Username("ada"))
      _ = try await Administration(backend.context).importTokens(
        [token], from: "pskc", changes: true, by: .command(name: "uid 0"))
      let signedIn = try await backend.verifyLogin(code(0), old, token: backend.pendingToken(old))
      let made = try await backend.post(
        "/auth/mfa/regenerate-backup-codes", ["code": .string(code(1))], as: old.app,
        token: signedIn["token"]?.text ?? "")
      let backup = try #require(made["backup_codes"]?[0])
      func start() async throws -> Answer {
        try await backend.post("/mfa/recovery", ["username": "ada", "code": backup], as: new.app)
      }
      let recovery = try await start()
      #expect(recovery.status == 200 && recovery["state"] == "waiting", "\(recovery)")
      // The code is refused once the token is taken away, as at a sign-in.
      _ = try await Administration(backend.context).unassignToken(
        TokenSerial("H1"), by: .command(name: "uid 0"))
      let other = try await backend.post(
        "/mfa/recovery", ["username": "ada", "code": made["backup_codes"]?[1] ?? nil], as: new.app)
      #expect(other.status == 401, "\(other)")
    }
  }

  @Test("A-229 an enrolled phone with a new attested key recovers under its own device id")
  func sameDevice() async throws {
    try await withScene { scene in
      let start = try await scene.start()
      scene.wait()
      let again = TestPhone(username: "ada", deviceID: scene.old.deviceID, app: scene.new.app)
      #expect(try await scene.complete(start, with: again).status == 200)
      #expect(try await scene.backend.signIn(again).status == 200)
      #expect(try await scene.backend.challenge(scene.old).status == 403)
      // A repeated request gets the same answer, and is performed once.
      #expect(try await scene.complete(start, with: again).status == 200)
    }
  }

  @Test("A-229 every device, number and mailbox of the account is notified at the start and at the completion")
  func notifications() async throws {
    try await withScene { scene in
      let backend = scene.backend
      _ = try await backend.post(
        "/auth/mfa/email", ["email": "ada@example.com"], as: scene.old.app, token: scene.session)
      _ = try await backend.post(
        "/auth/mfa/email/verify",
        ["email": "ada@example.com", "code": .string(backend.outbox.lastCode ?? "")], as: scene.old.app,
        token: scene.session)
      let before = backend.outbox.messages.count
      let start = try await scene.start()
      let messages = Array(backend.outbox.messages.dropFirst(before))
      let recipients: Set<OutgoingMessage.Destination> = [
        .phone(try scene.old.enrolledNumber), .email(try EmailAddress("ada@example.com")),
      ]
      #expect(messages.count == 2 && Set(messages.map(\.destination)) == recipients)
      let ready = backend.clock.now.advanced(by: .seconds(86400))
      for message in messages {
        guard case .recoveryStarted(let code, let readyAt) = message.content else {
          Issue.record("\(message.content)")
          continue
        }
        #expect(code.count == 8 && readyAt == ready)
      }
      let notices = try await backend.get("/auth/notices", as: scene.old.app, token: scene.session)["notices"]
      #expect(notices?[(notices?.count ?? 0) - 1]?["kind"] == "recoveryStarted")
      let shown = try await backend.get("/mfa/recovery", as: scene.old.app, token: scene.session)["recovery"]
      #expect(shown?["address"] == "192.0.2.1" && shown?["attested"] == true)
      #expect(shown?["readyAt"] == start["readyAt"])
      scene.wait()
      #expect(try await scene.complete(start).status == 200)
      let last = backend.outbox.messages.suffix(2)
      #expect(Set(last.map(\.destination)) == recipients && last.allSatisfy { $0.content == .recoveryCompleted })
    }
  }

  @Test(
    "A-229 a reminder is sent once, after half of the waiting period", arguments: TestDatabase.allCases)
  func reminded(_ database: TestDatabase) async throws {
    try await withScene(database) { scene in
      let (backend, maintenance) = (scene.backend, RecordMaintenance(scene.backend.context))
      _ = try await scene.start()
      let first = try #require(backend.outbox.messages.last)
      scene.wait(.seconds(43199))
      try await maintenance.remind()
      #expect(backend.outbox.messages.count == 1)
      scene.wait(.seconds(1))
      // Two backends on one database remind at the same time.
      async let one: Void = maintenance.remind()
      async let other: Void = maintenance.remind()
      _ = try await (one, other)
      try await maintenance.remind()
      let messages = backend.outbox.messages
      #expect(messages.count == 2 && messages[1].content == first.content)
      let stopped = try await backend.post(
        "/mfa/recovery/stop", ["username": "ada", "code": .string(messages[1].code ?? "")], as: .genuine())
      #expect(stopped.status == 200)
      // A stopped recovery causes no reminder.
      _ = try await scene.start(1)
      _ = try await backend.post(
        "/mfa/recovery/stop", ["username": "ada", "code": .string(backend.outbox.lastCode ?? "")], as: .genuine())
      scene.wait(.seconds(50000))
      try await maintenance.remind()
      #expect(backend.outbox.messages.count == 3)
    }
  }

  @Test(
    "A-229 a number that cannot be opened is reported once, and prevents no other reminder",
    arguments: TestDatabase.allCases)
  func remindedDespiteDamage(_ database: TestDatabase) async throws {
    try await withScene(database) { scene in
      let backend = scene.backend
      _ = try await backend.post(
        "/auth/mfa/email", ["email": "ada@example.com"], as: scene.old.app, token: scene.session)
      _ = try await backend.post(
        "/auth/mfa/email/verify",
        ["email": "ada@example.com", "code": .string(backend.outbox.lastCode ?? "")], as: scene.old.app,
        token: scene.session)
      #expect(try await scene.start().status == 200)
      let user = try await backend.context.store.write { records in
        let user = try #require(try records.user(named: "ada"))
        for var device in try records.devices(of: user.id) {
          device.phoneNumber = Sealed(bytes: [UInt8](repeating: 1, count: 64))
          try records.save(device)
        }
        return user.id
      }
      scene.wait(.seconds(43200))
      let sent = backend.outbox.messages.count
      let unreadable = LockedValue<[UUID]>([])
      for _ in 1...2 {
        try await RecordMaintenance(backend.context).remind { recipient in
          unreadable.withLock { $0.append(recipient.userID) }
        }
      }
      #expect(unreadable.withLock(\.self) == [user])
      let reminders = backend.outbox.messages.dropFirst(sent)
      #expect(reminders.map(\.destination) == [.email(try EmailAddress("ada@example.com"))])
    }
  }

  struct Stop: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let by: String
    let act: @Sendable (Scene, AppClient) async throws -> JSONValue
  }

  static let stops = [
    Stop(testDescription: "a session", by: "session") { scene, client in
      try await client.call("recovery.cancel", [:], token: scene.session)
    },
    Stop(testDescription: "the code in a notice, from anywhere", by: "code") { scene, _ in
      let code = scene.backend.outbox.lastCode ?? ""
      return try await AppClient.with(scene.backend, .rest, as: .genuine()) {
        // The user may type it in other case.
        try await $0.call("recovery.stop", ["username": "ADA", "code": .string(code.lowercased())])
      }
    },
    Stop(testDescription: "an operator", by: "operator") { scene, _ in
      try await Administration(scene.backend.context).cancelRecovery(Username("ada"), by: .command(name: "test"))
      return ["success": true]
    },
    Stop(testDescription: "an operator's reset", by: "operator") { scene, _ in
      _ = try await Administration(scene.backend.context).resetFactors(Username("ada"), by: .command(name: "test"))
      return ["success": true]
    },
    Stop(testDescription: "new backup codes", by: "codes_replaced") { scene, client in
      _ = try await client.call(
        "mfa.regenerate-backup-codes", ["code": .string(scene.authenticator.code())], token: scene.session)
      return ["success": true]
    },
    Stop(testDescription: "disabling the second factor", by: "codes_replaced") { scene, client in
      _ = try await client.call("mfa.disable", ["code": .string(scene.authenticator.code())], token: scene.session)
      return ["success": true]
    },
  ]

  @Test("A-229 a stopped recovery cannot be completed", arguments: stops, TestDatabase.allCases)
  func stopped(_ stop: Stop, _ database: TestDatabase) async throws {
    try await withScene(database) { scene in
      for wire in Wire.allCases {
        guard wire == .rest || stop.by == "session" else { continue }
        let start = try await scene.start(wire == .rest ? 0 : 1)
        let answer = try await AppClient.with(scene.backend, wire, as: scene.old.app) {
          try await stop.act(scene, $0)
        }
        #expect(answer["success"] == true, "\(answer)")
        #expect(try await scene.state(start) == "cancelled")
        let events = try await scene.events()
        #expect(events.contains { $0.hasPrefix("recovery.cancelled") && $0.hasSuffix("by=\(stop.by)") })
        // Without a wait: the session's token would expire.
        #expect(try await scene.complete(start).status == 401)
      }
      scene.wait()
      #expect(try await scene.events().contains { $0 == "recovery.refused operation=complete reason=cancelled" })
    }
  }

  @Test("A-229 a session stops only its own account's recovery, and needs its second factor for it")
  func outsiders() async throws {
    try await withScene { scene in
      let backend = scene.backend
      let outsider = TestPhone(username: "eve")
      let token = try await backend.token(outsider)
      let start = try await scene.start()
      #expect(try await backend.post("/mfa/recovery/cancel", [:], as: outsider.app, token: token).status == 404)
      #expect(try await backend.get("/mfa/recovery", as: outsider.app, token: token)["recovery"] == .null)
      let pending = try await backend.pendingToken(scene.old)
      #expect(try await backend.post("/mfa/recovery/cancel", [:], as: scene.old.app, token: pending).status == 403)
      let code: JSONValue = .string(backend.outbox.lastCode ?? "")
      let foreign = try await backend.post(
        "/mfa/recovery/stop", ["username": "eve", "code": code], as: outsider.app)
      #expect(foreign.status == 401)
      #expect(try await scene.state(start) == "waiting")
    }
  }

  @Test(
    "A-229 of 50 parallel requests with one code, one starts a recovery; of 50 with one token, one enrols a device",
    arguments: TestDatabase.allCases)
  func races(_ database: TestDatabase) async throws {
    try await withScene(database) { scene in
      let starts = try await withThrowingTaskGroup(of: (Answer, AppInstance).self) { group in
        for _ in 1...50 {
          let app = AppInstance.genuine()
          group.addTask { (try await scene.start(as: app), app) }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      let begun = starts.filter { $0.0.status == 200 }
      #expect(begun.count == 1)
      #expect(starts.allSatisfy { $0.0.status == 200 || $0.0["code"] == "invalid_code" })
      #expect(try await scene.codesLeft() == 9)
      let (start, app) = try #require(begun.first)
      scene.wait()
      let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 1...50 {
          let phone = TestPhone(username: "ada", app: app)
          group.addTask { try await scene.complete(start, with: phone).status }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(statuses.count { $0 == 200 } == 1 && statuses.count { $0 == 401 } == 49)
      let count = try await scene.backend.context.store.read { records in
        try records.user(named: "ada").map { try records.devices(of: $0.id).count }
      }
      #expect(count == 1)
    }
  }

  @Test(
    "A-229 an unknown name gets the answers that wrong codes get, for any number of guesses",
    arguments: ["/mfa/recovery", "/mfa/recovery/stop"])
  func unknown(_ path: String) async throws {
    try await withScene { scene in
      _ = try await scene.start()
      func answers(_ name: String) async throws -> [[String: JSONValue]] {
        let app = AppInstance.genuine()
        var answers: [[String: JSONValue]] = []
        for _ in 1...7 {
          let answer = try await scene.backend.post(
            path, ["username": .string(name), "code": "WRONGONE"], as: app)
          var body = try #require(answer.json?.members)
          body["requestId"] = nil
          body["status"] = .number(Double(answer.status))
          answers.append(body)
        }
        return answers
      }
      let (known, other) = (try await answers("ada"), try await answers("nobody"))
      #expect(known.count == 7 && known == other)
      #expect(known.prefix(5).allSatisfy { $0["code"] == "invalid_code" })
      #expect(known.suffix(2).allSatisfy { $0["code"] == "rate_limited" })
    }
  }

  @Test("A-229 an open recovery blocks another one; only a valid code learns of it, and it remains unspent")
  func oneAtATime() async throws {
    try await withScene { scene in
      let start = try await scene.start()
      let other = AppInstance.genuine()
      let second = try await scene.start(1, as: other)
      #expect(second.status == 409 && second["code"] == "recovery_pending")
      #expect(second.headers["retry-after"] == String(8 * 86400))
      #expect(try await scene.codesLeft() == 9)
      let wrong = try await scene.backend.post(
        "/mfa/recovery", ["username": "ada", "code": "WRONGONE"], as: other)
      #expect(wrong["code"] == "invalid_code")
      #expect(try await scene.start(0, as: other)["code"] == "invalid_code")
      // The first recovery has expired, so another one starts.
      scene.wait(.seconds(8 * 86400))
      #expect(try await scene.state(start) == "expired")
      #expect(try await scene.complete(start).status == 410)
      let third = try await scene.start(1, as: other)
      #expect(third.status == 200)
      #expect(try await scene.state(start) == "expired")
      #expect(try await scene.state(third, as: other) == "waiting")
    }
  }

  @Test("A-229 a repeated start from the same app instance gets the same answer, except for a debug build")
  func again() async throws {
    try await withScene { scene in
      let first = try await scene.start()
      scene.wait(.seconds(60))
      let second = try await scene.start()
      #expect(second.status == 200 && second["recoveryToken"] == first["recoveryToken"])
      #expect(second["readyAt"] == first["readyAt"] && second["state"] == "waiting")
      scene.wait()
      #expect(try await scene.start()["state"] == "ready")
      #expect(scene.backend.outbox.messages.count == 1)
      #expect(try await scene.codesLeft() == 9)
    }
    try await withScene { scene async throws in
      #expect(try await scene.start(as: .debugBuild).status == 200)
      #expect(try await scene.start(as: .debugBuild)["code"] == "invalid_code")
    }
  }

  @Test("A-229 a recovery token is valid only for its own app instance, and a forged one is refused")
  func bound() async throws {
    try await withScene { scene in
      let start = try await scene.start()
      scene.wait()
      let thief = TestPhone(username: "ada")
      #expect(try await scene.complete(start, with: thief)["code"] == "invalid_code")
      #expect(try await scene.state(start, as: thief.app) == nil)
      let text = start["recoveryToken"]?.text ?? ""
      for made in [text.dropLast(4) + "AAAA", "x", text + "." + text.prefix(36), text.prefix(37) + ""] {
        let body = try scene.enrolment(scene.new, .string(String(made)))
        #expect(try await scene.backend.post("/mfa/enroll", body, as: scene.new.app)["code"] == "invalid_code")
      }
      let eve = TestPhone(username: "eve", app: scene.new.app)
      #expect(try await scene.complete(start, with: eve)["code"] == "invalid_code")
      try await scene.backend.enrol(eve)
      let taken = TestPhone(username: "ada", deviceID: eve.deviceID, app: scene.new.app)
      #expect(try await scene.complete(start, with: taken)["code"] == "device_exists")
      #expect(try await scene.complete(start).status == 200)
      #expect(try await scene.events().contains("recovery.refused operation=complete reason=attested_key"))
    }
  }

  @Test("A-229 the recovery of a locked account is refused, and the code remains valid")
  func locked() async throws {
    try await withScene { scene in
      let administration = Administration(scene.backend.context)
      try await administration.lock(Username("ada"), by: .command(name: "test"))
      #expect(try await scene.start().status == 423)
      #expect(try await scene.codesLeft() == 10)
      try await administration.unlock(Username("ada"), by: .command(name: "test"))
      let start = try await scene.start()
      scene.wait()
      try await administration.lock(Username("ada"), by: .command(name: "test"))
      #expect(try await scene.complete(start).status == 423)
      try await administration.unlock(Username("ada"), by: .command(name: "test"))
      #expect(try await scene.complete(start).status == 200)
    }
  }

  @Test("A-229 backup codes of an unconfirmed authenticator start no recovery")
  func offered() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone(username: "ada")
      let authenticator = try await backend.offerAuthenticator(phone, token: try await backend.token(phone))
      let answer = try await backend.post(
        "/mfa/recovery", ["username": "ada", "code": .string(authenticator.backupCodes[0])], as: .genuine())
      #expect(answer["code"] == "invalid_code")
    }
  }

  @Test("A-229 a recovery whose messages cannot be sent does not start, and its code remains valid")
  func untold() async throws {
    var policy = Policy()
    policy.mostMessagesOfInstance = 0
    try await withScene(policy: policy) { scene async throws in
      #expect(try await scene.start().status == 429)
      #expect(try await scene.codesLeft() == 10 && scene.backend.outbox.messages.isEmpty)
    }
  }

  @Test("A-229 recoveries and codes share the hourly limit of messages to a number", arguments: TestDatabase.allCases)
  func pumped(_ database: TestDatabase) async throws {
    try await withScene(database) { scene in
      for index in 0..<5 {
        #expect(try await scene.start(index, as: .genuine()).status == 200)
        _ = try await scene.backend.post("/mfa/recovery/cancel", [:], as: scene.old.app, token: scene.session)
      }
      #expect(try await scene.start(5, as: .genuine()).status == 429)
      #expect(scene.backend.outbox.messages.count == 5)
      scene.wait(.seconds(3601))
      #expect(try await scene.start(5, as: .genuine()).status == 200)
    }
  }

  @Test("A-229 a name gets a hundred guesses in an hour, from any number of app instances")
  func guessed() async throws {
    try await withScene { scene in
      let wrong: JSONValue = ["username": "ada", "code": "WRONGONE"]
      for _ in 1...20 {
        let app = AppInstance.genuine()
        for _ in 1...5 { _ = try await scene.backend.post("/mfa/recovery", wrong, as: app) }
      }
      #expect(try await scene.start().status == 429)
      #expect(try await scene.codesLeft() == 10)
      // The account's own sign-in is not affected.
      let pending = try await scene.backend.pendingToken(scene.old)
      let verified = try await scene.backend.verifyLogin(scene.authenticator.code(), scene.old, token: pending)
      #expect(verified.status == 200)
      scene.wait(.seconds(3601))
      #expect(try await scene.start().status == 200)
    }
  }

  @Test("A-229 with recoveries disabled, none can be started or completed")
  func off() async throws {
    var policy = Policy()
    policy.recoveryWait = nil
    try await withScene(policy: policy) { scene async throws in
      #expect(try await scene.start().status == 404)
      #expect(try await scene.codesLeft() == 10)
    }
  }

  @Test("A-229 the operator sets the waiting period")
  func waiting() async throws {
    var policy = Policy()
    policy.recoveryWait = .seconds(7200)
    try await withScene(policy: policy) { scene async throws in
      let start = try await scene.start()
      scene.wait(.seconds(7199))
      #expect(try await scene.complete(start).status == 409)
      scene.wait(.seconds(1))
      #expect(try await scene.complete(start).status == 200)
    }
  }

  @Test(
    "A-229 an admin lists the open recoveries in pages, ordered by name, and stops one",
    arguments: TestDatabase.allCases, Wire.allCases)
  func administered(_ database: TestDatabase, _ wire: Wire) async throws {
    try await withScene(database) { scene in
      let backend = scene.backend
      let root = TestPhone(username: "root")
      let (token, _) = try await backend.setUp(root)
      try await Administration(backend.context).setAdmin(true, Username("root"), by: .command(name: "test"))
      _ = try await scene.start()
      try await AppClient.with(backend, wire, as: root.app) { client in
        let list = try await client.call("admin.recoveries", [:], token: token)["recoveries"]
        #expect(list?.count == 1 && list?[0]?["username"] == "ada")
        #expect(list?[0]?["recovery"]?["address"] == "192.0.2.1")
        let name: JSONValue = ["username": "ada"]
        #expect(try await client.call("admin.cancel-recovery", name, token: token)["success"] == true)
        #expect(try await client.call("admin.cancel-recovery", name, token: token)["code"] == "not_found")
        #expect(try await client.call("admin.recoveries", [:], token: token)["recoveries"]?.count == 0)
      }
      #expect(try await backend.get("/admin/recoveries?after=ada", as: root.app, token: token).status == 200)
    }
  }

  @Test("A-229 the history records the outcome of a recovery, and verifies", arguments: TestDatabase.allCases)
  func history(_ database: TestDatabase) async throws {
    try await withScene(database) { scene in
      let start = try await scene.start()
      scene.wait()
      #expect(try await scene.complete(start).status == 200)
      let events = try await scene.events()
      let order = ["device.enrolled", "recovery.completed", "recovery.started"]
      let names = events.map { String($0.prefix { $0 != " " }) }.filter { order.contains($0) }
      #expect(Array(names.prefix(3)) == order)
      #expect(events.contains { $0.hasPrefix("recovery.started") && $0.hasSuffix("sms=1 email=0") })
      #expect(try await scene.backend.trail.verify().fault == nil)
      let kinds = try await scene.backend.context.store.read { records in
        try records.user(named: "ada").map { try records.notices(of: $0.id, after: 0, atMost: 100).map(\.kind) } ?? []
      }
      #expect(kinds.contains(.recoveryStarted) && kinds.contains(.recoveryCompleted))
    }
  }

  @Test("A-229 a recovery is deleted three months after its end", arguments: TestDatabase.allCases)
  func forgotten(_ database: TestDatabase) async throws {
    try await withScene(database) { scene in
      let start = try await scene.start()
      for (days, state) in [(97, "expired"), (2, nil)] as [(Int, JSONValue?)] {
        scene.wait(.seconds(days * 86400))
        try await RecordMaintenance(scene.backend.context).clean()
        #expect(try await scene.state(start) == state)
      }
    }
  }
}
