import MFADomain
import MFAFixtures
import OneTimePasswords
import Testing

@Suite("Authenticator apps that users add", .timeLimit(.minutes(3)))
struct AuthenticatorAppTests {
  @Test(
    "a further app is offered, confirmed, used as second factor, renamed and removed on each transport",
    arguments: Wire.allCases, TestDatabase.allCases)
  func life(_ wire: Wire, _ database: TestDatabase) async throws {
    try await AppScene.with(wire, database) { scene async throws in
      let answer = try await scene.client.call(
        "mfa.offer-authenticator", ["name": "Tablet", "algorithm": "SHA256", "digits": 8], token: scene.token)
      let secret = try #require(answer["secret"]?.text, "\(answer)")
      #expect(answer.members?.count == 4 && secret.count == 52 && answer["expiresAt"] == "2026-01-01T00:10:30Z")
      #expect(
        answer["qrCodeUrl"]
          == .string(
            "otpauth://totp/Sallyport:testuser?secret=\(secret)&issuer=Sallyport&algorithm=SHA256&digits=8&period=30"))

      let app = try await scene.offer()
      // Not in use before its first code.
      #expect(try await scene.signIn(app.code()) == 401)
      let entry = try await scene.confirm(app)
      #expect(
        entry == [
          "id": app.id, "kind": "app", "name": "Tablet", "createdAt": "2026-01-01T00:00:30Z",
          "lastUsedAt": "2026-01-01T00:00:30Z",
        ], "\(entry)")
      #expect(try await scene.signIn(app.code()) == 401, "the code of the confirmation is spent")
      scene.backend.clock.advance(by: .seconds(30))
      #expect(try await scene.signIn(app.code()) == 200)
      #expect(try await scene.signIn(app.code()) == 401)
      #expect(try await scene.signIn(.string(scene.first.code())) == 200)

      let list = try await scene.list()
      #expect(list.map { $0["kind"] } == ["first", "app"] && list.map { $0["id"] } == ["first", app.id], "\(list)")
      #expect(list.map { $0["lastUsedAt"] } == ["2026-01-01T00:01:00Z", "2026-01-01T00:01:00Z"])
      let renamed = try await scene.client.call(
        "mfa.rename-authenticator", ["id": app.id, "name": "Old tablet"], token: scene.token)
      #expect(renamed["name"] == "Old tablet", "\(renamed)")
      #expect(try await scene.remove(app.id)["message"] == "Authenticator removed")
      #expect(try await scene.list().count == 1)
      scene.backend.clock.advance(by: .seconds(30))
      #expect(try await scene.signIn(app.code()) == 401)
      #expect(try await scene.signIn(.string(scene.first.code())) == 200)
      let serial = "serial=app-\(app.id.text ?? "")"
      let events = try await scene.history().filter { $0.detail == serial }.map(\.event)
      #expect(events == ["app.removed", "app.renamed", "app.added", "app.offered"], "\(events)")
      let notices = try await scene.client.call("notices.list", [:], token: scene.token)["notices"]
      let kinds = (0..<(notices?.count ?? 0)).compactMap { notices?[$0]?["kind"]?.text }
      #expect(kinds.suffix(2) == ["authenticatorAdded", "authenticatorRemoved"], "\(kinds)")
      #expect(try await scene.backend.trail.verify().fault == nil)
    }
  }

  @Test("a user with a new phone replaces the first app, and keeps the backup codes")
  func newPhone() async throws {
    try await AppScene.with { scene async throws in
      #expect(try await scene.remove("first")["code"] == "last_authenticator")
      let app = try await scene.added("New phone")
      #expect(try await scene.remove("first")["message"] != nil)
      #expect(try await scene.remove("first")["code"] == "not_found")
      #expect(try await scene.remove(app.id)["code"] == "last_authenticator")
      scene.backend.clock.advance(by: .seconds(30))
      #expect(try await scene.signIn(.string(scene.first.code())) == 401)
      #expect(try await scene.signIn(app.code()) == 200)
      #expect(try await scene.signIn(.string(scene.first.backupCodes[0])) == 200)
      // The account can have a first app again, which then replaces the added one.
      let again = try await scene.backend.offerAuthenticator(scene.phone, token: scene.token)
      #expect(try await scene.list().map { $0["id"] } == [app.id], "an offer is not an authenticator")
      #expect(try await scene.remove(app.id)["code"] == "last_authenticator")
      let confirmed = try await scene.client.call(
        "mfa.verify-enrollment", ["code": .string(again.code())], token: scene.token)
      #expect(confirmed["message"] != nil, "\(confirmed)")
      #expect(try await scene.remove(app.id)["message"] != nil)
    }
  }

  @Test("removing an authenticator leaves the trust of devices, and disable removes all apps and offers")
  func trustAndDisable() async throws {
    try await AppScene.with { scene async throws in
      let app = try await scene.added()
      let pending = try await scene.backend.pendingToken(scene.phone)
      let trusted = try await scene.backend.verifyLogin(
        scene.first.code(), scene.phone, token: pending, ["trust_device": true])
      #expect(trusted["trust_token"]?.text != nil, "\(trusted)")
      func countTrusted() async throws -> Int? {
        try await scene.client.call("mfa.trusted-devices", token: scene.token)["devices"]?.count
      }
      #expect(try await scene.remove("first")["message"] != nil)
      #expect(try await countTrusted() == 1)
      let offered = try await scene.offer("Laptop")
      scene.backend.clock.advance(by: .seconds(30))
      let off = try await scene.client.call("mfa.disable", ["code": app.code()], token: scene.token)
      #expect(off["message"] != nil, "\(off)")
      #expect(try await scene.list().isEmpty)
      #expect(try await countTrusted() == 0)
      #expect(try await scene.backend.signIn(scene.phone)["scope"] == "full")
      #expect(try await scene.confirm(offered)["code"] == "not_enabled")
      #expect(
        try await scene.client.call("mfa.offer-authenticator", ["name": "x"], token: scene.token)["code"]
          == "not_enabled")
      let tokens = try await Administration(scene.backend.context).tokens(
        after: nil, atMost: 9, by: AppScene.operatorName)
      #expect(tokens.isEmpty, "an added app never becomes free")
    }
  }

  @Test("a stale session and one that has skipped or not given the factor add and remove nothing")
  func sessions() async throws {
    try await AppScene.with { scene async throws in
      let app = try await scene.added()
      let pending = try await scene.backend.pendingToken(scene.phone)
      for (name, body) in [
        ("mfa.offer-authenticator", ["name": "x"]), ("mfa.authenticators", [:]),
        ("mfa.confirm-authenticator", ["id": app.id, "code": "123456"]),
        ("mfa.rename-authenticator", ["id": app.id, "name": "x"]), ("mfa.remove-authenticator", ["id": app.id]),
      ] as [(String, JSONValue)] {
        #expect(try await scene.client.call(name, body, token: pending)["code"] == "mfa_required", "\(name)")
        #expect(try await scene.client.call(name, body)["code"] == "session_required", "\(name)")
      }
      // Trust lets this session skip the factor.
      let trusted = try await scene.backend.verifyLogin(
        scene.first.code(), scene.phone, token: pending, ["trust_device": true])
      let challenge = try await scene.backend.challenge(scene.phone)
      var body = try #require(try scene.backend.proof(scene.phone, of: challenge).members)
      body["trustToken"] = trusted["trust_token"]
      let skipped = try await scene.backend.post("/auth/verify-signature", .object(body), as: scene.phone.app)
      let byTrust = try #require(skipped["token"]?.text, "\(skipped)")
      #expect(skipped["scope"] == "full")
      #expect(
        try await scene.client.call("mfa.offer-authenticator", ["name": "x"], token: byTrust)["code"] == "mfa_required")
      #expect(try await scene.remove(app.id, token: byTrust)["code"] == "mfa_required")

      let offered = try await scene.offer()
      scene.backend.clock.advance(by: .seconds(301))
      let stale = "insufficient_user_authentication" as JSONValue
      #expect(
        try await scene.client.call("mfa.offer-authenticator", ["name": "x"], token: scene.token)["code"] == stale)
      #expect(try await scene.remove(app.id)["code"] == stale)
      // The offer was made by a fresh session. Confirming it does not make the session fresh.
      #expect(try await scene.confirm(offered)["kind"] == "app")
      #expect(try await scene.remove(app.id)["code"] == stale)
    }
  }

  @Test("an offer is for its session, its newest id and ten minutes, and needs a code of its own secret")
  func offers() async throws {
    try await AppScene.with { scene async throws in
      let (first, second) = (try await scene.offer("A"), try await scene.offer("B"))
      #expect(try await scene.confirm(first)["code"] == "not_found")
      #expect(try await scene.confirm(second, first.code())["code"] == "invalid_code")
      #expect(try await scene.confirm(second, .string(scene.first.code()))["code"] == "invalid_code")
      #expect(try await scene.confirm(second, .string(scene.first.backupCodes[0]))["code"] == "invalid_code")
      let other = try await scene.otherSession()
      #expect(try await scene.confirm(second, token: other)["code"] == "not_found")
      let ofOther = try await scene.offer("C", token: other)
      #expect(try await scene.confirm(ofOther)["code"] == "not_found")
      #expect(try await scene.confirm(second)["name"] == "B")
      #expect(try await scene.confirm(second)["code"] == "not_found", "a confirmation is not repeated")
      scene.backend.clock.advance(by: .seconds(600))
      #expect(try await scene.confirm(ofOther, token: other)["code"] == "not_found")
      // The access token has not expired, the offer has.
      #expect(try await scene.list().map { $0["name"] } == ["", "B"])
      try await RecordMaintenance(scene.backend.context).clean()
      scene.backend.clock.advance(by: .seconds(1))
      try await RecordMaintenance(scene.backend.context).clean()
      let user = try await scene.backend.context.store.read { try $0.user(named: "testuser") }
      let id = try #require(user?.id)
      #expect(try await scene.backend.context.store.read { try $0.appOffers(of: id) } == [])
    }
  }

  @Test("wrong codes of an offer are guesses at the second factor")
  func guesses() async throws {
    try await AppScene.with { scene async throws in
      let offered = try await scene.offer()
      for _ in 1...5 { #expect(try await scene.confirm(offered, "000000")["code"] == "invalid_code") }
      #expect(try await scene.confirm(offered)["code"] == "rate_limited")
      let pending = try await scene.backend.pendingToken(scene.phone)
      #expect(try await scene.backend.verifyLogin(scene.first.code(), scene.phone, token: pending).status == 429)
    }
  }

  @Test("ids of another user, of tokens and of nothing are refused, and so are names that are none")
  func others() async throws {
    try await AppScene.with { scene async throws in
      let app = try await scene.added()
      let stranger = TestPhone(username: "mallory")
      let (theirs, _) = try await scene.backend.setUp(stranger)
      for id in [app.id, "00000000-0000-4000-8000-000000000000"] {
        let path = "/api/v1/auth/mfa/authenticators/\(id.text ?? "")"
        let removed = try await scene.backend.send("DELETE", path, as: stranger.app, token: theirs)
        #expect(removed.status == 404 && removed["code"] == "not_found", "\(removed)")
        let renamed = try await scene.backend.post(
          "/auth/mfa/authenticators/rename", ["id": id, "name": "x"], as: stranger.app, token: theirs)
        #expect(renamed.status == 404, "\(renamed)")
        let confirmed = try await scene.backend.post(
          "/auth/mfa/authenticators/confirm", ["id": id, "code": "123456"], as: stranger.app, token: theirs)
        #expect(confirmed.status == 404, "\(confirmed)")
      }
      let administration = Administration(scene.backend.context)
      let token = try ImportedToken(
        place: "line 1", serial: "H1", maker: "Acme", kind: .hotp, secret: Array("12345678901234567890".utf8),
        username: Username("testuser"))
      _ = try await administration.importTokens([token], from: "csv", changes: true, by: AppScene.operatorName)
      let listed = try #require(try await scene.list().first { $0["kind"] == "token" })
      #expect(listed["kind"] == "token" && listed["name"] == "Acme H1" && listed["lastUsedAt"] == .null, "\(listed)")
      let id = try #require(listed["id"])
      #expect(try await scene.remove(id)["code"] == "forbidden")
      #expect(
        try await scene.client.call("mfa.rename-authenticator", ["id": id, "name": "x"], token: scene.token)["code"]
          == "forbidden")
      let long = String(repeating: "x", count: 129)
      for name in ["", "a\u{7}", "a\nb", "\u{202E}abc", "a\u{200B}", long] {
        for (operation, body) in [
          ("mfa.offer-authenticator", ["name": .string(name)]),
          ("mfa.rename-authenticator", ["id": app.id, "name": .string(name)]),
        ] as [(String, JSONValue)] {
          let answer = try await scene.client.call(operation, body, token: scene.token)
          #expect(answer["code"] == "invalid_request", "\(operation) \(name.debugDescription): \(answer)")
        }
      }
      for body in [["name": "x", "digits": 9], ["name": "x", "algorithm": "MD5"]] as [JSONValue] {
        let answer = try await scene.client.call("mfa.offer-authenticator", body, token: scene.token)
        #expect(answer["code"] == "invalid_request", "\(answer)")
      }
      for bad in ["First", "app", "1", "00000000-0000-4000-8000-00000000000"] as [JSONValue] {
        #expect(try await scene.remove(bad)["code"] == "invalid_request", "\(bad)")
      }
    }
  }

  @Test("apps and tokens together are five at most, and an operator neither assigns nor unassigns an added app")
  func limit() async throws {
    try await AppScene.with { scene async throws in
      let administration = Administration(scene.backend.context)
      let secret = Array("12345678901234567890".utf8)
      let token = try ImportedToken(
        place: "line 1", serial: "H1", kind: .hotp, secret: secret, username: Username("testuser"))
      _ = try await administration.importTokens([token], from: "csv", changes: true, by: AppScene.operatorName)
      let apps = [try await scene.added("1"), try await scene.added("2"), try await scene.added("3")]
      let last = try await scene.offer("4")
      let other = try await scene.otherSession()
      let sixth = try await scene.offer("5", token: other)
      #expect(try await scene.confirm(last)["name"] == "4")
      // The offer was made while there was room.
      #expect(try await scene.confirm(sixth, token: other)["code"] == "too_many_authenticators")
      #expect(
        try await scene.client.call("mfa.offer-authenticator", ["name": "6"], token: scene.token)["code"]
          == "too_many_authenticators")
      let spare = try ImportedToken(
        place: "line 1", serial: "H2", kind: .hotp, secret: secret + [1])
      _ = try await administration.importTokens([spare], from: "csv", changes: true, by: AppScene.operatorName)
      await #expect(throws: Administration.TokenError.tooMany) {
        try await administration.assignToken(TokenSerial("H2"), to: Username("testuser"), by: AppScene.operatorName)
      }
      let serial = try TokenSerial("app-\(apps[0].id.text ?? "")")
      let stored = try await administration.tokens(after: nil, atMost: 9, by: AppScene.operatorName)
      #expect(stored.first { $0.token.serial == serial }?.owner?.text == "testuser")
      #expect(stored.first { $0.token.serial == serial }?.token.name?.text == "1")
      await #expect(throws: Administration.TokenError.isOfUser) {
        try await administration.unassignToken(serial, by: AppScene.operatorName)
      }
      await #expect(throws: Administration.TokenError.isAssigned) {
        try await administration.assignToken(serial, to: Username("testuser"), by: AppScene.operatorName)
      }
      // No import gives the account a secret that it has.
      let same = try ImportedToken(
        place: "line 1", serial: "T9", kind: .totp, secret: apps[1].secret, username: Username("testuser"))
      await #expect(throws: Administration.ImportFaults.self) {
        try await administration.importTokens([same], from: "csv", changes: true, by: AppScene.operatorName)
      }
      #expect(try await administration.removeToken(serial, by: AppScene.operatorName)?.username.text == "testuser")
      let details = try await administration.details(of: .name(Username("testuser")), by: AppScene.operatorName)
      #expect(details.tokens.compactMap(\.name?.text).sorted() == ["2", "3", "4"])
      _ = try await administration.resetFactors(Username("testuser"), by: AppScene.operatorName)
      let left = try await administration.tokens(after: nil, atMost: 9, by: AppScene.operatorName)
      #expect(left.map(\.token.serial.text) == ["H1", "H2"] && left.allSatisfy { $0.owner == nil })
    }
  }

  @Test("of concurrent confirmations one adds the app, and of concurrent removals one authenticator stays")
  func races() async throws {
    for database in TestDatabase.allCases {
      try await TwoBackends.with(database) { first, second in
        let phone = TestPhone()
        let (token, _) = try await first.setUp(phone)
        let offer = try await first.post(
          "/auth/mfa/authenticators", ["name": "Tablet"], as: phone.app, token: token)
        let id = try #require(offer["id"], "\(offer)")
        let secret = try Base32.decode(#require(offer["secret"]?.text))
        let parameters = TOTPParameters.standard
        let code = parameters.code(secret, step: parameters.step(at: first.clock.now))
        let statuses = try await withThrowingTaskGroup { group in
          for index in 0..<8 {
            group.addTask {
              try await (index.isMultiple(of: 2) ? first : second).post(
                "/auth/mfa/authenticators/confirm", ["id": id, "code": .string(code)], as: phone.app, token: token
              ).status
            }
          }
          return try await group.reduce(into: [Int]()) { $0.append($1) }
        }
        #expect(statuses.sorted() == [200] + Array(repeating: 404, count: 7), "\(database)")
        let removals = try await withThrowingTaskGroup { group in
          for (backend, name) in [(first, "first"), (second, id.text ?? "")] {
            group.addTask {
              try await backend.send(
                "DELETE", "/api/v1/auth/mfa/authenticators/\(name)", as: phone.app, token: token
              ).status
            }
          }
          return try await group.reduce(into: [Int]()) { $0.append($1) }
        }
        #expect(removals.sorted() == [200, 409], "\(database)")
        let list = try await first.get("/auth/mfa/authenticators", as: phone.app, token: token)
        #expect(list["authenticators"]?.count == 1, "\(list)")
      }
    }
  }

  @Test("of a confirmation and a removal of the only other authenticator at once, one authenticator stays at least")
  func confirmBesideRemoval() async throws {
    try await AppScene.with { scene async throws in
      for round in 1...4 {
        let offered = try await scene.offer("\(round)")
        async let confirmed = scene.confirm(offered)
        async let removed = scene.remove("first")
        let (entry, removal) = try await (confirmed, removed)
        #expect(entry["id"] == offered.id, "\(entry)")
        let list = try await scene.list()
        #expect(!list.isEmpty)
        if removal["message"] != nil { break }
        #expect(removal["code"] == "last_authenticator", "\(removal)")
        #expect(try await scene.remove(offered.id)["message"] != nil)
      }
    }
  }

  @Test("added apps and offers are sealed again with all values, and work afterwards", arguments: TestDatabase.allCases)
  func resealed(_ database: TestDatabase) async throws {
    let (keys, store) = (KeyEncryptionKeys.ephemeral(.system), try await database.open())
    let (clock, phone) = (ManualClock(), TestPhone())
    let gate = try TestGate(clock: clock.wall)
    let path = "/auth/mfa/authenticators"
    func offer(_ backend: TestBackend, _ token: String) async throws -> (id: JSONValue, secret: [UInt8]) {
      let answer = try await backend.post(path, ["name": "Tablet"], as: phone.app, token: token)
      return (try #require(answer["id"], "\(answer)"), try Base32.decode(#require(answer["secret"]?.text)))
    }
    func code(_ secret: [UInt8]) -> String {
      TOTPParameters.standard.code(secret, step: TOTPParameters.standard.step(at: clock.now))
    }
    let (token, app, open) = try await TestBackend.with(store: store, gate: gate, clock: clock, keys: keys) { backend in
      let (token, _) = try await backend.setUp(phone)
      let app = try await offer(backend, token)
      let confirmed = try await backend.post(
        path + "/confirm", ["id": app.id, "code": .string(code(app.secret))], as: phone.app, token: token)
      #expect(confirmed.status == 200, "\(confirmed)")
      let open = try await offer(backend, token)
      return (token, app, open)
    }
    let resealed = try await Resealing(store, keys, clock: clock.wall).run()
    // The number of the device, the first app, the added one and the offer.
    #expect(resealed == 4)
    try await TestBackend.with(store: store, gate: gate, clock: clock, keys: keys) { backend in
      let confirmed = try await backend.post(
        path + "/confirm", ["id": open.id, "code": .string(code(open.secret))], as: phone.app, token: token)
      #expect(confirmed.status == 200, "\(confirmed)")
      clock.advance(by: .seconds(30))
      for secret in [app.secret, open.secret] {
        let pending = try await backend.pendingToken(phone)
        #expect(try await backend.verifyLogin(code(secret), phone, token: pending).status == 200)
      }
    }
  }
}
