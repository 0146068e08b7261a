import AppAttest
import AttestGate
import ByteCoding
import GateFixtures
import Wire
import Locking
import SQLiteStore
import Testing

@Suite("Risk metrics")
struct RiskTests {
  private static let app = AppID(GateBench.appID)

  private static func apps(_ risk: RiskPolicy?) throws -> [AppPolicy] {
    [AppPolicy(appID: try #require(app), environments: [.development], risk: risk)]
  }

  private static func bench(
    _ risk: RiskPolicy?, enforcement: Gate.Enforcement = .enforce
  ) throws -> GateBench {
    try GateBench(apps: apps(risk), enforcement: enforcement)
  }

  private func due(_ device: MintedDevice, in bench: GateBench) async throws -> DueReceipt {
    let app = try #require(Self.app)
    let late = bench.clock.now.advanced(by: .seconds(1_000_000))
    let due = try await bench.store.dueReceipts(of: [app], at: late, limit: 10)
    return try #require(due.first { $0.key.keyID == device.keyID })
  }

  /// Stores a metric; without `next` it is outdated.
  private func measure(
    _ device: MintedDevice, _ metric: Int, isOutdated: Bool = false, in bench: GateBench
  ) async throws {
    let settlement = ReceiptSettlement(
      risk: KeyRisk(metric: metric, at: bench.clock.now), next: isOutdated ? nil : bench.clock.now)
    #expect(try await bench.store.settle(due(device, in: bench), as: settlement))
  }

  private func denial(_ device: MintedDevice, _ count: UInt32, in bench: GateBench, at gate: Gate? = nil) async throws
    -> Denial?
  {
    let claim = try device.claim(over: bench.nonce(), count: count)
    do throws(Denial) {
      _ = try await (gate ?? bench.gate).admit(claim)
      return nil
    } catch {
      return error
    }
  }

  /// What an admission sees of a key.
  enum Known: CaseIterable {
    case nothing, below, above, outdated
  }

  static let cases: [(RiskPolicy?, [Known: GateRefusalCode])] = [
    (nil, [:]),
    (RiskPolicy(threshold: nil), [:]),
    (RiskPolicy(threshold: 5, action: .observe), [:]),
    (RiskPolicy(threshold: 5, action: .refuse), [.above: .riskTooHigh]),
    (RiskPolicy(threshold: 5, action: .revoke), [.above: .riskTooHigh]),
    (
      RiskPolicy(threshold: 5, action: .observe, whenUnknown: .refuse),
      [.nothing: .riskUnknown, .outdated: .riskOutdated]
    ),
    (
      RiskPolicy(threshold: 5, action: .refuse, whenUnknown: .refuse),
      [.nothing: .riskUnknown, .above: .riskTooHigh, .outdated: .riskOutdated]
    ),
  ]

  @Test(
    "Each policy decides about no metric, one at the threshold, one above it, and an outdated one", arguments: cases)
  func policies(_ policy: RiskPolicy?, _ refused: [Known: GateRefusalCode]) async throws {
    for known in Known.allCases {
      let bench = try Self.bench(policy)
      let device = try await bench.registeredDevice()
      switch known {
      case .nothing: break
      case .below: try await measure(device, 5, in: bench)
      case .above: try await measure(device, 6, in: bench)
      case .outdated: try await measure(device, 6, isOutdated: true, in: bench)
      }
      #expect(try await denial(device, 1, in: bench)?.report.code == refused[known], "\(known)")
    }
  }

  @Test("A key that has no metric a month after its registration gets none any more: its device is to register another")
  func tooOld() async throws {
    for (days, code) in [(29, GateRefusalCode.riskUnknown), (31, .riskOutdated)] {
      let bench = try Self.bench(RiskPolicy(threshold: 5, action: .refuse, whenUnknown: .refuse))
      let device = try await bench.registeredDevice()
      bench.clock.advance(by: .seconds(days * 86_400))
      let report = try await denial(device, 1, in: bench)?.report
      #expect(report?.code == code)
    }
  }

  @Test("A refusal spends neither nonce nor counter, and its values are for the log")
  func unspent() async throws {
    let bench = try Self.bench(RiskPolicy(threshold: 5, action: .refuse))
    let device = try await bench.registeredDevice()
    try await measure(device, 9, in: bench)
    let claim = try device.claim(over: bench.nonce(), count: 1)
    let app = AppName(try #require(Self.app))
    await #expect(throws: Denial.riskTooHigh(9, threshold: 5, app)) { try await bench.gate.admit(claim) }
    #expect(Denial.riskTooHigh(9, threshold: 5, app).report.detail == "9, threshold 5")
    #expect(try await bench.store.record(of: device.keyID)?.counter == .zero)
    let other = Gate(
      rules: [
        try AssertionRule(
          apps: try #require(AllowedApps(Self.apps(nil))), challenges: bench.challenges, registry: bench.store)
      ],
      clock: bench.clock.wallClock)
    #expect(try await other.admit(claim).overruled == nil)
  }

  @Test("Monitor mode admits anonymously what the risk refuses")
  func monitor() async throws {
    let bench = try Self.bench(RiskPolicy(threshold: 1, action: .refuse), enforcement: .monitor)
    let device = try await bench.registeredDevice()
    try await measure(device, 2, in: bench)
    let admission = try await bench.gate.admit(try device.claim(over: bench.nonce(), count: 1))
    #expect(admission.principal == .anyone)
    #expect(admission.overruled == .riskTooHigh(2, threshold: 1, AppName(try #require(Self.app))))
  }

  @Test("A key that is refused without a metric can register, and is admitted once it has one")
  func firstExchange() async throws {
    let bench = try Self.bench(RiskPolicy(threshold: 5, action: .refuse, whenUnknown: .refuse))
    let device = try await bench.registeredDevice()
    let rule = try AssertionRule(
      apps: try #require(AllowedApps(Self.apps(RiskPolicy(threshold: 5, action: .refuse, whenUnknown: .refuse)))),
      challenges: bench.challenges, registry: bench.store)
    let gate = Gate(rules: [rule], clock: bench.clock.wallClock)
    #expect(try await denial(device, 1, in: bench, at: gate)?.report.code == .riskUnknown)
    try await measure(device, 1, in: bench)
    rule.forget(device.keyID)
    let admission = try await gate.admit(try device.claim(over: bench.nonce(), count: 1))
    guard case .device(let principal) = admission.principal else {
      Issue.record("the device is not the principal")
      return
    }
    #expect(principal.risk == KeyRisk(metric: 1, at: bench.clock.now))
  }

  @Test(
    "A cached key is judged by its new metric once the gate hears of the change, or of any change",
    arguments: [
      true, false,
    ])
  func changed(isNamed: Bool) async throws {
    let bench = try Self.bench(nil)
    let rule = try AssertionRule(
      apps: try #require(AllowedApps(Self.apps(RiskPolicy(threshold: 5, action: .refuse)))),
      challenges: bench.challenges, registry: bench.store)
    let gate = Gate(rules: [rule], clock: bench.clock.wallClock)
    let device = try await bench.registeredDevice()
    #expect(try await denial(device, 1, in: bench, at: gate) == nil)
    try await measure(device, 6, in: bench)
    // The key is cached, and no change was heard.
    #expect(try await denial(device, 2, in: bench, at: gate) == nil)
    if isNamed { rule.forget(device.keyID) } else { rule.forgetAll() }
    #expect(try await denial(device, 3, in: bench, at: gate)?.report.code == .riskTooHigh)
    try await measure(device, 4, in: bench)
    if isNamed { rule.forget(device.keyID) } else { rule.forgetAll() }
    #expect(try await denial(device, 3, in: bench, at: gate) == nil)
  }

  @Test("A lookup that began before a change does not keep the former metric")
  func overtaken() async throws {
    let bench = try Self.bench(nil)
    let registry = HeldRegistry(bench.store)
    let rule = try AssertionRule(
      apps: try #require(AllowedApps(Self.apps(RiskPolicy(threshold: 5, action: .refuse)))),
      challenges: bench.challenges, registry: registry)
    let gate = Gate(rules: [rule], clock: bench.clock.wallClock)
    let device = try await bench.registeredDevice()
    registry.afterLookup.withLock { action in
      action = {
        try? await measure(device, 6, in: bench)
        rule.forget(device.keyID)
      }
    }
    #expect(try await denial(device, 1, in: bench, at: gate) == nil)
    #expect(try await denial(device, 2, in: bench, at: gate)?.report.code == .riskTooHigh)
  }

  @Test("Of 20 gates that settle one receipt above the threshold, one revokes the key and reports it")
  func revokedOnce() async throws {
    let bench = try Self.bench(nil)
    let device = try await bench.registeredDevice()
    let other = try await bench.registeredDevice()
    let reports = LockedValue<[RiskEnforcement.Revocation]>([])
    let storage = RiskEnforcement(
      bench.store, apps: try Self.apps(RiskPolicy(threshold: 5, action: .revoke)), clock: bench.clock.wallClock
    ) { revocation in reports.withLock { $0.append(revocation) } }
    let due = try await due(device, in: bench)
    let now = bench.clock.now
    let stored = try await withThrowingTaskGroup(of: Bool.self) { group in
      for number in UInt8(0)..<20 {
        group.addTask {
          try await storage.settle(
            due, as: ReceiptSettlement(receipt: [number], risk: KeyRisk(metric: 6, at: now), next: now))
        }
      }
      return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
    }
    #expect(stored == 1)
    #expect(reports.withLock { $0 }.map(\.metric) == [6])
    #expect(reports.withLock { $0 }.first?.key == KeyHash(of: device.keyID))
    #expect(try await bench.store.record(of: device.keyID)?.revokedAt == now)

    let settlement = ReceiptSettlement(risk: KeyRisk(metric: 5, at: now), next: now)
    #expect(try await storage.settle(try await self.due(other, in: bench), as: settlement))
    #expect(try await bench.store.record(of: other.keyID)?.revokedAt == nil)
    #expect(reports.withLock(\.count) == 1)
  }

  @Test("An exchange revokes no key with another action, without a current metric, or of an app without a policy")
  func notRevoked() async throws {
    for (policy, isOutdated) in [
      (RiskPolicy(threshold: 5, action: .refuse), false), (RiskPolicy(threshold: 5), false),
      (RiskPolicy(threshold: 5, action: .revoke), true), (nil, false),
    ] as [(RiskPolicy?, Bool)] {
      let bench = try Self.bench(nil)
      let device = try await bench.registeredDevice()
      let storage = RiskEnforcement(bench.store, apps: try Self.apps(policy)) { Issue.record("\($0)") }
      let settlement = ReceiptSettlement(
        risk: KeyRisk(metric: 99, at: bench.clock.now), next: isOutdated ? nil : bench.clock.now)
      #expect(try await storage.settle(try await due(device, in: bench), as: settlement))
      #expect(try await bench.store.record(of: device.keyID)?.revokedAt == nil)
    }
  }

  @Test(
    "A filter is a metric, a range, a least metric or unknown",
    arguments: [
      ("3", .metric(3...3)), ("0", .metric(0...0)), ("1-3", .metric(1...3)), ("3+", .metric(3...Int.max)),
      ("unknown", .unknown), ("3-1", nil), ("", nil), ("+", nil), ("-", nil), ("-3", nil), ("1-", nil), ("1-2-3", nil),
      ("+3", nil), ("3 ", nil), ("1234567890", nil), ("99999999999999999999999999", nil), ("Unknown", nil),
      ("3++", nil),
      ("٣", nil),
    ] as [(String, RiskSelection?)])
  func filters(text: String, expected: RiskSelection?) {
    #expect(RiskSelection(text) == expected)
  }
}

/// A registry that lets a test act between the lookup of a key and its result.
private final class HeldRegistry: KeyRegistry {
  private let store: SQLiteStore
  let afterLookup = LockedValue<(@Sendable () async -> Void)?>(nil)

  init(_ store: SQLiteStore) { self.store = store }

  func record(of keyID: KeyID) async throws(StoreError) -> KeyRecord? {
    let record = try await store.record(of: keyID)
    let action = afterLookup.withLock { action in
      defer { action = nil }
      return action
    }
    await action?()
    return record
  }

  func register(_ registration: Registration) async throws(StoreError) -> Insertion {
    try await store.register(registration)
  }

  func receipt(of keyID: KeyID) async throws(StoreError) -> [UInt8]? { try await store.receipt(of: keyID) }
  func admit(_ use: KeyUse) async throws(StoreError) -> Admittance { try await store.admit(use) }

  func revoke(_ keyID: KeyID, at now: Timestamp) async throws(StoreError) -> Bool {
    try await store.revoke(keyID, at: now)
  }

  func restore(_ keyID: KeyID) async throws(StoreError) -> Bool { try await store.restore(keyID) }

  func forgetNonces(issuedBy instant: Timestamp) async throws(StoreError) {
    try await store.forgetNonces(issuedBy: instant)
  }
}
