import Foundation
import Locking
import MFADomain
import MFAFixtures
import MFAService
import MFAStore
import Testing

/// Compares whole answers, and the statements behind them, for a name with an account and for one without.
@Suite("Answers before a proof", .serialized, .timeLimit(.minutes(5)))
struct OracleTests {
  /// A backend whose statements are recorded, with an identity provider.
  struct Scene: Sendable {
    let backend: TestBackend
    let provider: TestProvider
    let wire: Wire
    let statements: LockedValue<[String]>

    /// Returns what `app` can see and measure of a call.
    func trace(
      _ operation: String, _ body: JSONValue, as app: AppInstance, token: String? = nil
    ) async throws -> Trace {
      try await AppClient.with(backend, wire, as: app) { client in
        statements.withLock { $0 = [] }
        if wire == .socket {
          let answer = try await client.call(operation, body, token: token)
          // A socket with a session reads its notices at any time.
          let steps = token == nil ? statements.withLock { $0 } : []
          return Trace(status: 0, fields: [:], answer: answer.with(Self.varying), statements: steps)
        }
        let path = try #require(backend.operations.first { $0.name == operation }).path
        let answer = try await backend.send(
          "POST", "/api/v1" + path, body, as: app, token: token, headers: [("X-Request-Id", "same")])
        return Trace(
          status: answer.status, fields: answer.headers.filter { $0.key != "date" },
          answer: (answer.json ?? .null).with(Self.varying), statements: statements.withLock { $0 })
      }
    }

    /// Members that are random in each answer.
    private static let varying: [String: JSONValue] = ["requestId": nil, "challenge": nil, "challengeId": nil]

    /// The members `challengeId` and `idToken` of an answer of the provider.
    func identity(
      as app: AppInstance, subject: String = "stranger", _ change: (inout ProviderClaims) -> Void = { _ in }
    ) async throws -> [String: JSONValue] {
      try await AppClient.with(backend, .rest, as: app) { client in
        try #require(
          try await client.identity(from: provider, subject: subject, at: backend.clock.now, change).members)
      }
    }

    /// Makes `app` create its last account.
    @discardableResult
    func useUp(_ app: AppInstance) async throws -> TestPhone {
      let phone = TestPhone(username: "own-\(UUID().uuidString.prefix(8))", app: app)
      #expect(try await backend.enrol(phone).status == 200)
      return phone
    }
  }

  /// What a caller can see and measure.
  struct Trace: Sendable, Equatable {
    let status: Int
    let fields: [String: String]
    let answer: JSONValue
    let statements: [String]
  }

  /// A call about a name.
  struct Question: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let operation: String
    /// The names with and without an account, of equal lengths.
    var names = (known: "known", unknown: "other")
    /// Changes the known account before.
    var prepare: @Sendable (Scene) async throws -> Void = { _ in }
    /// Returns the body, and the access token if the caller has one.
    let ask: @Sendable (Scene, _ name: String, AppInstance) async throws -> (JSONValue, token: String?)
  }

  private static func enrolment(
    _ name: String, _ app: AppInstance, _ more: [String: JSONValue] = [:]
  ) -> JSONValue {
    TestPhone(username: name, deviceID: "new-device", app: app).enrolment().with(more)
  }

  private static let noChallenge: JSONValue = "00000000-0000-4000-8000-000000000000"

  static let questions = [
    Question(testDescription: "initiate", operation: "auth.initiate") { _, name, _ in
      (["username": .string(name), "deviceId": "unknown"], nil)
    },
    Question(testDescription: "verify-signature", operation: "auth.verify-signature") { _, name, _ in
      (
        [
          "username": .string(name), "deviceId": "unknown", "challengeId": noChallenge, "signature": "MAYCAQECAQE=",
        ], nil
      )
    },
    Question(testDescription: "request-otp", operation: "auth.request-otp") { _, name, _ in
      (["username": .string(name), "phoneNumber": "+1999999999"], nil)
    },
    Question(testDescription: "verify-otp", operation: "auth.verify-otp") { _, name, _ in
      (["username": .string(name), "otp": "000000"], nil)
    },
    Question(testDescription: "recovery", operation: "recovery.start") { _, name, _ in
      (["username": .string(name), "code": "WRONGONE"], nil)
    },
    Question(testDescription: "recovery/stop", operation: "recovery.stop") { _, name, _ in
      (["username": .string(name), "code": "WRONGONE"], nil)
    },
    Question(testDescription: "enrol by a wrong link code", operation: "mfa.enroll") { _, name, app in
      (enrolment(name, app, ["linkCode": "WRONGONE"]), nil)
    },
    Question(
      testDescription: "enrol by a wrong link code, of an account that is locked", operation: "mfa.enroll",
      prepare: { scene in
        try await Administration(scene.backend.context).lock(Username("known"), by: .command(name: "test"))
      }
    ) { _, name, app in (enrolment(name, app, ["linkCode": "WRONGONE"]), nil) },
    Question(testDescription: "enrol by a wrong recovery token", operation: "mfa.enroll") { _, name, app in
      (enrolment(name, app, ["recoveryToken": "00000000-0000-4000-8000-000000000000.AAAA"]), nil)
    },
    Question(testDescription: "enrol by any ID token", operation: "mfa.enroll") { _, name, app in
      (enrolment(name, app, ["idToken": "a.b.c", "challengeId": noChallenge]), nil)
    },
    Question(testDescription: "enrol by an ID token for another nonce", operation: "mfa.enroll") { scene, name, app in
      (enrolment(name, app, try await scene.identity(as: app) { $0.nonce = "another" }), nil)
    },
    Question(testDescription: "enrol by a token whose challenge was used", operation: "mfa.enroll") {
      scene, name, app in
      let used = try await scene.identity(as: app)
      let id = try #require(UUID(uuidString: used["challengeId"]?.text ?? ""))
      let now = scene.backend.clock.now
      #expect(try await scene.backend.context.store.write { try $0.spend(federationChallenge: id, at: now) })
      return (enrolment(name, app, used), nil)
    },
    Question(
      testDescription: "enrol by a token of a user who is connected", operation: "mfa.enroll",
      prepare: { scene in
        let phone = TestPhone(username: "third")
        let identity = try await scene.identity(as: phone.app, subject: "connected")
        let enrolled = try await scene.backend.post("/mfa/enroll", phone.enrolment().with(identity), as: phone.app)
        #expect(enrolled.status == 200)
      }
    ) { scene, name, app in (enrolment(name, app, try await scene.identity(as: app, subject: "connected")), nil) },
    Question(testDescription: "enrol where no further account can be created", operation: "mfa.enroll") {
      scene, name, app in
      try await scene.useUp(app)
      return (enrolment(name, app), nil)
    },
    Question(
      testDescription: "enrol where no further account can be created, with a session of another account",
      operation: "mfa.enroll"
    ) { scene, name, app in
      let own = try await scene.useUp(app)
      return (enrolment(name, app), try await scene.backend.signIn(own)["token"]?.text)
    },
    Question(
      testDescription: "enrol by a right ID token where no further account can be created", operation: "mfa.enroll"
    ) { scene, name, app in
      try await scene.useUp(app)
      return (enrolment(name, app, try await scene.identity(as: app)), nil)
    },
    Question(
      testDescription: "enrol a name that is older than the rules for new names", operation: "mfa.enroll",
      names: ("a\u{34F}b", "c\u{34F}d")
    ) { _, name, app in (enrolment(name, app), nil) },
  ]

  @Test(
    "X-051 neither the answer nor the number of steps reveals whether a name has an account", arguments: questions,
    Wire.allCases)
  func same(_ question: Question, _ wire: Wire) async throws {
    let statements = LockedValue<[String]>([])
    let store = try SQLiteMFAStore.ephemeral(
      trace: StatementTrace { sql, _ in statements.withLock { $0.append(sql) } })
    var policy = Policy()
    policy.mostAccountsOfInstance = 1
    let provider = TestProvider()
    try await TestBackend.with(store: store, policy: policy, provider: provider) { backend in
      let scene = Scene(backend: backend, provider: provider, wire: wire, statements: statements)
      // Through the store, since it may be the name of an older account.
      let user = MFADomain.User(id: UUID(), username: try Username(question.names.known), createdAt: backend.clock.now)
      let device = Device(
        id: try DeviceID("device"), userID: user.id, model: try DeviceModel("phone"), method: .secureEnclave,
        authMethod: nil, publicKey: .decoy, phoneNumber: nil, binding: .attestedKey("owner"),
        enrolledAt: backend.clock.now)
      try await store.write { records in
        try records.insert(user)
        try records.save(device)
      }
      try await question.prepare(scene)
      var traces: [Trace] = []
      for name in [question.names.known, question.names.unknown] {
        let app = AppInstance.genuine()
        let (body, token) = try await question.ask(scene, name, app)
        traces.append(try await scene.trace(question.operation, body, as: app, token: token))
      }
      #expect(traces[0] == traces[1], "\(traces[0])\n\(traces[1])")
      // The question is one: it is no mistake of the test's.
      #expect(traces[0].answer["code"] != "not_found" && traces[0].answer["error"] != "Method not found")
    }
  }
}
