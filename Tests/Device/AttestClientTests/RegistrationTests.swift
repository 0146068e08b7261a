import AttestClient
import ByteCoding
import Cryptography
import Foundation
import GateWire
import Testing

@Suite("Registration of a key")
struct RegistrationTests {
  @Test("E-014 goes through key, challenge, attestation and registration, and saves the identifier at the end")
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
    "makes no key while there is no challenge to attest it over",
    arguments: [.failure(.unreachable("offline")), .failure(.lost("reset")), .status(503)] as [ScriptedGate.Answer])
  func offline(answer: ScriptedGate.Answer) async throws {
    let fixture = try Fixture(challenges: [answer, answer, answer])
    // Each is a launch of the app.
    for _ in 0..<3 {
      await #expect(throws: AttestError.self) { try await fixture.restarted().registerIfNeeded() }
    }
    #expect(fixture.keys.generatedKeys == 0)
    try await fixture.restarted().registerIfNeeded()
    #expect(fixture.keys.generatedKeys == 1)
  }

  @Test("E-004 happens once")
  func once() async throws {
    let fixture = try Fixture()
    let first = try await fixture.session.registerIfNeeded()
    let second = try await fixture.session.registerIfNeeded()
    #expect(first == second)
    #expect(fixture.gate.registrations.count == 1)
    #expect(try await fixture.restarted().registerIfNeeded() == first)
    #expect(fixture.gate.registrations.count == 1)
  }

  @Test("happens once for callers that come at the same time")
  func concurrent() async throws {
    let fixture = try Fixture()
    try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<20 { group.addTask { try await fixture.session.registerIfNeeded() } }
      let identifiers = try await group.reduce(into: Set()) { $0.insert($1) }
      #expect(identifiers.count == 1)
    }
    #expect(fixture.keys.generatedKeys == 1)
  }

  @Test("saves nothing when it is refused", arguments: [400, 403, 409, 500, 503])
  func refused(status: Int) async throws {
    let fixture = try Fixture(registrations: [.status(status)])
    await #expect(throws: AttestError.registrationFailed(GateRefusal(status: status, code: nil, text: "no"))) {
      try await fixture.session.registerIfNeeded()
    }
    #expect(fixture.store.load() == KeyRecord())
  }

  @Test("says so where there is no App Attest, and asks nobody")
  func unsupported() async throws {
    let fixture = try Fixture(isSupported: false)
    await #expect(throws: AttestError.keyService(.featureUnsupported)) {
      try await fixture.session.registerIfNeeded()
    }
    #expect(fixture.gate.requests.isEmpty)
  }

  @Test("is sent again, byte for byte, when its answer is lost")
  func lostReply() async throws {
    let fixture = try Fixture(registrations: [.failure(.lost("reset")), .accepted])
    try await fixture.session.registerIfNeeded()
    let sent = fixture.gate.registrations
    #expect(sent.count == 2)
    #expect(Set(sent).count == 1)
    #expect(fixture.keys.generatedKeys == 1)
  }

  @Test("is not sent again at once when it did not reach the gate")
  func unreachable() async throws {
    let fixture = try Fixture(registrations: [.failure(.unreachable("refused"))])
    await #expect(throws: AttestError.transport(.unreachable("refused"))) {
      try await fixture.session.registerIfNeeded()
    }
    #expect(fixture.gate.registrations.count == 1)
  }

  @Test(
    "goes on with the same key and bytes in the next call, as long as the gate has not judged them",
    arguments: [
      [.failure(.lost("reset")), .failure(.lost("reset"))], [.status(500)], [.status(503)], [.status(429)],
      [.failure(.unreachable("refused"))],
    ] as [[ScriptedGate.Answer]])
  func resumes(answers: [ScriptedGate.Answer]) async throws {
    let fixture = try Fixture(registrations: answers)
    await #expect(throws: AttestError.self) { try await fixture.session.registerIfNeeded() }
    try await fixture.session.registerIfNeeded()
    #expect(Set(fixture.gate.registrations).count == 1)
    #expect(fixture.keys.generatedKeys == 1)
  }

  @Test("takes a new key when the gate has refused the last one", arguments: [400, 403, 409])
  func startsAnew(status: Int) async throws {
    let fixture = try Fixture(registrations: [.status(status)])
    await #expect(throws: AttestError.self) { try await fixture.session.registerIfNeeded() }
    try await fixture.session.registerIfNeeded()
    #expect(fixture.keys.generatedKeys == 2)
  }

  @Test(
    "takes one more key with a fresh challenge when its nonce is refused",
    arguments: [GateRefusalCode.nonceInvalid, .nonceExpired, .nonceUsed])
  func refusedNonce(code: GateRefusalCode) async throws {
    let fixture = try Fixture(registrations: [.status(401, code)])
    try await fixture.session.registerIfNeeded()
    #expect(fixture.keys.generatedKeys == 2)
    #expect(fixture.gate.challengeCount == 2)
    let nonces = try fixture.gate.registrations.map { try fields(of: $0)["nonce"] }
    #expect(nonces[0] != nonces[1])
  }

  @Test("stops at the second refused nonce")
  func refusedTwice() async throws {
    let answer = ScriptedGate.Answer.status(401, .nonceExpired)
    let fixture = try Fixture(registrations: [answer, answer])
    await #expect(throws: AttestError.registrationFailed(GateRefusal(status: 401, code: .nonceExpired, text: "no"))) {
      try await fixture.session.registerIfNeeded()
    }
    #expect(fixture.keys.generatedKeys == 2)
  }

  @Test("does not try again after a refusal that a fresh challenge cannot mend")
  func otherRefusal() async throws {
    let fixture = try Fixture(registrations: [.status(401, .chainUntrusted)])
    await #expect(throws: AttestError.self) { try await fixture.session.registerIfNeeded() }
    #expect(fixture.gate.registrations.count == 1)
  }

  @Test("keeps its key while the vendor's servers are away")
  func vendorAway() async throws {
    let fixture = try Fixture(attestFailures: [.serverUnavailable])
    await #expect(throws: AttestError.keyService(.serverUnavailable)) { try await fixture.session.registerIfNeeded() }
    try await fixture.session.registerIfNeeded()
    #expect(fixture.keys.generatedKeys == 1)
  }

  @Test(
    "drops a key that cannot be attested",
    arguments: [KeyServiceError.invalidKey, .invalidInput, .systemFailure("?")])
  func unusableKey(error: KeyServiceError) async throws {
    let fixture = try Fixture(attestFailures: [error])
    await #expect(throws: AttestError.keyService(error)) { try await fixture.session.registerIfNeeded() }
    try await fixture.session.registerIfNeeded()
    #expect(fixture.keys.generatedKeys == 2)
  }

  @Test("is repeated, and granted again, when its identifier could not be saved")
  func unsaved() async throws {
    let fixture = try Fixture()
    fixture.store.failNextWrite()
    await #expect(throws: AttestError.store(.unwritable("disk full"))) { try await fixture.session.registerIfNeeded() }
    let keyID = try await fixture.session.registerIfNeeded()
    #expect(Set(fixture.gate.registrations).count == 1)
    #expect(fixture.store.load().keyID == keyID)
  }

  @Test("needs a challenge with a nonce", arguments: [ScriptedGate.Answer.status(204), .status(503)])
  func noChallenge(answer: ScriptedGate.Answer) async throws {
    let fixture = try Fixture(challenges: [answer])
    await #expect(throws: AttestError.self) { try await fixture.session.registerIfNeeded() }
    #expect(fixture.gate.registrations.isEmpty)
  }

  private func fields(of request: HTTPRequest) throws -> [String: String] {
    try JSONDecoder().decode([String: String].self, from: Data(request.body))
  }
}
