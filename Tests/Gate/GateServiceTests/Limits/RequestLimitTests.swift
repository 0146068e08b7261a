import AppAttest
import AttestGate
import ByteCoding
import GateFixtures
import Locking
import SimulatedDevice
import Testing
import Transport

@testable import GateService

@Suite("Request limits")
struct RequestLimitTests {
  private let clock = LockedValue(ContinuousClock.now)
  private let gates = NodeCount()

  private func service(
    trustedProxies: [AddressRange] = [], forwardedClients: ForwardedClients? = nil,
    _ set: (inout RequestLimits) -> Void
  ) throws -> ServiceBench {
    var limits = RequestLimits()
    set(&limits)
    let ledger = RateLedger { [clock] in clock.withLock(\.self) }
    return try ServiceBench(
      GateBench(), limiter: RequestLimiter(limits, ledger: ledger, gates: gates), trustedProxies: trustedProxies,
      forwardedClients: forwardedClients)
  }

  private static let twice = Rate(2, every: .seconds(60))

  private static func peer(_ text: [UInt8], port: UInt16 = 40000) -> Peer {
    Peer(address: text.count == 4 ? .ipv4(text, port: port) : .ipv6(text, port: port))
  }

  private static func ipv6(_ network: UInt8, _ host: UInt8) -> [UInt8] {
    [0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, network, 0, 0, 0, 0, 0, 0, 0, host]
  }

  enum Kind: CaseIterable {
    case challenge, registration, upgrade

    var request: Request {
      switch self {
      case .challenge: .plain("GET", "/attest/challenge")
      case .registration: .plain("POST", "/attest/register", body: "{}")
      case .upgrade: .upgrade()
      }
    }

    func limit(_ limits: inout RequestLimits) {
      switch self {
      case .challenge: limits.challengesPerAddress = twice
      case .registration: limits.registrationsPerAddress = twice
      case .upgrade: limits.upgradesPerAddress = twice
      }
    }
  }

  @Test(
    "An address over its limit gets 429 with whole seconds in Retry-After; other addresses are not affected",
    arguments: Kind.allCases)
  func perAddress(_ kind: Kind) async throws {
    let service = try service(kind.limit)
    for _ in 0..<2 { #expect(try await service.answer(to: kind.request).status != 429) }
    let refused = try await service.answer(to: kind.request)
    #expect(refused.status == 429)
    #expect(refused.headers.only("X-Attest-Error") == .once("rate_limited"))
    #expect(refused.headers.only("Retry-After") == .once("30"))
    #expect(try await service.answer(to: kind.request, from: Self.peer([192, 0, 2, 8])).status != 429)
    for other in Kind.allCases where other != kind {
      #expect(try await service.answer(to: other.request).status != 429)
    }
    clock.withLock { $0 += .milliseconds(29_001) }
    #expect(try await service.answer(to: kind.request).headers.only("Retry-After") == .once("1"))
    clock.withLock { $0 += .milliseconds(999) }
    #expect(try await service.answer(to: kind.request).status != 429)
  }

  @Test("An IPv6 /64 network counts as one address")
  func networks() async throws {
    let service = try service(Kind.challenge.limit)
    let request = Kind.challenge.request
    for host in 1...2 as ClosedRange<UInt8> {
      #expect(try await service.answer(to: request, from: Self.peer(Self.ipv6(1, host))).status == 200)
    }
    #expect(try await service.answer(to: request, from: Self.peer(Self.ipv6(1, 3))).status == 429)
    #expect(try await service.answer(to: request, from: Self.peer(Self.ipv6(2, 3))).status == 200)
  }

  @Test("A key over its limit gets 429 from any address; a forged key id does not count")
  func perKey() async throws {
    let service = try service { $0.upgradesPerKey = Self.twice }
    let device = try await service.bench.registeredDevice()
    let other = try await service.bench.registeredDevice()
    func upgrade(_ device: MintedDevice, _ count: UInt32, from host: UInt8) async throws -> Disposition {
      let proof = try device.fields(over: try service.bench.nonce(), count: count)
      return await service.disposition(of: .upgrade(proof), from: Self.peer([192, 0, 2, host]))
    }
    for _ in 0..<5 {
      var headers = try other.headers(over: try service.bench.nonce(), count: 1)
      headers[.keyID] = device.keyID.base64
      let forged = headers.map { ($0.key.rawValue, $0.value) }
      #expect(try await service.answer(to: .upgrade(forged)).status == 401)
    }
    for count in 1...2 as ClosedRange<UInt32> {
      guard case .relay = try await upgrade(device, count, from: UInt8(count)) else {
        Issue.record("refused")
        return
      }
    }
    guard case .respond(let refused) = try await upgrade(device, 3, from: 3) else {
      Issue.record("admitted")
      return
    }
    #expect(refused.status == 429 && refused.headers.only("Retry-After") == .once("30"))
    guard case .relay = try await upgrade(other, 1, from: 3) else {
      Issue.record("refused")
      return
    }
  }

  @Test("Sessions over the limit get 503, open sessions stay, and a free place is used again")
  func sessions() async throws {
    let service = try service { $0.sessions = 2 }
    let device = try await service.bench.registeredDevice()
    func proof(_ count: UInt32) throws -> Request {
      .upgrade(try device.fields(over: try service.bench.nonce(), count: count))
    }
    let first = try await service.order(for: proof(1))
    let second = try await service.order(for: proof(2))
    // Releasing an order closes its session.
    defer { withExtendedLifetime((first, second)) {} }
    let request = try proof(3)
    let refused = try await service.answer(to: request)
    #expect(refused.status == 503)
    #expect(refused.headers.only("X-Attest-Error") == .once("overloaded"))
    #expect(refused.headers.only("Retry-After") == .once("10"))
    #expect(service.sessions.count == 2)
    first.closed(
      .init(end: .closed(by: .client, code: 1000), bytesFromClient: 0, bytesFromUpstream: 0, duration: .zero))
    // The refusal did not spend the nonce.
    _ = try await service.order(for: request)
  }

  private static let summary = SessionSummary(
    end: .closed(by: .client, code: 1000), bytesFromClient: 0, bytesFromUpstream: 0, duration: .zero)

  @Test("Sessions over the limit of a key get 429 and stay; other keys have their own, and a free place is used again")
  func sessionsPerKey() async throws {
    let service = try service { $0.sessionsPerKey = 2 }
    let (device, other) = (try await service.bench.registeredDevice(), try await service.bench.registeredDevice())
    func proof(_ device: MintedDevice, _ count: UInt32) throws -> Request {
      .upgrade(try device.fields(over: try service.bench.nonce(), count: count))
    }
    let orders = [
      try await service.order(for: proof(device, 1)), try await service.order(for: proof(device, 2)),
      try await service.order(for: proof(other, 1)),
    ]
    defer { withExtendedLifetime(orders) {} }
    let recorders = orders.map { _ in CloseRecorder() }
    for (order, recorder) in zip(orders, recorders) { order.opened(recorder.control) }
    let refused = try await service.answer(to: proof(device, 3))
    #expect(refused.status == 429)
    #expect(refused.headers.only("X-Attest-Error") == .once("rate_limited"))
    #expect(refused.headers.only("Retry-After") == .once("10"))
    #expect(service.sessions.count(of: device.keyID) == 2 && recorders.allSatisfy { $0.codes.isEmpty })
    orders[0].closed(Self.summary)
    let last = try await service.order(for: proof(device, 4))
    withExtendedLifetime(last) { #expect(service.sessions.count(of: device.keyID) == 2) }
  }

  @Test("If the oldest is to be closed, it gets 1008, once; clients that do not close cannot exceed twice the limit")
  func oldestOfKey() async throws {
    let service = try service { ($0.sessionsPerKey, $0.closesOldestSessionOfKey) = (2, true) }
    let device = try await service.bench.registeredDevice()
    func proof(_ count: UInt32) throws -> Request {
      .upgrade(try device.fields(over: try service.bench.nonce(), count: count))
    }
    var orders: [any RelayPlan] = []
    let recorders = (0..<5).map { _ in CloseRecorder() }
    for number in 0..<4 {
      orders.append(try await service.order(for: proof(UInt32(number) + 1)))
      // The second one has no answer of its upstream yet.
      if number != 1 { orders[number].opened(recorders[number].control) }
    }
    #expect(recorders.map(\.codes) == [[.policyViolation], [], [], [], []])
    orders[1].opened(recorders[1].control)
    #expect(recorders[1].codes == [.policyViolation])
    #expect(try await service.answer(to: proof(5)).status == 429)
    #expect(recorders[2].codes == [])
    orders[0].closed(Self.summary)
    orders.append(try await service.order(for: proof(6)))
    orders[4].opened(recorders[4].control)
    #expect(recorders.map(\.codes) == [[.policyViolation], [.policyViolation], [.policyViolation], [], []])
    withExtendedLifetime(orders) {}
  }

  @Test("Of many sessions of one key at the same time no more are admitted than the limit allows")
  func raceOfKey() async throws {
    let service = try service { $0.sessionsPerKey = 4 }
    let device = try await service.bench.registeredDevice()
    let epoch = service.sessions.revocationEpoch()
    let admission = try await service.bench.gate.admit(device.claim(over: service.bench.nonce(), count: 1))
    let (sessions, limit) = (service.sessions, LiveSessions.KeyLimit(sessions: 4, closesOldest: false))
    let added = await withTaskGroup(of: LiveSession?.self) { group in
      for number in 0..<64 {
        group.addTask {
          let record = SessionRecord(
            id: "\(number)", admission: admission, address: ServiceBench.peer.address, route: "/")
          return try? sessions.add(record, since: epoch, atMost: 100, ofKey: limit)
        }
      }
      return await group.reduce(into: []) { if let session = $1 { $0.append(session) } }
    }
    #expect(added.count == 4 && sessions.count(of: device.keyID) == 4)
  }

  @Test("Gates that share a store divide the limits")
  func divided() async throws {
    let service = try service {
      $0.challengesPerAddress = Rate(6, every: .seconds(60))
      $0.sessions = 2
    }
    gates.set(3)
    for _ in 0..<2 { #expect(try await service.answer(to: Kind.challenge.request).status == 200) }
    #expect(try await service.answer(to: Kind.challenge.request).status == 429)
    // The bucket now gains one of six per minute instead of one of two.
    gates.set(1)
    clock.withLock { $0 += .seconds(10) }
    #expect(try await service.answer(to: Kind.challenge.request).status == 200)
    #expect(try await service.answer(to: Kind.challenge.request).status == 429)
  }

  @Test("Requests for /attest/verify count with upgrades for their address, except those of a trusted proxy")
  func forwardAuth() async throws {
    let range = try #require(AddressRange(bytes: [192, 0, 2, 0], length: 24))
    let service = try service(trustedProxies: [range], Kind.upgrade.limit)
    let otherPeer = Self.peer([198, 51, 100, 7])
    func error(_ request: Request, from peer: Peer) async throws -> String? {
      let answer = try await service.answer(to: request, from: peer)
      #expect(answer.status == (request.path == "/attest/verify" || answer.status != 429 ? 401 : 429))
      return answer.headers.first("X-Attest-Error")
    }
    let question = Request.plain("GET", "/attest/verify")
    #expect(try await error(question, from: otherPeer) == "no_credentials")
    #expect(try await error(Kind.upgrade.request, from: otherPeer) == "no_credentials")
    #expect(try await error(question, from: otherPeer) == "rate_limited")
    #expect(try await error(Kind.upgrade.request, from: otherPeer) == "rate_limited")
    for _ in 0..<5 { #expect(try await error(question, from: Self.peer([192, 0, 2, 8])) == "no_credentials") }
    // The opposite case: trust for forward auth does not lift the limit of upgrades.
    for _ in 0..<2 { _ = try await error(Kind.upgrade.request, from: Self.peer([192, 0, 2, 8])) }
    #expect(try await error(Kind.upgrade.request, from: Self.peer([192, 0, 2, 8])) == "rate_limited")
  }

  @Test(
    "A trusted proxy's own address has no limit at the endpoints of the gate; the clients that it names have one",
    arguments: [
      ("GET", "/attest/challenge"), ("POST", "/attest/register"), ("POST", "/attest/token"), ("GET", "/attest/verify"),
    ])
  func ofProxy(method: String, path: String) async throws {
    let range = try #require(AddressRange(bytes: [10, 0, 0, 0], length: 8))
    let service = try service(trustedProxies: [range], forwardedClients: ForwardedClients(through: [range])) {
      for kind in Kind.allCases { kind.limit(&$0) }
    }
    func isLimited(from address: [UInt8], for client: String? = nil) async throws -> Bool {
      let headers = client.map { [("X-Forwarded-For", $0)] } ?? []
      let request = Request.plain(method, path, headers, body: "{}")
      return try await service.answer(to: request, from: Self.peer(address)).headers.first("X-Attest-Error")
        == "rate_limited"
    }
    for _ in 0..<5 { #expect(try await !isLimited(from: [10, 0, 0, 1])) }
    // The opposite cases: a client that the proxy names, and one that no proxy sent.
    for _ in 0..<2 { #expect(try await !isLimited(from: [10, 0, 0, 1], for: "192.0.2.1")) }
    #expect(try await isLimited(from: [10, 0, 0, 1], for: "192.0.2.1"))
    #expect(try await !isLimited(from: [10, 0, 0, 1], for: "192.0.2.2"))
    for _ in 0..<2 { #expect(try await !isLimited(from: [198, 51, 100, 7])) }
    #expect(try await isLimited(from: [198, 51, 100, 7], for: "192.0.2.3"))
  }
}
