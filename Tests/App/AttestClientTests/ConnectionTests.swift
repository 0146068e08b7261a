import AttestClient
import ByteCoding
import Cryptography
import Foundation
import Wire
import Testing

@Suite("Opening of a connection")
struct ConnectionTests {
  @Test("E-018 The client registers first and sends three headers with a fresh nonce")
  func headers() async throws {
    let fixture = try Fixture()
    let upgrades = ScriptedUpgrades()
    let socket = try await fixture.session.open { headers throws(UpgradeError) in try upgrades.open(headers) }
    #expect(socket == "socket")

    let headers = try #require(upgrades.attempts.first)
    let nonce = [UInt8](repeating: 3, count: 32)
    #expect(headers.nonce == Hex.encode(nonce))
    #expect(headers.keyID == fixture.store.load().keyID)
    #expect(Base64.decode(headers.data)?.isEmpty == false)
    #expect(fixture.keys.recorded.last == .assert(SHA256.hash(nonce)))
    #expect(headers.fields.map(\.name) == ["X-App-Assert-KeyId", "X-App-Assert-Data", "X-App-Assert-Nonce"])
  }

  @Test("E-015 Headers without a connection require a registered key")
  func unregistered() async throws {
    let fixture = try Fixture()
    await #expect(throws: AttestError.serviceUnavailable) { try await fixture.session.assertionHeaders() }
    #expect(fixture.gate.requests.isEmpty)
    try await fixture.session.registerIfNeeded()
    #expect(try await fixture.session.assertionHeaders().keyID == fixture.store.load().keyID)
  }

  @Test(
    "After a refused nonce or counter, the client tries once more with a fresh challenge",
    arguments: [GateRefusalCode.nonceInvalid, .nonceExpired, .nonceUsed, .counterReplayed])
  func freshChallenge(code: GateRefusalCode) async throws {
    let fixture = try Fixture()
    let upgrades = ScriptedUpgrades(refusedWith: [code])
    _ = try await fixture.session.open { headers throws(UpgradeError) in try upgrades.open(headers) }
    #expect(Set(upgrades.attempts.map(\.nonce)).count == 2)
    #expect(Set(upgrades.attempts.map(\.keyID)).count == 1)
  }

  @Test("The connection fails at the second refused nonce")
  func secondRefusal() async throws {
    let fixture = try Fixture()
    let upgrades = ScriptedUpgrades(refusedWith: [.nonceUsed, .counterReplayed])
    let refusal = GateRefusal(status: 401, code: .counterReplayed, text: "no")
    await #expect(throws: AttestError.assertionFailed(refusal)) {
      try await fixture.session.open { headers throws(UpgradeError) in try upgrades.open(headers) }
    }
    #expect(upgrades.attempts.count == 2)
  }

  @Test(
    "After any other refusal, the client does not try again", arguments: ["rate_limited", "rp_id_mismatch", "new_code"])
  func otherRefusal(code: String) async throws {
    let fixture = try Fixture()
    let answer = HTTPResponse(status: 401, headers: [HTTPField(GateRefusal.codeHeader, code)])
    let upgrades = ScriptedUpgrades([.refused(GateRefusal(answer))])
    await #expect(throws: AttestError.self) {
      try await fixture.session.open { headers throws(UpgradeError) in try upgrades.open(headers) }
    }
    #expect(upgrades.attempts.count == 1)
    #expect(fixture.keys.generatedKeys == 1)
  }

  @Test("Without a response, the client does not try again")
  func noAnswer() async throws {
    let fixture = try Fixture()
    let upgrades = ScriptedUpgrades([.transport(.lost("reset"))])
    await #expect(throws: AttestError.transport(.lost("reset"))) {
      try await fixture.session.open { headers throws(UpgradeError) in try upgrades.open(headers) }
    }
    #expect(upgrades.attempts.count == 1)
  }

  @Test("A revoked key stops the client: it makes no new key or attempt and keeps the record")
  func revoked() async throws {
    let fixture = try Fixture()
    let keyID = try await fixture.session.registerIfNeeded()
    let upgrades = ScriptedUpgrades(refusedWith: [.keyRevoked])
    await #expect(throws: AttestError.keyRevoked(GateRefusal(status: 401, code: .keyRevoked, text: "no"))) {
      try await fixture.session.open { headers throws(UpgradeError) in try upgrades.open(headers) }
    }
    #expect(upgrades.attempts.count == 1)
    #expect(fixture.keys.generatedKeys == 1)
    #expect(fixture.store.load() == KeyRecord(keyID: keyID))
  }

  @Test(
    "The client replaces a refused key, or one whose risk metric is outdated, and tries again",
    arguments: [GateRefusalCode.keyRefused, .riskOutdated])
  func refusedKey(_ code: GateRefusalCode) async throws {
    let fixture = try Fixture()
    let upgrades = ScriptedUpgrades(refusedWith: [code])
    _ = try await fixture.session.open { headers throws(UpgradeError) in try upgrades.open(headers) }
    #expect(Set(upgrades.attempts.map(\.keyID)).count == 2)
    #expect(fixture.gate.registrations.count == 2)
    #expect(fixture.store.load() == KeyRecord(keyID: upgrades.attempts[1].keyID, renewedAt: fixture.clock.now))
  }

  @Test(
    "The client keeps a key whose risk metric is too high or not known yet",
    arguments: [GateRefusalCode.riskTooHigh, .riskUnknown])
  func judgedKey(_ code: GateRefusalCode) async throws {
    let fixture = try Fixture()
    let upgrades = ScriptedUpgrades(refusedWith: [code])
    await #expect(throws: AttestError.assertionFailed(GateRefusal(status: 401, code: code, text: "no"))) {
      _ = try await fixture.session.open { headers throws(UpgradeError) in try upgrades.open(headers) }
    }
    #expect(upgrades.attempts.count == 1 && fixture.keys.generatedKeys == 1)
  }

  @Test("T-46 The client replaces a key that the device has lost")
  func lostKey() async throws {
    let fixture = try Fixture(assertFailures: [.invalidKey])
    try await fixture.session.registerIfNeeded()
    let headers = try await fixture.session.assertionHeaders()
    #expect(fixture.keys.generatedKeys == 2)
    #expect(headers.keyID == fixture.store.load().keyID)
  }

  @Test("Other errors of the key service are reported", arguments: [KeyServiceError.invalidInput, .serverUnavailable])
  func brokenKeyService(error: KeyServiceError) async throws {
    let fixture = try Fixture(assertFailures: [error])
    try await fixture.session.registerIfNeeded()
    await #expect(throws: AttestError.keyService(error)) { try await fixture.session.assertionHeaders() }
    #expect(fixture.keys.generatedKeys == 1)
  }

  @Test("One call may use both a new key and a fresh challenge")
  func bothRetries() async throws {
    let fixture = try Fixture()
    let upgrades = ScriptedUpgrades(refusedWith: [.keyRefused, .nonceExpired])
    _ = try await fixture.session.open { headers throws(UpgradeError) in try upgrades.open(headers) }
    #expect(upgrades.attempts.count == 3)
  }

  @Test("The connection fails if the new key is refused too")
  func newKeyRefused() async throws {
    let fixture = try Fixture()
    let upgrades = ScriptedUpgrades(refusedWith: [.keyRefused, .keyRefused])
    await #expect(throws: AttestError.assertionFailed(GateRefusal(status: 401, code: .keyRefused, text: "no"))) {
      try await fixture.session.open { headers throws(UpgradeError) in try upgrades.open(headers) }
    }
    #expect(fixture.keys.generatedKeys == 2)
  }

  @Test(
    "The client replaces a key at most once an hour, also after a restart",
    arguments: [(3599, false), (3600, true), (-1, true)])
  func renewalLimit(seconds: Int, isAllowed: Bool) async throws {
    let fixture = try Fixture()
    let first = ScriptedUpgrades(refusedWith: [.keyRefused])
    _ = try await fixture.session.open { headers throws(UpgradeError) in try first.open(headers) }
    let renewedAt = fixture.clock.now
    fixture.clock.advance(by: .seconds(seconds))

    let second = ScriptedUpgrades(refusedWith: [.keyRefused])
    let session = try fixture.restarted()
    if isAllowed {
      _ = try await session.open { headers throws(UpgradeError) in try second.open(headers) }
      #expect(fixture.keys.generatedKeys == 3)
    } else {
      await #expect(throws: AttestError.renewedTooRecently(until: renewedAt.advanced(by: .seconds(3600)))) {
        try await session.open { headers throws(UpgradeError) in try second.open(headers) }
      }
      #expect(fixture.keys.generatedKeys == 2)
      #expect(fixture.store.load().keyID == second.attempts.first?.keyID)
    }
  }

  @Test("A failed renewal counts")
  func failedRenewal() async throws {
    let fixture = try Fixture()
    try await fixture.session.registerIfNeeded()
    fixture.gate.script(registrations: [.status(503)])
    let upgrades = ScriptedUpgrades(refusedWith: [.keyRefused])
    await #expect(throws: AttestError.self) {
      try await fixture.session.open { headers throws(UpgradeError) in try upgrades.open(headers) }
    }
    #expect(fixture.store.load() == KeyRecord(keyID: nil, renewedAt: fixture.clock.now))
    // The next call first uses the key that was generated for the failed renewal.
    _ = try await fixture.session.open { headers throws(UpgradeError) in try upgrades.open(headers) }
    #expect(fixture.keys.generatedKeys == 2)
  }
}

@Suite("Concurrent connections")
struct ConcurrentConnectionTests {
  @Test("T-51 Connections make their assertions in sequence, and each upgrade completes before the next assertion")
  func serial() async throws {
    let fixture = try Fixture()
    let active = Gauge()
    let upgrades = ScriptedUpgrades()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<25 {
        group.addTask {
          _ = try await fixture.session.open { headers throws(UpgradeError) in
            active.enter()
            await Task.yield()
            active.leave()
            return try upgrades.open(headers)
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(active.most == 1)
    #expect(fixture.keys.mostAssertionsAtOnce == 1)
    #expect(Set(upgrades.attempts.map(\.nonce)).count == 25)
    #expect(fixture.keys.generatedKeys == 1)
  }

  @Test("Other connections continue if a waiting one is cancelled")
  func cancellation() async throws {
    let fixture = try Fixture()
    let (gateOpens, opener) = AsyncStream.makeStream(of: Void.self)
    let (arrivals, arrival) = AsyncStream.makeStream(of: Void.self)
    let first = Task {
      try await fixture.session.open { _ throws(UpgradeError) in
        arrival.yield()
        for await _ in gateOpens {}
        return 1
      }
    }
    for await _ in arrivals { break }
    let second = Task { try await fixture.session.open { _ throws(UpgradeError) in 2 } }
    let third = Task { try await fixture.session.open { _ throws(UpgradeError) in 3 } }
    second.cancel()
    await #expect(throws: AttestError.cancelled) { try await second.value }
    opener.finish()
    #expect(try await first.value == 1)
    #expect(try await third.value == 3)
  }
}
