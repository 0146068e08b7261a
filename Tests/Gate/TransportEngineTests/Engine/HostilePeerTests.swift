import Glibc
import Locking
import TestSupport
import Testing
import Transport

@testable import TransportEngine

extension EngineTests {
  /// Attacks of a peer on a gate that serves other clients as well.
  @Suite("Hostile peers", .timeLimit(.minutes(10)))
  struct HostilePeerTests {
    private static let mask = FrameTrackerTests.mask

    @Test("A message that is too long, from a client that resets together with its upstream, closes the session once")
    func tooBigAndGone() async throws {
      let listener = try RawListener()
      let gate = try TestGate(
        upstream: .webSocket(host: "127.0.0.1", port: listener.port), limits: SessionLimits(maxMessage: 10))
      let (client, backend) = try gate.open(through: listener)
      let other = try gate.connect()
      try other.send("GET \(Pause.path) HTTP/1.1\r\nHost: x\r\n\r\n")
      gate.record.pause.begin()
      // The loop is paused. It then handles all of these events in one iteration.
      try client.send(FrameTrackerTests.frame(2, Array(repeating: 1, count: 11), mask: Self.mask))
      client.reset()
      backend.reset()
      gate.record.pause.end()
      guard case .closedByGate(1009, _) = await gate.record.next().end else {
        Issue.record("not closed with 1009")
        return
      }
      other.sendEnd()
      _ = try other.readToEnd()
      #expect(await gate.engine.drain(timeout: .seconds(30)) == 0)
    }

    /// Sends `block` repeatedly until the gate reads no more from `socket`, which is the peer `side` of its session, or
    /// until 64 MiB were accepted.
    private func flood(_ side: Side, of gate: TestGate, through socket: ScriptedSocket, with block: [UInt8]) async {
      _ = await socket.flood(block, most: 64 << 20) {
        // Without a session, the gate reads nothing either.
        guard let state = await gate.engine.sessionState() else { return true }
        return side == .client ? !state.client.isRead : !state.upstream.isRead
      }
    }

    @Test("A client that sends Pings and reads no Pongs is read with bounded memory")
    func pingFlood() async throws {
      let listener = try RawListener()
      let gate = try TestGate(upstream: .tcp(host: "127.0.0.1", port: listener.port))
      let client = try gate.connect()
      try client.send(TestGate.upgrade())
      _ = try client.readHead()
      let service = try listener.accept()
      let ping = FrameTrackerTests.frame(9, Array(repeating: 7, count: 125), mask: Self.mask)
      let block = Array(repeatElement(ping, count: 500).joined())
      // The kernel's buffers accept a few megabytes.
      await flood(.client, of: gate, through: client, with: block)
      let outbox = await gate.held().outbox
      #expect(outbox > 0 && outbox < 512 << 10)
      _ = service
    }

    @Test("A client that pipelines requests is read no faster than they are answered")
    func requestFlood() async throws {
      let gate = try TestGate(upstream: .tcp(host: "127.0.0.1", port: 1))
      let client = try gate.connect()
      let request = Array("GET / HTTP/1.1\r\nHost: x\r\n\r\n".utf8)
      let block = Array(repeatElement(request, count: 2400).joined())
      let sent = LockedValue(0)
      let sender = Aside {
        while sent.withLock({ $0 }) < 256 << 20 {
          try client.send(block)
          sent.withLock { $0 += block.count }
        }
      }
      var answers: [UInt8] = []
      var most = 0
      while case let more = try client.readSome(), !more.isEmpty {
        answers += more
        most = max(most, await gate.held().inbox)
      }
      #expect(most > 0 && most < 256 << 10)
      client.reset()
      _ = try? await sender.value
      #expect(String(decoding: answers, as: UTF8.self).hasSuffix("Connection: close\r\n\r\nGET / 0"))
    }

    @Test("The last descriptors of the process are not for clients")
    func descriptorCeiling() async throws {
      let paused = LockedValue<[String]>([])
      var limits = EngineLimits()
      // Every descriptor has this number or a higher one.
      limits.descriptorCeiling = 0
      let gate = try TestGate(upstream: .tcp(host: "127.0.0.1", port: 1), engineLimits: limits) { event in
        if case .acceptPaused(let reason) = event { paused.withLock { $0.append(reason) } }
      }
      #expect(try gate.connect().readToEnd().isEmpty)
      #expect(paused.withLock { $0 } == ["only descriptors for operators are left: raise LimitNOFILE or ulimit -n"])
      #expect(gate.engine.overload == .acceptPaused)
      limits.descriptorCeiling = .max
      try await gate.limit(limits)
      let client = try gate.connect()
      try client.send("GET / HTTP/1.0\r\n\r\n")
      #expect(try client.readHead().hasPrefix("HTTP/1.1 400 "))
      #expect(gate.engine.overload == nil)
    }

    @Test("An upstream gets none of the last descriptors, and the client gets 502")
    func descriptorCeilingOfUpstreams() async throws {
      let listener = try RawListener()
      let gate = try TestGate(upstream: .webSocket(host: "127.0.0.1", port: listener.port))
      let client = try gate.connect()
      let request = TestGate.upgrade()
      try client.send(String(request.prefix(10)))
      // The client has its descriptor before the ceiling changes.
      while await gate.held().inbox == 0, !Task.isCancelled { await Task.yield() }
      var limits = EngineLimits()
      limits.descriptorCeiling = 0
      try await gate.limit(limits)
      try client.send(String(request.dropFirst(10)))
      #expect(String(decoding: try client.readToEnd(), as: UTF8.self).hasPrefix("HTTP/1.1 502 "))
    }

    @Test("A client that resets while its service does not read uses no CPU time")
    func resetBeforeStalledService() async throws {
      let listener = try RawListener()
      var limits = EngineLimits()
      limits.closeTimeout = .seconds(2)
      let gate = try TestGate(upstream: .tcp(host: "127.0.0.1", port: listener.port), engineLimits: limits)
      let client = try gate.connect()
      try client.send(TestGate.upgrade())
      _ = try client.readHead()
      let service = try listener.accept()
      // Neither peer reads: both directions stall with pending data.
      let message = FrameTrackerTests.frame(2, Array(repeating: 1, count: 65_000), mask: Self.mask)
      await flood(.upstream, of: gate, through: service, with: Array(repeating: 1, count: 65_536))
      await flood(.client, of: gate, through: client, with: message)
      let before = await cpuTime(of: gate)
      client.reset()
      _ = await gate.record.next()
      #expect(await cpuTime(of: gate) - before < 1000)
    }

    @Test("The reset of a client whose service reads nothing is detected, and the session is closed soon after")
    func resetUnread() async throws {
      let listener = try RawListener()
      var limits = EngineLimits()
      limits.closeTimeout = .milliseconds(300)
      let gate = try TestGate(upstream: .tcp(host: "127.0.0.1", port: listener.port), engineLimits: limits)
      let client = try gate.connect()
      try client.send(TestGate.upgrade())
      _ = try client.readHead()
      let service = try listener.accept()
      let message = FrameTrackerTests.frame(2, Array(repeating: 1, count: 65_000), mask: Self.mask)
      await flood(.client, of: gate, through: client, with: message)
      let before = await cpuTime(of: gate)
      client.reset()
      guard case .lost(.client, _) = await gate.record.next().end else {
        Issue.record("not lost by the client")
        return
      }
      #expect(await cpuTime(of: gate) - before < 1000)
      _ = service
    }

    @Test(
      "A session in which no data moves is idle, whichever side stalls", arguments: [true, false], [true, false])
    func stuck(isBridge: Bool, bothWays: Bool) async throws {
      let listener = try RawListener()
      var engineLimits = EngineLimits()
      engineLimits.closeTimeout = .milliseconds(200)
      let gate = try TestGate(
        upstream: isBridge
          ? .tcp(host: "127.0.0.1", port: listener.port) : .webSocket(host: "127.0.0.1", port: listener.port),
        limits: SessionLimits(idleTimeout: .milliseconds(700), pingInterval: .milliseconds(200)),
        engineLimits: engineLimits)
      let (client, service) = isBridge ? try bridge(of: gate, through: listener) : try gate.open(through: listener)
      let bytes = Array(repeating: UInt8(1), count: 65_000)
      // A pinged peer sends no Pong, and its data is not read.
      if bothWays {
        await flood(
          .upstream, of: gate, through: service, with: isBridge ? bytes : FrameTrackerTests.frame(2, bytes))
      }
      await flood(.client, of: gate, through: client, with: FrameTrackerTests.frame(2, bytes, mask: Self.mask))
      guard case .closedByGate(3008, _) = await gate.record.next().end else {
        Issue.record("not closed with 3008")
        return
      }
      _ = (client, service)
    }

    private func bridge(of gate: TestGate, through listener: RawListener) throws -> (ScriptedSocket, ScriptedSocket) {
      let client = try gate.connect()
      try client.send(TestGate.upgrade())
      _ = try client.readHead()
      return (client, try listener.accept())
    }

    @Test(
      "A peer that reads slowly but steadily keeps its session", arguments: [true, false])
    func trickle(isBridge: Bool) async throws {
      let listener = try RawListener()
      // A large kernel buffer would look like a peer that reads.
      var size: Int32 = 32 << 10
      setsockopt(listener.fd, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
      let gate = try TestGate(
        upstream: isBridge
          ? .tcp(host: "127.0.0.1", port: listener.port) : .webSocket(host: "127.0.0.1", port: listener.port),
        limits: SessionLimits(idleTimeout: .seconds(600), pingInterval: nil, maxMessage: 1 << 20))
      let (client, service) = isBridge ? try bridge(of: gate, through: listener) : try gate.open(through: listener)
      let message = FrameTrackerTests.frame(2, Array(repeating: 1, count: 65_000), mask: Self.mask)
      await flood(.client, of: gate, through: client, with: message)
      // Fifteen minutes, more than `idleTimeout`, in which the client sends nothing and receives nothing.
      for _ in 0..<15 {
        await gate.engine.pass(.seconds(60))
        _ = try service.read(32 << 10)
      }
      var event = pollfd(fd: client.fd, events: Int16(POLLIN), revents: 0)
      #expect(poll(&event, 1, 0) == 0)
      // Data that the kernel still moves counts as progress.
      for _ in 0..<20 where gate.record.isEmpty {
        await gate.engine.pass(.seconds(600))
        try await Task.sleep(for: .milliseconds(20))
      }
      guard case .closedByGate(3008, _) = await gate.record.next().end else {
        Issue.record("not closed with 3008 when the reading ended")
        return
      }
    }

    /// Returns the CPU time of the gate's loop in milliseconds. Other tests run in the same process.
    private func cpuTime(of gate: TestGate) async -> Int {
      await withCheckedContinuation { continuation in
        gate.engine.loops[0].execute { _ in
          var time = timespec()
          clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
          continuation.resume(returning: time.tv_sec * 1000 + time.tv_nsec / 1_000_000)
        }
      }
    }
  }
}
