import ByteCoding
import Foundation
import Locking
import Logging
@testable import MFADelivery
import MFADomain
import MFAFixtures
import ServiceLifecycle
import Testing

@Suite("Delivery of push notifications", .serialized, .timeLimit(.minutes(2)))
struct PushDeliveryTests {
  /// Answers as told, and then accepts.
  private final class ScriptedService: PushProvider {
    private struct State {
      var script: [PushFailure.Kind]
      var delivered: [PushNotification] = []
      var asked = 0
      var isHeld: Bool
    }

    private let state: LockedValue<State>

    init(_ script: [PushFailure.Kind] = [], isHeld: Bool = false) {
      state = LockedValue(State(script: script, isHeld: isHeld))
    }

    var asked: Int { state.withLock { $0.asked } }
    var delivered: [PushNotification] { state.withLock { $0.delivered } }

    func release() { state.withLock { $0.isHeld = false } }

    func deliver(_ notification: PushNotification) async throws(PushFailure) {
      let kind = state.withLock { state -> PushFailure.Kind? in
        state.asked += 1
        return state.script.isEmpty ? nil : state.script.removeFirst()
      }
      while state.withLock({ $0.isHeld }) {
        if Task.isCancelled { throw PushFailure(.temporary(after: nil, isOfService: true), "cancelled") }
        await Task.yield()
      }
      if let kind { throw PushFailure(kind, "scripted") }
      state.withLock { $0.delivered.append(notification) }
    }

    func probe() async throws(PushFailure) -> String { "" }

    func deliver(_ count: Int) async { while delivered.count < count, !Task.isCancelled { await Task.yield() } }
    func ask(_ count: Int) async { while asked < count, !Task.isCancelled { await Task.yield() } }
  }

  /// Addresses that were given up, with the instants.
  private typealias Forgotten = LockedValue<[(PushAddress, Timestamp)]>

  private struct Running {
    let delivery: PushDelivery
    let log: CapturedLog
    let clock: ManualClock
    let forgotten: Forgotten
  }

  /// Calls `body` while a delivery with short pauses runs.
  private func running(
    _ providers: [PushAddress.Service: any PushProvider], _ change: (inout PushDelivery.Schedule) -> Void = { _ in },
    _ body: (Running) async throws -> Void
  ) async throws {
    var schedule = PushDelivery.Schedule()
    (schedule.pause, schedule.longestPause) = (.milliseconds(1), .milliseconds(4))
    change(&schedule)
    let (log, clock, forgotten) = (CapturedLog(), ManualClock(), Forgotten([]))
    let delivery = PushDelivery(schedule: schedule, clock: clock.wall, logger: log.logger) { address, instant in
      forgotten.withLock { $0.append((address, instant)) }
    }
    delivery.replaceProviders(providers)
    let task = Task { try await delivery.run() }
    let result: Result<Void, any Error>
    do {
      result = .success(try await body(Running(delivery: delivery, log: log, clock: clock, forgotten: forgotten)))
    } catch { result = .failure(error) }
    task.cancel()
    try? await task.value
    try result.get()
  }

  private static let outage = PushFailure.Kind.temporary(after: nil, isOfService: true)

  @Test("a notification is tried until the service accepts it, each service by itself")
  func retries() async throws {
    let apns = ScriptedService([Self.outage, Self.outage, .temporary(after: nil, isOfService: false)])
    let fcm = ScriptedService(isHeld: true)
    try await running([.apns: apns, .fcm: fcm]) { running in
      let now = running.clock.now
      for service in [PushAddress.Service.fcm, .apns] { running.delivery.send(try .sample(service, at: now)) }
      await apns.deliver(1)
      #expect(apns.asked == 4)
      #expect(fcm.delivered.isEmpty)
      try await running.log.line(saying: "message sent")
      #expect(running.log.lines(saying: "delivery attempt failed") == 3)
      fcm.release()
      await fcm.deliver(1)
    }
  }

  @Test("the end of a notification is the end of its attempts")
  func expiry() async throws {
    let service = ScriptedService(Array(repeating: Self.outage, count: 100_000))
    try await running([.apns: service]) { running in
      running.delivery.send(try .sample(at: running.clock.now))
      await service.ask(3)
      running.clock.advance(by: .seconds(120))
      try await running.log.line(saying: "message expired")
      let asked = service.asked
      // An expired one is not even tried.
      running.delivery.send(try .sample(lifetime: .zero, at: running.clock.now))
      try await running.log.lines(2, saying: "message expired")
      #expect(service.asked == asked)
    }
  }

  @Test("a notice that may wait for a day at its service is not tried for a day")
  func longestDelivery() async throws {
    let service = ScriptedService(Array(repeating: Self.outage, count: 100_000))
    try await running([.apns: service]) { running in
      running.delivery.send(try .sample(lifetime: .seconds(86400), at: running.clock.now))
      await service.ask(2)
      running.clock.advance(by: .seconds(600))
      try await running.log.line(saying: "message expired")
    }
  }

  @Test("an address that the service does not know is given up, with the time that the service names")
  func unregistered() async throws {
    let then = Timestamp(seconds: 1_700_000_000)
    let service = ScriptedService([.unregistered(since: then), .unregistered(since: nil)])
    try await running([.apns: service], { $0.mostAtOnce = 1 }) { running in
      for _ in 0..<2 { running.delivery.send(try .sample(at: running.clock.now)) }
      try await running.log.lines(2, saying: "message unregistered")
      #expect(running.forgotten.withLock { $0.map(\.1) } == [then, running.clock.now])
      #expect(service.asked == 2)
    }
  }

  @Test("a service that refuses the credentials is not asked again before a reload, and says so")
  func stopped() async throws {
    let service = ScriptedService([.configuration])
    try await running([.apns: service]) { running in
      running.delivery.send(try .sample(at: running.clock.now))
      try await running.log.line(saying: "push service stopped")
      try await running.log.line(saying: "message failed")
      #expect(running.delivery.waiting.first { $0.service == .apns }?.fault == "scripted")
      for _ in 0..<5 { running.delivery.send(try .sample(at: running.clock.now)) }
      try await running.log.lines(5, saying: "message dropped")
      #expect(service.asked == 1)
      running.delivery.replaceProviders([.apns: service])
      #expect(running.delivery.waiting.allSatisfy { $0.fault == nil })
      running.delivery.send(try .sample(at: running.clock.now))
      await service.deliver(1)
    }
  }

  @Test("a stopped service is asked by one notification after a time, and serves again")
  func trial() async throws {
    let service = ScriptedService([.configuration])
    try await running([.apns: service], { $0.stop = .zero }) { running in
      running.delivery.send(try .sample(at: running.clock.now))
      try await running.log.line(saying: "message failed")
      running.delivery.send(try .sample(at: running.clock.now))
      await service.deliver(1)
      try await running.log.line(saying: "message sent")
      #expect(running.delivery.waiting.allSatisfy { $0.fault == nil })
    }
  }

  @Test("an address that is refused for a time is given up after three attempts, and a refused notification at once")
  func refused() async throws {
    let ofAddress = PushFailure.Kind.temporary(after: nil, isOfService: false)
    let service = ScriptedService([ofAddress, ofAddress, ofAddress, .refused])
    try await running([.apns: service]) { running in
      running.delivery.send(try .sample(at: running.clock.now))
      try await running.log.line(saying: "message failed")
      #expect(service.asked == 3)
      running.delivery.send(try .sample(at: running.clock.now))
      try await running.log.lines(2, saying: "message failed")
      #expect(service.asked == 4 && running.forgotten.withLock(\.count) == 0)
    }
  }

  @Test("an address that waits for ten minutes holds no place of another one", arguments: [true, false])
  func heldPlace(isThrottled: Bool) async throws {
    let long = Duration.seconds(600)
    let service = ScriptedService([
      isThrottled ? .throttled(after: long) : .temporary(after: long, isOfService: false)
    ])
    try await running([.apns: service], { $0.mostAtOnce = 1 }) { running in
      running.delivery.send(try .sample(at: running.clock.now))
      await service.ask(1)
      running.delivery.send(try .sample(device: 2, at: running.clock.now))
      await service.deliver(1)
      #expect(service.delivered.map(\.address.deviceID.text) == ["device-2"])
      #expect(running.delivery.waiting.first { $0.service == .apns }?.retrying == 1)
    }
  }

  @Test("a second address that is throttled shows that the service is, and the same one again does not")
  func throttledService() async throws {
    let service = ScriptedService(Array(repeating: .throttled(after: .milliseconds(1)), count: 2))
    try await running([.fcm: service]) { running in
      running.delivery.send(try .sample(.fcm, at: running.clock.now))
      await service.deliver(1)
      #expect(service.asked == 3)
    }
    let busy = ScriptedService(Array(repeating: .throttled(after: .seconds(600)), count: 2))
    try await running([.fcm: busy]) { running in
      for device in 1...2 {
        running.delivery.send(try .sample(.fcm, device: device, at: running.clock.now))
        await busy.ask(device)
      }
      try await running.log.lines(2, saying: "delivery attempt failed")
      running.delivery.send(try .sample(.fcm, device: 3, at: running.clock.now))
      while running.delivery.waiting.first(where: { $0.service == .fcm })?.retrying != 3, !Task.isCancelled {
        await Task.yield()
      }
      #expect(busy.asked == 2)
    }
  }

  @Test("a refusal of credentials that a reload has replaced stops nothing, and its notification is tried again")
  func earlierProvider() async throws {
    let (earlier, later) = (ScriptedService([.configuration], isHeld: true), ScriptedService())
    try await running([.apns: earlier]) { running in
      running.delivery.send(try .sample(at: running.clock.now))
      await earlier.ask(1)
      running.delivery.replaceProviders([.apns: later])
      earlier.release()
      await later.deliver(1)
      #expect(running.delivery.waiting.allSatisfy { $0.fault == nil })
      #expect(running.log.lines(saying: "push service stopped") == 0)
    }
  }

  @Test("after a stop one notification is a trial; its temporary failure ends the stop, and the others wait")
  func halfOpen() {
    let start = ContinuousClock.now
    var circuit = PushCircuit(pause: .seconds(1), longestPause: .seconds(30), stop: .seconds(600))
    circuit.refuse("why", at: start)
    // Of a request that was sent before the refusal.
    circuit.fail(at: start + .seconds(1), requested: nil, jitter: 1)
    #expect(circuit.admission(at: start + .seconds(2)) == .stopped)
    let then = start + .seconds(600)
    #expect(circuit.admission(at: then) == .open)
    #expect(circuit.admission(at: then) == .paused(until: then + .seconds(1)))
    #expect(circuit.fault == "why")
    circuit.fail(at: then, requested: .seconds(5), jitter: 1)
    #expect(circuit.fault == nil)
    #expect(circuit.admission(at: then) == .paused(until: then + .seconds(5)))
    #expect(circuit.admission(at: then + .seconds(5)) == .open)
    circuit.refuse("again", at: then)
    // A trial without a result is given up.
    let trial = then + .seconds(600)
    #expect(circuit.admission(at: trial) == .open)
    #expect(circuit.admission(at: trial + .seconds(29)) != .open)
    #expect(circuit.admission(at: trial + .seconds(30)) == .open)
    circuit.succeed()
    #expect(circuit.admission(at: trial) == .open && circuit.fault == nil)
  }

  @Test("a full queue and a service that is off drop notifications, and no log line has a token")
  func dropped() async throws {
    let service = ScriptedService(isHeld: true)
    try await running([.apns: service], { ($0.capacity, $0.mostAtOnce) = (2, 1) }) { running in
      running.delivery.send(try .sample(at: running.clock.now))
      await service.ask(1)
      running.delivery.send(try .sample(.fcm, at: running.clock.now))
      for _ in 0..<6 { running.delivery.send(try .sample(at: running.clock.now)) }
      // One is in delivery, two or three wait: the loop may hold one.
      let dropped = running.log.lines.filter { $0.message == "message dropped" }
      #expect(dropped.count { $0.metadata["kind"] == "fcm" } == 1)
      #expect((3...4).contains(dropped.count { $0.metadata["reason"] == "queue full" }))
      let text = running.log.lines.map { "\($0.message) \($0.metadata)" }.joined()
      #expect(!text.contains(PushNotification.deviceToken) && !text.contains(PushNotification.registrationToken))
      service.release()
    }
  }

  @Test("at a shutdown, waiting notifications are delivered, and those of a service that hangs are lost")
  func shutdown() async throws {
    let (apns, fcm) = (ScriptedService(), ScriptedService(isHeld: true))
    var schedule = PushDelivery.Schedule()
    schedule.patience = .milliseconds(50)
    let (log, clock) = (CapturedLog(), ManualClock())
    let delivery = PushDelivery(schedule: schedule, clock: clock.wall, logger: log.logger) { _, _ in }
    delivery.replaceProviders([.apns: apns, .fcm: fcm])
    for service in [PushAddress.Service.apns, .fcm] { delivery.send(try .sample(service, at: clock.now)) }
    let group = ServiceGroup(
      configuration: .init(services: [delivery], logger: Logger(label: "group") { _ in SwiftLogNoOpLogHandler() }))
    async let run: Void = group.run()
    await fcm.ask(1)
    await apns.deliver(1)
    await group.triggerGracefulShutdown()
    try await run
    #expect(log.lines(saying: "message sent") == 1 && log.lines(saying: "message lost") == 1)
  }

  @Test("the circuit of a service pauses longer with each failure, as long as the service asks, and opens by a success")
  func circuit() {
    let start = ContinuousClock.now
    var circuit = PushCircuit(pause: .seconds(1), longestPause: .seconds(30), stop: .seconds(600))
    #expect(circuit.admission(at: start) == .open)
    var ends: [Duration] = []
    for _ in 0..<7 {
      circuit.fail(at: start, requested: nil, jitter: 1)
      if case .paused(let end) = circuit.admission(at: start) { ends.append(end - start) }
    }
    #expect(ends == [1, 2, 4, 8, 16, 30, 30].map { .seconds($0) })
    #expect(circuit.admission(at: start + .seconds(30)) == .open)
    circuit.fail(at: start, requested: .seconds(90), jitter: 1)
    #expect(circuit.admission(at: start) == .paused(until: start + .seconds(90)))
    // A shorter pause of a request that was sent before does not open it earlier.
    circuit.fail(at: start, requested: nil, jitter: 0.75)
    #expect(circuit.admission(at: start) == .paused(until: start + .seconds(90)))
    circuit.succeed()
    #expect(circuit.admission(at: start) == .open)
    circuit.refuse("why", at: start)
    #expect(circuit.admission(at: start + .seconds(599)) == .stopped && circuit.fault == "why")
    #expect(circuit.admission(at: start + .seconds(600)) == .open)
  }
}
