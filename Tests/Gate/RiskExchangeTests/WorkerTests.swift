import AppAttest
import AttestGate
import ByteCoding
import Cryptography
import GateFixtures
import Locking
import Testing

@testable import GateRuntime

@Suite("The worker that exchanges receipts", .timeLimit(.minutes(2)))
struct WorkerTests {
  /// A service that signs receipts as Apple does. The second exchange of a key gets 304 for a day.
  private final class SigningService: ExchangeTransport {
    private let devices: [[UInt8]: Scene]
    private let counts = LockedValue<[KeyID: Int]>([:])
    private let meanwhile: @Sendable (Int) -> Void

    /// - Parameter meanwhile: Called while an exchange is under way, with its number.
    init(_ scenes: [Scene], meanwhile: @escaping @Sendable (Int) -> Void = { _ in }) {
      devices = Dictionary(scenes.map { (Array(Base64.encode($0.first).utf8), $0) }) { first, _ in first }
      self.meanwhile = meanwhile
    }

    var asked: [KeyID: Int] { counts.withLock { $0 } }

    func send(_ request: ExchangeRequest) async throws(ExchangeTransportError) -> ExchangeAnswer {
      guard let scene = devices[request.body], let receipt = try? scene.risk(4) else { return .init(status: 304) }
      let number = counts.withLock { counts in
        counts[scene.key.keyID, default: 0] += 1
        return counts.values.reduce(0, +)
      }
      meanwhile(number)
      return ExchangeAnswer(status: 200, body: Array(Base64.encode(receipt).utf8))
    }
  }

  private func worker(
    _ storage: MemoryStorage, _ transport: any ExchangeTransport, _ judge: AnswerJudge, _ clock: SimulatedTime,
    _ observer: NotingObserver = NotingObserver(), latest: Timestamp? = nil
  ) throws -> ExchangeWorker {
    let app = try #require(AppID(Scene.app))
    return ExchangeWorker(
      apps: [
        ExchangeApp(
          app: app, key: try DeveloperKey.sample().key, environments: [.development])
      ],
      storage: storage,
      exchange: ReceiptExchanger(transport: transport, judge: judge, clock: WallClock { clock.now }),
      interval: .milliseconds(200), clock: clock, observer: observer, latestTime: { latest })
  }

  /// Runs `worker` until its clock has reached its end.
  private func run(
    _ storage: MemoryStorage, _ transport: any ExchangeTransport, _ judge: AnswerJudge, for time: Duration,
    _ observer: NotingObserver = NotingObserver()
  ) async throws {
    let task = LockedValue<Task<Void, Never>?>(nil)
    let clock = SimulatedTime(from: Scene.now, until: time) { task.withLock { $0 }?.cancel() }
    let worker = try worker(storage, transport, judge, clock, observer)
    let run = task.withLock { task in
      let run = Task { await worker.run() }
      task = run
      return run
    }
    await run.value
  }

  private func scenes(_ count: Int, in storage: MemoryStorage) throws -> [Scene] {
    try (0..<count).map { _ in
      let scene = try Scene()
      storage.register(scene.key, scene.first, at: Scene.now)
      return scene
    }
  }

  @Test("Due receipts are exchanged, the newest key first, and each result is stored once")
  func exchanges() async throws {
    let storage = MemoryStorage()
    let scenes = try scenes(40, in: storage)
    let (service, observer) = (SigningService(scenes), NotingObserver())
    try await run(storage, service, scenes[0].judge, for: .seconds(60), observer)
    #expect(service.asked.count == 40 && service.asked.values.allSatisfy { $0 == 1 })
    #expect(observer.notes.codes == ["renewed": 40] && observer.notes.stored == 40)
    for row in storage.rows {
      #expect(row.risk == KeyRisk(metric: 4, at: Scene.now) && row.failures == 0)
      #expect(try Receipt(row.receipt).kind == .receipt)
      #expect(row.due.map { $0 >= Scene.now.advanced(by: Scene.day) } == true)
    }
    #expect(!storage.isLeased)
  }

  @Test("A worker that stops at any moment repeats no stored exchange and skips none", arguments: 1...12)
  func stops(at moment: Int) async throws {
    let storage = MemoryStorage()
    let scenes = try scenes(8, in: storage)
    let task = LockedValue<Task<Void, Never>?>(nil)
    let clock = SimulatedTime(from: Scene.now, until: .seconds(120)) { task.withLock { $0 }?.cancel() }
    let first = SigningService(scenes) { if $0 == moment { task.withLock { $0 }?.cancel() } }
    let worker = try worker(storage, first, scenes[0].judge, clock)
    let run = task.withLock { task in
      let run = Task { await worker.run() }
      task = run
      return run
    }
    await run.value
    #expect(!storage.isLeased)
    let second = SigningService(scenes)
    try await self.run(storage, second, scenes[0].judge, for: .seconds(60))
    #expect(storage.rows.allSatisfy { $0.risk?.metric == 4 })
    #expect(first.asked.merging(second.asked, uniquingKeysWith: +).values.allSatisfy { $0 == 1 })
  }

  @Test("A worker that is killed between the answer and the store repeats that exchange, and skips none")
  func killed() async throws {
    // The fourth call is the second settlement: the process is gone, and its connection is closed.
    let isDead = LockedValue(false)
    let storage = MemoryStorage { call in
      if call == 4 { isDead.withLock { $0 = true } }
      return isDead.withLock { $0 } ? .unreachable(reason: "killed") : nil
    }
    let scenes = try scenes(6, in: storage)
    let (first, second) = (SigningService(scenes), SigningService(scenes))
    try await run(storage, first, scenes[0].judge, for: .seconds(20))
    storage.loseConnection()
    isDead.withLock { $0 = false }
    #expect(storage.rows.count { $0.risk != nil } == 1)
    try await run(storage, second, scenes[0].judge, for: .seconds(60))
    #expect(storage.rows.allSatisfy { $0.risk?.metric == 4 })
    let counts = first.asked.merging(second.asked, uniquingKeysWith: +).values
    #expect(counts.count { $0 == 2 } <= 2 && counts.allSatisfy { (1...2).contains($0) })
  }

  @Test(
    "A receipt that has expired by a clock that may be ahead is looked at again; otherwise its metric is outdated",
    arguments: [
      (Scene.now.advanced(by: Scene.day), true), (Scene.now.advanced(by: Scene.day * 200), false), (nil, false),
    ])
  func clockAhead(latest: Timestamp?, isKept: Bool) async throws {
    let storage = MemoryStorage()
    let scenes = try scenes(2, in: storage)
    let task = LockedValue<Task<Void, Never>?>(nil)
    let clock = SimulatedTime(from: Scene.now.advanced(by: Scene.day * 120), until: .seconds(60)) {
      task.withLock { $0 }?.cancel()
    }
    let service = SigningService(scenes)
    let worker = try worker(storage, service, scenes[0].judge, clock, latest: latest)
    let run = task.withLock { task in
      let run = Task { await worker.run() }
      task = run
      return run
    }
    await run.value
    #expect(service.asked.isEmpty, "an expired receipt is never sent")
    let due = isKept ? latest?.advanced(by: Scene.day) : nil
    #expect(storage.rows.allSatisfy { $0.due == due })
  }

  @Test("While another gate exchanges, nothing is sent; the store's failures are reported once")
  func lease() async throws {
    let storage = MemoryStorage()
    let scenes = try scenes(3, in: storage)
    let service = SigningService(scenes)
    #expect(try await storage.beginExchange())
    try await run(storage, service, scenes[0].judge, for: .seconds(300))
    #expect(service.asked.isEmpty && storage.isLeased)
    try await storage.endExchange()
    try await run(storage, service, scenes[0].judge, for: .seconds(300))
    #expect(service.asked.count == 3)

    let failing = MemoryStorage { call in call < 5 ? .unreachable(reason: "down") : nil }
    let observer = NotingObserver()
    let more = try self.scenes(1, in: failing)
    // Each failure doubles the rest.
    try await run(failing, SigningService(more), more[0].judge, for: .seconds(1200), observer)
    #expect(observer.notes.storeFaults == [true, false] && observer.notes.codes == ["renewed": 1])
  }

  @Test("A worker whose round ended during an exchange stores that result, and sends nothing more in this round")
  func lostRound() async throws {
    let storage = MemoryStorage()
    let scenes = try scenes(5, in: storage)
    // The connection is lost during the second exchange, and another gate begins a round.
    let service = SigningService(scenes) { number in
      if number == 2 { storage.loseConnection(to: true) }
    }
    try await run(storage, service, scenes[0].judge, for: .seconds(10))
    #expect(service.asked.count == 2 && storage.rows.count { $0.risk != nil } == 2)
    storage.loseConnection()
    try await run(storage, service, scenes[0].judge, for: .seconds(60))
    #expect(service.asked.count == 5 && service.asked.values.allSatisfy { $0 == 1 })
  }

  @Test("A worker goes on with the pause of an earlier one")
  func pauseOfEarlier() async throws {
    let storage = MemoryStorage()
    let scenes = try scenes(2, in: storage)
    let destination = ExchangePauses.Destination(try DeveloperKey.sample().key.name, .development)
    for (time, count) in [(Duration.seconds(200), 0), (.seconds(400), 2)] {
      var pauses = ExchangePauses()
      _ = pauses.note(.busy(status: 429, retryAfter: .seconds(300)), of: destination, at: .zero, random: 0)
      let (earlier, service) = (pauses.requested(at: .zero), SigningService(scenes))
      let task = LockedValue<Task<ExchangePauses, Never>?>(nil)
      let clock = SimulatedTime(from: Scene.now, until: time) { task.withLock { $0 }?.cancel() }
      let worker = try worker(storage, service, scenes[0].judge, clock)
      let run = task.withLock { task in
        let run = Task { await worker.run(from: earlier) }
        task = run
        return run
      }
      let last = await run.value
      #expect(service.asked.count == count)
      #expect((last.end(of: destination, at: .zero) != nil) == (count == 0))
    }
  }

  @Test("A key that registered again or was removed during the exchange keeps its row")
  func compareAndSet() async throws {
    let storage = MemoryStorage()
    let scenes = try scenes(1, in: storage)
    let service = SigningService(scenes) { _ in storage.remove(scenes[0].key.keyID) }
    let observer = NotingObserver()
    try await run(storage, service, scenes[0].judge, for: .seconds(1), observer)
    #expect(observer.notes.codes["renewed"] ?? 0 > 0 && observer.notes.stored == 0)
    #expect(storage.rows[0].receipt == scenes[0].first && storage.rows[0].risk == nil)
  }

  @Test("401 stops the exchange at once: one request, no row changed")
  func unauthorized() async throws {
    let storage = MemoryStorage()
    let scenes = try scenes(5, in: storage)
    let (transport, observer) = (ScriptedTransport([.init(status: 401)]), NotingObserver())
    try await run(storage, transport, scenes[0].judge, for: .seconds(400), observer)
    #expect(transport.requests.count == 1 && observer.notes.codes == ["unauthorized": 1])
    #expect(storage.rows.allSatisfy { $0.due == Scene.now && $0.failures == 0 })
  }
}
