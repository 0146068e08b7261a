import ByteCoding
import Foundation
import MFADomain
import MFAFixtures
import Testing

@Suite("Idempotency keys")
struct IdempotencyTests {
  private static func key(_ text: String) -> [(String, String)] { [("Idempotency-Key", text)] }

  /// After this time another message may be sent to the same number.
  private static let pause = Duration.seconds(61)

  private static func request(
    _ backend: TestBackend, _ phone: TestPhone, as app: AppInstance? = nil, key: String?, number: String? = nil
  ) async throws -> Answer {
    try await backend.send(
      "POST", "/api/v1/auth/request-otp",
      ["username": .string(phone.username), "phoneNumber": .string(number ?? phone.number)],
      as: app ?? phone.app, headers: key.map(Self.key) ?? [])
  }

  @Test(
    "a repeated call with one key sends one message and gets the same answer; without a key each call sends one",
    arguments: TestDatabase.allCases)
  func once(_ database: TestDatabase) async throws {
    try await TestBackend.with(store: try await database.open()) { backend in
      let phone = TestPhone()
      #expect(try await backend.post("/mfa/enroll", phone.enrolment(), as: phone.app).status == 200)
      let first = try await Self.request(backend, phone, key: "a")
      #expect(first.status == 200, "\(first)")
      for _ in 1...3 {
        let again = try await Self.request(backend, phone, key: "a")
        #expect(again.status == 200 && again.json == first.json)
      }
      #expect(backend.outbox.messages.count == 1)
      backend.clock.advance(by: Self.pause)
      #expect(try await Self.request(backend, phone, key: nil).status == 200)
      backend.clock.advance(by: Self.pause)
      #expect(try await Self.request(backend, phone, key: "b").status == 200)
      #expect(backend.outbox.messages.count == 3)
    }
  }

  @Test("the order of members and the transport do not change a call: a repetition by socket gets the answer of REST")
  func transports() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      #expect(try await backend.post("/mfa/enroll", phone.enrolment(), as: phone.app).status == 200)
      let first = try await Self.request(backend, phone, key: "a")
      #expect(first.status == 200, "\(first)")
      try await TestSocket.with(backend, as: phone.app) { socket in
        func call(_ id: Int, _ key: String, _ number: String) async throws -> JSONValue {
          try await socket.send(
            #"{"jsonrpc":"2.0","id":\#(id),"method":"auth.request-otp","idempotencyKey":\#(key),"params":"#
              + #"{"phoneNumber":"\#(number)","username":"\#(phone.username)"}}"#)
          return try await socket.next { $0["error"] != nil || $0["id"] == .number(Double(id)) }
        }
        #expect(try await call(1, #""a""#, phone.number)["result"] == first.json)
        #expect(backend.outbox.messages.count == 1)
        let reused = try await call(2, #""a""#, "+1234567891")
        #expect(reused["error"]?["data"]?["code"] == "idempotency_key_reused", "\(reused)")
        backend.clock.advance(by: Self.pause)
        #expect(try await call(3, #""b""#, phone.number)["result"] != nil)
        #expect(backend.outbox.messages.count == 2)
        #expect(try await call(4, #""a b""#, phone.number)["error"]?["code"] == -32602)
        #expect(try await call(5, "7", phone.number)["error"]?["code"] == -32600)
        #expect(backend.outbox.messages.count == 2)
      }
    }
  }

  @Test("a key of another request gets 422, and another app instance has its own keys")
  func reused() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      #expect(try await backend.post("/mfa/enroll", phone.enrolment(), as: phone.app).status == 200)
      #expect(try await Self.request(backend, phone, key: "a").status == 200)
      let other = try await Self.request(backend, phone, key: "a", number: "+1234567891")
      #expect(other.status == 422 && other["code"] == "idempotency_key_reused", "\(other)")
      let initiated = try await backend.send(
        "POST", "/api/v1/auth/initiate", phone.naming, as: phone.app, headers: Self.key("a"))
      #expect(initiated.status == 422)
      // Another number, and yet the key is free. The answer does not show that this instance gets no code.
      let stranger = try await Self.request(backend, phone, as: .genuine(), key: "a", number: "+1234567891")
      #expect(stranger.status == 200, "\(stranger)")
      #expect(backend.outbox.messages.count == 1)
    }
  }

  @Test(
    "of calls at the same time with one key, one sends a message, and the others get its answer or 409",
    arguments: TestDatabase.allCases)
  func concurrent(_ database: TestDatabase) async throws {
    try await TestBackend.with(store: try await database.open()) { backend in
      let phone = TestPhone()
      #expect(try await backend.post("/mfa/enroll", phone.enrolment(), as: phone.app).status == 200)
      let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 1...8 { group.addTask { try await Self.request(backend, phone, key: "a").status } }
        return try await group.reduce(into: [Int]()) { $0.append($1) }
      }
      #expect(statuses.contains(200) && Set(statuses).isSubset(of: [200, 409]), "\(statuses)")
      #expect(backend.outbox.messages.count == 1)
    }
  }

  @Test(
    "a refused call may be repeated under its key, and after a day a key is free again",
    arguments: TestDatabase.allCases)
  func refused(_ database: TestDatabase) async throws {
    try await TestBackend.with(store: try await database.open()) { backend in
      let phone = TestPhone()
      // Not a number, so the call is refused.
      #expect(try await Self.request(backend, phone, key: "a", number: "x").status == 400)
      #expect(try await backend.post("/mfa/enroll", phone.enrolment(), as: phone.app).status == 200)
      #expect(try await Self.request(backend, phone, key: "a").status == 200)
      backend.clock.advance(by: .seconds(86401))
      #expect(try await Self.request(backend, phone, key: "a").status == 200)
      #expect(backend.outbox.messages.count == 2)
      backend.clock.advance(by: .seconds(86401))
      try await RecordMaintenance(backend.context).clean()
      let later = backend.clock.wall.now()
      let kept = try await backend.context.store.write {
        try $0.removeIdempotentCalls(startedBefore: later, atMost: 10)
      }
      #expect(kept == 0)
    }
  }

  @Test("a repetition gets the answer only while its session is live")
  func revokedSession() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (token, _) = try await backend.setUp(phone)
      func request() async throws -> Answer {
        try await backend.send(
          "POST", "/api/v1/auth/mfa/email", ["email": "user@example.com"], as: phone.app, token: token,
          headers: Self.key("a"))
      }
      let first = try await request()
      #expect(first.status == 200, "\(first)")
      #expect(try await request().json == first.json)
      #expect(try await backend.post("/auth/token/revoke", [:], as: phone.app, token: token).status == 200)
      let late = try await request()
      #expect(late.status == 401 && late["code"] == "session_required", "\(late)")
      #expect(backend.outbox.messages.count == 1)
    }
  }

  @Test(
    "a key that is empty, too long or given twice is refused",
    arguments: [[""], [String(repeating: "k", count: 129)], ["a", "b"], ["a b"]])
  func malformed(_ keys: [String]) async throws {
    try await TestBackend.with { backend in
      let answer = try await backend.send(
        "POST", "/api/v1/auth/request-otp", ["username": "a", "phoneNumber": "+1234567890"], as: .genuine(),
        headers: keys.map { ("Idempotency-Key", $0) })
      #expect(answer.status == 400 && answer["code"] == "invalid_request", "\(answer)")
    }
  }
}
