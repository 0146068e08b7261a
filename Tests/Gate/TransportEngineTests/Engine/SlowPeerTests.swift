import Glibc
import TestSupport
import Testing
import Transport

@testable import TransportEngine

/// Decides when `release` has finished, and reports each request before.
private struct SlowResponder: RequestResponder {
  let asked: AsyncStream<Void>.Continuation
  let release: AsyncStream<Void>

  func respond(to request: Request, from peer: Peer) async -> Disposition {
    asked.yield()
    for await _ in release {}
    return .respond(Response(status: 200))
  }

  func response(to fault: RequestError, of headers: HeaderFields?, id: String, from peer: Peer) -> Response {
    Response(status: 400, closes: true)
  }

  func responseWithoutDecision(on request: Request, from peer: Peer) -> Response {
    Response(
      status: 503, headers: HeaderFields([.init(name: "X-Request-Id", value: request.id)]),
      body: Array(request.path.utf8))
  }
}

extension EngineTests {
  /// Data in the kernel has not reached the peer yet. In these tests the gate's outboxes are empty.
  @Suite("Slow readers", .timeLimit(.minutes(10)))
  struct SlowPeerTests {
    private static let mask: [UInt8] = [1, 2, 3, 4]
    /// One mebibyte, which the kernel accepts in one call.
    private static let messages = (0..<16).map { Array(repeating: UInt8($0), count: 64 << 10) }

    private static func frames(masked: Bool) -> [UInt8] {
      messages.flatMap { FrameTrackerTests.frame(2, $0, mask: masked ? mask : nil) }
    }

    private static func narrow(_ fd: Int32) {
      var size: Int32 = 32 << 10
      setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
    }

    private func open(
      isBridge: Bool, limits: SessionLimits = SessionLimits(), engineLimits: EngineLimits = EngineLimits()
    ) throws -> (gate: TestGate, client: ScriptedSocket, service: ScriptedSocket) {
      let listener = try RawListener()
      Self.narrow(listener.fd)
      let gate = try TestGate(
        upstream: isBridge
          ? .tcp(host: "127.0.0.1", port: listener.port) : .webSocket(host: "127.0.0.1", port: listener.port),
        limits: limits, engineLimits: engineLimits)
      guard isBridge else {
        let (client, service) = try gate.open(through: listener)
        Self.narrow(client.fd)
        return (gate, client, service)
      }
      let client = try gate.connect()
      Self.narrow(client.fd)
      try client.send(TestGate.upgrade())
      _ = try client.readHead()
      return (gate, client, try listener.accept())
    }

    @Test("A client whose service resets gets all data of the service and 1014, although it sends meanwhile")
    func serviceBreaksOff() async throws {
      let (gate, client, service) = try open(isBridge: false)
      let sent = Self.frames(masked: false)
      try service.send(sent)
      try await gate.engine.wait(for: "the data of the service") {
        $0.upstream.bytes == sent.count && $0.client.outbox == 0
      }
      service.reset()
      try await gate.engine.wait(for: "the reset of the service") { $0.upstream.isGone }
      try client.send(FrameTrackerTests.frame(1, [1], mask: Self.mask))
      let received = try client.readToEnd()
      #expect(received.starts(with: sent))
      #expect(received.dropFirst(sent.count).starts(with: [0x88]))
      #expect(received.dropFirst(sent.count + 2).prefix(2).elementsEqual([0x03, 0xF6]))
      _ = gate
    }

    @Test("A service whose client resets gets all data of the client, although it sends meanwhile")
    func clientBreaksOff() async throws {
      let (gate, client, service) = try open(isBridge: false)
      let sent = Self.frames(masked: true)
      try client.send(sent)
      try await gate.engine.wait(for: "the data of the client") {
        $0.client.bytes == sent.count && $0.upstream.outbox == 0
      }
      client.reset()
      try await gate.engine.wait(for: "the reset of the client") { $0.client.isGone }
      try service.send(FrameTrackerTests.frame(1, [1]))
      #expect(try service.readToEnd() == sent)
      _ = gate
    }

    @Test("A bridged service gets all data of a client that has disconnected, although it sends meanwhile")
    func clientLeavesBridge() async throws {
      let (gate, client, service) = try open(isBridge: true)
      try client.send(Self.frames(masked: true) + FrameTrackerTests.frame(8, [0x03, 0xE8], mask: Self.mask))
      client.sendEnd()
      try await gate.engine.wait(for: "the end of the client") {
        $0.isOver && $0.client.isGone && $0.upstream.outbox == 0
      }
      try service.send([1])
      // Time in which a gate that does not expect this byte would discard the data of the client.
      try await Task.sleep(for: .milliseconds(300))
      #expect(try service.readToEnd() == Self.messages.flatMap(\.self))
      service.sendEnd()
      _ = gate
    }

    @Test("A drain does not wait until its deadline for a service whose client has disconnected")
    func clientGoneInDrain() async throws {
      let (gate, client, service) = try open(isBridge: true)
      try service.send([1])
      _ = try client.read(3)
      let draining = Task { await gate.engine.drain(timeout: .seconds(3600)) }
      _ = try client.read(2)
      try client.send(FrameTrackerTests.frame(8, [0x03, 0xE9], mask: Self.mask))
      client.sendEnd()
      #expect(await draining.value == 0)
      _ = service
    }

    @Test("A peer that slowly reads data from the kernel's buffer is not idle", arguments: [true, false])
    func trickleFromKernel(isBridge: Bool) async throws {
      let limits = SessionLimits(idleTimeout: .seconds(600), pingInterval: nil)
      let (gate, client, service) = try open(isBridge: isBridge, limits: limits)
      var sent = isBridge ? Self.messages.flatMap(\.self) : Self.frames(masked: false)
      try service.send(sent)
      var received: [UInt8] = []
      // Fifteen minutes, more than `idleTimeout`.
      for _ in 0..<15 {
        await gate.engine.pass(.seconds(60))
        received += try client.read(32 << 10)
        guard !isBridge else { continue }
        // The service must answer Pings too.
        let pong = FrameTrackerTests.frame(10, [])
        try service.send(pong)
        sent += pong
      }
      received += try client.read(sent.count - received.count)
      #expect(isBridge || received == sent)
      // On a bridge, only the last frame headers remain. No session is closed.
      if !isBridge {
        var event = pollfd(fd: client.fd, events: Int16(POLLIN), revents: 0)
        #expect(poll(&event, 1, 0) == 0)
      }
      #expect(gate.record.isEmpty)
    }

    @Test("A peer that still reads data sent before the end is not cut off", arguments: [true, false])
    func takenBehindTheEnd(isBridge: Bool) async throws {
      var engineLimits = EngineLimits()
      engineLimits.closeTimeout = .seconds(600)
      let (gate, client, service) = try open(isBridge: isBridge, engineLimits: engineLimits)
      try service.send(isBridge ? Self.messages.flatMap(\.self) : Self.frames(masked: false))
      if !isBridge { try service.send(FrameTrackerTests.frame(8, [0x03, 0xE8])) }
      service.sendEnd()
      var received: [UInt8] = []
      // Longer than `closeTimeout`. If the gate closed its socket, data from the client, the last after twelve minutes,
      // would cause a reset that discards the unsent data.
      for round in 0..<28 {
        await gate.engine.pass(.seconds(30))
        received += try client.read(32 << 10)
        if round % 6 == 5 { try? client.send(FrameTrackerTests.frame(10, [], mask: Self.mask)) }
      }
      while received.count <= 1 << 20, case let more = try client.readSome(), !more.isEmpty { received += more }
      // A client of a bridge that reads no more and is silent is not waited for any longer.
      for _ in 0..<20 where gate.record.isEmpty {
        await gate.engine.pass(.seconds(600))
        try await Task.sleep(for: .milliseconds(20))
      }
      received += try client.readToEnd()
      #expect(received.count > 1 << 20)
      #expect(received.suffix(2) == (isBridge ? received.suffix(2) : [0x03, 0xE8]))
      #expect(isBridge || received.starts(with: Self.frames(masked: false)))
      _ = gate
    }

    @Test("A request that is not decided in time is answered with 503, and its late decision is dropped")
    func lateDecision() async throws {
      let (requests, asked) = AsyncStream.makeStream(of: Void.self)
      let (release, releasing) = AsyncStream.makeStream(of: Void.self)
      defer { releasing.finish() }
      var limits = EngineLimits()
      limits.decisionTimeout = .seconds(600)
      let engine = try Engine(
        listeningAt: .ipv4([127, 0, 0, 1], port: 0), loops: 1, tls: nil,
        responder: SlowResponder(asked: asked, release: release), limits: limits)
      defer { engine.stop() }
      let client = try ScriptedSocket(connectingTo: engine.address.port)
      try client.send("GET /late HTTP/1.1\r\nHost: x\r\n\r\n")
      for await _ in requests { break }
      await engine.pass(.seconds(700))
      let head = try client.readHead()
      #expect(head.hasPrefix("HTTP/1.1 503 ") && head.contains("\r\nConnection: close\r\n"))
      #expect(head.contains("\r\nX-Request-Id: "))
      releasing.finish()
      await engine.pass(.zero)
      let rest = try client.readToEnd()
      #expect(String(decoding: rest, as: UTF8.self) == "/late")
    }

    @Test("Pings accepted by the kernel do not keep a session with a program that hangs")
    func pingsTaken() async throws {
      let limits = SessionLimits(idleTimeout: .seconds(1), pingInterval: .milliseconds(150))
      let (gate, client, service) = try open(isBridge: false, limits: limits)
      guard case .closedByGate(3008, _) = await gate.record.next().end else {
        Issue.record("not closed with 3008")
        return
      }
      _ = (client, service)
    }
  }
}
