import ByteCoding
import Wire
import Foundation
@testable import MFADelivery
import MFADomain
import MFAFixtures
import Testing

@Suite("Firebase Cloud Messaging", .serialized, .timeLimit(.minutes(2)))
struct FCMTests {
  /// Calls `body` with a server and a provider whose clocks agree.
  private func serving(
    templates: MessageTemplates = .builtIn, exchangeTime: Duration = .seconds(10),
    _ body: (PushServer, FCMProvider, ManualClock) async throws -> Void
  ) async throws {
    try await PushServer.with(.fcm) { server in
      let clock = ManualClock()
      try await server.command(["now": .number(Double(clock.now.seconds))])
      let account = try FCMAccount(json: Array(Data(contentsOf: URL(filePath: server.keyFile))))
      let provider = FCMProvider(
        account: account, endpoint: server.url, domain: "example.com", templates: templates,
        exchangeTime: exchangeTime, clock: clock.wall, proxies: .none)
      try await body(server, provider, clock)
    }
  }

  private func failure(_ provider: FCMProvider, _ notification: PushNotification) async -> PushFailure? {
    do throws(PushFailure) {
      try await provider.deliver(notification)
      return nil
    } catch {
      return error
    }
  }

  private static func problem(_ code: String?, field: String? = nil, message: String = "refused") -> JSONValue {
    var details: [JSONValue] = []
    if let code { details.append(["errorCode": .string(code)]) }
    if let field { details.append(["fieldViolations": [["field": .string(field)]]]) }
    return ["error": ["message": .string(message), "status": "STATUS", "details": .array(details)]]
  }

  @Test("a sign-in is a message of high priority with its end, the category and the id of the push")
  func signIn() async throws {
    try await serving { server, provider, clock in
      let push = UUID()
      try await provider.deliver(.sample(.fcm, .signIn(push: push), at: clock.now))
      let exchange = try await server.requests(1, "/token")[0]
      #expect(exchange["status"] == 200 && exchange["fault"] == .null)
      #expect(exchange["claims"]?["iss"] == "push@demo-project.iam.gserviceaccount.com")
      let request = try await server.requests(1, "messages:send")[0]
      let id = JSONValue.string(push.uuidString.lowercased())
      #expect(request["status"] == 200 && request["authorization"] == "Bearer access-1")
      let text: JSONValue = [
        "title": "Is this you?", "body": "A sign-in waits for your approval. Open the app to answer.",
      ]
      #expect(
        request["message"] == [
          "token": .string(PushNotification.registrationToken), "notification": text,
          "data": ["category": "SIGN_IN_APPROVAL", "push": id],
          "android": [
            "priority": "HIGH", "ttl": "120s", "collapse_key": id,
            "notification": [
              "channel_id": "SIGN_IN_APPROVAL", "click_action": "SIGN_IN_APPROVAL", "tag": id, "visibility": "PRIVATE",
            ],
          ],
        ])
    }
  }

  @Test("one access token serves until shortly before its end, and all that wait for one share a request")
  func accessTokens() async throws {
    try await serving { server, provider, clock in
      let now = clock.now
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<10 { group.addTask { try await provider.deliver(.sample(.fcm, at: now)) } }
        try await group.waitForAll()
      }
      #expect(try await server.requests(10, "messages:send").allSatisfy { $0["status"] == 200 })
      #expect(try await server.requests("/token").count == 1)
      clock.advance(by: .seconds(3298))
      try await provider.deliver(.sample(.fcm, at: clock.now))
      #expect(try await server.requests("/token").count == 1)
      clock.advance(by: .seconds(1))
      try await server.command(["now": .number(Double(clock.now.seconds))])
      try await provider.deliver(.sample(.fcm, at: clock.now))
      #expect(try await server.requests("/token").count == 2)
      #expect(try await server.requests(12, "messages:send")[11]["authorization"] == "Bearer access-2")
    }
  }

  @Test("a refused access token is replaced once")
  func refusedToken() async throws {
    try await serving { server, provider, clock in
      try await provider.deliver(.sample(.fcm, at: clock.now))
      try await server.command(["forget": true])
      try await provider.deliver(.sample(.fcm, at: clock.now))
      #expect(try await server.requests(3, "messages:send").map { $0["status"]?.int } == [200, 401, 200])
      for _ in 0..<2 { try await server.answer(401, ["error": ["status": "UNAUTHENTICATED"]]) }
      #expect(await failure(provider, try .sample(.fcm, at: clock.now)) == FCMAnswer.expiredToken)
      #expect(try await server.requests("/token").count == 3)
      #expect(try await server.requests("messages:send").count == 5)
    }
  }

  @Test(
    "each answer of Google has its consequence",
    arguments: [
      (404, problem("UNREGISTERED"), PushFailure.Kind.unregistered(since: nil)),
      (400, problem("INVALID_ARGUMENT", field: "message.token"), .unregistered(since: nil)),
      (
        400, problem("INVALID_ARGUMENT", message: "The registration token is not a valid FCM registration token"),
        .unregistered(since: nil)
      ),
      (400, problem("INVALID_ARGUMENT", field: "message.android.ttl"), .refused),
      (400, problem("INVALID_ARGUMENT"), .refused), (403, problem("SENDER_ID_MISMATCH"), .refused),
      (403, problem(nil), .configuration), (404, problem(nil), .configuration),
      (401, problem("THIRD_PARTY_AUTH_ERROR"), .configuration),
      (408, problem(nil), .temporary(after: nil, isOfService: true)),
      (429, problem("QUOTA_EXCEEDED"), .throttled(after: nil)),
      (500, problem("INTERNAL"), .temporary(after: nil, isOfService: true)),
      (503, ["no": "JSON of Google's"] as JSONValue, .temporary(after: nil, isOfService: true)),
      (302, [:] as JSONValue, .refused),
    ])
  func answers(_ status: Int, _ body: JSONValue, _ kind: PushFailure.Kind) async throws {
    try await serving { server, provider, clock in
      try await server.answer(status, body)
      let failure = await failure(provider, try .sample(.fcm, at: clock.now))
      #expect(failure?.kind == kind, "\(failure as Any)")
      #expect(try await server.requests("messages:send").count == 1)
      try await provider.deliver(.sample(.fcm, at: clock.now))
    }
  }

  @Test("a wait that Google asks for is kept, also by the token server")
  func retryAfter() async throws {
    try await serving { server, provider, clock in
      try await server.command(["token": 503, "headers": ["Retry-After": "30"]])
      let first = await failure(provider, try .sample(.fcm, at: clock.now))
      #expect(first?.kind == .temporary(after: .seconds(30), isOfService: true))
      try await server.answer(429, Self.problem("QUOTA_EXCEEDED"), headers: ["Retry-After": "60"])
      let second = await failure(provider, try .sample(.fcm, at: clock.now))
      #expect(second?.kind == .throttled(after: .seconds(60)))
      try await server.command(["forget": true])
      try await server.command(["token": 408])
      let slow = await failure(provider, try .sample(.fcm, at: clock.now))
      #expect(slow?.kind == .temporary(after: nil, isOfService: true))
      try await server.command(["token": 400])
      let third = await failure(provider, try .sample(.fcm, at: clock.now))
      #expect(third?.kind == .configuration)
    }
  }

  @Test("a check proves the account without a message, and finds an account that is refused")
  func probe() async throws {
    try await serving { server, provider, clock in
      #expect(try await provider.probe() == "the server accepts the service account")
      #expect(try await server.requests("messages:send").allSatisfy { $0["status"] == 400 })
      for status in [400, 302, 405] {
        try await server.command(["strange": .number(Double(status))])
        await #expect(throws: PushFailure.self, "\(status)") { try await provider.probe() }
      }
      try await server.command(["strange": 0])
      try await server.command(["forget": true])
      try await server.command(["token": 401])
      await #expect(throws: PushFailure.self) { try await provider.probe() }
    }
  }

  @Test("a server that hangs is given up")
  func hangs() async throws {
    try await serving(exchangeTime: .milliseconds(1500)) { server, provider, clock in
      try await server.command(["hang": true])
      let failure = await failure(provider, try .sample(.fcm, at: clock.now))
      #expect(failure?.kind == .temporary(after: nil, isOfService: true))
    }
  }

  @Test("the file of an account must have each part, an RSA key, and a token server that can be trusted")
  func accounts() async throws {
    try await PushServer.with(.fcm) { server in
      let whole = try #require(try JSONValue(Data(contentsOf: URL(filePath: server.keyFile))).members)
      _ = try FCMAccount(json: Array(JSONValue.object(whole).encoded.utf8))
      let apnsKey = try await PushServer.with(.apns) { $0.pem }
      let faults: [(String, JSONValue?)] = [
        ("type", "authorized_user"), ("type", nil), ("project_id", nil), ("project_id", "a/../b"), ("project_id", ""),
        ("private_key", nil), ("private_key", "no key"), ("private_key", .string(apnsKey)), ("client_email", nil),
        ("token_uri", nil), ("token_uri", "http://example.com/token"), ("token_uri", "file:///etc/passwd"),
        ("token_uri", "https://user@example.com/token"),
      ]
      for (name, value) in faults {
        var changed = whole
        changed[name] = value
        #expect(throws: PushKeyFault.self, "\(name)") {
          try FCMAccount(json: Array(JSONValue.object(changed).encoded.utf8))
        }
      }
    }
  }
}
