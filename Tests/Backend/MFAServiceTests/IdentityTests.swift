import ByteCoding
import Foundation
import Logging
import MFADomain
import MFAFixtures
import MFAStore
import MFAService
import TestSupport
import Testing

@Suite("Identity from the gate")
struct IdentityTests {
  private static let naming: JSONValue = ["username": "testuser", "deviceId": "device-1"]
  private static let someRequest = RequestLine(method: "GET", target: "/")
  private static let initiate = (method: "POST", target: "/api/v1/auth/initiate")

  @Test("X-001 a call without an identity of the gate gets 401")
  func directCall() async throws {
    try await TestBackend.with { backend in
      let answer = try await backend.post("/auth/initiate", Self.naming, as: nil)
      #expect(answer.status == 401)
      #expect(answer["code"] == "not_attested")
    }
  }

  @Test(
    "X-011 an identity that the gate has just signed is accepted, of a device of any platform",
    arguments: ["app-attest", "android-key"])
  func genuine(method: String) async throws {
    try await TestBackend.with { backend in
      let answer = try await backend.post("/auth/initiate", Self.naming, as: .genuine(method: method))
      #expect(answer.status == 200)
    }
  }

  struct Forgery: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let change: @Sendable (inout GateClaims) -> Void
  }

  static let forgeries = [
    Forgery(testDescription: "another issuer") { $0.iss = "https://evil.test" },
    Forgery(testDescription: "another audience") { $0.aud = "other" },
    // As `POST /attest/token` of the gate issues it, signed by the same key.
    Forgery(testDescription: "an access token for a service") {
      ($0.aud, $0.cnf, $0.htm, $0.target) = ("https://api.example.com", ["jkt": "thumbprint"], nil, nil)
      $0.exp += 240
    },
    Forgery(testDescription: "an access token with the backend's audience") {
      ($0.cnf, $0.htm, $0.target) = (["jkt": "thumbprint"], nil, nil)
      $0.exp += 240
    },
    Forgery(testDescription: "expired") {
      $0.iat -= 120
      $0.exp -= 120
    },
    Forgery(testDescription: "a life of more than a minute") { $0.exp += 1 },
    Forgery(testDescription: "issued in the future") {
      $0.iat += 30
      $0.exp += 30
    },
    Forgery(testDescription: "no subject") { $0.sub = "" },
    Forgery(testDescription: "no environment") { $0.env = nil },
    Forgery(testDescription: "an environment that does not exist") { $0.env = "debug" },
    Forgery(testDescription: "an open gate's method") { $0.method = "none" },
    Forgery(testDescription: "another method") { $0.htm = "GET" },
    Forgery(testDescription: "another target") { $0.target = String(repeating: "A", count: 43) },
    Forgery(testDescription: "a method without a target") { $0.target = nil },
    Forgery(testDescription: "a number that is not visible ASCII") { $0.jti = "a b" },
  ]

  @Test("X-011 an identity with an invalid claim gets 401", arguments: forgeries)
  func forged(_ forgery: Forgery) async throws {
    try await TestBackend.with { backend in
      let assertion = try await backend.gate.assertion(for: .genuine(), of: Self.initiate) { forgery.change(&$0) }
      let answer = try await backend.send(
        "POST", "/api/v1/auth/initiate", text: Self.naming.encoded, assertion: assertion)
      #expect(answer.status == 401)
      #expect(answer["code"] == "not_attested")
    }
  }

  @Test("X-011 an identity with the signature of another key gets 401")
  func otherSigner() async throws {
    try await TestBackend.with { backend in
      let outsider = try TestGate(clock: backend.clock.wall)
      let assertion = try await backend.gate.assertion(for: .genuine(), signedBy: outsider)
      let answer = try await backend.send(
        "POST", "/api/v1/auth/initiate", text: Self.naming.encoded, assertion: assertion)
      #expect(answer.status == 401)
    }
  }

  @Test("X-011 an identity that is sent again gets 401")
  func replayed() async throws {
    try await TestBackend.with { backend in
      let assertion = try await backend.gate.assertion(for: .genuine())
      let answers = try await [1, 2].asyncMap { _ in
        try await backend.send("POST", "/api/v1/auth/initiate", text: Self.naming.encoded, assertion: assertion).status
      }
      #expect(answers == [200, 401])
    }
  }

  @Test("simultaneous requests with a new key wait until it is fetched, and are accepted")
  func newKey() async throws {
    let clock = ManualClock()
    let gate = try TestGate(clock: clock.wall)
    let verifier = GateIdentityVerifier(
      source: .file(gate.keysFile), issuer: TestGate.issuer, audience: TestGate.audience,
      store: try SQLiteMFAStore.ephemeral(), clock: clock.wall,
      logger: Logger(label: "mfa") { _ in SwiftLogNoOpLogHandler() })
    let assertions = try await (1...20).asyncMap { _ in try await gate.assertion(for: .genuine()) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for assertion in assertions {
        group.addTask { _ = try await verifier.identity(in: assertion, of: Self.someRequest, effect: .none) }
      }
      try await group.waitForAll()
    }
  }

  @Test("an accepted identity shows for five minutes that the clocks agree, unless the clock is set back")
  func agreement() async throws {
    let clock = ManualClock()
    let gate = try TestGate(clock: clock.wall)
    let verifier = GateIdentityVerifier(
      source: .file(gate.keysFile), issuer: TestGate.issuer, audience: TestGate.audience,
      store: try SQLiteMFAStore.ephemeral(), clock: clock.wall,
      logger: Logger(label: "mfa") { _ in SwiftLogNoOpLogHandler() })
    let refused = try await gate.assertion(for: .genuine()) { $0.aud = "other" }
    _ = try? await verifier.identity(in: refused, of: Self.someRequest, effect: .none)
    #expect(!verifier.agreesWithGate)
    let accepted = try await gate.assertion(for: .genuine())
    _ = try await verifier.identity(in: accepted, of: Self.someRequest, effect: .none)
    #expect(verifier.agreesWithGate)
    clock.advance(by: .seconds(-1))
    #expect(!verifier.agreesWithGate)
    clock.advance(by: .seconds(301))
    #expect(verifier.agreesWithGate)
    clock.advance(by: .seconds(1))
    #expect(!verifier.agreesWithGate)
  }

  @Test("a request while the gate's keys are unavailable fails with a store error, not a refusal")
  func noKeys() async throws {
    let clock = ManualClock()
    let gate = try TestGate(clock: clock.wall)
    let verifier = GateIdentityVerifier(
      source: .file("/nowhere/gate.jwks"), issuer: TestGate.issuer, audience: TestGate.audience,
      store: try SQLiteMFAStore.ephemeral(), clock: clock.wall,
      logger: Logger(label: "mfa") { _ in SwiftLogNoOpLogHandler() })
    for _ in 1...2 {
      let assertion = try await gate.assertion(for: .genuine())
      await #expect(throws: MFAStoreError.self) {
        try await verifier.identity(in: assertion, of: Self.someRequest, effect: .none)
      }
    }
  }

  @Test(
    "keys of a gate that drip end in time for all requests that wait, and are fetched again without a reload",
    .timeLimit(.minutes(1)))
  func drippingKeys() async throws {
    let clock = ManualClock()
    let gate = try TestGate(clock: clock.wall)
    let server = try DrippingServer(["/jwks.json": try String(contentsOfFile: gate.keysFile, encoding: .utf8)])
    defer { server.stop() }
    let verifier = GateIdentityVerifier(
      source: .url(server.base + "/jwks.json", authority: nil), issuer: TestGate.issuer, audience: TestGate.audience,
      store: try SQLiteMFAStore.ephemeral(), fetchTime: .seconds(1), clock: clock.wall,
      logger: Logger(label: "mfa") { _ in SwiftLogNoOpLogHandler() })
    let assertions = try await (1...5).asyncMap { _ in try await gate.assertion(for: .genuine()) }
    let failures = await withTaskGroup(of: (any Error)?.self) { group in
      for assertion in assertions {
        group.addTask {
          do {
            _ = try await verifier.identity(in: assertion, of: Self.someRequest, effect: .none)
            return nil
          } catch {
            return error
          }
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(failures.count == 5 && failures.allSatisfy { $0 is MFAStoreError }, "\(failures)")
    #expect(server.paths == ["/jwks.json"])
    server.mend()
    clock.advance(by: .seconds(6))
    let later = try await gate.assertion(for: .genuine())
    _ = try await verifier.identity(in: later, of: Self.someRequest, effect: .none)
  }

  @Test("X-011 a used identity is removed only after no permitted clock difference makes it valid")
  func removal() async throws {
    try await TestBackend.with { backend in
      let end = backend.clock.now.advanced(by: .seconds(65))
      let store = backend.context.store
      #expect(try await store.write { try $0.spend(identity: "one", until: end) })
      backend.clock.advance(by: .seconds(120))
      try await RecordMaintenance(backend.context).clean()
      #expect(try await store.write { try $0.spend(identity: "one", until: end) } == false)
      backend.clock.advance(by: .seconds(10))
      try await RecordMaintenance(backend.context).clean()
      #expect(try await store.write { try $0.spend(identity: "one", until: end) })
    }
  }

  @Test("X-011 two identities in one request get 401")
  func twoIdentities() async throws {
    try await TestBackend.with { backend in
      let first = try await backend.gate.assertion(for: .genuine())
      let second = try await backend.gate.assertion(for: .genuine())
      let answer = try await backend.send(
        "POST", "/api/v1/auth/initiate", text: Self.naming.encoded, assertion: first,
        headers: [("X-Attest-Assertion", second)])
      #expect(answer.status == 401)
    }
  }

  @Test("X-011 an access token of the gate is no identity", arguments: ["at+jwt", "dpop+jwt", ""])
  func otherType(_ type: String) async throws {
    try await TestBackend.with { backend in
      let assertion = try await backend.gate.assertion(for: .genuine(), of: Self.initiate, ofType: type)
      let answer = try await backend.send(
        "POST", "/api/v1/auth/initiate", text: Self.naming.encoded, assertion: assertion)
      #expect(answer.status == 401)
      #expect(answer["code"] == "not_attested")
    }
  }

  @Test("X-011 an identity without a signature gets 401")
  func unsigned() async throws {
    try await TestBackend.with { backend in
      let parts = try await backend.gate.assertion(for: .genuine()).split(separator: ".")
      let header = Base64URL.encode(Array(#"{"alg":"none","kid":"gate-1"}"#.utf8))
      let answer = try await backend.send(
        "POST", "/api/v1/auth/initiate", text: Self.naming.encoded, assertion: "\(header).\(parts[1]).")
      #expect(answer.status == 401)
    }
  }
}

extension Sequence where Element: Sendable {
  func asyncMap<Value>(_ body: (Element) async throws -> Value) async rethrows -> [Value] {
    var values: [Value] = []
    for element in self { values.append(try await body(element)) }
    return values
  }
}
