import AndroidKeyAttestation
import AppAttest
import ByteCoding
import Cryptography
import GateFixtures
import Wire
import Locking
import SQLiteStore
import SimulatedDevice
import Testing

@testable import AttestGate

@Suite("Risk metrics of Android devices")
struct AttestationKeyRiskTests {
  private static let app = AppName(package: AndroidMint.package)

  private static func ofApp(_ policy: RiskPolicy?) -> [String: RiskPolicy] {
    policy.map { [AndroidMint.package: $0] } ?? [:]
  }

  /// A device with another attestation key of the same authorities.
  private static func otherDevice(than mint: AndroidMint) throws -> AndroidMint {
    var other = try AndroidBench.mint(below: mint)
    other.certificates[1].key = try ECPrivateKey(.p256)
    other.certificates[1].subjectPublicKeyInfo = other.certificates[1].key.spki
    other.certificates[1].serialNumber = [0x40] + SecureRandom.bytes(15)
    return other
  }

  /// Registers `count` keys of the device of `mint`.
  private static func register(
    _ count: Int, of mint: AndroidMint, in bench: AndroidBench, by registrar: Registrar? = nil
  ) async throws -> [AndroidMint] {
    var keys: [AndroidMint] = []
    for _ in 0..<count {
      let key = try AndroidBench.mint(below: mint)
      _ = try await (registrar ?? bench.registrar).register(try bench.claim(key, over: try bench.nonce()))
      keys.append(key)
    }
    return keys
  }

  private func denial(_ key: AndroidMint, in bench: AndroidBench, at gate: Gate? = nil) async throws -> Denial? {
    await bench.denial(try key.proof(over: try bench.nonce()), at: gate)
  }

  static let cases: [(RiskPolicy?, GateRefusalCode?)] = [
    (nil, nil), (RiskPolicy(threshold: 5, action: .observe), nil), (RiskPolicy(threshold: nil, action: .refuse), nil),
    (RiskPolicy(threshold: 5, action: .refuse), .riskTooHigh),
    (RiskPolicy(threshold: 5, action: .revoke), .riskTooHigh),
    (RiskPolicy(threshold: 6, action: .refuse), nil),
  ]

  @Test(
    "Each policy decides about a device with six keys; another device and a factory's key are admitted",
    arguments: cases)
  func policies(_ policy: RiskPolicy?, _ code: GateRefusalCode?) async throws {
    let mint = try AndroidMint.remote()
    let bench = try AndroidBench(trusting: mint, risks: Self.ofApp(policy))
    let keys = try await Self.register(6, of: mint, in: bench)
    let other = try await Self.register(1, of: Self.otherDevice(than: mint), in: bench)[0]
    for key in [keys[0], keys[5]] { #expect(try await denial(key, in: bench)?.report.code == code) }
    #expect(try await denial(other, in: bench) == nil)

    let factory = try AndroidMint.factory()
    let second = try AndroidBench(trusting: factory, risks: Self.ofApp(policy))
    let shared = try await Self.register(6, of: factory, in: second)
    #expect(try await denial(shared[5], in: second) == nil)
  }

  @Test("A refusal has number and threshold for the log, spends nothing, and ends when keys of the device are removed")
  func values() async throws {
    let mint = try AndroidMint.remote()
    let bench = try AndroidBench(trusting: mint)
    let policy = Self.ofApp(RiskPolicy(threshold: 5, action: .refuse))
    let gate = try bench.rules(trusting: mint, risks: policy).gate
    let keys = try await Self.register(6, of: mint, in: bench)
    let proof = try keys[0].proof(over: try bench.nonce())
    #expect(await bench.denial(proof, at: gate) == .riskTooHigh(6, threshold: 5, Self.app))
    #expect(try await bench.store.remove([try keys[5].keyID], unusedSince: nil) == 1)
    // As after the change of which the store notifies.
    let next = try bench.rules(trusting: mint, risks: policy).gate
    #expect(await bench.denial(proof, at: next) == nil)
  }

  @Test("An upstream gets the number of an app with a policy, and of no other")
  func shown() async throws {
    let mint = try AndroidMint.remote()
    for policy in [RiskPolicy(threshold: 5), nil] {
      let bench = try AndroidBench(trusting: mint, risks: Self.ofApp(policy))
      let key = try await Self.register(3, of: mint, in: bench)[0]
      let admission = try await bench.gate.admit(try key.proof(over: try bench.nonce()))
      guard case .device(let device) = admission.principal else {
        Issue.record("the device is not the principal")
        return
      }
      #expect(device.risk == policy.map { _ in KeyRisk(metric: 3, at: bench.clock.now) })
    }
  }

  @Test("With revoke, the registration above the threshold revokes all keys of the device, each reported once")
  func revoked() async throws {
    let mint = try AndroidMint.remote()
    let bench = try AndroidBench(trusting: mint)
    let policy = Self.ofApp(RiskPolicy(threshold: 3, action: .revoke))
    let reports = LockedValue<[RiskEnforcement.Revocation]>([])
    let enforcement = AttestationKeyEnforcement(bench.store, policies: policy, clock: bench.clock.wallClock) { report in
      reports.withLock { $0.append(report) }
    }
    let registrar = try bench.rules(trusting: mint, risks: policy, enforcement: enforcement).registrar
    let keys = try await Self.register(3, of: mint, in: bench, by: registrar)
    let other = try await Self.register(1, of: Self.otherDevice(than: mint), in: bench, by: registrar)[0]
    #expect(reports.withLock { $0 } == [])
    let last = try await Self.register(1, of: mint, in: bench, by: registrar)
    let all = try (keys + last).map { try $0.keyID }
    #expect(Set(reports.withLock { $0 }.map(\.key)) == Set(all.map(KeyHash.init(of:))))
    #expect(reports.withLock { $0 }.allSatisfy { $0.metric == 4 && $0.threshold == 3 && $0.app == Self.app })
    for keyID in all { #expect(try await bench.store.record(of: keyID)?.revokedAt == bench.clock.now) }
    #expect(try await bench.store.record(of: try other.keyID)?.revokedAt == nil)
    _ = try await Self.register(1, of: mint, in: bench, by: registrar)
    #expect(reports.withLock(\.count) == 5)
  }

  @Test(
    "Other actions, and apps without a policy, revoke nothing", arguments: [RiskPolicy.Action.observe, .refuse, nil])
  func notRevoked(_ action: RiskPolicy.Action?) async throws {
    let mint = try AndroidMint.remote()
    let bench = try AndroidBench(trusting: mint)
    let policy = Self.ofApp(action.map { RiskPolicy(threshold: 1, action: $0) })
    let enforcement = AttestationKeyEnforcement(bench.store, policies: policy) { Issue.record("\($0)") }
    let registrar = try bench.rules(trusting: mint, risks: policy, enforcement: enforcement).registrar
    let keys = try await Self.register(3, of: mint, in: bench, by: registrar)
    for key in keys { #expect(try await bench.store.record(of: try key.keyID)?.revokedAt == nil) }
  }

  // MARK: Patches

  /// From the first day of 2026-05, the month of the simulated device, until 2027-05-01.
  private static let longestAge = Duration.seconds(365 * 86_400)

  private static func instant(_ text: String) throws -> Timestamp { try #require(Timestamp(rfc3339: text)) }

  @Test(
    "A key is admitted until its patches are too old, by the first day of their month; then its device is to register another",
    arguments: [
      ("2027-05-01T00:00:00Z", RiskPolicy.Action.refuse, nil), ("2027-05-01T00:00:01Z", .refuse, .riskOutdated),
      ("2027-05-01T00:00:01Z", .revoke, .riskOutdated), ("2027-05-01T00:00:01Z", .observe, nil),
      ("2029-01-01T00:00:00Z", .refuse, .riskOutdated),
    ] as [(String, RiskPolicy.Action, GateRefusalCode?)])
  func patchAge(_ text: String, _ action: RiskPolicy.Action, _ code: GateRefusalCode?) async throws {
    // A factory's certificates stay valid.
    let mint = try AndroidMint.factory()
    let policy = RiskPolicy(threshold: nil, action: action, longestPatchAge: Self.longestAge)
    let bench = try AndroidBench(trusting: mint, risks: Self.ofApp(policy))
    let key = try await Self.register(1, of: mint, in: bench)[0]
    #expect(try await denial(key, in: bench) == nil)
    bench.clock.advance(by: try Self.instant(text).since(bench.clock.now))
    let report = try await denial(key, in: bench)?.report
    #expect(report?.code == code)
    #expect(report.map { $0.step == "patch_level" } ?? true)
  }

  @Test("A device whose patches are too old registers no key, and one that was updated does")
  func patchesOfNewKeys() async throws {
    let mint = try AndroidMint.factory()
    let policy = RiskPolicy(threshold: nil, action: .refuse, longestPatchAge: Self.longestAge)
    let bench = try AndroidBench(trusting: mint, risks: Self.ofApp(policy))
    bench.clock.advance(by: try Self.instant("2027-05-02T00:00:00Z").since(bench.clock.now))
    let old = try AndroidBench.mint(below: mint)
    let denial = try await bench.denial(old)
    #expect(denial?.report.code == .deviceRefused && denial?.report.text.contains("patch_level_too_old") == true)
    var updated = old
    updated.description.hardware[706] = DER.integer(202_606)
    #expect(try await bench.denial(updated) == nil)
    var silent = try AndroidBench.mint(below: mint)
    silent.description.hardware[706] = nil
    #expect(try await bench.denial(silent)?.report.text.contains("patch_level_unknown") == true)
    // The stricter of two conditions counts.
    var strict = AndroidBench.policy
    strict.minimumPatchLevel = PatchLevel("2026-07")
    let registrar = try bench.rules(trusting: mint, [strict], risks: Self.ofApp(policy)).registrar
    var june = try AndroidBench.mint(below: mint)
    june.description.hardware[706] = DER.integer(202_606)
    #expect(try await bench.denial(june, by: registrar)?.report.code == .deviceRefused)
  }

  @Test("A key that was registered without a patch level is refused once the policy asks for one")
  func unknownPatches() async throws {
    var mint = try AndroidMint.factory()
    mint.description.hardware[706] = nil
    let bench = try AndroidBench(trusting: mint)
    let key = try await Self.register(1, of: mint, in: bench)[0]
    let policy = RiskPolicy(threshold: nil, action: .refuse, longestPatchAge: Self.longestAge)
    let gate = try bench.rules(trusting: mint, risks: Self.ofApp(policy)).gate
    #expect(try await denial(key, in: bench, at: gate) == .deviceRefused([.patchLevelUnknown], Self.app))
    #expect(try await denial(key, in: bench) == nil)
  }
}
