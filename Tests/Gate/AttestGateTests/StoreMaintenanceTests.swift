import AppAttest
import ByteCoding
import GateFixtures
import Locking
import SQLiteStore
import StoreConformance
import Testing

@testable import AttestGate

@Suite("Store maintenance")
struct StoreMaintenanceTests {
  private let clock = ManualClock()
  private let folder: TemporaryFolder
  private let store: SQLiteStore

  init() throws {
    folder = try TemporaryFolder()
    store = SQLiteStore(path: folder.file("state.db"))
  }

  private func challenges() async throws -> Challenges {
    let challenges = Challenges(storage: store, clock: clock.wallClock)
    try await challenges.prepare()
    return challenges
  }

  private func makeMaintenance(_ challenges: Challenges, _ plan: StoreMaintenance.Plan) -> StoreMaintenance {
    StoreMaintenance(store: store, challenges: challenges, plan: plan, clock: clock.wallClock)
  }

  @Test("The challenge key is rotated at its maximum age, not before, and dropped when its nonces have expired")
  func rotation() async throws {
    let challenges = try await challenges()
    let maintenance = makeMaintenance(challenges, .init(rotation: .seconds(3600)))
    clock.advance(by: .seconds(3599))
    #expect(try await maintenance.run()?.ring == nil)
    clock.advance(by: .seconds(1))
    let old = try #require(challenges.issue(at: clock.now)?.nonce)
    #expect(try await maintenance.run()?.ring == .rotated)
    #expect(try await maintenance.run()?.ring == nil)
    #expect(challenges.issue(at: clock.now)?.nonce.keyNumber != old.keyNumber)
    // Valid for the whole lifetime; dropped after the last nonce that another gate may have issued with it has
    // expired.
    clock.advance(by: challenges.life)
    _ = try await maintenance.run()
    try challenges.check(old, at: clock.now)
    clock.advance(by: Challenges.standardOverlap + challenges.skew * 2 + .seconds(1))
    #expect(try await maintenance.run()?.ring == .pruned(1))
    #expect(throws: NonceRejection.unknownKey(old.keyNumber)) { try challenges.check(old, at: clock.now) }
  }

  @Test("Of many gates, one rotates the challenge key, and each gate accepts the nonces of all")
  func rotationByMany() async throws {
    var gates: [Challenges] = []
    for _ in 0..<5 { gates.append(try await challenges()) }
    clock.advance(by: .seconds(3600))
    let services = gates.map { makeMaintenance($0, .init(rotation: .seconds(3600))) }
    let changes = try await StoreInvariant.tally(5) { try await services[$0].run()?.ring }
    #expect(changes == [.rotated: 1, nil: 4])
    let nonces = try gates.map { try #require($0.issue(at: clock.now)?.nonce) }
    for gate in gates {
      try await gate.refresh()
      for nonce in nonces { try gate.check(nonce, at: clock.now) }
    }
  }

  @Test("Without a rotation period the challenge key stays, at any age")
  func rotationOff() async throws {
    let maintenance = makeMaintenance(try await challenges(), .init())
    clock.advance(by: .seconds(1_000_000))
    #expect(try await maintenance.run() == StoreMaintenance.Report())
  }

  @Test("Keys unused for too long are removed, used keys stay; without a limit all keys stay")
  func unusedKeys() async throws {
    let keys = (0..<450).map { _ in Fixture.key() }
    for key in keys { _ = try await store.register(Fixture.registration(of: key, at: clock.now)) }
    clock.advance(by: .seconds(86_400 * 30))
    #expect(
      try await store.admit(
        Fixture.use(of: keys[7], 1, over: Fixture.nonce(issuedAt: clock.now), at: clock.now)) == .admitted)
    clock.advance(by: .seconds(1))
    let challenges = try await challenges()
    #expect(try await makeMaintenance(challenges, .init()).run()?.removedKeys == 0)
    let report = try await makeMaintenance(challenges, .init(longestUnused: .seconds(86_400 * 30))).run()
    #expect(report?.removedKeys == 449)
    #expect(try await store.entries(after: nil, limit: 500).map(\.record.key) == [keys[7]])
  }

  @Test("A clock that is set ahead removes no keys, even after a device has connected")
  func clockAhead() async throws {
    let uptime = LockedValue(ContinuousClock.now)
    let latest = ClockUpperBound { uptime.withLock { $0 } }
    func reloaded() async throws -> StoreMaintenance {
      StoreMaintenance(
        store: store, challenges: try await challenges(), plan: .init(longestUnused: .seconds(86_400 * 30)),
        clock: clock.wallClock, latest: latest)
    }
    var maintenance = try await reloaded()
    // No device has connected yet.
    #expect(try await maintenance.run()?.removedKeys == 0)
    let keys = [Fixture.key(), Fixture.key()]
    for key in keys { _ = try await store.register(Fixture.registration(of: key, at: clock.now)) }
    #expect(try await maintenance.run()?.removedKeys == 0)
    clock.advance(by: .seconds(86_400 * 365))
    #expect(try await maintenance.run()?.removedKeys == 0)
    #expect(
      try await store.admit(
        Fixture.use(of: keys[0], 1, over: Fixture.nonce(issuedAt: clock.now), at: clock.now)) == .admitted)
    #expect(try await maintenance.run()?.removedKeys == 0)
    maintenance = try await reloaded()
    #expect(try await maintenance.run()?.removedKeys == 0)
    // Only the time that has passed counts, with one day of uncertainty for the clocks of the devices or of the gate.
    uptime.withLock { $0 += .seconds(86_400 * 29) }
    #expect(try await maintenance.run()?.removedKeys == 0)
    uptime.withLock { $0 += .seconds(1) }
    #expect(try await maintenance.run()?.removedKeys == 1)
  }

  @Test("A gate that starts late removes fewer keys, not more")
  func startsLate() async throws {
    let key = Fixture.key()
    _ = try await store.register(Fixture.registration(of: key, at: clock.now))
    clock.advance(by: .seconds(86_400 * 40))
    let report = try await makeMaintenance(challenges(), .init(longestUnused: .seconds(86_400 * 30))).run()
    #expect(report?.removedKeys == 0)
    #expect(try await store.count() == 1)
  }
}

@Suite("Sharing a limit among gates")
struct LiveGatesTests {
  private let start = ContinuousClock.now

  private func after(_ seconds: Int) -> ContinuousClock.Instant { start + .seconds(seconds) }

  @Test(
    "A limit is divided by the number of gates and rounded up",
    arguments: [(1, 100), (2, 50), (3, 34), (7, 15), (100, 1), (101, 1)]
  )
  func share(_ gates: Int, _ share: Int) {
    var live = LiveGates()
    live.see(gates, at: start)
    #expect(live.share(of: 100) == share)
    #expect(live.share(of: 0) == 0)
  }

  @Test("An added gate counts immediately; a removed gate stops counting after the grace period")
  func hysteresis() {
    var live = LiveGates(patience: .seconds(30))
    live.see(3, at: after(0))
    #expect(live.count == 3)
    live.see(2, at: after(5))
    live.see(2, at: after(34))
    #expect(live.count == 3)
    live.see(2, at: after(35))
    #expect(live.count == 2)
    live.see(3, at: after(36))
    #expect(live.count == 3)
  }

  @Test("A gate that returns within the grace period still counts; of several lower counts the highest applies")
  func flapping() {
    var live = LiveGates(patience: .seconds(30))
    live.see(4, at: after(0))
    live.see(3, at: after(10))
    live.see(4, at: after(20))
    live.see(3, at: after(30))
    live.see(3, at: after(59))
    #expect(live.count == 4)
    live.see(1, at: after(60))
    #expect(live.count == 3)
  }

  @Test("The count is at least one")
  func atLeastOne() {
    var live = LiveGates(patience: .zero)
    live.see(0, at: start)
    #expect(live.count == 1 && live.share(of: 10) == 10)
  }
}
