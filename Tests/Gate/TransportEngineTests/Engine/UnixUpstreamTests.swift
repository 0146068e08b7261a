import Glibc
import TestSupport
import Testing
import Transport

@testable import TransportEngine

extension EngineTests {
  @Suite("Unix sockets of upstreams whose queue is full", .timeLimit(.minutes(10)))
  struct UnixUpstreamTests {
    @Test("A session waits until the server takes connections out of its queue")
    func waits() async throws {
      try await Places.withTemporaryFolder { folder in
        let server = try FullQueue(at: folder + "/s")
        let gate = try TestGate(
          upstream: .unix(path: folder + "/s"), limits: SessionLimits(connectTimeout: .seconds(600)))
        let client = try gate.connect()
        try client.send(TestGate.upgrade())
        while await !gate.waitsForRoom() { try await Task.sleep(for: .milliseconds(1)) }
        let backend = try server.acceptNext()
        _ = try backend.readHead()
        try backend.send(TestGate.switching)
        #expect(try client.readHead().hasPrefix("HTTP/1.1 101 "))
      }
    }

    @Test("A session is refused if the queue stays full for as long as a connection may take")
    func staysFull() async throws {
      try await Places.withTemporaryFolder { folder in
        let server = try FullQueue(at: folder + "/s")
        let gate = try TestGate(
          upstream: .unix(path: folder + "/s"), limits: SessionLimits(connectTimeout: .seconds(600)))
        let client = try gate.connect()
        try client.send(TestGate.upgrade())
        while await !gate.waitsForRoom() { try await Task.sleep(for: .milliseconds(1)) }
        await gate.engine.pass(.seconds(600))
        #expect(try client.readHead().hasPrefix("HTTP/1.1 502 "))
        withExtendedLifetime(server) {}
      }
    }

    @Test("The gate's own clients, such as health checks, wait for room in the queue")
    func clientWaits() async throws {
      try await Places.withTemporaryFolder { folder in
        let server = try FullQueue(at: folder + "/s")
        let engine = try ClientEngine()
        let connecting = Task { try await engine.connect(socket: folder + "/s", timeout: .seconds(600)) }
        for _ in 0..<1000 {
          if await engine.hasChannel() { break }
          try await Task.sleep(for: .milliseconds(1))
        }
        let backend = try server.acceptNext()
        let connection = try await connecting.value
        let answer = Task { try await connection.send("GET", "/", headers: TestGate.host).status }
        _ = try backend.readHead()
        try backend.send("HTTP/1.1 204 No Content\r\n\r\n")
        let status = try await answer.value
        #expect(status == 204)
      }
    }

    @Test("A server whose queue is full counts as reachable")
    func reachable() async throws {
      try await Places.withTemporaryFolder { folder in
        let server = try FullQueue(at: folder + "/s")
        let client = try ClientEngine()
        try await client.tryConnecting(to: .unix(path: folder + "/s"), within: .seconds(600))
        await #expect(throws: ClientError.self) {
          try await client.tryConnecting(to: .unix(path: folder + "/none"), within: .seconds(600))
        }
        withExtendedLifetime(server) {}
      }
    }
  }
}

/// A listening Unix socket whose queue of new connections has no room.
private final class FullQueue {
  private let fd: Int32
  private let waiting: [Int32]

  init(at path: String) throws {
    let fd = try Socket.make(for: .unix(path))
    self.fd = fd
    let isListening = Socket.withSystemAddress(.unix(path)) { bind(fd, $0, $1) } == 0 && listen(fd, 0) == 0
    guard isListening else { throw ScriptedSocket.Failure(description: "listen: \(errno)") }
    var waiting: [Int32] = []
    var fault: Int32 = 0
    while fault == 0 {
      let next = try Socket.make(for: .unix(path))
      waiting.append(next)
      do throws(SystemCallError) { _ = try Socket.connect(next, to: .unix(path)) } catch { fault = error.number }
    }
    guard waiting.count > 1, fault == EAGAIN else { throw ScriptedSocket.Failure(description: "connect: \(fault)") }
    self.waiting = waiting
  }

  deinit { for descriptor in waiting + [fd] { close(descriptor) } }

  /// Takes the connections that fill the queue, and returns the one after them.
  func acceptNext() throws -> ScriptedSocket {
    // From here on each call waits, for ten seconds at most.
    _ = fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK)
    var limit = timeval(tv_sec: 10, tv_usec: 0)
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    for _ in waiting.dropLast() { close(Glibc.accept(fd, nil, nil)) }
    let accepted = Glibc.accept(fd, nil, nil)
    guard accepted >= 0 else { throw ScriptedSocket.Failure(description: "accept: \(errno)") }
    return ScriptedSocket(fd: accepted)
  }
}

extension TestGate {
  /// Whether a session waits for room in the queue of its upstream.
  fileprivate func waitsForRoom() async -> Bool {
    await withCheckedContinuation { continuation in
      engine.loops[0].execute { loop in
        let waits = (0..<loop.slots.end).compactMap { loop.slots.token(in: $0) }.contains {
          loop.slots.session($0)?.pointee.http?.request.attempt.waitsForRoom == true
        }
        continuation.resume(returning: waits)
      }
    }
  }
}

extension ClientEngine {
  /// Whether a connection is open, or is being opened.
  fileprivate func hasChannel() async -> Bool {
    await withCheckedContinuation { continuation in
      loop.execute { loop in
        let tokens = (0..<loop.slots.end).compactMap { loop.slots.token(in: $0) }
        continuation.resume(returning: tokens.contains { loop.slots.channel($0) != nil })
      }
    }
  }
}
