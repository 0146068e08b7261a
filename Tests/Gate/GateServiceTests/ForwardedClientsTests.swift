import AttestGate
import GateFixtures
import Testing
import Transport

@testable import GateService

@Suite("Clients that a trusted proxy names in X-Forwarded-For")
struct ForwardedClientsTests {
  private let clients: ForwardedClients

  init() throws {
    clients = ForwardedClients(through: [
      try #require(AddressRange(bytes: [10, 0, 0, 0], length: 8)),
      try #require(AddressRange(bytes: [0x20, 1, 0xD, 0xB8] + [UInt8](repeating: 0, count: 12), length: 32)),
    ])
  }

  private func client(_ values: [String], from address: [UInt8] = [10, 0, 0, 1]) -> String {
    let peer = Peer(address: .ipv4(address, port: 5))
    return clients.client(of: HeaderFields(values.map { ("X-Forwarded-For", $0) }), from: peer).address.host
  }

  @Test(
    "The last address that is no proxy's is the client's",
    arguments: [
      (["192.0.2.1"], "192.0.2.1"), (["203.0.113.9, 192.0.2.1"], "192.0.2.1"),
      (["192.0.2.1, 10.1.2.3, 10.0.0.9"], "192.0.2.1"), (["192.0.2.1", "10.1.2.3"], "192.0.2.1"),
      (["203.0.113.9", "192.0.2.1,10.1.2.3"], "192.0.2.1"), (["192.0.2.1,2001:db8::7"], "192.0.2.1"),
      (["192.0.2.1:4711"], "192.0.2.1"), (["[2001:db9::1]:443"], "2001:db9::1"), (["2001:db9::1"], "2001:db9::1"),
      (["[2001:db9::1]"], "2001:db9::1"), (["::ffff:192.0.2.1"], "192.0.2.1"), (["192.0.2.1, ,\t, "], "192.0.2.1"),
    ])
  func last(_ values: [String], client expected: String) {
    #expect(client(values) == expected)
  }

  @Test("Everyone else's X-Forwarded-For means nothing")
  func untrusted() {
    #expect(client(["192.0.2.1"], from: [203, 0, 113, 9]) == "203.0.113.9")
    #expect(client([]) == "10.0.0.1")
  }

  @Test(
    "The last proxy stands for a client whose address cannot be read",
    arguments: [
      "unknown", "192.0.2.1:", "192.0.2.1:x", "192.0.2.1:123456", "192.0.2.256", "[192.0.2.1]", "[2001:db9::1",
      "fe80::1%1",
      "\"192.0.2.1\"", "::1::", "client.example",
    ])
  func unreadable(_ text: String) {
    #expect(client([text]) == "10.0.0.1")
    #expect(client(["192.0.2.9, \(text), 10.7.7.7"]) == "10.7.7.7")
  }

  @Test("If all addresses are proxies', the first one is the client's")
  func allTrusted() { #expect(client(["10.9.9.9, 10.8.8.8"]) == "10.9.9.9") }

  @Test("At most 32 addresses are read")
  func bounded() {
    let proxies = [String](repeating: "10.2.2.2", count: 32)
    #expect(client([(["192.0.2.1"] + proxies.dropLast()).joined(separator: ",")]) == "192.0.2.1")
    #expect(client([(["192.0.2.1"] + proxies).joined(separator: ",")]) == "10.2.2.2")
  }

  @Test("Limits, log lines, sessions and the upstream see the client, and only from a proxy")
  func everywhere() async throws {
    let bench = try GateBench()
    var limits = RequestLimits()
    limits.upgradesPerAddress = Rate(1, every: .seconds(60))
    let service = try ServiceBench(bench, limiter: RequestLimiter(limits), forwardedClients: clients)
    let proxy = Peer(address: .ipv4([10, 0, 0, 1], port: 5))
    let device = try await bench.registeredDevice()
    func request(_ address: String, count: UInt32) throws -> Request {
      try .upgrade(device.fields(over: bench.nonce(), count: count) + [("X-Forwarded-For", address)])
    }
    let (_, head) = try await service.relay(for: request("9.9.9.9, 192.0.2.1", count: 1), from: proxy)
    #expect(String(decoding: head, as: UTF8.self).contains("\r\nX-Forwarded-For: 192.0.2.1\r\n"))
    #expect(try await service.answer(to: request("192.0.2.1", count: 2), from: proxy).status == 429)
    _ = try await service.relay(for: request("192.0.2.2", count: 3), from: proxy)
    let refused = try await service.answer(to: .upgrade([("X-Forwarded-For", "192.0.2.3")]), from: proxy)
    #expect(refused.status == 401)
    #expect(try service.log.lines.last?["client"] == "192.0.2.3")
    let direct = try await service.answer(to: .upgrade([("X-Forwarded-For", "192.0.2.4")]))
    #expect(direct.status == 401)
    #expect(try service.log.lines.last?["client"] == ServiceBench.peer.address.host)
  }

  @Test(
    "A failed proof closes a client's own connection, and never the one of the proxy that names the client",
    arguments: ["/api", "/attest/verify", "/attest/token"])
  func closing(_ path: String) async throws {
    let bench = try GateBench()
    let range = try #require(AddressRange(bytes: [10, 0, 0, 0], length: 8))
    let service = try ServiceBench(bench, trustedProxies: [range], forwardedClients: clients)
    let unknown = try bench.device()
    func closes(_ peer: Peer) async throws -> Bool {
      let nonce = try bench.nonce()
      let fields = try unknown.fields(over: nonce, count: 1) + [("X-Forwarded-For", "192.0.2.1")]
      let proof = try ProofMint(nonce: nonce.text, at: bench.clock.now).text
      let isToken = path == "/attest/token"
      let request: Request = isToken ? .token(fields, proof: proof) : .plain("GET", path, fields)
      let answer = try await service.answer(to: request, from: peer)
      #expect((400...403).contains(answer.status))
      return answer.closes
    }
    #expect(try await closes(ServiceBench.peer))
    #expect(try await !closes(Peer(address: .ipv4([10, 0, 0, 1], port: 5))))
  }
}
