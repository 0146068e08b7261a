import Glibc
import TestSupport
import Testing
import Transport

@testable import TransportEngine

/// Answers every request with one word.
private struct OneWord: RequestResponder {
  let word: String

  func respond(to request: Request, from peer: Peer) async -> Disposition {
    .respond(Response(status: 200, body: Array(word.utf8)))
  }

  func response(to fault: RequestError, of headers: HeaderFields?, id: String, from peer: Peer) -> Response {
    Response(status: 400)
  }
}

extension EngineTests {
  @Suite("Graceful upgrade", .timeLimit(.minutes(10)))
  struct GracefulUpgradeTests {
    private func engine(_ word: String, inheriting sockets: [Int32], loops: Int = 1) throws -> Engine {
      try Engine(inheriting: sockets, loops: loops, tls: nil, responder: OneWord(word: word))
    }

    private func engine(_ word: String, loops: Int = 1) throws -> Engine {
      try Engine(listeningAt: .ipv4([127, 0, 0, 1], port: 0), loops: loops, tls: nil, responder: OneWord(word: word))
    }

    private func ask(_ socket: ScriptedSocket, for length: Int) throws -> String {
      try socket.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      _ = try socket.readHead()
      return String(decoding: try socket.read(length), as: UTF8.self)
    }

    @Test(
      "A new engine takes over while clients connect, and no client is refused", arguments: [1, 2], [1, 2])
    func handOver(loops: Int, newLoops: Int) async throws {
      let old = try engine("old", loops: loops)
      let port = old.address.port
      let kept = try ScriptedSocket(connectingTo: port)
      #expect(try ask(kept, for: 3) == "old")
      let new = try engine("new", inheriting: await old.socketCopies(), loops: newLoops)
      await old.shareSockets()
      #expect(new.address == old.address)
      // A socket is counted once, however many loops accept from it.
      let copies = await new.socketCopies()
      #expect(copies.count == loops)
      for copy in copies { close(copy) }
      // These connections wait in the queue for either engine.
      let waiting = try (0..<20).map { _ in try ScriptedSocket(connectingTo: port) }
      await old.stopListening()
      for socket in waiting { #expect(["old", "new"].contains(try ask(socket, for: 3))) }
      #expect(try ask(kept, for: 3) == "old")
      for _ in 0..<20 { #expect(try ask(ScriptedSocket(connectingTo: port), for: 3) == "new") }
      _ = await old.drain(timeout: .milliseconds(100))
      old.stop()
      for _ in 0..<20 { #expect(try ask(ScriptedSocket(connectingTo: port), for: 3) == "new") }
      new.stop()
    }

    @Test("Connections in the accept queue remain after an engine with inherited sockets stops")
    func leftInTheQueue() async throws {
      let listener = try RawListener()
      let copies = (0..<2).map { _ in fcntl(listener.fd, F_DUPFD_CLOEXEC, 3) }
      let first = try engine("one", inheriting: [copies[0]])
      #expect(try ask(ScriptedSocket(connectingTo: listener.port), for: 3) == "one")
      await first.drain(timeout: .seconds(10))
      first.stop()
      let early = try ScriptedSocket(connectingTo: listener.port)
      try early.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      let second = try engine("two", inheriting: [copies[1]], loops: 2)
      #expect(try early.readHead().hasPrefix("HTTP/1.1 200 "))
      second.stop()
    }

    @Test("If the new engine does not start, the old engine continues and stops as usual")
    func withoutUpgradeChild() async throws {
      let old = try engine("old", loops: 2)
      for copy in await old.socketCopies() { close(copy) }
      for _ in 0..<20 { #expect(try ask(ScriptedSocket(connectingTo: old.address.port), for: 3) == "old") }
      await old.drain(timeout: .milliseconds(100))
      old.stop()
      #expect(throws: (any Error).self) { try ScriptedSocket(connectingTo: old.address.port) }
    }

    @Test("An engine that does not accept yet leaves clients in the queue until it does")
    func acceptsLater() async throws {
      let engine = try Engine(
        listeningAt: .ipv4([127, 0, 0, 1], port: 0), loops: 2, tls: nil, responder: OneWord(word: "late"),
        accepts: false)
      let early = try ScriptedSocket(connectingTo: engine.address.port)
      try early.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(await engine.traffic().connections == 0)
      engine.startAccepting()
      #expect(try early.readHead().hasPrefix("HTTP/1.1 200 "))
      engine.stop()
    }

    @Test("The file of a Unix socket is removed by the new engine that owns it, not by the old one")
    func unixSocket() async throws {
      try await Places.withTemporaryFolder { folder in
        let path = folder + "/s"
        let old = try Engine(listeningAt: .unix(path), loops: 1, tls: nil, responder: OneWord(word: "old"))
        let copies = await old.socketCopies()
        #expect(copies.map { Engine.address(ofListening: $0) } == [.unix(path)])
        let new = try Engine(inheriting: copies, ownsFile: true, loops: 1, tls: nil, responder: OneWord(word: "new"))
        await old.shareSockets()
        await old.drain(timeout: .milliseconds(100))
        old.stop()
        #expect(UnixSocketFile.state(at: path) == .live)
        await new.drain(timeout: .milliseconds(100))
        new.stop()
        #expect(UnixSocketFile.state(at: path) == .absent)
      }
    }

    @Test("A descriptor that is not a listening socket is refused")
    func notListening() throws {
      let listener = try RawListener()
      let socket = try ScriptedSocket(connectingTo: listener.port)
      for descriptors in [[], [socket.fd], [1 << 20]] {
        #expect(throws: Engine.StartError.self) { try engine("never", inheriting: descriptors) }
      }
    }

    @Test("A new responder answers the next request of a connection, and open sessions continue")
    func replaced() async throws {
      let listener = try RawListener()
      let gate = try TestGate(upstream: .webSocket(host: "127.0.0.1", port: listener.port))
      let (client, backend) = try gate.open(through: listener)
      let kept = try gate.connect()
      #expect(try ask(kept, for: 7) == "GET / 0")
      try await gate.engine.replace(responder: OneWord(word: "new"), tls: nil)
      #expect(try ask(kept, for: 3) == "new")
      #expect(try ask(gate.connect(), for: 3) == "new")
      let frame = FrameTrackerTests.frame(1, [1], mask: FrameTrackerTests.mask)
      try client.send(frame)
      #expect(try backend.read(frame.count) == frame)
    }

    @Test("Authorities that cannot be read change nothing")
    func brokenAuthorities() async throws {
      let engine = try engine("old")
      let upstream = Upstream.secureWebSocket(
        host: "localhost", port: 1, tls: UpstreamTLS(caFile: "/nowhere/authorities.pem"))
      await #expect(throws: ServerTLS.SetupError.self) {
        try await engine.replace(responder: OneWord(word: "new"), tls: nil, upstreams: [upstream])
      }
      #expect(try ask(ScriptedSocket(connectingTo: engine.address.port), for: 3) == "old")
      engine.stop()
    }
  }
}
