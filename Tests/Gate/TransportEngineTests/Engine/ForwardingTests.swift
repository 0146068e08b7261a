import COpenSSL
import Glibc
import Locking
import SimulatedDevice
import TestSupport
import Testing
import Transport

@testable import TransportEngine

/// Forwards every request to one upstream, and relays upgrades to it.
private struct ForwardResponder: RequestResponder {
  let upstream: Upstream
  var limits = ForwardLimits()
  /// Called before an upgrade is decided.
  var considers: @Sendable () async -> Void = {}
  let summaries = LockedValue<[ForwardSummary]>([])
  let isWithdrawn = LockedValue(false)
  /// The upstreams that are tried after the first.
  let others = LockedValue<[Upstream]>([])

  func respond(to request: Request, from peer: Peer) async -> Disposition {
    if request.upgrade != nil {
      await considers()
      let order = OpenOrder(
        upstream: upstream, limits: SessionLimits(connectTimeout: .seconds(600)), record: SessionRecord())
      return .relay(order, upgradeHead: Array(TestGate.upgrade().utf8))
    }
    return .forward(
      PlainOrder(
        servers: LockedValue([upstream] + others.withLock(\.self)), limits: limits, summaries: summaries,
        isWithdrawn: isWithdrawn),
      head: Array("\(request.method) \(request.target) HTTP/1.1\r\nHost: x\r\n".utf8))
  }

  func streamsBody(of request: Request) -> Bool { true }
  func response(to fault: RequestError, of headers: HeaderFields?, id: String, from peer: Peer) -> Response {
    Response(status: 400, closes: true)
  }
}

private struct PlainOrder: ForwardPlan {
  /// The current upstream, and those that are tried after it.
  let servers: LockedValue<[Upstream]>
  let limits: ForwardLimits
  let summaries: LockedValue<[ForwardSummary]>
  let isWithdrawn: LockedValue<Bool>

  var upstream: Upstream { servers.withLock { $0[0] } }
  var hasAlternative: Bool { servers.withLock { $0.count > 1 } }
  func nextUpstream(after fault: UpstreamError, mayTryAnother: Bool) -> Upstream? {
    servers.withLock { servers in
      guard mayTryAnother, servers.count > 1 else { return nil }
      servers.removeFirst()
      return servers[0]
    }
  }

  func refusal() -> Response? { isWithdrawn.withLock { $0 } ? Response(status: 403) : nil }
  func opened(_ control: SessionControl) {}
  func answerFields(from upstream: HeaderFields) -> HeaderFields { upstream }
  func response(to fault: UpstreamError) -> Response { Response(status: 502, body: Array("\(fault)".utf8)) }
  func finished(_ summary: ForwardSummary) { summaries.withLock { $0.append(summary) } }
}

extension EngineTests {
  @Suite("Forwarding", .timeLimit(.minutes(10)))
  final class ForwardingTests {
    private let listener: RawListener
    private let engine: Engine
    private let responder: ForwardResponder

    init() throws {
      listener = try RawListener()
      responder = ForwardResponder(upstream: .webSocket(host: "127.0.0.1", port: listener.port))
      engine = try Engine(listeningAt: .ipv4([127, 0, 0, 1], port: 0), loops: 1, tls: nil, responder: responder)
    }

    deinit { engine.stop() }

    private func client() throws -> ScriptedSocket { try ScriptedSocket(connectingTo: engine.address.port) }

    /// Returns the largest number of bytes that wait for a client or an upstream.
    private func outbox() async -> Int {
      await withCheckedContinuation { continuation in
        engine.loops[0].execute { loop in
          let tokens = (0..<loop.slots.end).compactMap { loop.slots.token(in: $0) }
          let sessions = tokens.compactMap { loop.slots.session($0) }
          let waiting = sessions.flatMap { [$0.pointee.ends[0], $0.pointee.ends[1]] }.map(\.socket.outbox.count)
          continuation.resume(returning: waiting.max() ?? 0)
        }
      }
    }

    /// Writes until the gate reads no more from `socket`, which is the peer `side` of its session. Returns the number
    /// of accepted bytes.
    private func flood(_ side: Side, through socket: ScriptedSocket, most: Int) async -> Int {
      let engine = self.engine
      return await socket.flood([UInt8](repeating: 7, count: 1 << 20), most: most) {
        guard let state = await engine.sessionState() else { return true }
        return side == .client ? !state.client.isRead : !state.upstream.isRead
      }
    }

    private func isCalled(within milliseconds: Int32) -> Bool {
      var event = pollfd(fd: listener.fd, events: Int16(POLLIN), revents: 0)
      return poll(&event, 1, milliseconds) == 1
    }

    private static let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    @Test("Chunk extensions and other encodings of an upstream are accepted")
    func lenient() throws {
      let client = try client()
      try client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
      let backend = try listener.accept()
      _ = try backend.readHead()
      try backend.send(Array("HTTP/1.1 200 \u{e9}\r\nTransfer-Encoding: chunked\r\nX: ".utf8) + [0xE9, 13, 10, 13, 10])
      try backend.send("2  \r\nok\r\n0;c=\"d;e\"\r\n\r\n")
      let answer = try client.readToEnd()
      #expect(answer.indices.contains { answer[$0...].starts(with: Array("X: ".utf8) + [0xE9, 13, 10]) })
      let end = Array("\r\n\r\n2\r\nok\r\n0\r\n\r\n".utf8)
      #expect(answer.suffix(end.count).elementsEqual(end))
    }

    @Test("A status line without the second space, and white space before a colon, reach the client in the usual form")
    func toleratedHead() throws {
      let client = try client()
      try client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
      let backend = try listener.accept()
      _ = try backend.readHead()
      try backend.send("HTTP/1.1 100\r\nTransfer-Encoding: chunked\r\n\r\n")
      try backend.send("HTTP/1.1 200\r\nContent-Length : 2\r\nX-A\t: b\r\nDate: d\r\n\r\nok")
      #expect(
        String(decoding: try client.readToEnd(), as: UTF8.self)
          == "HTTP/1.1 200 OK\r\nX-A: b\r\nDate: d\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
    }

    @Test("Two status lines, and a name in two words, are a bad gateway")
    func twoStatusLines() throws {
      for head in ["HTTP/1.1 200\r\nHTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nX Y: a\r\n\r\n"] {
        let client = try client()
        try client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        let backend = try listener.accept()
        _ = try backend.readHead()
        try backend.send(head)
        #expect(String(decoding: try client.readToEnd(), as: UTF8.self).hasPrefix("HTTP/1.1 502 "))
      }
    }

    @Test("The beginning of an interrupted response is not parsed as the next response on the connection")
    func staleResponse() throws {
      let client = try client()
      try client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      let first = try listener.accept()
      _ = try first.readHead()
      try first.send("HTTP/1.1 200 OK\r\nX: ")
      first.sendEnd()
      #expect(try client.readHead().hasPrefix("HTTP/1.1 502 "))
      _ = try client.read("misbehaved(\"the connection closed before the response\")".utf8.count)
      try client.send(TestGate.upgrade())
      let second = try listener.accept()
      _ = try second.readHead()
      try second.send(TestGate.switching)
      #expect(try client.readHead().hasPrefix("HTTP/1.1 101 "))
    }

    @Test("An upstream is read no faster than the client reads")
    func slowReader() async throws {
      let client = try client()
      try client.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
      let backend = try listener.accept()
      _ = try backend.readHead()
      try backend.send("HTTP/1.1 200 OK\r\nContent-Length: \(256 << 20)\r\n\r\n")
      let sent = await flood(.upstream, through: backend, most: 256 << 20)
      // The kernel's buffers accept a few megabytes.
      #expect(sent < 64 << 20)
      let held = await outbox()
      #expect(held > 0 && held < 512 << 10)
    }

    @Test(
      "A client that reads an answer slowly gets all of it; a client that reads nothing is closed",
      arguments: [3 << 20, 16 << 20])
    func trickle(size: Int) async throws {
      let responder = ForwardResponder(
        upstream: .webSocket(host: "127.0.0.1", port: listener.port), limits: ForwardLimits(idleTimeout: .seconds(600)))
      var limits = EngineLimits()
      limits.decisionTimeout = .seconds(600)
      // Once the kernel has the answer, the client's connection is idle.
      limits.keepAliveTimeout = .seconds(3600)
      let engine = try Engine(
        listeningAt: .ipv4([127, 0, 0, 1], port: 0), loops: 1, tls: nil, responder: responder, limits: limits)
      defer { engine.stop() }
      let client = try ScriptedSocket(connectingTo: engine.address.port)
      var small: Int32 = 32 << 10
      setsockopt(client.fd, SOL_SOCKET, SO_RCVBUF, &small, socklen_t(MemoryLayout<Int32>.size))
      let request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
      let body = (0..<size >> 16).flatMap { Array(repeating: UInt8(truncatingIfNeeded: $0), count: 1 << 16) }
      try client.send(request)
      let backend = try listener.accept()
      _ = try backend.readHead()
      let answering = Aside {
        try backend.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: \(size)\r\n\r\n")
        try backend.send(body)
      }
      _ = try client.readHead()
      var received: [UInt8] = []
      // Longer than both timeouts.
      for _ in 0..<18 {
        await engine.pass(.seconds(60))
        received += try client.read(32 << 10)
      }
      received += try client.read(size - received.count)
      #expect(received == body)
      try await answering.value

      try client.send(request)
      let second = try listener.accept()
      _ = try second.readHead()
      let stalled = Aside {
        try second.send("HTTP/1.1 200 OK\r\nContent-Length: \(64 << 20)\r\n\r\n")
        _ = try? second.send([UInt8](repeating: 1, count: 64 << 20))
      }
      try await engine.wait(for: "the stall") { $0.client.outbox > 0 && !$0.upstream.isRead }
      for _ in 0..<20 where responder.summaries.withLock({ $0.count }) < 2 {
        await engine.pass(.seconds(600))
        try await Task.sleep(for: .milliseconds(20))
      }
      // Returns when the gate has dropped the answer.
      try await stalled.value
      #expect(responder.summaries.withLock { $0.map(\.isComplete) } == [true, false])
    }

    @Test("All complete requests in the same flight as the client's close_notify are answered")
    func pipelinedEnd() throws {
      let (engine, client) = try secured()
      defer { engine.stop() }
      client.holds = true
      for path in ["/1", "/2"] { client.send(Array("GET \(path) HTTP/1.1\r\nHost: x\r\n\r\n".utf8)) }
      client.send(Array("GET /3 HTTP".utf8))
      client.sendEnd()
      let backend = try listener.accept()
      for path in ["/1", "/2"] {
        #expect(try backend.readHead().hasPrefix("GET \(path) "))
        try backend.send(Self.answer)
      }
      let answers = String(decoding: try client.readToEnd(), as: UTF8.self)
      #expect(answers.split(separator: "HTTP/1.1 200 ").count == 2 && answers.hasSuffix("ok"))
    }

    @Test("A client is read no faster than the upstream reads")
    func slowUpstream() async throws {
      let client = try client()
      try client.send("POST /large HTTP/1.1\r\nHost: x\r\nContent-Length: \(256 << 20)\r\n\r\n")
      let backend = try listener.accept()
      _ = try backend.readHead()
      let sent = await flood(.client, through: client, most: 256 << 20)
      #expect(sent < 64 << 20)
      let held = await outbox()
      #expect(held > 0 && held < 512 << 10)
    }

    @Test("A safe request is repeated once on a new connection if a kept connection is lost")
    func repetition() throws {
      let client = try client()
      try client.send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\n")
      let first = try listener.accept()
      #expect(try first.readHead().hasPrefix("GET /1 "))
      try first.send(Self.answer)
      _ = try client.readHead()
      _ = try client.read(2)
      try client.send("GET /2 HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(try first.readHead().hasPrefix("GET /2 "))
      first.reset()
      let second = try listener.accept()
      #expect(try second.readHead().hasPrefix("GET /2 "))
      second.reset()
      #expect(try client.readHead().hasPrefix("HTTP/1.1 502"))
      #expect(!isCalled(within: 300))
    }

    @Test(
      "A request that was sent on a kept connection goes to another server only if it changes nothing",
      arguments: ["GET", "HEAD", "DELETE", "PUT"])
    func repetitionElsewhere(method: String) throws {
      let other = try RawListener()
      responder.others.withLock { $0 = [.webSocket(host: "127.0.0.1", port: other.port)] }
      let client = try client()
      try client.send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\n")
      let kept = try listener.accept()
      _ = try kept.readHead()
      try kept.send(Self.answer)
      _ = try client.readHead()
      _ = try client.read(2)
      // The server ends: no new connection, and the request is lost.
      shutdown(listener.fd, Int32(SHUT_RDWR))
      try client.send("\(method) /2 HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(try kept.readHead().hasPrefix("\(method) /2 "))
      kept.reset()
      if ["GET", "HEAD"].contains(method) {
        let second = try other.accept()
        #expect(try second.readHead().hasPrefix("\(method) /2 "))
        try second.send("HTTP/1.1 204 No Content\r\n\r\n")
        #expect(try client.readHead().hasPrefix("HTTP/1.1 204"))
      } else {
        #expect(try client.readHead().hasPrefix("HTTP/1.1 502"))
        var event = pollfd(fd: other.fd, events: Int16(POLLIN), revents: 0)
        #expect(poll(&event, 1, 0) == 0)
      }
    }

    @Test("The gate closes an idle upstream connection before servers usually do")
    func patience() async throws {
      let client = try client()
      try client.send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\n")
      let kept = try listener.accept()
      _ = try kept.readHead()
      try kept.send(Self.answer)
      _ = try client.readHead()
      // Servers usually close after five seconds. The client's connection may be idle for sixty.
      await engine.pass(.seconds(5))
      #expect(try kept.readToEnd().isEmpty)
      try client.send("GET /2 HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(try listener.accept().readHead().hasPrefix("GET /2 "))
    }

    @Test(
      "A request that changes state uses a new connection and is never repeated",
      arguments: [
        "POST / HTTP/1.1\r\nHost: x\r\n\r\n", "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n1",
        "PATCH / HTTP/1.1\r\nHost: x\r\n\r\n",
      ])
    func noRepetition(_ request: String) throws {
      let client = try client()
      try client.send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\n")
      let kept = try listener.accept()
      _ = try kept.readHead()
      try kept.send(Self.answer)
      _ = try client.readHead()
      _ = try client.read(2)
      try client.send(request)
      let own = try listener.accept()
      #expect(try own.readHead().hasPrefix(String(request.prefix(4))))
      own.reset()
      #expect(try client.readHead().hasPrefix("HTTP/1.1 502"))
      #expect(!isCalled(within: 300))
    }

    @Test("A withdrawn order is answered and not sent, on a kept connection and on a new one")
    func withdrawn() throws {
      let client = try client()
      try client.send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\n")
      let kept = try listener.accept()
      _ = try kept.readHead()
      try kept.send(Self.answer)
      _ = try client.readHead()
      _ = try client.read(2)
      responder.isWithdrawn.withLock { $0 = true }
      try client.send("GET /2 HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(try client.readHead().hasPrefix("HTTP/1.1 403"))
      #expect(try kept.readToEnd() == [])
      try client.send("POST /3 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi")
      #expect(try listener.accept().readToEnd() == [])
      #expect(try client.readHead().hasPrefix("HTTP/1.1 403"))
      #expect(responder.summaries.withLock { $0.map(\.status) } == [200, nil, nil])
    }

    @Test("A client that disconnects aborts the request at the upstream, and each request is reported once")
    func clientLeaves() throws {
      let client = try client()
      try client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12345")
      let backend = try listener.accept()
      #expect(try backend.readHead().contains("Content-Length: 10"))
      client.reset()
      #expect(try backend.readToEnd() == Array("12345".utf8))
      #expect(responder.summaries.withLock { $0.map(\.isComplete) } == [false])
      #expect(responder.summaries.withLock { $0.map(\.bytesFromClient) } == [5])
    }

    /// Returns a gate with TLS before `listener`, and a client that decides when its bytes are sent.
    private func secured(
      _ responder: ForwardResponder? = nil, newestVersion: Int32 = TLS1_3_VERSION
    ) throws -> (engine: Engine, client: RawTLS) {
      let files = try TLSFolder()
      let engine = try Engine(
        listeningAt: .ipv4([127, 0, 0, 1], port: 0), loops: 1, tls: files.server(),
        responder: responder ?? self.responder)
      let client = try RawTLS(
        try ScriptedSocket(connectingTo: engine.address.port), try files.client(), newestVersion: newestVersion)
      try client.handshake()
      return (engine, client)
    }

    @Test("A client that closes after a complete request is answered", arguments: [true, false])
    func askedAll(isOneFlight: Bool) throws {
      let (engine, client) = try secured()
      defer { engine.stop() }
      client.holds = isOneFlight
      client.send(Array("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n".utf8))
      var backend: ScriptedSocket?
      if !isOneFlight {
        backend = try listener.accept()
        _ = try backend?.readHead()
        client.holds = true
      }
      client.send(Array("12345".utf8))
      client.sendEnd()
      let upstream = try backend ?? listener.accept()
      if isOneFlight { _ = try upstream.readHead() }
      #expect(try upstream.read(5) == Array("12345".utf8))
      try upstream.send(Self.answer)
      let answer = String(decoding: try client.readToEnd(), as: UTF8.self)
      #expect(answer.hasPrefix("HTTP/1.1 200 ") && answer.hasSuffix("ok"))
    }

    @Test("A client that resets while it waits for its answer frees the upstream")
    func brokenOff() throws {
      let client = try client()
      try client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      let backend = try listener.accept()
      _ = try backend.readHead()
      usleep(50_000)
      client.reset()
      // Ten seconds is the limit of a test's socket; the upstream may be silent for sixty.
      #expect(try backend.readToEnd() == [])
      #expect(responder.summaries.withLock { $0.map(\.isComplete) } == [false])
    }

    @Test(
      "A client that closes its connection in order while it waits for its answer frees the upstream",
      arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func cancelled(version: Int32) throws {
      for isOneFlight in [false, true] {
        let (engine, asking) = try secured(newestVersion: version)
        defer { engine.stop() }
        var client: RawTLS? = consume asking
        client?.holds = isOneFlight
        client?.send(Array("GET / HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
        if isOneFlight { client?.sendEnd() }
        let backend = try listener.accept()
        _ = try backend.readHead()
        if !isOneFlight { client?.sendEnd() }
        client = nil
        #expect(try backend.readToEnd() == [])
        #expect(responder.summaries.withLock { $0.last?.isComplete } == false)
      }
      #expect(responder.summaries.withLock { $0.count } == 2)
    }

    @Test(
      "A client that leaves while the upstream considers its upgrade frees the upstream",
      arguments: [TLS1_2_VERSION, TLS1_3_VERSION], [true, false])
    func cancelledUpgrade(version: Int32, resets: Bool) throws {
      let (engine, asking) = try secured(newestVersion: version)
      defer { engine.stop() }
      var client: RawTLS? = consume asking
      client?.send(Array(TestGate.upgrade().utf8))
      let backend = try listener.accept()
      _ = try backend.readHead()
      if resets { client?.socket.reset() } else { client?.sendEnd() }
      client = nil
      // The upstream's time is ten minutes, and ten seconds are the limit of a test's socket.
      #expect(try backend.readToEnd() == [])
    }

    @Test(
      "A client that sends during the decision about its upgrade, and leaves after it, frees the upstream",
      arguments: [true, false])
    func leftAfterDecision(resets: Bool) async throws {
      let (asked, ask) = AsyncStream.makeStream(of: Void.self)
      let (decided, decide) = AsyncStream.makeStream(of: Void.self)
      let considering = ForwardResponder(
        upstream: responder.upstream,
        considers: {
          ask.finish()
          for await _ in decided {}
        })
      let (engine, asking) = try secured(considering)
      defer { engine.stop() }
      var client: RawTLS? = consume asking
      client?.send(Array(TestGate.upgrade().utf8))
      for await _ in asked {}
      client?.send([0])
      // The loop sees the byte before this returns.
      await engine.pass(.zero)
      decide.finish()
      let backend = try listener.accept()
      _ = try backend.readHead()
      if resets { client?.socket.reset() } else { client?.sendEnd() }
      client = nil
      // As above, the upstream's time is ten minutes.
      #expect(try backend.readToEnd() == [])
    }

    @Test("A client that sends all of its body before it reads gets the answer that came early")
    func earlyAnswer() async throws {
      let client = try client()
      try client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
      let backend = try listener.accept()
      _ = try backend.readHead()
      try backend.send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
      #expect(try client.readHead().hasPrefix("HTTP/1.1 413 "))
      // Longer than a client that does nothing is waited for.
      for _ in 0..<10 {
        try client.send("more")
        await engine.pass(.seconds(1))
      }
      #expect(try client.readToEnd() == Array("no".utf8))
    }

    @Test("A client that closes only its sending side while it waits is asked whether it reads, and answered")
    func halfClosed() throws {
      let (engine, client) = try secured()
      defer { engine.stop() }
      client.send(Array("GET / HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
      let backend = try listener.accept()
      _ = try backend.readHead()
      client.sendEnd()
      // The record that asks.
      #expect(try client.read() == [])
      try backend.send(Self.answer)
      #expect(String(decoding: try client.readToEnd(), as: UTF8.self).hasSuffix("ok"))
    }

    @Test("A body begun under the previous responder is answered with 503, and bytes after it are not forwarded")
    func replacedWithinBody() async throws {
      let gate = try TestGate(upstream: .tcp(host: "127.0.0.1", port: 1))
      let client = try gate.connect()
      try client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
      #expect(try client.readHead().hasPrefix("HTTP/1.1 100 "))
      try await gate.engine.replace(responder: responder, tls: nil)
      try client.send("helloGET /secret HTTP/1.1\r\nHost: x\r\n\r\n")
      let answers = String(decoding: try client.readToEnd(), as: UTF8.self)
      #expect(answers.hasPrefix("HTTP/1.1 503 ") && answers.split(separator: "HTTP/1.1 ").count == 1)
      #expect(!isCalled(within: 100))
    }

    @Test("A client that closes within its request, in its first flight, uses no resources afterwards")
    func leftWithin() throws {
      let (engine, client) = try secured()
      defer { engine.stop() }
      client.holds = true
      client.send(Array("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n123".utf8))
      client.sendEnd()
      let backend = try listener.accept()
      #expect(String(decoding: try backend.readToEnd(), as: UTF8.self).hasSuffix("\r\n\r\n123"))
      #expect(responder.summaries.withLock { $0.map(\.isComplete) } == [false])
    }

    @Test(
      "A connection verified by the previous authority is not kept after a reload, busy or idle",
      arguments: [nil, true, false])
    func reloaded(isBusy: Bool?) async throws {
      let files = try TLSFolder()
      let inner = try TestGate(upstream: .tcp(host: "127.0.0.1", port: 1), tls: files.server())
      let tls = UpstreamTLS(caFile: files.folder.tlsAuthorityPath, serverName: "localhost")
      let responder = ForwardResponder(
        upstream: .secureWebSocket(host: "127.0.0.1", port: inner.engine.address.port, tls: tls))
      let outer = try Engine(listeningAt: .ipv4([127, 0, 0, 1], port: 0), loops: 1, tls: nil, responder: responder)
      defer { outer.stop() }
      let client = try ScriptedSocket(connectingTo: outer.address.port)
      try client.send("GET \(Pause.path) HTTP/1.1\r\nHost: x\r\n\r\n")
      inner.record.pause.begin()
      if isBusy == true { try await outer.replace(responder: responder, tls: nil) }
      inner.record.pause.end()
      #expect(try client.readHead().hasPrefix("HTTP/1.1 200 "))
      _ = try client.read("GET \(Pause.path) 0".utf8.count)
      if isBusy == false { try await outer.replace(responder: responder, tls: nil) }
      let kept = await withCheckedContinuation { continuation in
        outer.loops[0].execute { continuation.resume(returning: $0.keptUpstreams.all.count) }
      }
      #expect(kept == (isBusy == nil ? 1 : 0))
    }
  }
}
