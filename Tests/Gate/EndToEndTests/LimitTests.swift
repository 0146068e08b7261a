import ByteCoding
import Foundation
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("Limits of a running gate", .serialized, .timeLimit(.minutes(10)))
struct LimitTests {
  @Test("An address over its rate limit gets 429 over TLS with the time to wait")
  func rates() async throws {
    let configuration = GateConfiguration(sections: ["limits: { per_ip: { challenges: 3/1h, upgrades: 2/1h } }"])
    try await RunningGate.serving(configuration) { gate in
      let client = RawClient(gate)
      let challenge = HeadCase.head(["GET /attest/challenge HTTP/1.1", "Host: localhost", "Connection: close"])
      let upgrade = HeadCase.head(["GET / HTTP/1.1"] + HeadCase.handshake)
      for (request, count, status) in [(challenge, 3, 200), (upgrade, 2, 401)] {
        for _ in 0..<count { #expect(try await client.exchange(request).response.status == status) }
        let refused = try await client.exchange(request).response
        #expect(refused.status == 429)
        #expect(refused.headers.first("X-Attest-Error") == "rate_limited")
        let wait = try #require(refused.headers.first("Retry-After").flatMap { Int($0) })
        #expect((1...1800).contains(wait))
      }
    }
  }

  @Test("Over the session limit an upgrade gets 503, and the open session continues")
  func sessions() async throws {
    let echo = try await EchoBackend()
    let configuration = GateConfiguration(upstream: echo.upstream, sections: ["limits: { global_sessions: 1 }"])
    try await RunningGate.serving(configuration) { gate in
      let visitor = try Visitor(gate)
      let device = try await visitor.registeredDevice()
      let first = try device.headers(over: await visitor.challenge(), count: 1).lines
      let (process, head) = try await RawClient(gate).open(
        HeadCase.head(["GET / HTTP/1.1"] + HeadCase.handshake + first))
      defer { process.kill() }
      #expect(head.first == "HTTP/1.1 101 Switching Protocols")
      let second = try device.headers(over: await visitor.challenge(), count: 2).lines
      let refused = try await RawClient(gate).exchange(
        HeadCase.head(["GET / HTTP/1.1"] + HeadCase.handshake + second)
      ).response
      #expect(refused.status == 503)
      #expect(refused.headers.first("X-Attest-Error") == "overloaded")
      #expect(refused.headers.first("Retry-After") == "10")
      #expect(!process.hasEnded)
    }
  }

  @Test("HAProxy passes the client's address", arguments: ["send-proxy", "send-proxy-v2", "send-proxy-v2-ssl"])
  func haproxy(_ option: String) async throws {
    let witness = try await Witness()
    var configuration = GateConfiguration(upstream: witness.url)
    configuration.listenExtras = ["proxy_protocol: any", "trusted_proxies: [127.0.0.1]"]
    try await RunningGate.serving(configuration) { gate in
      let proxy = try await TCPProxy(to: gate.port, option, in: gate.folder)
      defer { proxy.process.kill() }
      let front = RunningGate(process: gate.process, folder: gate.folder, port: proxy.port)
      let visitor = try Visitor(front)
      let device = try await visitor.registeredDevice()
      let credentials = try device.headers(over: await visitor.challenge()).lines
      let (process, head) = try await RawClient(front, ["-bind", "127.0.0.9:0"]).open(
        HeadCase.head(["GET / HTTP/1.1"] + HeadCase.handshake + credentials))
      defer { process.kill() }
      #expect(head.first == "HTTP/1.1 101 Switching Protocols")
      #expect(try await witness.head(1).contains("X-Forwarded-For: 127.0.0.9"))
      // Connections without the proxy are refused.
      await #expect(throws: NoAnswer.self) {
        try await RawClient(gate).exchange(HeadCase.head(["GET / HTTP/1.1", "Host: localhost"]))
      }
    }
  }
}

/// Debian's HAProxy, which forwards TCP connections.
private struct TCPProxy {
  let process: ChildProcess
  let port: UInt16

  init(to gate: UInt16, _ option: String, in folder: String) async throws {
    let port = try Places.freePort()
    let configuration = """
      defaults
        mode tcp
        timeout connect 5s
        timeout client 60s
        timeout server 60s
      frontend front
        bind 127.0.0.1:\(port)
        default_backend gate
      backend gate
        server gate 127.0.0.1:\(gate) \(option)

      """
    try configuration.write(toFile: folder + "/haproxy.cfg", atomically: true, encoding: .utf8)
    process = try ChildProcess("/usr/sbin/haproxy", ["-db", "-f", folder + "/haproxy.cfg"], in: folder)
    self.port = port
    // HAProxy does not report that it listens, so the test tries to connect until it can.
    while (try? await Self.connects(to: port)) != true { try await Task.sleep(for: .milliseconds(20)) }
  }

  private static func connects(to port: UInt16) async throws -> Bool {
    _ = try await ClientEngine().connect(host: "127.0.0.1", port: port, tls: nil)
    return true
  }
}
