import AttestClient
import ByteCoding
import Cryptography
import Foundation
import Wire
import Testing

@Suite("Registration of a key")
struct RegistrationTests {
  @Test("E-014 Registration uses a key, a challenge and an attestation, and finally saves the identifier")
  func order() async throws {
    let fixture = try Fixture()
    let keyID = try await fixture.session.registerIfNeeded()

    #expect(
      fixture.gate.requests.map(\.url.absoluteString) == [
        "https://gate.example:6200/attest/challenge", "https://gate.example:6200/attest/register",
      ])
    let nonce = [UInt8](repeating: 1, count: 32)
    #expect(fixture.keys.recorded == [.generate, .attest(SHA256.hash(nonce))])
    #expect(fixture.store.load() == KeyRecord(keyID: keyID))
    let body = try fields(of: fixture.gate.registrations[0])
    #expect(body["keyId"] == keyID)
    #expect(body["nonce"] == Hex.encode(nonce))
    #expect(Base64.decode(try #require(body["attestation"]))?.isEmpty == false)
    #expect(body.count == 3)
  }

  @Test(
    "Without a challenge, no key is generated",
    arguments: [.failure(.unreachable("offline")), .failure(.lost("reset")), .status(503)] as [ScriptedGate.Answer])
  func offline(answer: ScriptedGate.Answer) async throws {
    let fixture = try Fixture(challenges: [answer, answer, answer])
    // Each iteration simulates a launch of the app.
    for _ in 0..<3 {
      await #expect(throws: AttestError.self) { try await fixture.restarted().registerIfNeeded() }
    }
    #expect(fixture.keys.generatedKeys == 0)
    try await fixture.restarted().registerIfNeeded()
    #expect(fixture.keys.generatedKeys == 1)
  }

  @Test("E-004 A key is registered once")
  func once() async throws {
    let fixture = try Fixture()
    let first = try await fixture.session.registerIfNeeded()
    let second = try await fixture.session.registerIfNeeded()
    #expect(first == second)
    #expect(fixture.gate.registrations.count == 1)
    #expect(try await fixture.restarted().registerIfNeeded() == first)
    #expect(fixture.gate.registrations.count == 1)
  }

  @Test("Concurrent callers share one registration")
  func concurrent() async throws {
    let fixture = try Fixture()
    try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<20 { group.addTask { try await fixture.session.registerIfNeeded() } }
      let identifiers = try await group.reduce(into: Set()) { $0.insert($1) }
      #expect(identifiers.count == 1)
    }
    #expect(fixture.keys.generatedKeys == 1)
  }

  @Test("A refused registration saves nothing", arguments: [400, 403, 409, 500, 503])
  func refused(status: Int) async throws {
    let fixture = try Fixture(registrations: [.status(status)])
    await #expect(throws: AttestError.registrationFailed(GateRefusal(status: status, code: nil, text: "no"))) {
      try await fixture.session.registerIfNeeded()
    }
    #expect(fixture.store.load() == KeyRecord())
  }

  @Test("Without App Attest, registration fails without a request")
  func unsupported() async throws {
    let fixture = try Fixture(isSupported: false)
    await #expect(throws: AttestError.keyService(.featureUnsupported)) {
      try await fixture.session.registerIfNeeded()
    }
    #expect(fixture.gate.requests.isEmpty)
  }

  @Test("A registration whose response is lost is sent again unchanged")
  func lostReply() async throws {
    let fixture = try Fixture(registrations: [.failure(.lost("reset")), .accepted])
    try await fixture.session.registerIfNeeded()
    let sent = fixture.gate.registrations
    #expect(sent.count == 2)
    #expect(Set(sent).count == 1)
    #expect(fixture.keys.generatedKeys == 1)
  }

  @Test("A registration that did not reach the gate is not sent again immediately")
  func unreachable() async throws {
    let fixture = try Fixture(registrations: [.failure(.unreachable("refused"))])
    await #expect(throws: AttestError.transport(.unreachable("refused"))) {
      try await fixture.session.registerIfNeeded()
    }
    #expect(fixture.gate.registrations.count == 1)
  }

  @Test(
    "The next call repeats the same request if the gate has not decided about it",
    arguments: [
      [.failure(.lost("reset")), .failure(.lost("reset"))], [.status(500)], [.status(503)], [.status(429)],
      [.status(408, .requestTimeout)], [.status(408)], [.failure(.unreachable("refused"))],
    ] as [[ScriptedGate.Answer]])
  func resumes(answers: [ScriptedGate.Answer]) async throws {
    let fixture = try Fixture(registrations: answers)
    await #expect(throws: AttestError.self) { try await fixture.session.registerIfNeeded() }
    try await fixture.session.registerIfNeeded()
    #expect(Set(fixture.gate.registrations).count == 1)
    #expect(fixture.keys.generatedKeys == 1)
  }

  @Test("A new key is generated if the gate has refused the previous one", arguments: [400, 403, 409])
  func startsAgain(status: Int) async throws {
    let fixture = try Fixture(registrations: [.status(status)])
    await #expect(throws: AttestError.self) { try await fixture.session.registerIfNeeded() }
    try await fixture.session.registerIfNeeded()
    #expect(fixture.keys.generatedKeys == 2)
  }

  @Test(
    "If the nonce is refused, one more key is generated with a fresh challenge",
    arguments: [GateRefusalCode.nonceInvalid, .nonceExpired, .nonceUsed])
  func refusedNonce(code: GateRefusalCode) async throws {
    let fixture = try Fixture(registrations: [.status(401, code)])
    try await fixture.session.registerIfNeeded()
    #expect(fixture.keys.generatedKeys == 2)
    #expect(fixture.gate.challengeCount == 2)
    let nonces = try fixture.gate.registrations.map { try fields(of: $0)["nonce"] }
    #expect(nonces[0] != nonces[1])
  }

  @Test("Registration fails at the second refused nonce")
  func refusedTwice() async throws {
    let answer = ScriptedGate.Answer.status(401, .nonceExpired)
    let fixture = try Fixture(registrations: [answer, answer])
    await #expect(throws: AttestError.registrationFailed(GateRefusal(status: 401, code: .nonceExpired, text: "no"))) {
      try await fixture.session.registerIfNeeded()
    }
    #expect(fixture.keys.generatedKeys == 2)
  }

  @Test("After a refusal for another reason than the nonce, the client does not try again")
  func otherRefusal() async throws {
    let fixture = try Fixture(registrations: [.status(401, .chainUntrusted)])
    await #expect(throws: AttestError.self) { try await fixture.session.registerIfNeeded() }
    #expect(fixture.gate.registrations.count == 1)
  }

  @Test("The key is kept while Apple's servers are unavailable")
  func vendorUnavailable() async throws {
    let fixture = try Fixture(attestFailures: [.serverUnavailable])
    await #expect(throws: AttestError.keyService(.serverUnavailable)) { try await fixture.session.registerIfNeeded() }
    try await fixture.session.registerIfNeeded()
    #expect(fixture.keys.generatedKeys == 1)
  }

  @Test(
    "A key that cannot be attested is discarded",
    arguments: [KeyServiceError.invalidKey, .invalidInput, .systemFailure("?")])
  func unusableKey(error: KeyServiceError) async throws {
    let fixture = try Fixture(attestFailures: [error])
    await #expect(throws: AttestError.keyService(error)) { try await fixture.session.registerIfNeeded() }
    try await fixture.session.registerIfNeeded()
    #expect(fixture.keys.generatedKeys == 2)
  }

  @Test("If the identifier cannot be saved, the registration is repeated and accepted again")
  func unsaved() async throws {
    let fixture = try Fixture()
    fixture.store.failNextWrite()
    await #expect(throws: AttestError.store(.unwritable("disk full"))) { try await fixture.session.registerIfNeeded() }
    let keyID = try await fixture.session.registerIfNeeded()
    #expect(Set(fixture.gate.registrations).count == 1)
    #expect(fixture.store.load().keyID == keyID)
  }

  @Test("Registration requires a challenge with a nonce", arguments: [ScriptedGate.Answer.status(204), .status(503)])
  func noChallenge(answer: ScriptedGate.Answer) async throws {
    let fixture = try Fixture(challenges: [answer])
    await #expect(throws: AttestError.self) { try await fixture.session.registerIfNeeded() }
    #expect(fixture.gate.registrations.isEmpty)
  }

  private func fields(of request: HTTPRequest) throws -> [String: String] {
    try JSONDecoder().decode([String: String].self, from: Data(request.body))
  }
}
