import Glibc
import Locking
import TestSupport
import Testing
import Transport

@testable import TransportEngine

extension EngineTests {
  /// Data from a peer may still wait in the kernel when a write to that peer fails. The gate must deliver it.
  @Suite("Lingering close", .timeLimit(.minutes(10)))
  struct HalfCloseTests {
    private static let mask: [UInt8] = [1, 2, 3, 4]
    private static let word = FrameTrackerTests.frame(1, Array("last".utf8))
    private static let close = FrameTrackerTests.frame(8, [0x0F, 0xA3])

    private struct Scene {
      let gate: TestGate
      let client: ScriptedSocket
      var service: ScriptedSocket?

      /// Lets the loop handle all effects of `actions` in one iteration.
      func atOnce(_ actions: () throws -> Void) throws {
        let other = try gate.connect()
        try other.send("GET \(Pause.path) HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        gate.record.pause.begin()
        defer { gate.record.pause.end() }
        try actions()
        usleep(20_000)
      }
    }

    private func open(isBridge: Bool = false) throws -> Scene {
      let listener = try RawListener()
      let gate = try TestGate(
        upstream: isBridge
          ? .tcp(host: "127.0.0.1", port: listener.port) : .webSocket(host: "127.0.0.1", port: listener.port))
      guard isBridge else {
        let (client, service) = try gate.open(through: listener)
        return Scene(gate: gate, client: client, service: service)
      }
      let client = try gate.connect()
      try client.send(TestGate.upgrade())
      _ = try client.readHead()
      return Scene(gate: gate, client: client, service: try listener.accept())
    }

    @Test("The Close of a service that closes with unread input reaches a client that sends meanwhile")
    func serviceCloses() throws {
      let scene = try open()
      // The loop handles the client's event first, so it writes to a closed connection.
      try scene.atOnce {
        try scene.client.send(FrameTrackerTests.frame(1, [1], mask: Self.mask))
        try scene.service?.send(Self.word + Self.close)
        scene.service?.reset()
      }
      #expect(try scene.client.readToEnd() == Self.word + Self.close)
    }

    @Test("The Close of a service that had stopped reading reaches the client")
    func overloadedServiceCloses() throws {
      for _ in 0..<5 {
        var scene = try open()
        var sent = 0
        let block = FrameTrackerTests.frame(2, [UInt8](repeating: 7, count: 64 << 10), mask: Self.mask)
        // Sends until neither the kernel nor the gate accepts more.
        while sent < 512 {
          var event = pollfd(fd: scene.client.fd, events: Int16(POLLOUT), revents: 0)
          guard poll(&event, 1, 300) == 1 else { break }
          _ = block.withUnsafeBytes {
            Glibc.send(scene.client.fd, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
          }
          sent += 1
        }
        try scene.service?.send(Self.close)
        // Closing a socket with unread input sends a reset.
        scene.service = nil
        #expect(try scene.client.read(Self.close.count) == Self.close)
      }
    }

    @Test("The last bytes of a bridged service that closes with unread input reach a client that sends meanwhile")
    func bridgedServiceCloses() throws {
      let scene = try open(isBridge: true)
      try scene.atOnce {
        try scene.client.send(FrameTrackerTests.frame(2, [1], mask: Self.mask))
        try scene.service?.send(Array("last".utf8))
        scene.service?.reset()
      }
      #expect(try scene.client.read(6) == FrameTrackerTests.frame(2, Array("last".utf8)))
    }

    /// Writes to the client's socket until it accepts no more. Returns how many of these bytes the gate's kernel has.
    private func flood(_ socket: ScriptedSocket) -> Int {
      let block = FrameTrackerTests.frame(2, [UInt8](repeating: 7, count: 65_000), mask: Self.mask)
      var sent = 0
      while sent < 64 << 20 {
        var event = pollfd(fd: socket.fd, events: Int16(POLLOUT), revents: 0)
        guard poll(&event, 1, 300) == 1 else { break }
        let more = block.dropFirst(sent % block.count).withUnsafeBytes {
          Glibc.send(socket.fd, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
        }
        guard more > 0 else { break }
        sent += more
      }
      var queued: Int32 = 0
      _ = ioctl(socket.fd, UInt(TIOCOUTQ), &queued)
      return sent - Int(queued)
    }

    @Test("Data of a client that resets while its service does not read reaches the service")
    func resetSeen() throws {
      let scene = try open()
      let arrived = flood(scene.client)
      scene.client.reset()
      // Waits until the gate has detected the reset. Then the service sends and reads.
      usleep(100_000)
      try scene.service?.send(FrameTrackerTests.frame(1, [1]))
      usleep(100_000)
      #expect(try scene.service?.readToEnd().count ?? 0 >= arrived)
    }

    @Test("A session that is revoked after its Close is closed while its service still reads")
    func revokedAfterClose() async throws {
      let listener = try RawListener()
      var limits = EngineLimits()
      (limits.closeTimeout, limits.lostRightTimeout) = (.seconds(3600), .milliseconds(300))
      let gate = try TestGate(upstream: .tcp(host: "127.0.0.1", port: listener.port), engineLimits: limits)
      let client = try gate.connect()
      try client.send(TestGate.upgrade())
      _ = try client.readHead()
      let service = try listener.accept()
      let block = FrameTrackerTests.frame(2, [UInt8](repeating: 7, count: 65_000), mask: Self.mask)
      for _ in 0..<32 { try client.send(block) }
      try client.send(FrameTrackerTests.frame(8, [0x03, 0xE8], mask: Self.mask))
      let isClosed = LockedValue(false)
      let reading = Aside {
        // Reads slowly, and each read gives a session that is not revoked more time.
        while !isClosed.withLock({ $0 }) {
          _ = try service.readSome(16 << 10)
          usleep(100_000)
        }
      }
      try await gate.engine.wait(for: "the Close of the client") { $0.isOver }
      gate.record.controls[0].close(.revoked, reason: "revoked")
      // Long before an hour of `closeTimeout` is over.
      _ = await gate.record.next()
      isClosed.withLock { $0 = true }
      try? await reading.value
    }

    @Test("The last message of a client that resets reaches a service that sends meanwhile", arguments: [true, false])
    func clientResets(isBridge: Bool) throws {
      let scene = try open(isBridge: isBridge)
      let word = FrameTrackerTests.frame(2, Array("last".utf8), mask: Self.mask)
      try scene.atOnce {
        try scene.service?.send(isBridge ? [1] : FrameTrackerTests.frame(2, [1]))
        try scene.client.send(word)
        scene.client.reset()
      }
      #expect(try scene.service?.readToEnd() == (isBridge ? Array("last".utf8) : word))
    }
  }
}
