import ByteCoding
import MFADomain
import MFAFixtures
import OneTimePasswords
import Testing

@Suite("Imported tokens", .timeLimit(.minutes(2)))
struct TokenTests {
  private static let secret = Array("12345678901234567890".utf8)
  private static let operatorName = Administration.Actor.command(name: "uid 0")

  /// The code of a token with the secret of these tests, or with that of a number.
  private func code(_ counter: Int64, of number: Int? = nil) throws -> String {
    try OneTimePassword(digits: 6).code(secret: Self.secret(of: number), counter: UInt64(counter))
  }

  private static func secret(of number: Int?) -> [UInt8] { secret + (number.map { [UInt8(clamping: $0)] } ?? []) }

  private func imported(
    _ serial: String, _ kind: OATHToken.Kind, counter: Int64 = 0, drift: Int64 = 0, period: Int = 30,
    secret number: Int? = nil, for name: String? = nil
  ) throws -> ImportedToken {
    try ImportedToken(
      place: "line 1", serial: serial, kind: kind, secret: Self.secret(of: number), period: period, counter: counter,
      drift: drift, username: name.map { try Username($0) })
  }

  private func serial(_ text: String) throws -> TokenSerial { try TokenSerial(text) }

  /// Calls `body` with an account whose only second factor is this token, and its administration.
  private func with(
    _ token: ImportedToken, _ body: (TestBackend, TestPhone, Administration) async throws -> Void
  ) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      let administration = Administration(backend.context)
      let result = try await administration.importTokens(
        [token], from: "pskc", changes: true, by: Self.operatorName)
      #expect(result == .init(tokens: 1, assigned: 1))
      try await body(backend, phone, administration)
    }
  }

  private func status(_ code: String, _ backend: TestBackend, _ phone: TestPhone) async throws -> Int {
    let pending = try await backend.pendingToken(phone)
    return try await backend.verifyLogin(code, phone, token: pending).status
  }

  @Test("a code of HOTP completes a sign-in once, and so do the next four codes, in their order")
  func hotp() async throws {
    try await with(imported("H1", .hotp, counter: 10, for: "testuser")) { backend, phone, _ in
      let pending = try await backend.pendingToken(phone)
      let methods = try await backend.get("/auth/mfa/status", as: phone.app, token: pending)
      #expect(methods["methods"] == ["totp"] && methods["enabled"] == true, "\(methods)")
      #expect(try await status(code(9), backend, phone) == 401)
      #expect(try await status(code(15), backend, phone) == 401)
      #expect(try await status(code(10), backend, phone) == 200)
      #expect(try await status(code(10), backend, phone) == 401)
      #expect(try await status(code(15), backend, phone) == 200)
      #expect(try await status(code(12), backend, phone) == 401)
      let history = try await backend.context.store.read { try $0.auditEntries(after: 0, atMost: 100) }.map(\.entry)
      #expect(history.contains { $0.event == "code.accepted" && $0.detail == "factor=totp serial=H1" })
      #expect(history.contains { $0.event == "token.assigned" && $0.detail == "serial=H1" })
      #expect(history.contains { $0.detail.contains("reason=code_used") || $0.detail.contains("used") }, "\(history)")
    }
  }

  @Test("of 50 simultaneous uses of one code of HOTP, one is accepted")
  func parallel() async throws {
    try await with(imported("H1", .hotp, for: "testuser")) { backend, phone, _ in
      let (pending, first) = (try await backend.pendingToken(phone), try code(0))
      let accepted = try await withThrowingTaskGroup { group in
        for _ in 1...50 {
          group.addTask { try await backend.verifyLogin(first, phone, token: pending).status == 200 }
        }
        return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      #expect(accepted == 1)
    }
  }

  @Test("the drift of a token follows its clock: forward at once, and back after two older codes in a row")
  func drift() async throws {
    try await with(imported("T1", .totp, drift: 7, period: 60, for: "testuser")) { backend, phone, administration in
      func now() -> Int64 { backend.clock.now.seconds / 60 }
      #expect(try await status(code(now() + 5), backend, phone) == 401)
      for (distance, drift) in [(8, 8), (9, 9), (10, 10), (9, 10), (9, 9), (8, 9), (9, 9)] as [(Int64, Int64)] {
        #expect(try await status(code(now() + distance), backend, phone) == 200, "\(distance)")
        // The same step is spent at once.
        #expect(try await status(code(now() + distance), backend, phone) == 401)
        backend.clock.advance(by: .seconds(180))
        let kept = try await administration.tokens(after: nil, atMost: 10, by: Self.operatorName)
        #expect(kept.map(\.token.drift) == [drift] && kept.map(\.owner?.text) == ["testuser"])
      }
      #expect(try await status(code(now() + 12), backend, phone) == 401)
    }
  }

  @Test("codes that are typed late do not move the window away from a token whose clock is right")
  func lateCodes() async throws {
    try await with(imported("T1", .totp, for: "testuser")) { backend, phone, administration in
      func signIn(by steps: Int64) async throws -> Int {
        backend.clock.advance(by: .seconds(300))
        return try await status(code(backend.clock.now.seconds / 30 + steps), backend, phone)
      }
      // After one late code, a code of two steps ago is as old as ever.
      #expect(try await signIn(by: -1) == 200)
      #expect(try await signIn(by: -2) == 401)
      #expect(try await signIn(by: 0) == 200)
      // Two late codes are a slow clock of one step, which one code in time ends.
      for steps in [-1, -1, -2] as [Int64] { #expect(try await signIn(by: steps) == 200, "\(steps)") }
      #expect(try await signIn(by: -3) == 401)
      var drift = try await administration.tokens(after: nil, atMost: 1, by: Self.operatorName).first?.token.drift
      #expect(drift == -1)
      #expect(try await signIn(by: 0) == 200)
      #expect(try await signIn(by: -2) == 401)
      // However often codes are late, one in time is accepted, and a newer one too.
      for steps in [-1, -1, -2, -2, -3, -3] as [Int64] { #expect(try await signIn(by: steps) == 200, "\(steps)") }
      #expect(try await signIn(by: 1) == 200)
      drift = try await administration.tokens(after: nil, atMost: 1, by: Self.operatorName).first?.token.drift
      #expect(drift == 1)
    }
  }

  @Test("two codes in a row bring a token back in step from afar, and are spent; others change nothing")
  func resynchronisation() async throws {
    try await with(imported("H1", .hotp, counter: 5, for: "testuser")) { backend, phone, administration in
      func resync(_ name: String, _ first: Int64, _ second: Int64) async throws -> Int64 {
        try await administration.resynchroniseToken(
          serial(name), by: CodeGuess(code(first)), and: CodeGuess(code(second)), actor: Self.operatorName)
      }
      for (first, second) in [(600, 602), (601, 600), (3, 4), (2000, 2001)] as [(Int64, Int64)] {
        await #expect(throws: Administration.TokenError.codesNotFound) { try await resync("H1", first, second) }
      }
      #expect(try await resync("H1", 600, 601) == 602)
      await #expect(throws: Administration.TokenError.codesNotFound) { try await resync("H1", 600, 601) }
      #expect(try await status(code(601), backend, phone) == 401)
      #expect(try await status(code(602), backend, phone) == 200)
      _ = try await administration.importTokens(
        [imported("T1", .totp)], from: "csv", changes: true, by: Self.operatorName)
      let step = backend.clock.now.seconds / 30
      #expect(try await resync("T1", step - 301, step - 300) == -300)
      await #expect(throws: Administration.TokenError.unknownToken) { try await resync("T2", 1, 2) }
    }
  }

  @Test("an authenticator app with a wrong clock is brought in step, and still works when its clock is set right")
  func app() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (_, authenticator) = try await backend.setUp(phone)
      let administration = Administration(backend.context)
      func resync(_ steps: Int64) async throws -> Int64 {
        try await administration.resynchroniseAuthenticator(
          of: Username("testuser"), by: CodeGuess(authenticator.code(steps)),
          and: CodeGuess(authenticator.code(steps + 1)),
          actor: Self.operatorName)
      }
      #expect(try await status(authenticator.code(40), backend, phone) == 401)
      #expect(try await resync(38) == 39)
      #expect(try await status(authenticator.code(40), backend, phone) == 200)
      backend.clock.advance(by: .seconds(60 * 30))
      #expect(try await status(authenticator.code(), backend, phone) == 200)
      // The drift is forgotten.
      backend.clock.advance(by: .seconds(60 * 30))
      #expect(try await status(authenticator.code(40), backend, phone) == 401)
      await #expect(throws: Administration.TokenError.unknownAccount) {
        try await administration.resynchroniseAuthenticator(
          of: Username("bob"), by: CodeGuess("000000"), and: CodeGuess("000000"), actor: Self.operatorName)
      }
    }
  }

  @Test("a code from further ahead than is compared leaves nothing to find, for an app and for a token")
  func spentAhead() async throws {
    try await TestBackend.with { backend in
      let (_, authenticator) = try await backend.setUp(TestPhone())
      let administration = Administration(backend.context)
      _ = try await administration.importTokens(
        [imported("T1", .totp)], from: "csv", changes: true, by: Self.operatorName)
      let start = backend.clock.now.seconds / 30
      func app(_ steps: Int64) async throws -> Int64 {
        try await administration.resynchroniseAuthenticator(
          of: Username("testuser"), by: CodeGuess(authenticator.code(steps)),
          and: CodeGuess(authenticator.code(steps + 1)), actor: Self.operatorName)
      }
      func token(_ steps: Int64) async throws -> Int64 {
        try await administration.resynchroniseToken(
          serial("T1"), by: CodeGuess(code(start + steps)), and: CodeGuess(code(start + steps + 1)),
          actor: Self.operatorName)
      }
      for resync in [app, token] as [(Int64) async throws -> Int64] {
        #expect(try await resync(998) == 999)
        #expect(try await resync(1000) == 1001)
        await #expect(throws: Administration.TokenError.spentAhead) { try await resync(1000) }
        await #expect(throws: Administration.TokenError.spentAhead) { try await resync(1002) }
      }
      // A day later there are codes again that were not spent.
      backend.clock.advance(by: .seconds(86_400))
      #expect(try await app(0) == 0)
      #expect(try await token(2880) == 1)
    }
  }

  @Test("a form of one account takes no token from another one, and none that has no owner")
  func foreignForm() async throws {
    try await TestBackend.with { backend in
      for name in ["ada", "bob"] { _ = try await backend.enrol(TestPhone(username: name)) }
      let administration = Administration(backend.context)
      let ids = try await backend.context.store.read { records in
        try ["ada", "bob"].compactMap { try records.user(named: $0)?.id }
      }
      try #require(ids.count == 2)
      for number in 1...2 {
        _ = try await administration.importTokens(
          [imported("H\(number)", .hotp, counter: 1, secret: number)], from: "csv", changes: true,
          by: Self.operatorName)
      }
      _ = try await administration.assignToken(serial("H1"), to: Username("ada"), by: Self.operatorName)
      for name in ["H1", "H2"] {
        await #expect(throws: MFARefusal.notFound) {
          try await administration.unassignToken(serial(name), of: ids[1], by: Self.operatorName)
        }
      }
      let listed = try await administration.tokens(after: nil, atMost: 10, by: Self.operatorName)
      #expect(listed.map { $0.owner?.text } == ["ada", nil])
      let owner = try await administration.unassignToken(serial("H1"), of: ids[0], by: Self.operatorName)
      #expect(owner?.username.text == "ada")
    }
  }

  @Test("an account has its app and several tokens, each with its own codes, and at most five tokens")
  func several() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (token, authenticator) = try await backend.setUp(phone)
      let administration = Administration(backend.context)
      for number in 1...6 {
        _ = try await administration.importTokens(
          [imported("H\(number)", .hotp, counter: Int64(number * 100), secret: number)], from: "csv",
          changes: true, by: Self.operatorName)
      }
      for number in 1...5 {
        _ = try await administration.assignToken(serial("H\(number)"), to: Username("testuser"), by: Self.operatorName)
      }
      await #expect(throws: Administration.TokenError.tooMany) {
        try await administration.assignToken(serial("H6"), to: Username("testuser"), by: Self.operatorName)
      }
      await #expect(throws: Administration.TokenError.isAssigned) {
        try await administration.assignToken(serial("H1"), to: Username("testuser"), by: Self.operatorName)
      }
      #expect(try await status(code(300, of: 3), backend, phone) == 200)
      #expect(try await status(authenticator.code(), backend, phone) == 200)
      #expect(try await status(code(500, of: 5), backend, phone) == 200)
      #expect(try await status(code(600, of: 6), backend, phone) == 401)
      // What is taken from the account is of no use there any more.
      #expect(try await administration.unassignToken(serial("H3"), by: Self.operatorName)?.username.text == "testuser")
      #expect(try await status(code(301, of: 3), backend, phone) == 401)
      #expect(try await administration.unassignToken(serial("H3"), by: Self.operatorName) == nil)
      #expect(try await administration.removeToken(serial("H2"), by: Self.operatorName)?.username.text == "testuser")
      // The user turns the second factor off: all tokens leave the account.
      backend.clock.advance(by: .seconds(30))
      let off = try await backend.post(
        "/auth/mfa/disable", ["code": .string(authenticator.code())], as: phone.app, token: token)
      #expect(off.status == 200, "\(off)")
      let left = try await administration.tokens(after: nil, atMost: 10, by: Self.operatorName)
      #expect(left.map(\.token.serial.text) == ["H1", "H3", "H4", "H5", "H6"] && left.allSatisfy { $0.owner == nil })
      #expect(try await backend.signIn(phone)["scope"] != "mfa")
      #expect(try await backend.trail.verify().fault == nil)
    }
  }

  @Test("an account gets no secret twice, by an import or an assignment, neither of a token nor of its app")
  func sameSecret() async throws {
    try await TestBackend.with { backend in
      let (_, authenticator) = try await backend.setUp(TestPhone())
      let administration = Administration(backend.context)
      let ofApp = try ImportedToken(
        place: "line 7", serial: "A", kind: .totp, secret: authenticator.secret, username: Username("testuser"))
      let bad = try [
        imported("B", .hotp, for: "testuser"), imported("C", .totp, for: "TestUser"), ofApp, imported("D", .totp),
        imported("E", .totp),
      ]
      let faults = await #expect(throws: Administration.ImportFaults.self) {
        try await administration.importTokens(bad, from: "csv", changes: true, by: Self.operatorName)
      }
      let reason = "secret: the account has an authenticator with the same secret"
      #expect(faults?.reasons == ["line 1: \(reason)", "line 7: \(reason)"])
      // Without owners they may be there twice.
      _ = try await administration.importTokens(
        [bad[0], bad[3], bad[4]], from: "csv", changes: true, by: Self.operatorName)
      await #expect(throws: Administration.TokenError.sameSecret) {
        try await administration.assignToken(serial("D"), to: Username("testuser"), by: Self.operatorName)
      }
      _ = try await administration.removeToken(serial("B"), by: Self.operatorName)
      _ = try await administration.assignToken(serial("D"), to: Username("testuser"), by: Self.operatorName)
      await #expect(throws: Administration.TokenError.sameSecret) {
        try await administration.assignToken(serial("E"), to: Username("testuser"), by: Self.operatorName)
      }
    }
  }

  @Test("a code is accepted once, even if two tokens of the account have the same secret")
  func spentInAll() async throws {
    try await with(imported("H1", .hotp, counter: 10, for: "testuser")) { backend, phone, administration in
      _ = try await administration.importTokens(
        [imported("H2", .hotp, counter: 8)], from: "csv", changes: true, by: Self.operatorName)
      // An earlier version could write this.
      let (first, second) = (try serial("H1"), try serial("H2"))
      try await backend.context.store.write { records in
        var token = try #require(try records.token(second))
        token.userID = try records.token(first)?.userID
        try records.update(token)
      }
      #expect(try await status(code(11), backend, phone) == 200)
      #expect(try await status(code(11), backend, phone) == 401)
      #expect(try await status(code(10), backend, phone) == 401)
      let tokens = try await administration.tokens(after: nil, atMost: 9, by: Self.operatorName)
      #expect(tokens.map(\.token.next) == [12, 12] && tokens.allSatisfy { $0.owner?.text == "testuser" })
    }
  }

  @Test("an import changes all or nothing, names each fault, and a trial changes nothing")
  func allOrNothing() async throws {
    try await TestBackend.with { backend in
      try await backend.enrol(TestPhone())
      let administration = Administration(backend.context)
      let good = try [imported("A", .totp, for: "TestUser"), imported("B", .hotp)]
      #expect(
        try await administration.importTokens(good, from: "csv", changes: false, by: Self.operatorName)
          == .init(tokens: 2, assigned: 1))
      #expect(try await administration.tokens(after: nil, atMost: 9, by: Self.operatorName).isEmpty)
      _ = try await administration.importTokens(good, from: "csv", changes: true, by: Self.operatorName)
      let bad = try [
        imported("A", .totp), imported("C", .totp), imported("C", .totp), imported("D", .totp, for: "bob"),
        imported("E", .totp, secret: 1, for: "testuser"), imported("F", .totp, secret: 2, for: "testuser"),
        imported("G", .totp, secret: 3, for: "testuser"), imported("H", .totp, secret: 4, for: "testuser"),
        imported("I", .totp, secret: 5, for: "testuser"),
      ]
      for changes in [false, true] {
        let faults = await #expect(throws: Administration.ImportFaults.self) {
          try await administration.importTokens(bad, from: "csv", changes: changes, by: Self.operatorName)
        }
        #expect(
          faults?.reasons == [
            "line 1: serial: A was imported before", "line 1: serial: C is in the file twice",
            "line 1: user: there is no account of this name",
            "line 1: user: an account has at most 5 tokens and added apps",
          ])
      }
      #expect(
        try await administration.tokens(after: nil, atMost: 9, by: Self.operatorName).map(\.token.serial.text)
          == ["A", "B"])
    }
  }
}
