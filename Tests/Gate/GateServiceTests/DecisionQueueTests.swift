import AppAttest
import AttestGate
import ByteCoding
import GateFixtures
import Wire
import Observability
import SimulatedDevice
import Testing
import Transport

@testable import GateService

@Suite("The decisions about keys that wait for the store")
struct DecisionQueueTests {
  @Test("Admissions and refusals wait with their key, rule, client and request")
  func decisions() async throws {
    let bench = try GateBench()
    let service = try ServiceBench(bench)
    let queue = service.metrics.decisions
    queue.open()
    let device = try await bench.registeredDevice()
    let fields = try device.fields(over: bench.nonce(), count: 1)
    _ = try await service.order(for: .upgrade(fields))
    _ = try await service.answer(to: .upgrade(fields))
    _ = try await service.answer(to: .upgrade(try device.fields(over: bench.nonce(), count: 1)))
    _ = try await service.answer(to: .upgrade([]))
    let taken = queue.take()
    #expect(taken.map(\.kind) == [.admitted, .refused, .unverified])
    #expect(taken.map(\.code) == [nil, "counter_replayed", "nonce_used"])
    #expect(taken.map(\.step) == [nil, "assertion_counter", "nonce_spent"])
    #expect(taken.map(\.status) == [nil, 401, 401] && taken.map(\.detail) == [nil, "1 after 1", nil])
    for decision in taken {
      #expect(decision.keyHash == KeyHash(of: device.keyID).text && decision.address == "192.0.2.7")
      #expect(decision.requestID == Request.id && decision.count == 1)
    }
    #expect(queue.take() == [])
  }

  @Test("A closed queue holds nothing")
  func closed() async throws {
    let bench = try GateBench()
    let service = try ServiceBench(bench)
    let queue = service.metrics.decisions
    let device = try await bench.registeredDevice()
    _ = try await service.order(for: .upgrade(try device.fields(over: bench.nonce(), count: 1)))
    _ = try await service.answer(to: .upgrade(try device.fields(over: bench.nonce(), count: 1)))
    #expect(queue.take() == [])
    queue.open()
    _ = try await service.answer(to: .upgrade(try device.fields(over: bench.nonce(), count: 1)))
    queue.close()
    #expect(queue.take() == [])
  }

  @Test("A client that only names a key removes no proved decision, and an address with many only its own refusals")
  func flood() async throws {
    let bench = try GateBench()
    let metrics = GateMetrics()
    metrics.decisions.open()
    let device = try await bench.registeredDevice()
    let key = KeyHash(of: device.keyID)
    func note(_ report: RefusalReport, _ number: Int, provesKey: Bool, id: String) {
      metrics.note(
        report, status: 401,
        RefusalLog.Subject(
          requestID: id, address: .ipv4([10, UInt8(number >> 8 & 0xFF), UInt8(number & 0xFF), 1], port: 1),
          endpoint: nil, path: "/", key: key), provesKey: provesKey)
    }
    note(RefusalReport(.keyRevoked), 1, provesKey: true, id: "proved")
    note(RefusalReport(.nonceExpired), 2, provesKey: false, id: "customer")
    for number in 3..<150 { note(RefusalReport(.nonceUsed), number, provesKey: false, id: "others") }
    for _ in 0..<20_000 { note(RefusalReport(.keyRefused), 9, provesKey: false, id: "flood") }
    let taken = metrics.decisions.take()
    #expect(taken.first?.requestID == "proved" && taken.first?.kind == .refused)
    #expect(taken.contains { $0.requestID == "customer" && $0.code == "nonce_expired" })
    #expect(taken.count == 4 && taken.dropFirst().allSatisfy { $0.kind == .unverified })
    let flood = try #require(taken.first { $0.requestID == "flood" })
    #expect(flood.count <= Int64(DecisionQueue.unverifiedCapacity))
  }

  @Test("Of more decisions than the queue has room for, the oldest leave and are counted")
  func bounded() async throws {
    let metrics = GateMetrics()
    metrics.decisions.open()
    let key = KeyHash(of: try await GateBench().registeredDevice().keyID)
    for number in 0..<(DecisionQueue.capacity + 100) {
      metrics.note(
        RefusalReport(.keyRevoked), status: 403,
        RefusalLog.Subject(
          requestID: "r\(number)", address: .ipv4([10, 0, 0, 1], port: 1), endpoint: nil, path: nil, key: key),
        provesKey: true)
    }
    let expected = (100..<(DecisionQueue.capacity + 100)).map { "r\($0)" }
    #expect(metrics.decisions.take().map(\.requestID) == expected)
    let text = String(decoding: await metrics.registry.exposition(), as: UTF8.self)
    #expect(text.contains("sallyport_decisions_dropped_total 100"))
  }

  @Test("A refusal proves a key only after its fresh signature")
  func proofs() {
    let app = AppName(package: "com.example.app")
    for denial in [
      Denial.nonceUsed, .unknownKey, .platformMismatch(app), .storeUnavailable(.full), .keyExists, .noCredentials,
    ] as [Denial] { #expect(!denial.provesKey, "\(denial)") }
    for denial in [
      Denial.keyRevoked(app), .riskUnknown(app), .appNotServed(app), .counterReplayed(.zero, stored: .zero, app),
    ] as [Denial] { #expect(denial.provesKey, "\(denial)") }
    #expect(RequestRefusal.rateLimited(.upgradesPerKey, wait: .seconds(1)).provesKey)
    #expect(!RequestRefusal.rateLimited(.upgradesPerAddress, wait: .seconds(1)).provesKey)
  }
}
