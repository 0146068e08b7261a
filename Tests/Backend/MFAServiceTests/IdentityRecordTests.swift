import ByteCoding
import Locking
import MFADomain
import MFAFixtures
@testable import MFAStore
@testable import MFAService
import TestSupport
import Testing

/// Where the use of an identity is remembered.
@Suite("Records of identities", .timeLimit(.minutes(2)))
struct IdentityRecordTests {
  /// A request with effects, and how its first answer refuses it.
  struct Refused: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let path: String
    let code: JSONValue?
    let body: @Sendable (TestPhone) -> String
  }

  static let requests = [
    Refused(testDescription: "success", path: "/api/v1/auth/initiate", code: nil) { $0.naming.encoded },
    Refused(testDescription: "malformed JSON", path: "/api/v1/auth/initiate", code: "invalid_request") { _ in "{" },
    Refused(testDescription: "no session", path: "/api/v1/mfa/link", code: "session_required") { _ in "{}" },
    Refused(
      testDescription: "a wrong signature", path: "/api/v1/auth/verify-signature", code: "authentication_failed"
    ) {
      JSONValue.object([
        "username": .string($0.username), "deviceId": .string($0.deviceID),
        "signature": .string(String(repeating: "A", count: 86) + "=="),
        "challengeId": "00000000-0000-4000-8000-000000000000",
      ]).encoded
    },
    // The operation's own changes are rolled back.
    Refused(testDescription: "a device of another app", path: "/api/v1/auth/initiate", code: "device_mismatch") {
      JSONValue.object(["username": .string($0.username), "deviceId": "taken"]).encoded
    },
  ]

  @Test(
    "X-011 a request with effects is refused when it is sent again, at any backend, whatever its first answer was",
    arguments: TestDatabase.allCases, requests)
  func again(_ database: TestDatabase, _ request: Refused) async throws {
    try await TwoBackends.with(database) { first, second in
      let phone = TestPhone()
      try await first.enrol(phone)
      try await first.enrol(TestPhone(username: "other", deviceID: "taken"))
      let identity = try await first.gate.assertion(for: phone.app, of: ("POST", request.path))
      func send(to backend: TestBackend, _ body: String) async throws -> Answer {
        try await backend.send("POST", request.path, text: body, assertion: identity)
      }
      let answer = try await send(to: first, request.body(phone))
      #expect((answer.status == 200) == (request.code == nil) && answer["code"] == request.code, "\(answer)")
      for backend in [second, first] {
        // With another body too: the identity does not name it.
        for body in [request.body(phone), phone.naming.encoded] {
          let again = try await send(to: backend, body)
          #expect(again.status == 401 && again["code"] == "not_attested", "\(again)")
        }
      }
    }
  }

  @Test(
    "X-011 of one request at two backends at once, one is accepted", arguments: TestDatabase.allCases)
  func race(_ database: TestDatabase) async throws {
    try await TwoBackends.with(database) { first, second in
      let phone = TestPhone()
      try await first.enrol(phone)
      for _ in 1...15 {
        let identity = try await first.gate.assertion(for: phone.app, of: ("POST", "/api/v1/auth/initiate"))
        let statuses = try await withThrowingTaskGroup { group in
          for backend in [first, second, first, second] {
            group.addTask {
              try await backend.send(
                "POST", "/api/v1/auth/initiate", text: phone.naming.encoded, assertion: identity
              ).status
            }
          }
          return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(statuses.sorted() == [200, 401, 401, 401])
      }
    }
  }

  @Test("a request that only reads leaves no record, and is refused when it is sent again to the same backend")
  func read() async throws {
    try await TwoBackends.with(.sqlite) { first, second in
      let phone = TestPhone()
      let token = try await first.token(phone)
      let path = "/api/v1/devices/\(phone.username)"
      let identity = try await first.gate.assertion(for: phone.app, of: ("GET", path))
      let before = try await Self.records(first.context.store)
      func status(_ backend: TestBackend) async throws -> Int {
        try await backend.send("GET", path, text: nil, assertion: identity, token: token).status
      }
      #expect(try await status(first) == 200)
      #expect(try await status(first) == 401)
      // The design says what this gains.
      #expect(try await status(second) == 200)
      let unknown = try await first.gate.assertion(for: phone.app, of: ("POST", "/api/v1/none"))
      #expect(try await first.send("POST", "/api/v1/none", text: "{}", assertion: unknown).status == 404)
      #expect(try await first.send("POST", "/api/v1/none", text: "{}", assertion: unknown).status == 401)
      #expect(try await Self.records(first.context.store) == before)
    }
  }

  @Test("X-011 the identity of one request is refused with another one, at every backend")
  func bound() async throws {
    try await TwoBackends.with(.sqlite) { first, second in
      let phone = TestPhone()
      try await first.enrol(phone)
      let status = "/api/v1/device/\(phone.deviceID)/status"
      let identity = try await first.gate.assertion(for: phone.app, of: ("GET", status))
      #expect(try await first.send("GET", status, text: nil, assertion: identity).status == 200)
      for (method, path) in [
        ("POST", status), ("POST", "/api/v1/auth/initiate"), ("GET", status + "?x=1"), ("GET", "/api/v1/auth/oidc"),
      ] {
        let answer = try await second.send(method, path, text: phone.naming.encoded, assertion: identity)
        #expect(answer.status == 401 && answer["code"] == "not_attested", "\(method) \(path)")
      }
    }
  }

  @Test(
    "X-011 an identity that names no request is recorded whatever the request, and refused at another backend",
    arguments: TestDatabase.allCases)
  func unbound(_ database: TestDatabase) async throws {
    try await TwoBackends.with(database) { first, second in
      let phone = TestPhone()
      try await first.enrol(phone)
      for (method, path, status) in [
        ("GET", "/api/v1/device/\(phone.deviceID)/status", 200), ("GET", "/api/v1/none", 404),
        ("POST", "/api/v1/auth/initiate", 200),
      ] {
        let identity = try await first.gate.assertion(for: phone.app)
        let body = method == "POST" ? phone.naming.encoded : nil
        #expect(try await first.send(method, path, text: body, assertion: identity).status == status)
        let again = try await second.send(
          "POST", "/api/v1/auth/initiate", text: phone.naming.encoded, assertion: identity)
        #expect(again.status == 401, "\(path)")
      }
    }
  }

  @Test("X-011 an identity that could open a socket is recorded before, and opens none elsewhere")
  func socket() async throws {
    try await TwoBackends.with(.sqlite) { first, second in
      let phone = TestPhone()
      for path in ["/", "/socket", "/api/v1/socket"] {
        let opened = try await first.gate.assertion(for: phone.app, of: ("GET", path))
        try await TestSocket.with(port: first.port, assertion: opened, path: path) { _ in }
        let asked = try await first.gate.assertion(for: phone.app, of: ("GET", path))
        #expect(try await first.send("GET", path, text: nil, assertion: asked).status == 404)
        for identity in [opened, asked] {
          await #expect(throws: (any Error).self) {
            try await TestSocket.with(port: second.port, assertion: identity, path: path) { _ in }
          }
        }
      }
    }
  }

  @Test("X-011 an identity that finds no room in memory is recorded in the database, and none is accepted twice")
  func noRoom() async throws {
    let store = try SQLiteMFAStore.ephemeral()
    try await TestBackend.with(store: store, spent: SpentIdentities(most: 16)) { backend in
      let app = AppInstance.genuine()
      var identities: [String] = []
      for _ in 1...60 {
        identities.append(try await backend.gate.assertion(for: app, of: ("GET", "/api/v1/none")))
      }
      for status in [404, 401] {
        for identity in identities {
          #expect(try await backend.send("GET", "/api/v1/none", text: nil, assertion: identity).status == status)
        }
      }
      #expect(try await Self.records(store) >= 60 - 16)
    }
  }

  @Test("the memory of used identities is bounded, and an identity leaves it when no clock accepts it any more")
  func memory() {
    let (spent, now) = (SpentIdentities(most: 1600), Timestamp(seconds: 1_767_225_600))
    func number(_ index: Int) -> IdentityNumber { IdentityNumber(id: "\(index)", end: now.advanced(by: .seconds(65))) }
    let results = (0..<3000).map { spent.spend(number($0), at: now) }
    #expect(results.count { $0 == .first } == spent.count && spent.count <= 1600)
    #expect(results.count { $0 == .noRoom } == 3000 - spent.count)
    for (index, result) in results.enumerated() where result == .first {
      #expect(spent.spend(number(index), at: now.advanced(by: .seconds(64))) == .usedBefore)
    }
    let later = now.advanced(by: .seconds(70))
    for index in 0..<800 {
      let other = IdentityNumber(id: "later \(index)", end: later.advanced(by: .seconds(65)))
      #expect(spent.spend(other, at: later) == .first)
    }
    #expect(spent.count == 800)
  }

  @Test("an identity that found no room is not new when there is room again; a later one is")
  func roomAgain() {
    let (spent, now) = (SpentIdentities(most: 160), Timestamp(seconds: 1_767_225_600))
    func number(_ name: String, _ seconds: Int) -> IdentityNumber {
      IdentityNumber(id: name, end: now.advanced(by: .seconds(seconds)))
    }
    let refused = (0..<1000).map { number("\($0)", 10) }.filter { spent.spend($0, at: now) == .noRoom }
    let last = (0..<1000).map { number("last \($0)", 60) }.filter { spent.spend($0, at: now) == .noRoom }
    #expect(refused.count >= 840 && last.count == 1000)
    // Those that end after ten seconds make room.
    let later = now.advanced(by: .seconds(20))
    for number in last.prefix(16) { #expect(spent.spend(number, at: later) != .first) }
    #expect(spent.spend(number("new", 85), at: later) == .first)
  }

  @Test("X-011 the state of a push, which has tokens, is given for an identity once, at every backend")
  func pushState() async throws {
    try await TwoBackends.with(.sqlite) { first, second in
      let phone = TestPhone()
      try await first.enrol(phone)
      let path = "/api/v1/auth/push/00000000-0000-4000-8000-000000000000"
      let identity = try await first.gate.assertion(for: phone.app, of: ("GET", path))
      let answer = try await first.send("GET", path, text: nil, assertion: identity)
      #expect(answer["code"] != "not_attested", "\(answer)")
      let copy = try await second.send("GET", path, text: nil, assertion: identity)
      #expect(copy.status == 401 && copy["code"] == "not_attested", "\(copy)")
    }
  }

  @Test("of concurrent uses of one identity, memory accepts one")
  func memoryRace() async {
    let (spent, now) = (SpentIdentities(), Timestamp(seconds: 1_767_225_600))
    for round in 1...50 {
      let number = IdentityNumber(id: "\(round)", end: now.advanced(by: .seconds(65)))
      let firsts = await withTaskGroup { group in
        for _ in 1...8 { group.addTask { spent.spend(number, at: now) == .first ? 1 : 0 } }
        return await group.reduce(0, +)
      }
      #expect(firsts == 1)
    }
  }

  private struct RolledBack: Error {}

  @Test(
    "a write that is rolled back leaves its identity recorded, and the write of a used identity does not run",
    arguments: TestDatabase.allCases, [WriteExclusion.writers, .rows])
  func store(_ database: TestDatabase, _ others: WriteExclusion) async throws {
    let store = try await database.open()
    let end = Timestamp(seconds: 1_767_225_600)
    let number = IdentityNumber(id: "a\"b\\c", end: end)
    let identity = UnspentIdentity(number)
    await UnspentIdentity.$current.withValue(identity) {
      await #expect(throws: RolledBack.self) {
        try await store.write(excluding: others) {
          _ = try $0.spend(identity: "own", until: end)
          throw RolledBack()
        }
      }
    }
    #expect(try await store.write { try $0.spend(identity: "own", until: end) })
    // The same request goes on to write.
    let isFirst = try await UnspentIdentity.$current.withValue(identity) {
      try await store.write(excluding: others) { try $0.spend(identity: "second", until: end) }
    }
    #expect(isFirst)
    try await identity.settle(in: store)
    let ran = LockedValue(false)
    let copy = UnspentIdentity(number)
    await UnspentIdentity.$current.withValue(copy) {
      await #expect(throws: IdentityUsedBefore.self) {
        try await store.write(excluding: others) { _ in ran.withLock { $0 = true } }
      }
      // Not its later writes either.
      await #expect(throws: IdentityUsedBefore.self) {
        try await store.write(excluding: others) { _ in ran.withLock { $0 = true } }
      }
    }
    await #expect(throws: IdentityUsedBefore.self) { try await copy.settle(in: store) }
    #expect(!ran.withLock { $0 })
  }

  @Test("many identities of one group are recorded in one transaction, each once", arguments: TestDatabase.allCases)
  func group(_ database: TestDatabase) async throws {
    let store = try await database.open()
    let end = Timestamp(seconds: 1_767_225_600)
    let accepted = await withTaskGroup { group in
      for index in 0..<300 {
        group.addTask {
          // Each number three times.
          let identity = UnspentIdentity(IdentityNumber(id: "\(index % 100)", end: end))
          do {
            try await identity.settle(in: store)
            return 1
          } catch {
            return 0
          }
        }
      }
      return await group.reduce(0, +)
    }
    #expect(accepted == 100)
    #expect(try await Self.records(store) == 100)
  }

  private static func records(_ store: any Store) async throws -> Int {
    try await store.read { records in
      try (records as? SQLRecords)?.sql.rows("SELECT COUNT(*) AS count FROM gate_identities", []).first?.int("count")
        ?? 0
    }
  }
}
