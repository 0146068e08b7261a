import AttestGate
import ByteCoding
import GateFixtures
import Locking
import Logging
import Observability
import SQLiteStore
import Testing

@testable import GateRuntime

@Suite("Store maintenance in the background")
struct MaintenanceServiceTests {
  private let clock = ManualClock()
  private let folder: TemporaryFolder
  private let store: SQLiteStore
  private let lines = LockedValue<[String]>([])

  init() throws {
    folder = try TemporaryFolder()
    store = SQLiteStore(path: folder.file("state.db"))
  }

  /// Returns a service that has read the keys of the store, or made them.
  private func service(rotates: Bool = true) async throws -> MaintenanceService {
    let challenges = Challenges(storage: store, clock: clock.wallClock)
    try await challenges.prepare()
    let keys = IdentityKeys(storage: store, clock: clock.wallClock)
    try await keys.prepare()
    let logger = Logger(label: "test") { [lines] _ in LineCollector(lines) }
    return MaintenanceService(
      store: store,
      maintenance: StoreMaintenance(
        store: store, challenges: challenges, plan: .init(rotation: rotates ? .seconds(86_400) : nil),
        clock: clock.wallClock),
      identityKeys: IdentityKeyRotation(
        keys: keys, every: rotates ? .seconds(86_400 * 30) : nil, overlap: .seconds(3600)),
      risk: RiskFigures(store: store, registry: MetricsRegistry()), apps: [], logger: logger)
  }

  @Test("Keys that a clock far ahead has made are named once a day until it is their time; others never are")
  func clockAhead() async throws {
    clock.advance(by: .seconds(86_400 * 365))
    let maintenance = try await service()
    var reminder: DailyReminder?
    maintenance.warnOfClock(&reminder, at: clock.now)
    #expect(lines.withLock { $0 } == [])

    clock.advance(by: .seconds(-86_400 * 365))
    maintenance.warnOfClock(&reminder, at: clock.now)
    let first = lines.withLock { $0 }
    #expect(first.count == 2)
    #expect(first.first?.hasPrefix("challenge key not rotated: a clock that was ahead has made it") == true)
    #expect(first.last?.hasPrefix("identity signing key not rotated: a clock that was ahead has made it") == true)
    #expect(first.allSatisfy { $0.contains("2028-01-15T08:00:00Z") && $0.contains("sallyport store rotate") })
    maintenance.warnOfClock(&reminder, at: clock.now)
    #expect(lines.withLock { $0.count } == 2)
    clock.advance(by: .seconds(86_400))
    maintenance.warnOfClock(&reminder, at: clock.now)
    #expect(lines.withLock { $0.count } == 4)

    // Keys that nothing rotates are not waited for.
    try await service(rotates: false).warnOfClock(&reminder, at: clock.now)
    #expect(lines.withLock { $0.count } == 4 && reminder == nil)

    // What the lines advise.
    #expect(try await Challenges(storage: store, clock: clock.wallClock).rotate(at: clock.now))
    #expect(try await IdentityKeys(storage: store, clock: clock.wallClock).rotate(overlap: .zero))
    try await service().warnOfClock(&reminder, at: clock.now)
    #expect(lines.withLock { $0.count } == 4)
  }

  @Test("The copy of a status list is written again when it is old, and after the clock was set back")
  func statusListCopy() {
    let now = clock.now
    #expect(StatusListRefresh.isOld(copyOf: nil, at: now))
    #expect(!StatusListRefresh.isOld(copyOf: now, at: now))
    #expect(!StatusListRefresh.isOld(copyOf: now, at: now.advanced(by: .seconds(6 * 3600 - 1))))
    #expect(StatusListRefresh.isOld(copyOf: now, at: now.advanced(by: .seconds(6 * 3600))))
    #expect(StatusListRefresh.isOld(copyOf: now.advanced(by: .seconds(86_400 * 365)), at: now))
  }
}
