import Glibc
import Locking
import TestSupport
import Testing
import Transport

@testable import TransportEngine

private typealias Frames = FrameTrackerTests

/// Frames as clients and as servers send them.
private func fromClient(_ opcode: UInt8, _ payload: [UInt8], final: Bool = true) -> [UInt8] {
  Frames.frame(opcode, payload, final: final, mask: Frames.mask)
}

private func fromServer(_ opcode: UInt8, _ payload: [UInt8], final: Bool = true) -> [UInt8] {
  Frames.frame(opcode, payload, final: final)
}

extension EngineTests {
  @Suite("Relay", .timeLimit(.minutes(10)))
  struct RelayTests {
    private func gate(
      _ listener: RawListener, limits: SessionLimits = SessionLimits(), engineLimits: EngineLimits = EngineLimits()
    ) throws -> TestGate {
      try TestGate(
        upstream: .webSocket(host: "127.0.0.1", port: listener.port), limits: limits, engineLimits: engineLimits)
    }

    @Test("Frames, Close frames and half-closes pass in both directions unchanged")
    func faithful() async throws {
      let listener = try RawListener()
      let gate = try gate(listener)
      let (client, backend) = try gate.open(through: listener)
      let up = fromClient(1, Array("hello".utf8)) + fromClient(8, [0x0F, 0xA1])
      try client.send(up)
      #expect(try backend.read(up.count) == up)
      let down = fromServer(2, Array(repeating: 7, count: 70_000)) + fromServer(8, [0x0F, 0xA1])
      try backend.send(down)
      backend.sendEnd()
      #expect(try client.readToEnd() == down)
      client.sendEnd()
      #expect(try backend.readToEnd() == [])
      let summary = await gate.record.next()
      #expect(summary.end == .closed(by: .client, code: 4001))
      #expect(summary.bytesFromClient == UInt64(up.count) && summary.bytesFromUpstream == UInt64(down.count))
    }

    @Test(
      "The client gets the upstream's choice, or else the gate's own subprotocol, which the upstream may not choose",
      arguments: [("chat", "chat"), (nil, "sallyport.v1"), ("sallyport.v1", nil), ("other", nil)]
        as [(String?, String?)])
    func ownSubprotocols(chosen: String?, answered: String?) throws {
      let listener = try RawListener()
      let gate = try gate(listener)
      gate.record.ownSubprotocols.withLock { $0 = ["sallyport.v1", "sallyport.v1.e30"] }
      let client = try gate.connect()
      try client.send(
        TestGate.upgrade(extra: "Sec-WebSocket-Protocol: sallyport.v1.e30, chat, sallyport.v1\r\n"))
      let backend = try listener.accept()
      _ = try backend.readHead()
      let choice = chosen.map { "Sec-WebSocket-Protocol: \($0)\r\n" } ?? ""
      try backend.send(TestGate.switching.dropLast() + choice + "\r\n")
      let head = try client.readHead()
      #expect(head.hasPrefix(answered == nil ? "HTTP/1.1 502 " : "HTTP/1.1 101 "))
      if let answered { #expect(head.contains("\r\nSec-WebSocket-Protocol: \(answered)\r\n")) }
    }

    @Test("A client that has half-closed still gets the upstream's data")
    func halfClose() async throws {
      let listener = try RawListener()
      let gate = try gate(listener)
      let (client, backend) = try gate.open(through: listener)
      client.sendEnd()
      #expect(try backend.readToEnd() == [])
      let late = fromServer(2, Array(repeating: 1, count: 100_000)) + fromServer(8, [])
      try backend.send(late)
      backend.sendEnd()
      #expect(try client.readToEnd() == late)
      #expect(await gate.record.next().end == .lost(.client, "the connection was closed"))
    }

    @Test("Data that either peer sends before the session opens is not lost")
    func early() throws {
      let listener = try RawListener()
      let gate = try gate(listener)
      let client = try gate.connect()
      let up = fromClient(1, [1, 2, 3])
      try client.send(Array(TestGate.upgrade().utf8) + up)
      let backend = try listener.accept()
      _ = try backend.readHead()
      let down = fromServer(1, [4, 5])
      try backend.send(Array(TestGate.switching.utf8) + down)
      _ = try client.readHead()
      #expect(try client.read(down.count) == down)
      #expect(try backend.read(up.count) == up)
    }

    @Test(
      "An order that is withdrawn before the upgrade is sent is refused, and the upstream receives nothing",
      arguments: [true, false])
    func withdrawn(isBridge: Bool) throws {
      let listener = try RawListener()
      let gate = try TestGate(
        upstream: isBridge
          ? .tcp(host: "127.0.0.1", port: listener.port) : .webSocket(host: "127.0.0.1", port: listener.port))
      gate.record.refusal.withLock { $0 = Response(status: 403, closes: true) }
      let client = try gate.connect()
      try client.send(Array(TestGate.upgrade().utf8) + fromClient(1, [1, 2, 3]))
      #expect(try listener.accept().readToEnd() == [])
      #expect(try client.readHead().hasPrefix("HTTP/1.1 403 "))
      #expect(gate.record.controls.isEmpty)
    }

    @Test("An order that is withdrawn before the upstream's 101 forwards no frame")
    func withdrawnLate() throws {
      let listener = try RawListener()
      let gate = try gate(listener)
      let client = try gate.connect()
      try client.send(Array(TestGate.upgrade().utf8) + fromClient(1, [1, 2, 3]))
      let backend = try listener.accept()
      _ = try backend.readHead()
      gate.record.refusal.withLock { $0 = Response(status: 403, closes: true) }
      try backend.send(TestGate.switching)
      #expect(try backend.readToEnd() == [])
      #expect(try client.readHead().hasPrefix("HTTP/1.1 403 "))
      #expect(gate.record.controls.isEmpty)
    }

    @Test("Data that a client sends immediately reaches a TCP service complete and in order, and is answered")
    func bridge() throws {
      let listener = try RawListener()
      let gate = try TestGate(upstream: .tcp(host: "127.0.0.1", port: listener.port))
      let client = try gate.connect()
      try client.send(TestGate.upgrade())
      let service = try listener.accept()
      _ = try client.readHead()
      try client.send(
        fromClient(2, [1, 2]) + fromClient(9, [7]) + fromClient(2, [3]) + fromClient(9, [8])
          + fromClient(8, [0x03, 0xE8]))
      #expect(try service.readToEnd() == [1, 2, 3])
      let answers = fromServer(10, [7]) + fromServer(10, [8]) + fromServer(8, [0x03, 0xE8])
      #expect(try client.read(answers.count) == answers)
    }

    @Test("A Close of the gate waits for the frame in transit and is sent to both peers")
    func closeBetweenFrames() async throws {
      let listener = try RawListener()
      var limits = EngineLimits()
      limits.lostRightTimeout = limits.closeTimeout
      let gate = try gate(listener, engineLimits: limits)
      let (client, backend) = try gate.open(through: listener)
      let frame = fromServer(2, Array(repeating: 9, count: 1000))
      try backend.send(Array(frame[..<500]))
      #expect(try client.read(500) == Array(frame[..<500]))
      gate.record.controls[0].close(.revoked, reason: "revoked")
      // No frame from the client is in transit: the upstream gets its Close immediately, masked like a client's.
      let received = try backend.read(6 + 2 + 7)
      #expect(received[0] == 0x88 && received[1] == 0x80 | 9)
      try backend.send(Array(frame[500...]) + fromServer(2, [1]))
      let close = GateFrame.close(3003, reason: "revoked", mask: nil)
      let rest = try client.read(frame.count - 500 + close.count)
      #expect(rest.suffix(close.count + 4) == [9, 9, 9, 9] + close)
      #expect(Array(rest.dropLast(close.count)) == Array(frame[500...]))
      try client.send(fromClient(8, [0x0B, 0xBB]))
      try backend.send(fromServer(8, [0x0B, 0xBB]))
      #expect(try client.readToEnd() == [])
      #expect(try backend.readToEnd() == [])
      client.sendEnd()
      backend.sendEnd()
      #expect(await gate.record.next().end == .closedByGate(3003, reason: "revoked"))
    }

    @Test("A session that loses its permission is closed inside a frame too", arguments: [true, false])
    func cutInsideFrame(isRevoked: Bool) async throws {
      let listener = try RawListener()
      var limits = EngineLimits()
      limits.closeTimeout = .seconds(120)
      limits.lostRightTimeout = .milliseconds(300)
      let gate = try gate(
        listener, limits: SessionLimits(maxAge: isRevoked ? nil : .seconds(1)), engineLimits: limits)
      let (client, backend) = try gate.open(through: listener)
      let frame = fromClient(2, Array(repeating: 9, count: 1000))
      try client.send(Array(frame[..<500]))
      #expect(try backend.read(500) == Array(frame[..<500]))
      if isRevoked { gate.record.controls[0].close(.revoked, reason: "revoked") }
      let summary = await gate.record.next()
      #expect(summary.duration < .seconds(60))
      guard case .closedByGate(isRevoked ? 3003 : 3008, _) = summary.end else {
        Issue.record("unexpected end: \(summary.end)")
        return
      }
      _ = client
    }

    @Test("A message over the limit closes the session with 1009 before the excess is forwarded")
    func tooBig() async throws {
      let listener = try RawListener()
      let gate = try gate(listener, limits: SessionLimits(maxMessage: 100))
      let (client, backend) = try gate.open(through: listener)
      let allowed = fromClient(2, Array(repeating: 1, count: 60), final: false)
      try client.send(allowed + fromClient(0, Array(repeating: 1, count: 41)))
      #expect(try backend.read(allowed.count) == allowed)
      #expect(try backend.read(2).first == 0x88)
      let close = try client.read(4)
      #expect(close[0] == 0x88 && close[2] == 0x03 && close[3] == 0xF1)
      client.sendEnd()
      backend.sendEnd()
      guard case .closedByGate(1009, _) = await gate.record.next().end else {
        Issue.record("not closed with 1009")
        return
      }
    }

    @Test("A silent peer is pinged; its Pong is not forwarded, and other Pongs are")
    func pings() throws {
      let listener = try RawListener()
      let gate = try gate(listener, limits: SessionLimits(pingInterval: .milliseconds(200)))
      let (client, backend) = try gate.open(through: listener)
      let ping = try client.read(10)
      #expect(ping[0] == 0x89 && ping[1] == 8)
      let foreign = fromClient(10, [1, 2, 3])
      try client.send(fromClient(10, Array(ping[2...])) + foreign)
      // The upstream is pinged as well, with masked frames. Its next frame is the client's own Pong.
      var received = try backend.read(2)
      while received == [0x89, 0x88] {
        _ = try backend.read(12)
        received = try backend.read(2)
      }
      #expect(try received + backend.read(foreign.count - 2) == foreign)
    }

    @Test("The session of a peer that does not answer is closed with 3008")
    func idle() async throws {
      let listener = try RawListener()
      let gate = try gate(
        listener, limits: SessionLimits(idleTimeout: .milliseconds(400), pingInterval: nil))
      let (client, backend) = try gate.open(through: listener)
      let close = try client.read(4)
      #expect(close[0] == 0x88 && UInt16(close[2]) << 8 | UInt16(close[3]) == 3008)
      _ = try backend.read(1)
      client.sendEnd()
      backend.sendEnd()
      guard case .closedByGate(3008, _) = await gate.record.next().end else {
        Issue.record("not closed with 3008")
        return
      }
    }

    @Test(
      "A message in one frame may take longer than the idle time, and its receiver has as long again to answer",
      arguments: [true, false])
    func longFrame(isUpload: Bool) async throws {
      let listener = try RawListener()
      let gate = try gate(listener, limits: SessionLimits(idleTimeout: .seconds(600), pingInterval: .seconds(200)))
      let (client, backend) = try gate.open(through: listener)
      let payload = [UInt8](repeating: 7, count: 12)
      let frame = isUpload ? fromClient(2, payload) : fromServer(2, payload)
      let header = frame.count - payload.count
      for count in header + 1...frame.count {
        try (isUpload ? client : backend).send(Array(frame[(count == header + 1 ? 0 : count - 1)..<count]))
        try await gate.engine.wait(for: "byte \(count)") { (isUpload ? $0.client : $0.upstream).bytes == count }
        if count < frame.count { await gate.engine.pass(.seconds(100)) }
      }
      #expect(try (isUpload ? backend : client).read(frame.count) == frame)
      // The Ping that waited for the end of the frame was sent with it.
      await gate.engine.pass(.seconds(500))
      #expect(await gate.engine.sessionState() != nil)
      await gate.engine.pass(.seconds(100))
      client.sendEnd()
      backend.sendEnd()
      guard case .closedByGate(3008, _) = await gate.record.next().end else {
        Issue.record("not closed with 3008")
        return
      }
    }

    @Test(
      "A half-closed client is closed as idle although the upstream still sends, whether the client reads or not",
      arguments: [true, false])
    func halfClosedAndIdle(reads: Bool) async throws {
      let listener = try RawListener()
      var engineLimits = EngineLimits()
      engineLimits.closeTimeout = .milliseconds(200)
      let gate = try gate(
        listener, limits: SessionLimits(idleTimeout: .seconds(1), pingInterval: .milliseconds(100)),
        engineLimits: engineLimits)
      let (client, backend) = try gate.open(through: listener)
      client.sendEnd()
      _ = try backend.readToEnd()
      let message = fromServer(2, [UInt8](repeating: 7, count: 60_000))
      let sender = Aside { while (try? backend.send(message)) != nil {} }
      if reads { _ = try? client.readToEnd() }
      #expect(await gate.record.next().end == .lost(.client, "the connection was closed"))
      try await sender.value
      _ = client
    }

    @Test(
      "Fields of an upstream that are not UTF-8 reach the client unchanged", arguments: [true, false])
    func otherText(isRefused: Bool) throws {
      let listener = try RawListener()
      let gate = try gate(listener)
      let client = try gate.connect()
      try client.send(TestGate.upgrade())
      let backend = try listener.accept()
      _ = try backend.readHead()
      let text = isRefused ? "HTTP/1.1 403 N\r\nContent-Length: 0\r\n\r\n" : TestGate.switching
      let field = Array("X-Name: ".utf8) + [0xE9, 0x80, 0xFF, 0x20, 0x61] + Array("\r\n\r\n".utf8)
      try backend.send(Array(text.utf8.dropLast(2)) + field)
      var head: [UInt8] = []
      while !head.suffix(4).elementsEqual("\r\n\r\n".utf8) { head += try client.read(1) }
      let line = field.dropLast(2)
      #expect(head.indices.contains { head[$0...].starts(with: line) })
      #expect(head.starts(with: (isRefused ? "HTTP/1.1 403 " : "HTTP/1.1 101 ").utf8))
    }

    @Test("An upstream's refusal may have chunk extensions")
    func chunkExtensions() throws {
      let listener = try RawListener()
      let gate = try gate(listener)
      let client = try gate.connect()
      try client.send(TestGate.upgrade())
      let backend = try listener.accept()
      _ = try backend.readHead()
      try backend.send(
        "HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nno\r\n0;c=\"d\"\r\nX: y\r\n\r\n")
      let answer = String(decoding: try client.readToEnd(), as: UTF8.self)
      #expect(answer.hasPrefix("HTTP/1.1 403 ") && answer.hasSuffix("\r\n\r\nno"))
    }

    @Test(
      "A refusal whose body is over 64 KiB is passed on without it",
      arguments: [
        "Content-Length: 65537\r\n\r\n", "\r\n" + String(repeating: "b", count: 65_537),
        "Transfer-Encoding: chunked\r\n\r\n10001\r\n" + String(repeating: "b", count: 65_537) + "\r\n",
      ])
    func longRefusal(rest: String) throws {
      let listener = try RawListener()
      let gate = try gate(listener)
      let client = try gate.connect()
      try client.send(TestGate.upgrade())
      let backend = try listener.accept()
      _ = try backend.readHead()
      try backend.send("HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Type: text/html\r\n" + rest)
      let answer = String(decoding: try client.readToEnd(), as: UTF8.self)
      #expect(answer.hasPrefix("HTTP/1.1 429 ") && answer.hasSuffix("\r\n\r\n"))
      #expect(answer.contains("Retry-After: 7\r\n") && !answer.contains("text/html"))
    }

    @Test(
      "A refusal cut off by a reset is answered with 502; one that ends with the connection is passed on",
      arguments: [true, false])
    func refusalCut(breaksOff: Bool) throws {
      let listener = try RawListener()
      let gate = try gate(listener)
      let client = try gate.connect()
      try client.send(TestGate.upgrade())
      let backend = try listener.accept()
      _ = try backend.readHead()
      try backend.send("HTTP/1.1 403 No\r\n\r\nhalf")
      usleep(50_000)
      if breaksOff { backend.reset() } else { backend.sendEnd() }
      let answer = String(decoding: try client.readToEnd(), as: UTF8.self)
      #expect(answer.hasPrefix(breaksOff ? "HTTP/1.1 502 " : "HTTP/1.1 403 "))
    }

    @Test("A busy session is closed at its maximum age")
    func age() async throws {
      let listener = try RawListener()
      let gate = try gate(listener, limits: SessionLimits(maxAge: .milliseconds(500)))
      let (client, backend) = try gate.open(through: listener)
      var received: [UInt8] = []
      while !received.contains(0x88) {
        try client.send(fromClient(9, []))
        try backend.send(fromServer(9, []))
        received = try client.readSome()
      }
      #expect(received.drop { $0 != 0x88 }.dropFirst(2).prefix(2) == [0x0B, 0xC0])
    }

    @Test("The loss of an upstream without a Close is reported to the client as 1014", arguments: [true, false])
    func backendLost(resets: Bool) async throws {
      let listener = try RawListener()
      let gate = try gate(listener)
      let (client, backend) = try gate.open(through: listener)
      try backend.send(fromServer(1, [1]))
      #expect(try client.read(3).count == 3)
      if resets { backend.reset() } else { backend.sendEnd() }
      let close = try client.read(4)
      #expect(close[0] == 0x88 && UInt16(close[2]) << 8 | UInt16(close[3]) == 1014)
      _ = try client.readToEnd()
      client.sendEnd()
      guard case .lost(.upstream, _) = await gate.record.next().end else {
        Issue.record("not lost by the upstream")
        return
      }
    }

    @Test("A client that resets closes the session at the upstream too")
    func clientLost() async throws {
      let listener = try RawListener()
      let gate = try gate(listener)
      let (client, backend) = try gate.open(through: listener)
      client.reset()
      #expect(try backend.readToEnd() == [])
      backend.sendEnd()
      guard case .lost(.client, _) = await gate.record.next().end else {
        Issue.record("not lost by the client")
        return
      }
    }

    @Test("A drain closes all open sessions with 1001")
    func drain() async throws {
      let listener = try RawListener()
      let gate = try gate(listener)
      let (client, backend) = try gate.open(through: listener)
      let idle = try gate.connect()
      let draining = Task { await gate.engine.drain(timeout: .seconds(30)) }
      let close = try client.read(4)
      #expect(close[0] == 0x88 && UInt16(close[2]) << 8 | UInt16(close[3]) == 1001)
      try client.send(fromClient(8, [0x03, 0xE9]))
      _ = try backend.read(8)
      try backend.send(fromServer(8, [0x03, 0xE9]))
      _ = try client.readToEnd()
      client.sendEnd()
      _ = try backend.readToEnd()
      backend.sendEnd()
      #expect(try idle.readToEnd() == [])
      idle.sendEnd()
      #expect(await draining.value == 0)
      #expect(throws: ScriptedSocket.Failure.self) { _ = try gate.connect() }
    }

    @Test("A stalled reader stops the writer, and receives every byte after it continues")
    func stall() throws {
      let listener = try RawListener()
      let gate = try gate(listener)
      let (client, backend) = try gate.open(through: listener)
      let payload = (0..<(Sanitizer.isOn ? 2 << 20 : 8 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 11) }
      let frame = fromServer(2, payload)
      let sender = Aside { try backend.send(frame) }
      var received: [UInt8] = []
      while received.count < frame.count { received += try client.readSome(1000 + received.count / 8) }
      #expect(received == frame)
      _ = sender
    }
  }
}
