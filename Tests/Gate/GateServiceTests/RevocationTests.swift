import AppAttest
import AttestGate
import ByteCoding
import GateFixtures
import Locking
import SQLiteStore
import SimulatedDevice
import Testing
import Transport

@testable import GateService

@Suite("Sessions end when their key does")
struct RevocationTests {
  private let bench: GateBench
  private let service: ServiceBench
  private let response: ChangeResponse

  init() throws {
    bench = try GateBench()
    service = try ServiceBench(bench)
    response = ChangeResponse(
      registry: bench.store, challenges: bench.challenges, identityKeys: bench.identityKeys,
      sessions: service.sessions, logger: service.log.logger)
  }

  /// What a session was told.
  private final class Ear: Sendable {
    let closes = LockedValue<[CloseCode]>([])
    var control: SessionControl { SessionControl { [self] code, _ in closes.withLock { $0.append(code) } } }
    var heard: [CloseCode] { closes.withLock { $0 } }

    /// Returns once it was told `code`, perhaps several times.
    func wait(for code: CloseCode) async throws {
      while !heard.contains(code) { try await Task.sleep(for: .milliseconds(5)) }
    }
  }

  private func order(of device: MintedDevice, _ count: UInt32) async throws -> any RelayPlan {
    try await service.order(for: .upgrade(device.fields(over: bench.nonce(), count: count)))
  }

  @Test("Of several sessions those of the key are closed with 3003, once, and others are left alone")
  func closes() async throws {
    let (revoked, other) = (try await bench.registeredDevice(), try await bench.registeredDevice())
    let orders = [try await order(of: revoked, 1), try await order(of: revoked, 2), try await order(of: other, 1)]
    // Releasing an order ends its session. The engine keeps it while the session lives; here the test does.
    defer { withExtendedLifetime(orders) {} }
    let ears = orders.map { _ in Ear() }
    for (order, ear) in zip(orders, ears) { order.opened(ear.control) }
    #expect(try await bench.store.revoke(revoked.keyID, at: bench.clock.now))
    try await response.respond(to: .key(revoked.keyID))
    #expect(ears.map(\.heard) == [[.revoked], [.revoked], []])
  }

  @Test("A session whose key was revoked while its upstream was asked is refused, and closed should it open")
  func closesOnOpening() async throws {
    let device = try await bench.registeredDevice()
    let order = try await order(of: device, 1)
    #expect(order.refusal() == nil)
    #expect(try await bench.store.revoke(device.keyID, at: bench.clock.now))
    try await response.respond(to: .key(device.keyID))
    let refusal = try #require(order.refusal())
    #expect(refusal.status == 403 && refusal.headers.first("X-Attest-Error") == "key_revoked")
    let ear = Ear()
    order.opened(ear.control)
    #expect(ear.heard == [.revoked])
  }

  @Test("A session that an operator closes before it opens is not refused: its key is good")
  func closedByOperator() async throws {
    let order = try await order(of: try await bench.registeredDevice(), 1)
    #expect(service.sessions.close(id: Request.id, .goingAway, reason: "closed by an operator"))
    #expect(order.refusal() == nil)
    let ear = Ear()
    order.opened(ear.control)
    #expect(ear.heard == [.goingAway])
  }

  @Test("A change that is noted between an admission and its entry has the key looked up again")
  func suspects() async throws {
    let device = try await bench.registeredDevice()
    let revocationEpoch = service.sessions.revocationEpoch()
    let admission = try await bench.gate.admit(
      device.claim(over: bench.nonce(), count: 1))
    #expect(try await bench.store.revoke(device.keyID, at: bench.clock.now))
    try await response.respond(to: .key(device.keyID))
    let record = SessionRecord(id: "x", admission: admission, address: ServiceBench.peer.address, route: "/")
    let session = try #require(service.sessions.add(record, since: revocationEpoch, atMost: 2))
    let ear = Ear()
    session.opened(ear.control)
    var suspects = service.sessions.recheck.makeAsyncIterator()
    #expect(await suspects.next() == device.keyID)
    // One that asks later is none.
    let later = try #require(service.sessions.add(record, since: service.sessions.revocationEpoch(), atMost: 2))
    #expect(service.sessions.records.count == 2)
    later.end()
    session.end()
    #expect(service.sessions.records == [])
  }

  @Test("A key that was restored before the change was read keeps its sessions")
  func restored() async throws {
    let device = try await bench.registeredDevice()
    let (order, ear) = (try await order(of: device, 1), Ear())
    defer { withExtendedLifetime(order) {} }
    order.opened(ear.control)
    let keyID = device.keyID
    #expect(try await bench.store.revoke(keyID, at: bench.clock.now))
    #expect(try await bench.store.restore(keyID))
    try await response.respond(to: .key(keyID))
    #expect(ear.heard == [])
  }

  @Test("If nobody knows what was changed, every session's key is looked up")
  func everything() async throws {
    let (revoked, other) = (try await bench.registeredDevice(), try await bench.registeredDevice())
    let orders = [try await order(of: revoked, 1), try await order(of: other, 1)]
    defer { withExtendedLifetime(orders) {} }
    let ears = orders.map { _ in Ear() }
    for (order, ear) in zip(orders, ears) { order.opened(ear.control) }
    #expect(try await bench.store.revoke(revoked.keyID, at: bench.clock.now))
    try await response.respond(to: .everything)
    #expect(ears.map(\.heard) == [[.revoked], []])
  }

  @Test("Changes are followed, and suspects looked up, whatever settings took over meanwhile", .timeLimit(.minutes(1)))
  func follows() async throws {
    let device = try await bench.registeredDevice()
    let follower = ChangeFollower(
      bench.store, sessions: service.sessions, response: response, every: .milliseconds(20))
    let following = Task { await follower.run() }
    for count: UInt32 in [1, 3] {
      // One session that is open when the key is revoked, and one that is let in at that moment.
      let (open, ear) = (try await order(of: device, count), Ear())
      open.opened(ear.control)
      let (revocationEpoch, late) = (service.sessions.revocationEpoch(), Ear())
      let admission = try await bench.gate.admit(device.claim(over: bench.nonce(), count: count + 1))
      #expect(try await bench.store.revoke(device.keyID, at: bench.clock.now))
      try await ear.wait(for: .revoked)
      let record = SessionRecord(id: "x", admission: admission, address: ServiceBench.peer.address, route: "/")
      let session = try #require(service.sessions.add(record, since: revocationEpoch, atMost: 5))
      session.opened(late.control)
      try await late.wait(for: .revoked)
      open.closed(
        SessionSummary(
          end: .closedByGate(3003, reason: "x"), bytesFromClient: 0, bytesFromUpstream: 0, duration: .zero))
      session.end()
      #expect(try await bench.store.restore(device.keyID))
      follower.begin(response)
      follower.settle(on: response, every: .milliseconds(20))
    }
    following.cancel()
    await following.value
  }

  @Test("Settings that begin to close sessions close those of keys that were revoked before", .timeLimit(.minutes(1)))
  func beginsToClose() async throws {
    let device = try await bench.registeredDevice()
    let (order, ear) = (try await order(of: device, 1), Ear())
    defer { withExtendedLifetime(order) {} }
    order.opened(ear.control)
    let lenient = ChangeResponse(
      registry: bench.store, challenges: bench.challenges, identityKeys: bench.identityKeys,
      sessions: service.sessions, closesSessions: false, logger: service.log.logger)
    let follower = ChangeFollower(bench.store, sessions: service.sessions, response: lenient, every: .milliseconds(20))
    let following = Task { await follower.run() }
    #expect(try await bench.store.revoke(device.keyID, at: bench.clock.now))
    try await lenient.respond(to: .key(device.keyID))
    #expect(ear.heard == [])
    follower.settle(on: response, every: .milliseconds(20))
    try await ear.wait(for: .revoked)
    following.cancel()
    await following.value
  }

  @Test("A key that cannot be read loses its sessions, and those behind it do not wait", .timeLimit(.minutes(1)))
  func damaged() async throws {
    let (device, other) = (try await bench.registeredDevice(), try await bench.registeredDevice())
    let keys = UnreadableKeys(bench.store)
    let response = ChangeResponse(
      registry: keys, challenges: bench.challenges, identityKeys: bench.identityKeys, sessions: service.sessions,
      logger: service.log.logger)
    let orders = [try await order(of: device, 1), try await order(of: other, 1)]
    defer { withExtendedLifetime(orders) {} }
    let ears = orders.map { _ in Ear() }
    for (order, ear) in zip(orders, ears) { order.opened(ear.control) }
    keys.recordFault.withLock { $0 = .corrupt(reason: "attested_keys.counter is malformed") }
    try await response.respond(to: .key(device.keyID))
    #expect(ears.map(\.heard) == [[.internalError], []])
    let line = try #require(try service.log.lines.last)
    #expect(line["message"] == "key record damaged")
    #expect(line["key"] == KeyHash(of: device.keyID).short && line["detail"] == "attested_keys.counter is malformed")
    // What may be better when it is asked again is asked again.
    keys.recordFault.withLock { $0 = .locked }
    await #expect(throws: StoreError.locked) { try await response.respond(to: .key(other.keyID)) }
    #expect(ears.map(\.heard) == [[.internalError], []])
  }

  @Test("A revocation leaves its line in the log, whatever becomes of the answer", arguments: [true, false])
  func revocationLine(_ isCommitted: Bool) async throws {
    let device = try await bench.registeredDevice()
    let keys = UnreadableKeys(bench.store)
    let router = AdminRouter(
      [KeyResource(store: keys, sessions: nil, logger: service.log.logger)], access: .anyone)
    let fault = isCommitted ? keys.recordFault : keys.changeFault
    fault.withLock { $0 = .inDoubt(reason: "gone") }
    let path = "/v1/keys/\(KeyHash(of: device.keyID).text)/revoke"
    let answer = await router.response(
      to: Request(id: "id", method: "POST", target: path, path: path, headers: HeaderFields(), body: []))
    #expect(answer.status == 503)
    #expect(try await bench.store.record(of: device.keyID)?.revokedAt != nil)
    let line = try #require(try service.log.lines.first)
    #expect(
      line["message"]
        == (isCommitted ? "key revoked by operator" : "key change by operator not confirmed by store"))
    #expect(line["key"] == KeyHash(of: device.keyID).short && line["request_id"] == "id")
    #expect(try service.log.lines.count == 1)
  }

  @Test("A session that never opens, and one that is over, is listed no more")
  func leaves() async throws {
    let device = try await bench.registeredDevice()
    do {
      let order = try await order(of: device, 1)
      withExtendedLifetime(order) { #expect(service.sessions.records.map(\.keyID) == [device.keyID]) }
    }
    #expect(service.sessions.records == [])
    let order = try await order(of: device, 2)
    order.opened(Ear().control)
    order.closed(
      SessionSummary(
        end: .closed(by: .client, code: 1000), bytesFromClient: 0, bytesFromUpstream: 0, duration: .zero))
    #expect(service.sessions.records == [])
  }
}
