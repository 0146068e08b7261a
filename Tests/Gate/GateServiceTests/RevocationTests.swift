import AppAttest
import AttestGate
import ByteCoding
import Foundation
import GateFixtures
import Locking
import SQLiteStore
import SimulatedDevice
import Testing
import Transport

@testable import GateService

/// The close codes that a session has received.
final class CloseRecorder: Sendable {
  let closes = LockedValue<[CloseCode]>([])
  var control: SessionControl { SessionControl { [self] code, _ in closes.withLock { $0.append(code) } } }
  var codes: [CloseCode] { closes.withLock { $0 } }

  /// Returns when the session has received `code`, once or several times.
  func wait(for code: CloseCode) async throws {
    while !codes.contains(code) { try await Task.sleep(for: .milliseconds(5)) }
  }
}

@Suite("A revocation closes the sessions of its key")
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

  private func order(of device: MintedDevice, _ count: UInt32) async throws -> any RelayPlan {
    try await service.order(for: .upgrade(device.fields(over: bench.nonce(), count: count)))
  }

  @Test("Only sessions of the revoked key are closed, once, with 3003")
  func closes() async throws {
    let (revoked, other) = (try await bench.registeredDevice(), try await bench.registeredDevice())
    let orders = [try await order(of: revoked, 1), try await order(of: revoked, 2), try await order(of: other, 1)]
    // Releasing an order closes its session. The engine keeps the order while the session is open; here the test
    // does.
    defer { withExtendedLifetime(orders) {} }
    let recorders = orders.map { _ in CloseRecorder() }
    for (order, recorder) in zip(orders, recorders) { order.opened(recorder.control) }
    #expect(try await bench.store.revoke(revoked.keyID, at: bench.clock.now))
    try await response.respond(to: .key(revoked.keyID))
    #expect(recorders.map(\.codes) == [[.revoked], [.revoked], []])
  }

  @Test("A session whose key is revoked during its upgrade is refused, and closed if it opens")
  func closesOnOpening() async throws {
    let device = try await bench.registeredDevice()
    let order = try await order(of: device, 1)
    #expect(order.refusal() == nil)
    #expect(try await bench.store.revoke(device.keyID, at: bench.clock.now))
    try await response.respond(to: .key(device.keyID))
    let refusal = try #require(order.refusal())
    #expect(refusal.status == 403 && refusal.headers.first("X-Attest-Error") == "key_revoked")
    let recorder = CloseRecorder()
    order.opened(recorder.control)
    #expect(recorder.codes == [.revoked])
  }

  @Test("A session that an operator closes before it opens is not refused: its key is valid")
  func closedByOperator() async throws {
    let order = try await order(of: try await bench.registeredDevice(), 1)
    #expect(service.sessions.close(id: Request.id, .goingAway, reason: "closed by an operator"))
    #expect(order.refusal() == nil)
    let recorder = CloseRecorder()
    order.opened(recorder.control)
    #expect(recorder.codes == [.goingAway])
  }

  @Test(
    "A later close does not replace the revocation of a session that is not open yet, and a revocation replaces any")
  func keepsRevocation() async throws {
    let device = try await bench.registeredDevice()
    let order = try await order(of: device, 1)
    #expect(service.sessions.close(id: Request.id, .goingAway, reason: "closed by an operator"))
    #expect(try await bench.store.revoke(device.keyID, at: bench.clock.now))
    try await response.respond(to: .key(device.keyID))
    #expect(service.sessions.close(id: Request.id, .goingAway, reason: "closed by an operator"))
    #expect(service.sessions.close(key: device.keyID, .internalError, reason: "the key cannot be looked up") == 1)
    let refusal = try #require(order.refusal())
    #expect(refusal.status == 403 && refusal.headers.first("X-Attest-Error") == "key_revoked")
    let recorder = CloseRecorder()
    order.opened(recorder.control)
    #expect(recorder.codes == [.revoked])
  }

  @Test("A session whose key record is found damaged during its upgrade is refused, even if an operator closes it")
  func damagedOnOpening() async throws {
    let device = try await bench.registeredDevice()
    let keys = UnreadableKeys(bench.store)
    let response = ChangeResponse(
      registry: keys, challenges: bench.challenges, identityKeys: bench.identityKeys, sessions: service.sessions,
      logger: service.log.logger)
    let order = try await order(of: device, 1)
    keys.recordFault.withLock { $0 = .corrupt(reason: "attested_keys.counter is malformed") }
    try await response.respond(to: .key(device.keyID))
    #expect(service.sessions.close(id: Request.id, .goingAway, reason: "closed by an operator"))
    let damaged = try #require(order.refusal())
    #expect(damaged.status == 503 && damaged.headers.first("X-Attest-Error") == "store_unavailable")
    keys.recordFault.withLock { $0 = nil }
    #expect(try await bench.store.revoke(device.keyID, at: bench.clock.now))
    try await response.respond(to: .key(device.keyID))
    let revoked = try #require(order.refusal())
    #expect(revoked.status == 403 && revoked.headers.first("X-Attest-Error") == "key_revoked")
  }

  @Test("If the store reports a change during an admission, the key is checked again")
  func keysToRecheck() async throws {
    let device = try await bench.registeredDevice()
    let revocationEpoch = service.sessions.revocationEpoch()
    let admission = try await bench.gate.admit(
      device.claim(over: bench.nonce(), count: 1))
    #expect(try await bench.store.revoke(device.keyID, at: bench.clock.now))
    try await response.respond(to: .key(device.keyID))
    let record = SessionRecord(id: "x", admission: admission, address: ServiceBench.peer.address, route: "/")
    let session = try service.sessions.add(record, since: revocationEpoch, atMost: 2)
    let recorder = CloseRecorder()
    session.opened(recorder.control)
    var keysToRecheck = service.sessions.recheck.makeAsyncIterator()
    #expect(await keysToRecheck.next() == device.keyID)
    // A session that is added later has no key to recheck.
    let later = try service.sessions.add(record, since: service.sessions.revocationEpoch(), atMost: 2)
    #expect(service.sessions.records.count == 2)
    later.end()
    session.end()
    #expect(service.sessions.records == [])
  }

  @Test("A key that is restored before the change is read keeps its sessions")
  func restored() async throws {
    let device = try await bench.registeredDevice()
    let (order, recorder) = (try await order(of: device, 1), CloseRecorder())
    defer { withExtendedLifetime(order) {} }
    order.opened(recorder.control)
    let keyID = device.keyID
    #expect(try await bench.store.revoke(keyID, at: bench.clock.now))
    #expect(try await bench.store.restore(keyID))
    try await response.respond(to: .key(keyID))
    #expect(recorder.codes == [])
  }

  @Test("After an unspecified change, the key of every session is checked")
  func everything() async throws {
    let (revoked, other) = (try await bench.registeredDevice(), try await bench.registeredDevice())
    let orders = [try await order(of: revoked, 1), try await order(of: other, 1)]
    defer { withExtendedLifetime(orders) {} }
    let recorders = orders.map { _ in CloseRecorder() }
    for (order, recorder) in zip(orders, recorders) { order.opened(recorder.control) }
    #expect(try await bench.store.revoke(revoked.keyID, at: bench.clock.now))
    try await response.respond(to: .everything)
    #expect(recorders.map(\.codes) == [[.revoked], []])
  }

  @Test("Changes are followed and keys rechecked after every change of settings", .timeLimit(.minutes(1)))
  func follows() async throws {
    let device = try await bench.registeredDevice()
    let follower = ChangeFollower(
      bench.store, sessions: service.sessions, response: response, every: .milliseconds(20))
    let following = Task { await follower.run() }
    for count: UInt32 in [1, 3] {
      // One session is open during the revocation, and one is admitted at the same time.
      let (open, recorder) = (try await order(of: device, count), CloseRecorder())
      open.opened(recorder.control)
      let (revocationEpoch, late) = (service.sessions.revocationEpoch(), CloseRecorder())
      let admission = try await bench.gate.admit(device.claim(over: bench.nonce(), count: count + 1))
      #expect(try await bench.store.revoke(device.keyID, at: bench.clock.now))
      try await recorder.wait(for: .revoked)
      let record = SessionRecord(id: "x", admission: admission, address: ServiceBench.peer.address, route: "/")
      let session = try service.sessions.add(record, since: revocationEpoch, atMost: 5)
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

  @Test("New settings that close sessions close those of keys revoked earlier", .timeLimit(.minutes(1)))
  func beginsToClose() async throws {
    let device = try await bench.registeredDevice()
    let (order, recorder) = (try await order(of: device, 1), CloseRecorder())
    defer { withExtendedLifetime(order) {} }
    order.opened(recorder.control)
    let lenient = ChangeResponse(
      registry: bench.store, challenges: bench.challenges, identityKeys: bench.identityKeys,
      sessions: service.sessions, closesSessions: false, logger: service.log.logger)
    let follower = ChangeFollower(bench.store, sessions: service.sessions, response: lenient, every: .milliseconds(20))
    let following = Task { await follower.run() }
    #expect(try await bench.store.revoke(device.keyID, at: bench.clock.now))
    try await lenient.respond(to: .key(device.keyID))
    #expect(recorder.codes == [])
    follower.settle(on: response, every: .milliseconds(20))
    try await recorder.wait(for: .revoked)
    following.cancel()
    await following.value
  }

  @Test("A damaged key record closes the key's sessions, and later keys are not delayed", .timeLimit(.minutes(1)))
  func damaged() async throws {
    let (device, other) = (try await bench.registeredDevice(), try await bench.registeredDevice())
    let keys = UnreadableKeys(bench.store)
    let response = ChangeResponse(
      registry: keys, challenges: bench.challenges, identityKeys: bench.identityKeys, sessions: service.sessions,
      logger: service.log.logger)
    let orders = [try await order(of: device, 1), try await order(of: other, 1)]
    defer { withExtendedLifetime(orders) {} }
    let recorders = orders.map { _ in CloseRecorder() }
    for (order, recorder) in zip(orders, recorders) { order.opened(recorder.control) }
    keys.recordFault.withLock { $0 = .corrupt(reason: "attested_keys.counter is malformed") }
    try await response.respond(to: .key(device.keyID))
    #expect(recorders.map(\.codes) == [[.internalError], []])
    let line = try #require(try service.log.lines.last)
    #expect(line["message"] == "key record damaged")
    #expect(line["key"] == KeyHash(of: device.keyID).short && line["detail"] == "attested_keys.counter is malformed")
    // A temporary error is thrown, so that the change is read again.
    keys.recordFault.withLock { $0 = .locked }
    await #expect(throws: StoreError.locked) { try await response.respond(to: .key(other.keyID)) }
    #expect(recorders.map(\.codes) == [[.internalError], []])
  }

  /// Identity signing keys whose stored form is damaged when a test says so.
  private struct FaultyKeys: IdentityKeyStorage {
    let storage: any IdentityKeyStorage
    let fault = LockedValue<StoreError?>(nil)

    func identityKeys(orStoring candidate: IdentityKeyRing) async throws(StoreError) -> IdentityKeyRing {
      if let error = fault.withLock(\.self) { throw error }
      return try await storage.identityKeys(orStoring: candidate)
    }

    func replaceIdentityKeys(
      _ expected: IdentityKeyRing, with ring: IdentityKeyRing
    ) async throws(StoreError) -> Bool {
      try await storage.replaceIdentityKeys(expected, with: ring)
    }
  }

  @Test("Damaged shared keys stay in use as they are loaded, and delay no revocation")
  func damagedSharedKeys() async throws {
    let device = try await bench.registeredDevice()
    let storage = FaultyKeys(storage: bench.store)
    let keys = IdentityKeys(storage: storage, clock: bench.clock.wallClock)
    try await keys.prepare()
    let response = ChangeResponse(
      registry: bench.store, challenges: bench.challenges, identityKeys: keys, sessions: service.sessions,
      logger: service.log.logger)
    let (order, recorder) = (try await order(of: device, 1), CloseRecorder())
    defer { withExtendedLifetime(order) {} }
    order.opened(recorder.control)
    storage.fault.withLock { $0 = .corrupt(reason: "identity_keys.ring is malformed") }
    try await response.respond(to: .sharedKeys)
    #expect(keys.signing(at: bench.clock.now) != nil)
    let line = try #require(try service.log.lines.last)
    #expect(line["message"] == "shared keys damaged: the loaded ones stay until a restart")
    #expect(try await bench.store.revoke(device.keyID, at: bench.clock.now))
    try await response.respond(to: .everything)
    #expect(recorder.codes == [.revoked])
    // A temporary error is thrown, so that the change is read again.
    storage.fault.withLock { $0 = .locked }
    await #expect(throws: StoreError.locked) { try await response.respond(to: .sharedKeys) }
  }

  @Test("A revocation is logged even if its answer fails", arguments: [true, false])
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
    #expect(try service.log.lines.dropFirst().map { $0["message"] } == ["request of operator failed"])
  }

  @Test("A key whose row cannot be read is named by lists, keeps no other from them, and an operator can remove it")
  func unreadableKey() async throws {
    let (device, other) = (try await bench.registeredDevice(), try await bench.registeredDevice())
    let keys = UnreadableKeys(bench.store)
    let hash = KeyHash(of: device.keyID)
    keys.damaged.withLock { $0 = [device.keyID] }
    let router = AdminRouter(
      [KeyResource(store: keys, sessions: nil, logger: service.log.logger)], access: .anyone)
    func answer(_ method: String, _ target: String) async -> (status: Int, body: [String: Any]?) {
      let path = String(target.prefix { $0 != "?" })
      let answer = await router.response(
        to: Request(id: "id", method: method, target: target, path: path, headers: HeaderFields(), body: []))
      return (answer.status, (try? JSONSerialization.jsonObject(with: Data(answer.body))) as? [String: Any])
    }
    for target in ["/v1/keys", "/v1/keys?sort=key", "/v1/keys?limit=1"] {
      let list = await answer("GET", target)
      #expect(list.status == 200, "\(target)")
      #expect((list.body?["keys"] as? [[String: Any]] ?? []).allSatisfy { $0["key"] as? String != hash.text })
    }
    let list = await answer("GET", "/v1/keys").body
    #expect((list?["keys"] as? [[String: Any]])?.map { $0["key"] as? String } == [KeyHash(of: other.keyID).text])
    #expect(list?["unreadable"] as? [String] == [hash.text])
    for (method, path) in [("GET", ""), ("POST", "/revoke"), ("POST", "/restore")] {
      let refusal = await answer(method, "/v1/keys/\(hash.short)\(path)")
      #expect(refusal.status == 503 && refusal.body?["code"] as? String == "key_unreadable", "\(path)")
    }
    #expect(await answer("DELETE", "/v1/keys/\(hash.short)").status == 200)
    #expect(try await bench.store.record(of: device.keyID) == nil)
    #expect(await answer("GET", "/v1/keys/\(hash.short)").status == 404)
  }

  @Test("A session that never opens and a closed session are not listed")
  func unlisted() async throws {
    let device = try await bench.registeredDevice()
    do {
      let order = try await order(of: device, 1)
      withExtendedLifetime(order) { #expect(service.sessions.records.map(\.keyID) == [device.keyID]) }
    }
    #expect(service.sessions.records == [])
    let order = try await order(of: device, 2)
    order.opened(CloseRecorder().control)
    order.closed(
      SessionSummary(
        end: .closed(by: .client, code: 1000), bytesFromClient: 0, bytesFromUpstream: 0, duration: .zero))
    #expect(service.sessions.records == [])
  }
}
