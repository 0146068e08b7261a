import AppAttest
import AttestGate
import ByteCoding
import Cryptography
import GateFixtures
import Locking
import Testing

@testable import GateRuntime

/// How Apple answers for a key, always.
private enum Temper: Int, CaseIterable, Sendable {
  case renews, renewsSlowly, notYet, refuses, noData, busy, throttles, silent, unusable, flaky, expired, damaged
}

/// Plays Apple for keys that have a number. It decides without receipts, so that ten days take seconds.
private final class PlayedService: ReceiptExchange {
  struct Record: Sendable {
    var asked = 0
    var renewed = 0
    var last: Duration?
  }

  private struct State {
    var records: [Record]
    var starts: [Duration] = []
    var random = SeededRandom(state: 7)
  }

  private let state: LockedValue<State>
  private let numbers: [KeyID: Int]
  let clock: SimulatedTime
  /// The hours of a refused authorization, and of an outage.
  private let unauthorized = 30.0..<50.0
  private let outage = 120.0..<132.0
  /// The hours in which the service asks to wait.
  private let throttled = 180.0..<184.0

  init(_ numbers: [KeyID: Int], _ clock: SimulatedTime) {
    (self.numbers, self.clock) = (numbers, clock)
    state = LockedValue(State(records: .init(repeating: Record(), count: numbers.count)))
  }

  var records: [Record] { state.withLock(\.records) }
  var starts: [Duration] { state.withLock(\.starts) }

  func exchange(_ due: DueReceipt, with key: DeveloperKey, at now: Timestamp) async -> ExchangeOutcome {
    let uptime = clock.uptime
    guard let number = numbers[due.key.keyID] else { return ExchangeOutcome(.refused) }
    let (dice, asked) = state.withLock { state in
      state.starts.append(uptime)
      state.records[number].asked += 1
      state.records[number].last = uptime
      return (Double.random(in: 0..<1, using: &state.random), state.records[number].asked)
    }
    clock.advance(by: .milliseconds(50 + Int(dice * 400)))
    let hours = uptime / .seconds(3600)
    let expiration = Scene.now.advanced(by: Scene.day * 80)
    func outcome(_ judgement: Judgement) -> ExchangeOutcome { ExchangeOutcome(judgement, expiration: expiration) }
    if unauthorized.contains(hours) { return outcome(.unauthorized(clockAhead: nil)) }
    if throttled.contains(hours) { return outcome(.busy(status: 429, retryAfter: .seconds(300))) }
    if outage.contains(hours) { return outcome(.unusable(.noAnswer(reason: "timed out"))) }
    func renewed(_ wait: Duration) -> ExchangeOutcome {
      state.withLock { $0.records[number].renewed += 1 }
      return outcome(
        .renewed(
          RenewedReceipt(
            receipt: withUnsafeBytes(of: asked) { Array($0) }, risk: KeyRisk(metric: 1, at: now),
            notBefore: now.advanced(by: wait), expiration: expiration)))
    }
    switch Temper(rawValue: number % Temper.allCases.count) ?? .renews {
    case .renews: return renewed(Scene.day)
    case .renewsSlowly: return renewed(Scene.day * 3)
    case .notYet: return outcome(.notYet)
    case .refuses: return outcome(.refused)
    case .noData: return outcome(.noData)
    case .busy: return outcome(.busy(status: 500, retryAfter: nil))
    case .throttles: return outcome(.busy(status: 429, retryAfter: nil))
    case .silent: return outcome(.unusable(.noAnswer(reason: "timed out")))
    case .unusable: return outcome(.unusable(.metricMissing))
    case .flaky: return dice < 0.5 ? renewed(Scene.day) : outcome(.busy(status: 503, retryAfter: nil))
    case .expired: return ExchangeOutcome(.expired)
    case .damaged: return ExchangeOutcome(.damaged(.invalidSignature))
    }
  }
}

private struct SeededRandom: RandomNumberGenerator, Sendable {
  var state: UInt64
  mutating func next() -> UInt64 {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return state ^ (state >> 31)
  }
}

@Suite("Ten days of exchanges", .timeLimit(.minutes(5)))
struct TenDaysTests {
  @Test("10,000 keys under every kind of answer: the rate is never passed, and no key is starved")
  func tenDays() async throws {
    var keys: [AttestedKey] = []
    var numbers: [KeyID: Int] = [:]
    let app = try #require(AppID(Scene.app))
    for number in 0..<10_000 {
      let name = SHA256.hash(Array("\(number)".utf8))
      let keyID = try #require(KeyID(bytes: name))
      numbers[keyID] = number
      keys.append(AttestedKey(keyID: keyID, publicKey: name, appID: app, environment: .development))
    }
    let storage = HeapStorage(keys, dueAt: Scene.now)
    let task = LockedValue<Task<Void, Never>?>(nil)
    let clock = SimulatedTime(from: Scene.now, until: Scene.day * 10, skip: { storage.earliest }) {
      task.withLock { $0 }?.cancel()
    }
    let service = PlayedService(numbers, clock)
    let observer = NotingObserver()
    let random = LockedValue(SeededRandom(state: 42))
    let interval = Duration.milliseconds(1500)
    let worker = ExchangeWorker(
      apps: [ExchangeApp(app: app, key: try DeveloperKey.sample().key, environments: [.development])],
      storage: storage, exchange: service, interval: interval, clock: clock, observer: observer,
      random: { random.withLock { Double.random(in: 0...1, using: &$0) } })
    let run = task.withLock { task in
      let run = Task { await worker.run() }
      task = run
      return run
    }
    await run.value
    #expect(!storage.isLeased)

    // The rate: between two begins, never less than the interval.
    let starts = service.starts
    #expect(starts.count > 20_000)
    #expect(zip(starts, starts.dropFirst()).allSatisfy { $1 - $0 >= interval })

    var asked: [Temper: ClosedRange<Int>] = [:]
    for (number, record) in service.records.enumerated() {
      let temper = Temper(rawValue: number % Temper.allCases.count) ?? .renews
      let range = asked[temper] ?? record.asked...record.asked
      asked[temper] = min(range.lowerBound, record.asked)...max(range.upperBound, record.asked)
    }
    func range(_ temper: Temper) -> ClosedRange<Int> { asked[temper] ?? 0...0 }
    // Starvation: each key is asked about, those that renew daily nearly daily, although the service was out of use for
    // 32 hours. An exchange that gets 401 counts as asked, and as nothing else.
    let renewals = service.records.enumerated().filter { $0.offset % Temper.allCases.count == 0 }.map(\.element.renewed)
    #expect(renewals.allSatisfy { $0 >= 6 })
    #expect(range(.renewsSlowly).lowerBound >= 3 && range(.notYet).lowerBound >= 6)
    #expect(range(.busy).lowerBound >= 10 && range(.silent).lowerBound >= 10 && range(.throttles).lowerBound >= 10)
    #expect(range(.flaky).lowerBound >= 6 && range(.unusable).lowerBound >= 5)
    // What is not repeated: 400 once; 404 at once and after a week; what is never sent, once. 401 and the outage may
    // add some, since they say nothing about a receipt.
    #expect(range(.refuses).lowerBound == 1 && range(.noData).lowerBound >= 1)
    let once = service.records.enumerated().filter { Temper(rawValue: $0.offset % Temper.allCases.count) == .refuses }
    #expect(once.count { $0.element.asked == 1 } >= once.count - 20)
    // Retry-After of five minutes was honoured for the whole host.
    #expect((40...50).contains(starts.count { (180.0..<184.0).contains($0 / .seconds(3600)) }))
    // 401 stopped everything at once, and the pauses grew: few attempts in 20 hours.
    let refused = starts.count { (30.0..<50.0).contains($0 / .seconds(3600)) }
    #expect((2...10).contains(refused), "\(refused)")
    #expect(observer.notes.changes.contains { if case .stopped = $0 { true } else { false } })
    #expect(observer.notes.changes.contains { if case .resumed = $0 { true } else { false } })
  }
}
