import Foundation
import Locking
import Testing
import Transport

@testable import TransportEngine

/// Answers with the client's address.
private struct AddressResponder: RequestResponder {
  func respond(to request: Request, from peer: Peer) async -> Disposition {
    .respond(Response(status: 200, body: Array(peer.address.description.utf8)))
  }
  func response(to fault: RequestError, of headers: HeaderFields?, id: String, from peer: Peer) -> Response {
    Response(status: 400, body: Array("\(fault)".utf8), closes: true)
  }
}

extension EngineTests {
  @Suite("PROXY headers on connections", .timeLimit(.minutes(5)))
  struct ProxyHeaderPhaseTests {
    private final class Gate: Sendable {
      let engine: Engine
      let refusals: LockedValue<[String]>

      init(
        _ version: ProxyProtocol.Version = .any,
        trusting: AddressRange? = AddressRange(bytes: [127, 0, 0, 0], length: 8),
        tls: ServerTLS? = nil, _ set: (inout EngineLimits) -> Void = { _ in }
      ) throws {
        var limits = EngineLimits()
        set(&limits)
        let refusals = LockedValue<[String]>([])
        self.refusals = refusals
        engine = try Engine(
          listeningAt: .ipv4([127, 0, 0, 1], port: 0), loops: 1, tls: tls, responder: AddressResponder(),
          limits: limits,
          proxies: ProxyProtocol(version, trusting: [try #require(trusting)]),
          report: { event in
            guard case .connectionRefused(let refusal, _, _) = event else { return }
            refusals.withLock { $0.append(refusal.rawValue) }
          })
      }

      deinit { engine.stop() }

      func connect() throws -> ScriptedSocket { try ScriptedSocket(connectingTo: engine.address.port) }
    }

    static let request = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

    /// Reads to the end. A reset counts as the end, because the gate does not read what it refuses.
    private func rest(of socket: ScriptedSocket) -> String {
      String(decoding: (try? socket.readToEnd()) ?? [], as: UTF8.self)
    }

    @Test("The header names the client, and the bytes after it are the request", arguments: ProxyHeaderTests.valid)
    func client(_ header: ProxyHeaderTests.HeaderCase) throws {
      let gate = try Gate()
      let socket = try gate.connect()
      try socket.send(header.bytes + Array(Self.request.utf8))
      let answer = rest(of: socket)
      #expect(answer.hasPrefix("HTTP/1.1 200 "))
      #expect(answer.hasSuffix(header.source.map { "\r\n\r\n\($0)" } ?? ""))
      if header.source == nil { #expect(answer.contains("\r\n\r\n127.0.0.1:")) }
    }

    @Test("A header may arrive byte by byte")
    func slowly() throws {
      let gate = try Gate()
      let socket = try gate.connect()
      for byte in ProxyHeaderTests.v2(0x21, 0x11, ProxyHeaderTests.tcp4) { try socket.send([byte]) }
      try socket.send(Self.request)
      #expect(rest(of: socket).hasSuffix("192.0.2.7:40000"))
    }

    @Test("A header precedes TLS, also in the same packet")
    func ahead() throws {
      let files = try TLSFolder()
      let gate = try Gate(tls: files.server())
      let socket = try gate.connect()
      try socket.send("PROXY TCP4 192.0.2.7 198.51.100.1 40000 443\r\n")
      let client = try RawTLS(socket, try files.client())
      try client.handshake()
      client.send(Array(Self.request.utf8))
      client.sendEnd()
      #expect(String(decoding: try client.readToEnd(), as: UTF8.self).hasSuffix("192.0.2.7:40000"))
    }

    @Test(
      "Without a valid header the connection is closed without an answer",
      arguments: [
        request, "PROXY TCP4 192.0.2.7 198.51.100.1 40000 99999\r\n" + request, "PROXY UNKNOWN\n" + request,
        "\r\n\r\n" + request, "PROXY UNK",
      ])
    func malformed(_ text: String) throws {
      let gate = try Gate()
      let socket = try gate.connect()
      try socket.send(text)
      socket.sendEnd()
      #expect(rest(of: socket) == "")
      #expect(gate.refusals.withLock { $0 } == ["proxy_header"])
    }

    @Test("An untrusted peer is refused, with and without a header")
    func untrusted() throws {
      let gate = try Gate(trusting: AddressRange(bytes: [192, 0, 2, 0], length: 24))
      for text in ["PROXY UNKNOWN\r\n" + Self.request, Self.request] {
        let socket = try gate.connect()
        try? socket.send(text)
        #expect(rest(of: socket) == "")
      }
      #expect(gate.refusals.withLock { $0 } == ["proxy_untrusted", "proxy_untrusted"])
    }

    @Test("A header that does not arrive in time closes the connection", arguments: ["", "PROXY TCP4 "])
    func late(_ start: String) throws {
      let gate = try Gate { $0.handshakeTimeout = .milliseconds(200) }
      let socket = try gate.connect()
      try socket.send(start)
      #expect(rest(of: socket) == "")
      #expect(gate.refusals.withLock { $0 } == ["proxy_time"])
    }

    @Test("A connection that is closed without data is no fault")
    func silent() async throws {
      let gate = try Gate()
      try gate.connect().sendEnd()
      let socket = try gate.connect()
      try socket.send("PROXY UNKNOWN\r\n" + Self.request)
      #expect(rest(of: socket).hasPrefix("HTTP/1.1 200 "))
      #expect(gate.refusals.withLock { $0 } == [])
    }

    @Test("Connections count for the client that the header names")
    func counted() throws {
      let gate = try Gate { $0.connectionsPerAddress = 1 }
      let hello = { (host: Int) in "PROXY TCP4 192.0.2.\(host) 198.51.100.1 40000 443\r\n" }
      let first = try gate.connect()
      try first.send(hello(7) + "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(try first.readHead().hasPrefix("HTTP/1.1 200 "))
      let second = try gate.connect()
      try second.send(hello(7) + Self.request)
      #expect(rest(of: second) == "")
      #expect(gate.refusals.withLock { $0 } == ["per_ip"])
      let other = try gate.connect()
      try other.send(hello(8) + Self.request)
      #expect(rest(of: other).hasPrefix("HTTP/1.1 200 "))
    }
  }

  @Suite("Connection limit per address", .timeLimit(.minutes(5)))
  struct ConnectionCapTests {
    @Test("A connection over the limit is closed immediately; others continue, and a free place is used again")
    func cap() async throws {
      var limits = EngineLimits()
      limits.connectionsPerAddress = 2
      let refusals = LockedValue(0)
      let listener = try RawListener()
      let gate = try TestGate(
        upstream: .webSocket(host: "127.0.0.1", port: listener.port), engineLimits: limits
      ) { event in
        if case .connectionRefused(.tooManyOfAddress, _, _) = event { refusals.withLock { $0 += 1 } }
      }
      let ask = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
      let first = try gate.connect()
      try first.send(ask)
      #expect(try first.readHead().hasPrefix("HTTP/1.1 200 "))
      var (client, backend): (ScriptedSocket?, ScriptedSocket?) = try gate.open(through: listener)
      #expect(((try? gate.connect().readToEnd()) ?? []).isEmpty)
      #expect(refusals.withLock { $0 } == 1)
      #expect(client != nil && backend != nil)
      (client, backend) = (nil, nil)
      _ = await gate.record.next()
      let third = try gate.connect()
      try third.send(ask)
      #expect(try third.readHead().hasPrefix("HTTP/1.1 200 "))
    }

    @Test("Connections that were open before the limit was set are counted")
    func late() async throws {
      let listener = try RawListener()
      let gate = try TestGate(upstream: .webSocket(host: "127.0.0.1", port: listener.port))
      let ask = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
      let idle = try gate.connect()
      try idle.send(ask)
      #expect(try idle.readHead().hasPrefix("HTTP/1.1 200 "))
      var (client, backend): (ScriptedSocket?, ScriptedSocket?) = try gate.open(through: listener)
      var limits = EngineLimits()
      limits.connectionsPerAddress = 2
      // A second reload counts no connection twice.
      for _ in 0..<2 { try await gate.limit(limits) }
      let lateClient = try gate.connect()
      try? lateClient.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
      #expect(((try? lateClient.readToEnd()) ?? []).isEmpty)
      // No other connection is closed, and a free place is used again.
      try idle.send(ask)
      _ = try idle.read("GET / 0".utf8.count)
      #expect(try idle.readHead().hasPrefix("HTTP/1.1 200 "))
      #expect(client != nil && backend != nil)
      (client, backend) = (nil, nil)
      _ = await gate.record.next()
      let other = try gate.connect()
      try other.send(ask)
      #expect(try other.readHead().hasPrefix("HTTP/1.1 200 "))
    }

    @Test("An address is forgotten with its last connection")
    func forgotten() {
      let counts = ConnectionCounts()
      var places = (0..<1000).map {
        counts.enter(AddressBlock(.ipv4([10, 0, UInt8($0 / 250), UInt8($0 % 250)], port: 1)), atMost: 1)
      }
      #expect(counts.countOfAddresses == 1000)
      #expect(counts.enter(AddressBlock(.ipv4([10, 0, 0, 0], port: 2)), atMost: 1) == nil)
      #expect(places.allSatisfy { $0 != nil })
      places = []
      #expect(counts.countOfAddresses == 0)
    }
  }
}
