import MFADomain
import MFAFixtures
import Testing

@Suite("Codes by SMS")
struct SMSCodeTests {
  private func request(_ backend: TestBackend, _ phone: TestPhone, number: String = "+1234567890") async throws
    -> Answer
  {
    try await backend.post(
      "/auth/request-otp", ["username": .string(phone.username), "phoneNumber": .string(number)], as: phone.app)
  }

  private func verify(_ backend: TestBackend, _ phone: TestPhone, _ code: String) async throws -> Answer {
    try await backend.post(
      "/auth/verify-otp", ["username": .string(phone.username), "otp": .string(code)], as: phone.app)
  }

  /// A code of the same length that is not `code`.
  private func wrong(_ code: String) -> String { code == "000000" ? "000001" : "000000" }

  @Test("T-4 A-086 request-otp repeats the caller's number, and sends the code to the enrolled one")
  func echo() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone, method: "smsOTP")
      let answer = try await request(backend, phone, number: "+4915112345678")
      #expect(answer.json == ["success": true, "message": "OTP sent to +4915112345678", "expiresIn": 300])
      let enrolled = try phone.enrolledNumber
      #expect(backend.outbox.messages.map(\.destination) == [.phone(enrolled)])
    }
  }

  @Test("A-086 an unknown user gets the same answer, and nothing is sent")
  func unknownUser() async throws {
    try await TestBackend.with { backend in
      let answer = try await request(backend, TestPhone(username: "nobody"))
      #expect(answer.json == ["success": true, "message": "OTP sent to +1234567890", "expiresIn": 300])
      #expect(backend.outbox.messages.isEmpty)
    }
  }

  @Test("X-013 an app instance that no device of the user is bound to gets the same answer, and nothing is sent")
  func foreignApp() async throws {
    try await TestBackend.with { backend in
      let owner = TestPhone()
      try await backend.enrol(owner, method: "smsOTP")
      let answer = try await request(backend, TestPhone(username: owner.username))
      #expect(answer.status == 200)
      #expect(backend.outbox.messages.isEmpty)
    }
  }

  @Test("A-087 a code that begins with zeros is sent with them, signs in with them, and without them does not")
  func leadingZeros() async throws {
    // Numbers are drawn with eight bytes, identifiers with sixteen; eight of 1 make the code 003921.
    let draws = Entropy { $0 == 8 ? Array(repeating: 1, count: 8) : Entropy.system.bytes($0) }
    try await TestBackend.with(entropy: draws) { backend in
      let phone = TestPhone()
      try await backend.enrol(phone, method: "smsOTP")
      _ = try await request(backend, phone)
      #expect(backend.outbox.lastCode == "003921")
      #expect(try await verify(backend, phone, "3921").status != 200)
      #expect(try await verify(backend, phone, "003921").status == 200)
      #expect(try await verify(backend, phone, "003921").status == 401)
    }
  }

  @Test("A-087 the right code gets a token and the documented text, and 401 the second time")
  func verifyOnce() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone, method: "smsOTP")
      _ = try await request(backend, phone)
      let code = backend.outbox.lastCode ?? ""
      let first = try await verify(backend, phone, code)
      #expect(first.status == 200)
      #expect(first["message"] == "Authentication successful")
      #expect(first["token"]?.text?.split(separator: ".").count == 3)
      let second = try await verify(backend, phone, code)
      #expect(second.status == 401)
      #expect(second["code"] == "invalid_code")
    }
  }

  @Test(
    "A-184 of parallel verifications of one code, exactly one succeeds", arguments: TestDatabase.allCases, [2, 50])
  func race(_ database: TestDatabase, _ count: Int) async throws {
    try await TestBackend.with(store: try await database.open()) { backend in
      let phone = TestPhone()
      try await backend.enrol(phone, method: "smsOTP")
      _ = try await request(backend, phone)
      let code = try #require(backend.outbox.lastCode)
      let statuses = try await withThrowingTaskGroup { group in
        for _ in 1...count { group.addTask { try await verify(backend, phone, code).status } }
        return try await group.reduce(into: [Int: Int]()) { $0[$1, default: 0] += 1 }
      }
      // After the successful one, five are compared with a used code; the limit on attempts refuses the others.
      #expect(statuses == (count == 2 ? [200: 1, 401: 1] : [200: 1, 401: 5, 429: 44]))
    }
  }

  @Test("a code is accepted as people type and paste it", arguments: [" ", "-", "\u{A0}", "\u{3000}", "\u{2013}"])
  func separators(_ separator: String) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone, method: "smsOTP")
      _ = try await request(backend, phone)
      let code = try #require(backend.outbox.lastCode)
      let typed = code.prefix(3) + separator + code.dropFirst(3) + "\n"
      var wide = ""
      for scalar in typed.unicodeScalars {
        let isDigit = (0x30...0x39).contains(scalar.value)
        wide.unicodeScalars.append(isDigit ? Unicode.Scalar(scalar.value + 0xFEE0) ?? scalar : scalar)
      }
      let answer = try await verify(backend, phone, separator == "-" ? wide : String(typed))
      #expect(answer.status == 200, "\(answer)")
    }
  }

  @Test("B-040 a wrong code gets 401 with the documented text")
  func wrongCode() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone, method: "smsOTP")
      _ = try await request(backend, phone)
      let answer = try await verify(backend, phone, wrong(backend.outbox.lastCode ?? ""))
      #expect(answer.status == 401)
      #expect(answer["error"] == "Invalid code. Please try again.")
    }
  }

  @Test(
    "A-183 a code is valid for less than 300 s, and gets 410 afterwards", arguments: [(299_999, 200), (300_000, 410)])
  func expiry(_ milliseconds: Int, _ status: Int) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone, method: "smsOTP")
      _ = try await request(backend, phone)
      backend.clock.advance(by: .milliseconds(milliseconds))
      let answer = try await verify(backend, phone, backend.outbox.lastCode ?? "")
      #expect(answer.status == status)
      if status == 410 { #expect(answer["error"] == "Code has expired. Please generate a new one.") }
    }
  }

  @Test("T-8 A-S07 a sign-in by SMS sends one message although it requests a code twice")
  func oneMessage() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone, method: "smsOTP")
      _ = try await backend.challenge(phone)
      #expect(try await request(backend, phone).status == 200)
      #expect(backend.outbox.messages.count == 1)
      #expect(try await verify(backend, phone, backend.outbox.lastCode ?? "").status == 200)
    }
  }

  @Test("X-030 a code can be requested again after 60 s, and not before", arguments: [(59, 429, 1), (60, 200, nil)])
  func resend(_ seconds: Int, _ status: Int, _ retryAfter: Int?) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone, method: "smsOTP")
      _ = try await request(backend, phone)
      backend.clock.advance(by: .seconds(seconds))
      let answer = try await request(backend, phone)
      #expect(answer.status == status)
      #expect(answer["retryAfter"]?.int == retryAfter)
    }
  }

  @Test(
    "X-030 an account gets five codes in an hour, whether or not it exists and its number is confirmed",
    arguments: ["testuser", "nobody"], [true, false])
  func hourly(_ username: String, isConfirmed: Bool) async throws {
    try await TestBackend.with { backend in
      let known = TestPhone()
      try await backend.enrol(known, method: "smsOTP")
      let phone = username == known.username ? known : TestPhone(username: username)
      if isConfirmed {
        _ = try await request(backend, phone)
        _ = try await verify(backend, phone, backend.outbox.lastCode ?? "")
        backend.clock.advance(by: .seconds(3600))
      }
      for _ in 1...5 {
        #expect(try await request(backend, phone).status == 200)
        backend.clock.advance(by: .seconds(61))
      }
      #expect(try await request(backend, phone).status == 429)
      backend.clock.advance(by: .seconds(3600))
      #expect(try await request(backend, phone).status == 200)
    }
  }

  @Test("X-030 an unconfirmed number gets five codes in an hour, and the owner of the number has a limit of their own")
  func unconfirmed() async throws {
    try await TestBackend.with { backend in
      let owner = TestPhone(username: "owner")
      try await backend.enrol(owner, method: "smsOTP")
      _ = try await request(backend, owner)
      #expect(try await verify(backend, owner, backend.outbox.lastCode ?? "").status == 200)
      backend.clock.advance(by: .seconds(3600))
      for name in ["one", "two", "three", "four", "five", "six"] {
        let outsider = TestPhone(username: name)
        try await backend.enrol(outsider, method: "smsOTP")
        #expect(try await request(backend, outsider).status == (name == "six" ? 429 : 200))
      }
      let sent = backend.outbox.messages.count
      for _ in 1...5 {
        #expect(try await request(backend, owner).status == 200)
        backend.clock.advance(by: .seconds(61))
      }
      #expect(backend.outbox.messages.count == sent + 5)
    }
  }

  @Test("X-030 codes for unknown names use up the same counts as others", arguments: ["testuser", "nobody"])
  func sendsToNobody(_ username: String) async throws {
    var policy = Policy()
    policy.mostMessagesOfAddress = 3
    try await TestBackend.with(policy: policy) { backend in
      let known = TestPhone()
      try await backend.enrol(known, method: "smsOTP")
      for status in [200, 200, 200, 429] {
        #expect(try await request(backend, TestPhone(username: username, app: known.app)).status == status)
        backend.clock.advance(by: .seconds(61))
      }
    }
  }

  @Test("X-030 the messages of an hour are limited for an address, for an app instance, and in total", arguments: 0...2)
  func sends(_ limit: Int) async throws {
    var policy = Policy()
    switch limit {
    case 0: policy.mostMessagesOfAddress = 3
    case 1: policy.mostMessagesOfInstance = 3
    default: policy.mostMessages = 3
    }
    try await TestBackend.with(policy: policy) { backend in
      let first = AppInstance.genuine()
      for number in 0...3 {
        var app = limit == 1 ? first : .genuine()
        if limit > 0 { app.address = "192.0.2.\(number)" }
        let phone = TestPhone(username: "user\(number)", app: app)
        var body = try #require(phone.enrolment(method: "smsOTP").members)
        body["phoneNumber"] = .string("+123456789\(number)")
        _ = try await backend.post("/mfa/enroll", .object(body), as: app)
        // The start of a sign-in does not reveal the limit, and sends nothing either.
        if number < 3 { #expect(try await request(backend, phone).status == 200) }
        #expect(try await backend.challenge(phone).status == 200)
        #expect(backend.outbox.messages.count == min(number + 1, 3))
      }
      let nobody = TestPhone(username: "nobody", app: first)
      #expect(try await request(backend, nobody).status == 429)
    }
  }

  @Test("X-030 without a limit per address, each app instance still has its own limit")
  func sendsFromOneAddress() async throws {
    var policy = Policy()
    policy.mostMessagesOfAddress = nil
    policy.mostMessagesOfInstance = 1
    try await TestBackend.with(policy: policy) { backend async throws in
      for number in 1...40 {
        let phone = TestPhone(username: "user\(number)")
        #expect(try await request(backend, phone).status == 200)
        #expect(try await request(backend, TestPhone(username: "other", app: phone.app)).status == 429)
      }
    }
  }

  @Test("A-087 the session belongs to the device whose number received the code, not to another of the app instance")
  func rightDevice() async throws {
    try await TestBackend.with { backend in
      let first = TestPhone(deviceID: "first")
      let token = try await backend.token(first)
      let second = TestPhone(deviceID: "second", app: first.app)
      var body = try #require(second.enrolment(method: "smsOTP").members)
      body["phoneNumber"] = "+1234567899"
      #expect(try await backend.post("/mfa/enroll", .object(body), as: second.app, token: token).status == 200)
      backend.clock.advance(by: .seconds(1))
      _ = try await backend.challenge(second)
      #expect(try await verify(backend, second, backend.outbox.lastCode ?? "").status == 200)
      let list = try await backend.get("/devices/testuser", as: first.app, token: token)["devices"]
      #expect(list?[0]?["lastUsed"] == "2026-01-01T00:00:00Z")
      #expect(list?[1]?["deviceId"] == "second" && list?[1]?["lastUsed"] == "2026-01-01T00:00:01Z")
    }
  }

  @Test("X-030 a newer code makes an older one invalid")
  func newest() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone, method: "smsOTP")
      _ = try await request(backend, phone)
      let older = backend.outbox.lastCode ?? ""
      backend.clock.advance(by: .seconds(61))
      _ = try await request(backend, phone)
      let newer = backend.outbox.lastCode ?? ""
      if older != newer { #expect(try await verify(backend, phone, older).status == 401) }
      #expect(try await verify(backend, phone, newer).status == 200)
    }
  }

  @Test("X-030 of 200 parallel guesses at most five are compared, and the code becomes invalid")
  func parallelGuesses() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone, method: "smsOTP")
      _ = try await request(backend, phone)
      let code = backend.outbox.lastCode ?? ""
      let statuses = try await withThrowingTaskGroup { group in
        for _ in 1...200 {
          group.addTask { try await verify(backend, phone, wrong(code)).status }
        }
        return try await group.reduce(into: [Int: Int]()) { $0[$1, default: 0] += 1 }
      }
      #expect(statuses == [401: 5, 429: 195])
      backend.clock.advance(by: .seconds(200))
      #expect(try await verify(backend, phone, code).status == 429)
    }
  }

  @Test("B-042 five wrong codes block the factor for a quarter of an hour, also for the right code")
  func rest() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone, method: "smsOTP")
      for _ in 1...5 { _ = try await verify(backend, phone, "999999") }
      let sixth = try await verify(backend, phone, "999999")
      #expect(sixth.status == 429)
      #expect(sixth["error"] == "Too many attempts. Please wait before trying again.")
      #expect(sixth.headers["retry-after"] == "900")
      backend.clock.advance(by: .seconds(900))
      _ = try await request(backend, phone)
      #expect(try await verify(backend, phone, backend.outbox.lastCode ?? "").status == 200)
    }
  }

  @Test("B-043 ten wrong codes lock the factor, also for the right code, and not the device's other factors")
  func lock() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      for round in 1...2 {
        for _ in 1...5 { #expect(try await verify(backend, phone, "999999").status == 401) }
        if round == 1 { backend.clock.advance(by: .seconds(900)) }
      }
      _ = try await request(backend, phone)
      let answer = try await verify(backend, phone, backend.outbox.lastCode ?? "")
      #expect(answer.status == 423)
      #expect(answer["error"] == "Too many failed attempts. Your account has been temporarily locked.")
      #expect(answer.headers["retry-after"] == "900")
      #expect(try await backend.signIn(phone).status == 200)
    }
  }

  @Test("no code is sent to an account that an operator has locked, and the answers are the same")
  func locked() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone, method: "smsOTP")
      let before = (try await backend.challenge(phone), try await request(backend, phone))
      #expect(backend.outbox.messages.count == 1)
      try await Administration(backend.context).lock(Username(phone.username), by: .command(name: "test"))
      backend.clock.advance(by: .seconds(60))
      let after = (try await backend.challenge(phone), try await request(backend, phone))
      #expect(after.0.status == 200 && after.0["method"] == before.0["method"])
      #expect(after.1.status == 200 && after.1.json == before.1.json)
      backend.clock.advance(by: .seconds(60))
      #expect(try await request(backend, phone).json == before.1.json)
      #expect(backend.outbox.messages.count == 1)
    }
  }

  @Test("X-051 wrong codes get the same answers for unknown users as for known ones, including the attempt limit")
  func unknownUsersLock() async throws {
    try await TestBackend.with { backend in
      let known = TestPhone()
      try await backend.enrol(known, method: "smsOTP")
      var statuses: [[Int]] = []
      for phone in [known, TestPhone(username: "nobody")] {
        statuses.append(try await (1...7).asyncMap { _ in try await verify(backend, phone, "999999").status })
      }
      #expect(statuses[0] == statuses[1])
      #expect(statuses[0] == [401, 401, 401, 401, 401, 429, 429])
    }
  }

  @Test("A-232 wrong codes are counted across a pause, so a pause does not avoid the limit of a hundred in a row")
  func pausing() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone, method: "smsOTP")
      for _ in 1...2 {
        for _ in 1...5 { #expect(try await verify(backend, phone, "999999").status == 401) }
        backend.clock.advance(by: .seconds(3 * 86400))
        try await RecordMaintenance(backend.context).clean()
      }
      #expect(try await verify(backend, phone, "999999").status == 401)
      // The eleventh in a row locks immediately, not after five more.
      #expect(try await verify(backend, phone, "999999").status == 423)
    }
  }

  @Test(
    "X-030 after a clock that ran a day ahead was set back, codes are sent again, and wrong guesses stay counted",
    arguments: TestDatabase.allCases)
  func clockSetBack(_ database: TestDatabase) async throws {
    try await TestBackend.with(store: try await database.open()) { backend in
      let phone = TestPhone()
      try await backend.enrol(phone, method: "smsOTP")
      backend.clock.advance(by: .seconds(86400))
      _ = try await request(backend, phone)
      for _ in 1...5 { _ = try await verify(backend, phone, wrong(backend.outbox.lastCode ?? "")) }
      backend.clock.advance(by: .seconds(-86400))
      #expect(try await request(backend, phone).status == 429)
      // The pause begins again.
      #expect(try await verify(backend, phone, "999999").headers["retry-after"] == "900")
      try await RecordMaintenance(backend.context).removeFuture()
      #expect(try await request(backend, phone).status == 200)
      #expect(try await verify(backend, phone, backend.outbox.lastCode ?? "").status == 429)
      backend.clock.advance(by: .seconds(900))
      #expect(try await request(backend, phone).status == 200)
      #expect(try await verify(backend, phone, backend.outbox.lastCode ?? "").status == 200)
    }
  }

  @Test(
    "a code from a backend whose clock is up to a minute ahead stays valid, and one from further ahead is removed",
    arguments: [(60, 200), (61, 401)])
  func clockDifference(_ seconds: Int, _ status: Int) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone, method: "smsOTP")
      _ = try await request(backend, phone)
      backend.clock.advance(by: .seconds(-seconds))
      try await RecordMaintenance(backend.context).removeFuture()
      #expect(try await verify(backend, phone, backend.outbox.lastCode ?? "").status == status)
    }
  }

  @Test("X-030 wrong guesses of another app instance do not lock the user")
  func foreignGuesses() async throws {
    try await TestBackend.with { backend in
      let owner = TestPhone()
      try await backend.enrol(owner, method: "smsOTP")
      let outsider = TestPhone(username: owner.username)
      for _ in 1...20 { _ = try await verify(backend, outsider, "999999") }
      _ = try await request(backend, owner)
      #expect(try await verify(backend, owner, backend.outbox.lastCode ?? "").status == 200)
    }
  }
}

@Suite("The language of messages")
struct MessageLanguageTests {
  /// Sends a request in `language`, and returns the answer.
  private func post(
    _ path: String, _ body: JSONValue, _ language: String?, as app: AppInstance, at backend: TestBackend
  ) async throws -> Answer {
    try await backend.send(
      "POST", "/api/v1" + path, body, as: app, headers: language.map { [("Accept-Language", $0)] } ?? [])
  }

  @Test("a code is in the language of its request, and otherwise in that of the account's last sign-in")
  func codes() async throws {
    try await TestBackend.with { backend async throws in
      let phone = TestPhone()
      let enrolment = phone.enrolment(method: "smsOTP")
      #expect(try await post("/mfa/enroll", enrolment, "pt-BR, en;q=0.5", as: phone.app, at: backend).status == 200)
      func languages(_ asked: String?) async throws -> [String] {
        backend.clock.advance(by: .seconds(600))
        #expect(try await post("/auth/initiate", phone.naming, asked, as: phone.app, at: backend).status == 200)
        return backend.outbox.messages.last?.languages.tags ?? []
      }
      #expect(try await languages(nil) == ["pt-br"])
      #expect(try await languages("de-CH, fr;q=0.1") == ["de-ch", "fr", "pt-br"])
      #expect(try await languages("../../etc, a_b") == ["pt-br"])
      let code = backend.outbox.lastCode ?? ""
      let proof: JSONValue = ["username": .string(phone.username), "otp": .string(code)]
      #expect(try await post("/auth/verify-otp", proof, "de", as: phone.app, at: backend).status == 200)
      #expect(try await languages(nil) == ["de"])
    }
  }

  @Test("a notice about a recovery is in the language of the account, not of the person who began it")
  func recovery() async throws {
    try await TestBackend.with { backend async throws in
      let phone = TestPhone()
      #expect(try await post("/mfa/enroll", phone.enrolment(), "de", as: phone.app, at: backend).status == 200)
      let (_, authenticator) = try await backend.setUp(phone)
      let body: JSONValue = [
        "username": .string(phone.username), "code": .string(authenticator.backupCodes[0]),
      ]
      let other = AppInstance.genuine()
      #expect(try await post("/mfa/recovery", body, "fr", as: other, at: backend).status == 200)
      #expect(backend.outbox.messages.last?.languages.tags == ["de"])
    }
  }
}
