import Dispatch
import Glibc
import Testing
import Transport

@testable import TransportEngine

extension EngineTests {
  @Suite("Room for connections", .timeLimit(.minutes(2)))
  struct ConnectionRoomTests {
    private static let request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

    private static func gate(_ most: Int, _ upstream: RawListener) throws -> TestGate {
      var limits = EngineLimits()
      limits.connectionsPerLoop = most
      return try TestGate(upstream: .webSocket(host: "127.0.0.1", port: upstream.port), engineLimits: limits)
    }

    /// Sends a request and reads the answer, so that the engine has surely accepted the connection.
    private static func ask(_ client: ScriptedSocket) throws {
      try client.send(request)
      #expect(try client.readHead().hasPrefix("HTTP/1.1 200 "))
      _ = try client.read("GET / 0".utf8.count)
    }

    @Test("A further connection takes the place of the one that has waited longest for its client")
    func idle() async throws {
      let gate = try Self.gate(4, RawListener())
      let clients = try (0..<4).map { _ in
        let client = try gate.connect()
        try Self.ask(client)
        return client
      }
      // The first client is heard again, so the second one has waited longest.
      try Self.ask(clients[0])
      let newer = try gate.connect()
      try Self.ask(newer)
      #expect(try clients[1].readSome() == [])
      for client in [clients[0], clients[2], clients[3], newer] { try Self.ask(client) }
      // A request that does not arrive completely is waited for, too: bytes give it no longer time.
      try clients[0].send("GET / HT")
      try Self.ask(clients[2])
      try clients[0].send("TP/1.1\r\n")
      for client in [clients[3], newer, clients[2]] { try Self.ask(client) }
      try Self.ask(gate.connect())
      #expect(try clients[0].readToEnd() == [])
      _ = gate
    }

    @Test("A flood of idle connections leaves the newest ones")
    func flood() async throws {
      let gate = try Self.gate(8, RawListener())
      let clients = try (0..<100).map { _ in try gate.connect() }
      try Self.ask(gate.connect())
      for client in clients.prefix(93) { #expect(try client.readSome() == []) }
      for client in clients.suffix(7) { try Self.ask(client) }
      _ = gate
    }

    @Test("An open session does not wait behind connections that are not open yet, and each of these has its turn")
    func openFirst() async throws {
      let listener = try RawListener()
      let gate = try TestGate(upstream: .webSocket(host: "127.0.0.1", port: listener.port))
      let (client, backend) = try gate.open(through: listener)
      let newer = try (0..<200).map { _ in try gate.connect() }
      let loop = gate.engine.loops[0]
      let release = try await Self.holding(loop, until: newer.count + 1) {
        for socket in newer { try socket.send(Self.request) }
        try client.send(FrameTrackerTests.frame(2, [1, 2, 3], mask: [4, 5, 6, 7]))
      }
      let (begun, relayed) = await withCheckedContinuation { continuation in
        // The loop may be woken for the first job before it looks at a socket, and for the second one after a turn.
        _ = loop.execute { loop in
          loop.execute { loop in continuation.resume(returning: Self.progress(loop)) }
        }
        release.signal()
      }
      #expect(begun <= 32 && relayed > 0)
      _ = try backend.read(relayed)
      for socket in newer { #expect(try socket.readHead().hasPrefix("HTTP/1.1 200 ")) }
    }

    @Test("A loop is overloaded while connections wait in each turn for a second, and no longer when it has caught up")
    func overload() async throws {
      let gate = try TestGate(upstream: .webSocket(host: "127.0.0.1", port: RawListener().port))
      let newer = try (0..<200).map { _ in try gate.connect() }
      let (engine, loop) = (gate.engine, gate.engine.loops[0])
      let release = try await Self.holding(loop, until: newer.count) {
        for socket in newer { try socket.send(Self.request) }
      }
      #expect(engine.overload == nil)
      let (first, second) = await withCheckedContinuation { continuation in
        // Each job runs in a turn of its own, before the connections of that turn.
        _ = loop.execute { loop in
          loop.execute { loop in
            let first = engine.overload
            loop.pass(1_000)
            loop.execute { loop in
              loop.execute { _ in continuation.resume(returning: (first, engine.overload)) }
            }
          }
        }
        release.signal()
      }
      #expect(first == nil)
      guard case .behind(let time) = second else {
        Issue.record("not overloaded: \(String(describing: second))")
        return
      }
      #expect(time >= .seconds(1))
      for socket in newer { #expect(try socket.readHead().hasPrefix("HTTP/1.1 200 ")) }
      while engine.overload != nil { await Task.yield() }
    }

    /// Holds `loop` once it has `count` connections, until all that `send` sends has arrived and the result is signalled.
    /// What is sent first arrives first.
    private static func holding(
      _ loop: EventLoop, until count: Int, _ send: () throws -> Void
    ) async throws -> DispatchSemaphore {
      var descriptors: [Int32] = []
      while descriptors.count < count { descriptors = await Self.descriptors(loop) }
      let release = DispatchSemaphore(value: 0)
      await withCheckedContinuation { continuation in
        _ = loop.execute { _ in
          continuation.resume()
          release.wait()
        }
      }
      try send()
      for descriptor in descriptors {
        var place = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        #expect(poll(&place, 1, 60_000) == 1)
      }
      return release
    }

    private static func sessions(_ loop: EventLoop) -> [SessionRef] {
      (0..<loop.slots.end).compactMap { loop.slots.token(in: $0) }.compactMap { loop.slots.session($0) }
    }

    /// The sockets of the clients.
    private static func descriptors(_ loop: EventLoop) async -> [Int32] {
      await withCheckedContinuation { continuation in
        _ = loop.execute { loop in
          continuation.resume(returning: sessions(loop).map { $0.pointee.ends[0].socket.fd })
        }
      }
    }

    /// How many clients are not waited for any more, and how many bytes the open session has passed on.
    private static func progress(_ loop: EventLoop) -> (begun: Int, relayed: Int) {
      let (open, others) = (sessions(loop).filter { $0.pointee.phase == .relay }, sessions(loop))
      return (
        others.count { ![.relay, .head].contains($0.pointee.phase) },
        open.reduce(0) { $0 + Int($1.pointee.ends[0].bytes) }
      )
    }

    @Test("Sessions in work keep their connections; as many again are accepted, and a further one is closed")
    func busy() async throws {
      let listener = try RawListener()
      let gate = try Self.gate(2, listener)
      let sessions = try (0..<4).map { _ in try gate.open(through: listener) }
      #expect(try gate.connect().readToEnd() == [])
      for (client, backend) in sessions {
        try backend.send(FrameTrackerTests.frame(1, [7], mask: nil))
        #expect(try client.read(3) == [0x81, 1, 7])
      }
      _ = gate
    }
  }
}
