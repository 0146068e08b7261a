import AppAttest
import AttestGate
import ByteCoding
import Cryptography
import Databases
import Foundation
import GateFixtures
import GateProcesses
import PostgresServers
import PostgresStore
import GateRuntime
import SimulatedDevice
import StoreConformance
import TestSupport
import Testing

/// Two gates exchange the receipts of one database, and break again and again.
///
/// Worker, exchange and store are those of the gate, the database is real, and Apple is simulated. Time goes on only while
/// nothing is due.
private final class ExchangeHistory {
  private static let appID = "AAABBBCCC1.com.example.app"
  /// Made once: generating keys takes longer than a history.
  private static let sharedAuthority = Result {
    try TestAuthority(appID: appID, at: Fixture.now.advanced(by: .seconds(-86_400)))
  }

  private let app: AppID
  private let devices: [MintedDevice]
  private let clock = ManualClock(Fixture.now)
  private let service: NotingDataService
  private let judge: AnswerJudge
  private let server: PostgresServer
  private let schema: String
  private let folder: String
  /// A store whose lines never break.
  private let reader: PostgresStore
  private var gates: [Gate] = []
  private var countOfGates = 0

  private struct Gate {
    let lines: GateLines
    let store: PostgresStore
    let task: Task<Void, Never>

    func end() async {
      lines.end()
      task.cancel()
      await task.value
      await store.close()
    }
  }

  init(on server: PostgresServer, folder: String, keys: Int) async throws {
    let authority = try ExchangeHistory.sharedAuthority.get()
    guard let app = AppID(ExchangeHistory.appID) else { throw Unexpected("no app id") }
    (self.app, self.server, self.folder) = (app, server, folder)
    judge = AnswerJudge(roots: [authority.receiptRoot.certificate])
    devices = try (0..<keys).map { _ in
      try MintedDevice(app: SimulatedApp(appID: ExchangeHistory.appID), authority: authority)
    }
    service = NotingDataService(devices, clock: clock)
    let url = try await server.newURL()
    guard let name = url.split(separator: "%3D").last else { throw Unexpected("no schema in \(url)") }
    schema = String(name)
    reader = PostgresStore(try ConnectionParameters(url: url))
    for device in devices {
      let object = try device.attestations.attestation(
        of: device.key, clientDataHash: SHA256.hash([1]), at: Fixture.now)
      let registration = Registration(
        key: DeviceKey(
          AttestedKey(
            keyID: device.keyID, publicKey: device.key.publicKey.x963, appID: app, environment: .development)),
        receipt: try AttestationObject(object).receipt.bytes,
        request: RegistrationRequest(nonce: Fixture.nonce(), attestationDigest: AttestationDigest(of: object)),
        registeredAt: Fixture.now)
      guard try await reader.register(registration) == .inserted else { throw Unexpected("not registered") }
    }
    for _ in 0..<2 { gates.append(try start()) }
  }

  private func start() throws -> Gate {
    countOfGates += 1
    let own = "\(folder)/\(countOfGates)"
    try FileManager.default.createDirectory(atPath: own, withIntermediateDirectories: false)
    let lines = try GateLines(to: server.folder + "/.s.PGSQL.5432", in: own)
    var limits = PostgresStore.Limits()
    limits.patience = .seconds(10)
    let url = "postgres:///postgres?user=postgres&host=\(own)&options=-csearch_path%3D\(schema)"
    let store = PostgresStore(try ConnectionParameters(url: url), limits: limits)
    let key = DeveloperKey(teamID: "AAABBBCCC1", keyID: "KEY1234567", key: try P256PrivateKey())
    let worker = ExchangeWorker(
      apps: [ExchangeApp(app: app, key: key, environments: [.development])], storage: store,
      exchange: ReceiptExchanger(
        transport: LineTransport(service: service, lines: lines), judge: judge, clock: clock.wallClock),
      interval: .milliseconds(1), clock: HistoryClock(clock: clock), observer: SilentObserver())
    return Gate(lines: lines, store: store, task: Task { await worker.run() })
  }

  /// Breaks the lines of the gate that works, as `random` says, and waits until nothing is due again.
  ///
  /// - Returns: How they broke, for each gate whose lines did: seldom both reach the moment.
  func breakOnce(using random: inout SeededGenerator) async throws -> [GateLines.Break] {
    let kind = GateLines.Break.allCases.randomElement(using: &random) ?? .kill
    let moment = Int.random(in: 1...(50 * devices.count), using: &random)
    for gate in gates { gate.lines.breakLines(kind, after: moment) }
    func broken() -> Int? { gates.firstIndex { $0.lines.broken != nil } }
    while broken() == nil {
      clock.advance(by: .seconds(4 * 3600))
      try await wait {
        if broken() != nil { return true }
        return try await isQuiet()
      }
    }
    for gate in gates { gate.lines.keepLines() }
    let breaks = gates.compactMap(\.lines.broken)
    if kind == .kill {
      for place in gates.indices where gates[place].lines.broken != nil {
        let dead = gates[place]
        gates[place] = try start()
        await dead.end()
      }
    }
    try await wait { try await isQuiet() }
    return breaks
  }

  /// Lets three days pass without a break, checks what is stored, and ends the gates.
  func finish() async throws {
    let before = devices.map { service.newest(of: $0)?.number ?? 0 }
    for _ in 0..<18 {
      clock.advance(by: .seconds(4 * 3600))
      try await wait { try await isQuiet() }
    }
    for (device, number) in zip(devices, before) {
      let newest = try #require(service.newest(of: device))
      #expect(newest.number > number, "a key is skipped for ever")
      #expect(try await reader.record(of: device.keyID)?.risk?.newest.metric == newest.number)
      #expect(try await reader.receipt(of: device.keyID) == newest.receipt)
    }
    #expect(try await reader.findings(isThorough: true).filter { $0.area == .data } == [])
    for gate in gates { await gate.end() }
    await reader.close()
  }

  var notes: NotingDataService.Notes { service.notes }

  /// Whether no receipt is due.
  private func isQuiet() async throws -> Bool {
    try await reader.dueReceipts(of: [app], at: clock.now, limit: 1).isEmpty
  }

  private func wait(_ condition: () async throws -> Bool) async throws {
    let start = ContinuousClock.now
    while try await !condition() {
      guard .now - start < .seconds(60) else { throw Unexpected("a receipt stays due") }
      try await Task.sleep(for: .milliseconds(2))
    }
  }
}

/// The time of a history. A worker that rests looks for due receipts again soon.
private struct HistoryClock: ExchangeClock {
  let clock: ManualClock

  var now: Timestamp { clock.now }
  var uptime: Duration { clock.now.since(Fixture.now) }
  func sleep(for duration: Duration) async {
    try? await Task.sleep(for: duration > .seconds(1) ? .milliseconds(10) : .microseconds(500))
  }
}

private struct SilentObserver: ExchangeObserver {
  func exchanged(_ due: DueReceipt, _ judgement: Judgement, isStored: Bool) {}
  func changed(_ change: ExchangePauses.Change) {}
  func backlog(_ isThere: Bool) {}
  func storeFailed(_ error: StoreError?) {}
}

/// Whether the long histories were requested with `scripts/test --cluster`.
private let runsHistories = ProcessInfo.processInfo.environment["SALLYPORT_TEST_CLUSTER"] == "1"

@Suite("Histories of receipt exchanges", .serialized, .timeLimit(.minutes(30)))
struct ExchangeHistoryTests {
  @Test(
    "Gates that are killed or lose their connections at any moment skip no receipt, and repeat one exchange at most",
    arguments: 1...(runsHistories ? 200 : 5))
  func history(_ seed: Int) async throws {
    var random = SeededGenerator(seed: UInt64(seed))
    try await Places.withTemporaryFolder { folder in
      let history = try await ExchangeHistory(on: PostgresServer.shared(), folder: folder, keys: 6)
      var breaks: [GateLines.Break] = []
      for _ in 0..<3 { breaks += try await history.breakOnce(using: &random) }
      try await history.finish()
      let notes = history.notes
      // A result that was not stored is asked for again: of one exchange for each break.
      #expect(notes.repeats <= breaks.count, "\(notes)")
      // Two gates exchange one receipt at the same moment only if the one that began has lost its round since.
      #expect(notes.overlaps <= breaks.count { $0 == .cut }, "\(notes)")
      print(
        "ExchangeHistoryTests: seed \(seed): \(breaks.map { "\($0)" }.joined(separator: ", ")); \(notes.answers) answers, "
          + "\(notes.repeats) repeated, \(notes.overlaps) at the same moment")
    }
  }
}
