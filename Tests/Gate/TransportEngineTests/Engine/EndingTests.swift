import TestSupport
import Testing
import Transport

@testable import TransportEngine

extension EngineTests {
  @Suite("Draining and stopping", .timeLimit(.minutes(10)))
  struct EndingTests {
    private func gate(
      _ listener: RawListener, limits: SessionLimits = SessionLimits(), engineLimits: EngineLimits = EngineLimits()
    ) throws -> TestGate {
      try TestGate(
        upstream: .webSocket(host: "127.0.0.1", port: listener.port), limits: limits, engineLimits: engineLimits)
    }

    @Test("A second drain returns, also after the engine has stopped")
    func drainedAgain() async throws {
      let gate = try gate(try RawListener())
      let kept = try gate.connect()
      try kept.send("GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\n")
      _ = try kept.readHead()
      _ = try kept.read("GET / 0".utf8.count)
      async let first = gate.engine.drain(timeout: .milliseconds(300))
      async let second = gate.engine.drain(timeout: .milliseconds(300))
      _ = await (first, second)
      #expect(await gate.engine.drain(timeout: .seconds(30)) <= 1)
      gate.engine.stop()
      #expect(await gate.engine.drain(timeout: .seconds(30)) <= 1)
      #expect(try kept.readToEnd() == [])
      #expect(await gate.engine.drain(timeout: .seconds(30)) == 0)
      _ = kept
    }

    @Test("A session that opens during the drain is closed like the others")
    func openedLate() async throws {
      let listener = try RawListener()
      let gate = try gate(listener)
      let client = try gate.connect()
      try client.send(TestGate.upgrade())
      let backend = try listener.accept()
      _ = try backend.readHead()
      let idle = try gate.connect()
      try idle.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      _ = try idle.readHead()
      let draining = Task { await gate.engine.drain(timeout: .seconds(20)) }
      _ = try idle.readToEnd()  // Draining has begun.
      try backend.send(TestGate.switching)
      #expect(try client.readHead().hasPrefix("HTTP/1.1 101 "))
      let close = try client.read(4)
      #expect(close[0] == 0x88 && UInt16(close[2]) << 8 | UInt16(close[3]) == 1001)
      client.reset()
      backend.reset()
      idle.sendEnd()
      #expect(await draining.value == 0)
    }

    @Test("A slow reader gets pending data and the 1001 until the drain's deadline")
    func slowReader() async throws {
      let listener = try RawListener()
      var limits = EngineLimits()
      limits.closeTimeout = .milliseconds(100)
      let gate = try gate(listener, engineLimits: limits)
      let (client, backend) = try gate.open(through: listener)
      let idle = try gate.connect()
      // One binary message of 8 MiB.
      let frame = [0x82, 127, 0, 0, 0, 0, 0, 0x80, 0, 0] + [UInt8](repeating: 7, count: 8 << 20)
      let sending = Aside { try backend.send(frame) }
      let start = try client.readSome()
      let draining = Task { await gate.engine.drain(timeout: .seconds(30)) }
      #expect(try idle.readToEnd() == [])  // Draining has begun.
      // Ten times `closeTimeout`, the limit without a drain.
      await gate.engine.pass(.seconds(1))
      let rest = try client.read(frame.count - start.count)
      #expect(start + rest == frame)
      let close = try client.read(4)
      #expect(close[0] == 0x88 && UInt16(close[2]) << 8 | UInt16(close[3]) == 1001)
      client.reset()
      idle.sendEnd()
      try await sending.value
      backend.reset()
      #expect(await draining.value == 0)
    }

    @Test(
      "A session that loses its permission during the drain is closed before the drain's deadline",
      arguments: [true, false])
    func revokedWhileDraining(isBridge: Bool) async throws {
      let listener = try RawListener()
      var limits = EngineLimits()
      limits.lostRightTimeout = .milliseconds(300)
      let gate = try TestGate(
        upstream: isBridge
          ? .tcp(host: "127.0.0.1", port: listener.port) : .webSocket(host: "127.0.0.1", port: listener.port),
        engineLimits: limits)
      let client = try gate.connect()
      try client.send(TestGate.upgrade())
      let backend = try listener.accept()
      if !isBridge {
        _ = try backend.readHead()
        try backend.send(TestGate.switching)
      }
      _ = try client.readHead()
      let draining = Task { await gate.engine.drain(timeout: .seconds(3600)) }
      let close = try client.read(4)
      #expect(close[0] == 0x88 && UInt16(close[2]) << 8 | UInt16(close[3]) == 1001)
      // Neither peer answers: only the gate can close this session before the hour is over.
      gate.record.controls[0].close(.revoked, reason: "revoked")
      #expect(await draining.value == 0)
      _ = (client, backend)
    }

    @Test("A session that reaches its maximum age during the drain is closed")
    func agedWhileDraining() async throws {
      let listener = try RawListener()
      var limits = EngineLimits()
      limits.lostRightTimeout = .milliseconds(300)
      let gate = try gate(listener, limits: SessionLimits(maxAge: .seconds(2)), engineLimits: limits)
      let (client, backend) = try gate.open(through: listener)
      #expect(await gate.engine.drain(timeout: .seconds(3600)) == 0)
      _ = (client, backend)
    }

    @Test("A stopped engine frees its port")
    func portIsFree() async throws {
      let gate = try gate(try RawListener())
      let port = gate.engine.address.port
      let client = try gate.connect()
      try client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(try client.readHead().hasPrefix("HTTP/1.1 200 "))
      _ = try client.read("GET / 0".utf8.count)
      gate.engine.stop()
      #expect(try client.readToEnd() == [])  // The loop has closed its connections.
      #expect(throws: ScriptedSocket.Failure.self) {
        for _ in 0..<2 { try ScriptedSocket(connectingTo: port).send("GET / HTTP/1.1\r\n\r\n") }
      }
    }

    @Test("An engine that is stopped while it drains closes every session once")
    func stoppedWhileDraining() async throws {
      let listener = try RawListener()
      var limits = EngineLimits()
      limits.closeTimeout = .seconds(20)
      let gate = try gate(listener, engineLimits: limits)
      var sockets: [ScriptedSocket] = []
      for _ in 0..<20 {
        let (client, backend) = try gate.open(through: listener)
        sockets += [client, backend]
      }
      let draining = Task { await gate.engine.drain(timeout: .seconds(20)) }
      for socket in sockets { #expect(try socket.read(2)[0] == 0x88) }
      gate.engine.stop()
      #expect(await draining.value == 0)
      for _ in 0..<20 {
        #expect(await gate.record.next().end == .closedByGate(1001, reason: "the gate is shutting down"))
      }
    }

    @Test("A stopped engine is freed even if handles of its sessions are kept")
    func nothingIsKept() async throws {
      let listener = try RawListener()
      let (ended, continuation) = AsyncStream.makeStream(of: Void.self)
      do {
        let gate = try gate(listener)
        gate.record.whenFreed { continuation.finish() }
        let (client, backend) = try gate.open(through: listener)
        let frame = FrameTrackerTests.frame(1, [1], mask: FrameTrackerTests.mask)
        try client.send(frame)
        #expect(try backend.read(frame.count) == frame)
        #expect(gate.record.controls.count == 1)
      }
      for await _ in ended {}
    }
  }
}
