import AndroidKeyAttestation
import ByteCoding
import Cryptography
import Foundation
import Wire
import Locking
import SimulatedDevice
import Testing

@testable import AttestClient

@Suite("A session of a simulated Android device")
struct AndroidSessionTests {
  private struct Registration: Decodable {
    let platform: String
    let chain: [String]
    let nonce: String
  }

  private static let authority = Result { try AndroidAuthority(at: .now()) }
  private static let app = AndroidApp(package: "com.example.app")

  /// A session with a scripted gate, and the keys of its device.
  private struct AndroidFixture {
    let gate: ScriptedGate
    let keys = MemoryKeyStore()
    let store = FaultyKeyIDStore()
    let clock = ManualClock()
    let session: AttestSession

    init(registrations: [ScriptedGate.Answer] = []) throws {
      gate = ScriptedGate(registrations: registrations)
      let device = SimulatedAndroidKeyService(
        authority: try authority.get(), profile: AndroidProfile(app: app), keys: keys)
      let clock = clock
      session = try AttestSession(
        gate: try #require(URL(string: "https://gate.example:6200")), deviceKeys: device, store: store, http: gate,
        now: { clock.now })
    }
  }

  /// Verifies a registration as a gate does, and returns the proven key.
  private func verify(_ request: HTTPRequest) throws -> AttestedAndroidKey {
    let body = try JSONDecoder().decode(Registration.self, from: Data(request.body))
    #expect(body.platform == "android")
    #expect(request.headers == [HTTPField("Content-Type", "application/json")])
    let root = try IssuerKey(spki: Self.authority.get().root.certificate.subjectPublicKeyInfo)
    let chain = try body.chain.map { try #require(Base64.decode($0)) }
    let policy = AndroidAppPolicy(package: Self.app.package, signers: [Self.app.signer])
    return try AndroidAttestationVerifier(policy: policy, roots: [root]).verify(
      AndroidCertificateChain(chain), challenge: try #require(Hex.decode(body.nonce)), statusList: nil, at: .now())
  }

  private func value(_ name: String, in headers: AssertionHeaders) throws -> String {
    try #require(headers.fields.first { $0.name == name }?.value)
  }

  @Test("The registration is a chain over the nonce's bytes, and each proof a signature over its own nonce")
  func wire() async throws {
    let fixture = try AndroidFixture()
    let upgrades = ScriptedUpgrades()
    for _ in 0..<2 {
      _ = try await fixture.session.open { headers throws(UpgradeError) in try upgrades.open(headers) }
    }
    #expect(fixture.gate.registrations.count == 1 && fixture.gate.challengeCount == 3)
    let key = try verify(fixture.gate.registrations[0])
    #expect(upgrades.attempts.count == 2)
    for headers in upgrades.attempts {
      #expect(try value("X-App-Assert-KeyId", in: headers) == Base64.encode(key.keyID))
      let nonce = try #require(Hex.decode(value("X-App-Assert-Nonce", in: headers)))
      let proof = try #require(Base64.decode(value("X-App-Assert-Data", in: headers)))
      try AndroidKeyProof.verify(proof, nonce: nonce, by: P256PublicKey(x963: key.publicKey))
    }
    #expect(Set(upgrades.attempts.map(\.nonce)).count == 2)
  }

  @Test("A registration whose answer was lost is sent again as it was")
  func lostAnswer() async throws {
    let fixture = try AndroidFixture(registrations: [.failure(.lost("reset"))])
    let keyID = try await fixture.session.registerIfNeeded()
    #expect(Set(fixture.gate.registrations.map(\.body)).count == 1 && fixture.gate.registrations.count == 2)
    #expect(fixture.store.load().keyID == keyID)
  }

  @Test("A refused nonce costs the key, since a key is attested once: another key is made")
  func refusedNonce() async throws {
    let fixture = try AndroidFixture(registrations: [.status(401, .nonceExpired)])
    let keyID = try await fixture.session.registerIfNeeded()
    let keys = try fixture.gate.registrations.map { try verify($0).keyID }
    #expect(keys.count == 2 && keys[0] != keys[1] && Base64.encode(keys[1]) == keyID)
  }

  @Test("A refused key is replaced once, a refused nonce is retried once, and a revoked key is final")
  func retries() async throws {
    let fixture = try AndroidFixture()
    let upgrades = ScriptedUpgrades(refusedWith: [.nonceUsed, .keyRefused])
    _ = try await fixture.session.open { headers throws(UpgradeError) in try upgrades.open(headers) }
    #expect(upgrades.attempts.count == 3 && Set(upgrades.attempts.map(\.keyID)).count == 2)
    #expect(fixture.gate.registrations.count == 2)
    let revoked = ScriptedUpgrades(refusedWith: [.keyRevoked])
    await #expect(throws: AttestError.self) {
      _ = try await fixture.session.open { headers throws(UpgradeError) in try revoked.open(headers) }
    }
    #expect(fixture.gate.registrations.count == 2)
  }

  @Test("A device that lost its keys makes another one")
  func lostKeys() async throws {
    let fixture = try AndroidFixture()
    let first = try await fixture.session.registerIfNeeded()
    fixture.keys.removeAll()
    #expect(try await fixture.session.assertionHeaders().keyID != first)
  }
}
