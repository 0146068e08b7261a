import Testing
import Transport

@testable import TransportEngine

extension EngineTests {
  @Suite("Requests and upgrades", .timeLimit(.minutes(10)))
  struct ExchangeTests {
    private func gate(_ listener: RawListener, limits: SessionLimits = SessionLimits()) throws -> TestGate {
      try TestGate(upstream: .webSocket(host: "127.0.0.1", port: listener.port), limits: limits)
    }

    /// Returns the head and the body of one answer on a connection that stays open.
    private func answer(_ socket: ScriptedSocket) throws -> (head: String, body: String) {
      let head = try socket.readHead()
      let length = head.split(separator: "\r\n").first { $0.hasPrefix("Content-Length: ") }?.dropFirst(16)
      let body = try socket.read(Int(length ?? "0") ?? 0)
      return (head, String(decoding: body, as: UTF8.self))
    }

    @Test("Several requests and then the upgrade use one connection, as clients do")
    func keepAlive() throws {
      let listener = try RawListener()
      let gate = try gate(listener)
      let client = try gate.connect()
      for index in 0..<3 {
        try client.send("GET /\(index) HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(try answer(client).body == "GET /\(index) 0")
      }
      try client.send("POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello")
      #expect(try answer(client).body == "POST /p 5")
      try client.send(TestGate.upgrade())
      let backend = try listener.accept()
      _ = try backend.readHead()
      try backend.send(TestGate.switching)
      #expect(try client.readHead().hasPrefix("HTTP/1.1 101 "))
    }

    @Test("A client that resets after an upgrade in the same flight as an earlier request frees the upstream")
    func pipelinedUpgrade() throws {
      let listener = try RawListener()
      // The limit of a test's socket is ten seconds.
      let gate = try gate(listener, limits: SessionLimits(connectTimeout: .seconds(600)))
      let client = try gate.connect()
      try client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n" + TestGate.upgrade())
      #expect(try answer(client).body == "GET / 0")
      let backend = try listener.accept()
      _ = try backend.readHead()
      client.reset()
      #expect(try backend.readToEnd() == [])
    }

    @Test("Pipelined requests are answered in order")
    func pipelined() throws {
      let gate = try gate(try RawListener())
      let client = try gate.connect()
      let count = 500
      try client.send((0..<count).map { "GET /\($0) HTTP/1.1\r\nHost: x\r\n\r\n" }.joined())
      for index in 0..<count { #expect(try answer(client).body == "GET /\(index) 0") }
    }

    @Test(
      "Complete requests in the same flight as the client's close_notify are answered",
      arguments: ["", "GET /3", "GET /3 HTTP/1.1\r\n"])
    func pipelinedEnd(rest: String) throws {
      let files = try TLSFolder()
      let gate = try TestGate(upstream: .webSocket(host: "127.0.0.1", port: 1), tls: files.server())
      let client = try RawTLS(try gate.connect(), try files.client())
      try client.handshake()
      client.holds = true
      client.send(Array(((0..<3).map { "GET /\($0) HTTP/1.1\r\nHost: x\r\n\r\n" }.joined() + rest).utf8))
      client.sendEnd()
      let answers = String(decoding: try client.readToEnd(), as: UTF8.self)
      for index in 0..<3 { #expect(answers.contains("\r\n\r\nGET /\(index) 0")) }
      #expect(answers.split(separator: "HTTP/1.1 ").count == 3)
    }

    @Test("One empty line before a request is skipped, however it arrives; a second one is malformed", arguments: 1...5)
    func emptyLine(size: Int) throws {
      let gate = try gate(try RawListener())
      let client = try gate.connect()
      let request = "\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"
      let post = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na"
      let bytes = Array((request + post + request + request).utf8)
      for start in stride(from: 0, to: bytes.count, by: size) {
        try client.send(Array(bytes[start..<min(start + size, bytes.count)]))
      }
      for body in ["GET / 0", "POST / 1", "GET / 0", "GET / 0"] { #expect(try answer(client).body == body) }
      for broken in ["\r\n", "\n", "\rG", "\r\r\n"] {
        let otherClient = try gate.connect()
        for byte in Array((request + broken + request).utf8) { try? otherClient.send([byte]) }
        #expect(try answer(otherClient).head.hasPrefix("HTTP/1.1 200 "))
        #expect(try answer(otherClient).head.hasPrefix("HTTP/1.1 400 "))
      }
    }

    @Test("An empty line alone does not extend the idle time of a connection")
    func onlyEmptyLine() throws {
      var limits = EngineLimits()
      limits.headTimeout = .milliseconds(200)
      limits.keepAliveTimeout = .milliseconds(600)
      let gate = try TestGate(upstream: .unix(path: "/nowhere"), engineLimits: limits)
      let client = try gate.connect()
      try client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      _ = try answer(client)
      let start = ContinuousClock.now
      try client.send("\r\n")
      #expect(try client.readToEnd() == [])
      #expect(ContinuousClock.now - start >= .milliseconds(400))
    }

    @Test("An idle connection is closed with close_notify (RFC 8446 section 6.1)")
    func idleCloseNotify() throws {
      var limits = EngineLimits()
      limits.keepAliveTimeout = .milliseconds(300)
      let files = try TLSFolder()
      let gate = try TestGate(
        upstream: .webSocket(host: "127.0.0.1", port: 1), engineLimits: limits, tls: files.server())
      let client = try RawTLS(try gate.connect(), try files.client())
      try client.handshake()
      client.send(Array("GET / HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
      #expect(String(decoding: try client.readToEnd(), as: UTF8.self).hasSuffix("GET / 0"))
      #expect(client.receivedCloseNotify)
    }

    @Test("A request may arrive byte by byte")
    func bytewise() throws {
      let gate = try gate(try RawListener())
      let client = try gate.connect()
      for byte in Array(
        "POST /slow HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n".utf8)
      {
        try client.send([byte])
      }
      #expect(try answer(client).body == "POST /slow 3")
    }

    @Test("A client that waits for 100 Continue gets it")
    func expectation() throws {
      let gate = try gate(try RawListener())
      let client = try gate.connect()
      try client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
      #expect(try client.readHead() == "HTTP/1.1 100 Continue\r\n\r\n")
      try client.send("ok")
      #expect(try answer(client).body == "POST / 2")
    }

    @Test("After a malformed head nothing is parsed, and the connection is closed")
    func malformed() throws {
      let gate = try gate(try RawListener())
      let client = try gate.connect()
      try client.send("GET / HTTP/1.1\nHost: x\r\n\r\nGET /second HTTP/1.1\r\nHost: x\r\n\r\n")
      let answer = String(decoding: try client.readToEnd(), as: UTF8.self)
      #expect(answer.hasPrefix("HTTP/1.1 400 "))
      #expect(!answer.contains("second") && answer.components(of: "HTTP/1.1 ") == 1)
    }

    @Test("A malformed head that arrives byte by byte gets the answer of one that arrives at once")
    func malformedPieces() throws {
      let gate = try gate(try RawListener())
      for broken in ["Host : x", "Host: x\r\nA: \0", "Host: x\r\nA: b\rc", "Host: x\r\n b", "Host: x\r\nA\u{E9}: b"] {
        let answers = try [1, 1000].map { size in
          let client = try gate.connect()
          let bytes = Array("GET / HTTP/1.1\r\n\(broken)\r\n\r\n".utf8)
          for start in stride(from: 0, to: bytes.count, by: size) {
            try? client.send(Array(bytes[start..<min(start + size, bytes.count)]))
          }
          return try answer(client)
        }
        #expect(answers.allSatisfy { $0.head.hasPrefix("HTTP/1.1 400 ") }, "\(broken)")
        #expect(answers[0].body == answers[1].body, "\(broken)")
      }
    }

    @Test("A refused upgrade closes the connection, and bytes after it are never parsed")
    func refusedUpgrade() throws {
      let listener = try RawListener()
      let gate = try gate(listener)
      let client = try gate.connect()
      try client.send(TestGate.upgrade() + "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n")
      let backend = try listener.accept()
      _ = try backend.readHead()
      try backend.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 3\r\nX-Own: 1\r\n\r\nno!")
      let answer = String(decoding: try client.readToEnd(), as: UTF8.self)
      #expect(answer.hasPrefix("HTTP/1.1 403 ") && answer.hasSuffix("no!") && answer.contains("X-Own: 1"))
      #expect(!answer.contains("smuggled"))
      #expect(try backend.readToEnd() == [])
    }

    static let misbehaviours: [(String, String)] = [
      ("wrong accept", TestGate.switching.replacing("s3pP", "s3pQ")),
      ("no accept", "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"),
      ("no upgrade", "HTTP/1.1 101 X\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: \(TestGate.accept)\r\n\r\n"),
      ("no HTTP", "SSH-2.0-OpenSSH_9.2\r\n"),
      ("bytes before the answer", "xxxx" + TestGate.switching),
      (
        "a subprotocol that the client did not offer",
        TestGate.switching.replacing("\r\n\r\n", "\r\nSec-WebSocket-Protocol: x\r\n\r\n")
      ),
      (
        "an endless head",
        "HTTP/1.1 101 X\r\n" + String(repeating: "X-Long: \(String(repeating: "a", count: 200))\r\n", count: 400)
      ),
    ]

    @Test("An upstream with an invalid upgrade answer is a bad gateway", arguments: misbehaviours)
    func misbehaviour(name: String, answer: String) throws {
      let listener = try RawListener()
      let gate = try gate(listener)
      let client = try gate.connect()
      try client.send(TestGate.upgrade())
      let backend = try listener.accept()
      _ = try backend.readHead()
      try backend.send(answer)
      #expect(String(decoding: try client.readToEnd(), as: UTF8.self).hasPrefix("HTTP/1.1 502 "))
    }

    @Test("Interim answers before the 101 are skipped")
    func interim() throws {
      let listener = try RawListener()
      let gate = try gate(listener)
      let client = try gate.connect()
      try client.send(TestGate.upgrade())
      let backend = try listener.accept()
      _ = try backend.readHead()
      try backend.send("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + TestGate.switching)
      #expect(try client.readHead().hasPrefix("HTTP/1.1 101 "))
    }

    @Test("An upstream that closes, does not answer or refuses the connection is a bad gateway")
    func absent() throws {
      let listener = try RawListener()
      let patience = SessionLimits(connectTimeout: .milliseconds(400))
      for behaviour in 0..<3 {
        let port = behaviour == 2 ? 1 : listener.port
        let gate = try TestGate(upstream: .webSocket(host: "127.0.0.1", port: port), limits: patience)
        let client = try gate.connect()
        try client.send(TestGate.upgrade())
        let backend = behaviour == 2 ? nil : try listener.accept()
        if behaviour == 0 { backend?.sendEnd() }
        #expect(String(decoding: try client.readToEnd(), as: UTF8.self).hasPrefix("HTTP/1.1 502 "))
        _ = backend
      }
    }

    @Test("A TCP service gets the payloads as bytes, and its bytes become binary messages")
    func bridge() async throws {
      let listener = try RawListener()
      let gate = try TestGate(upstream: .tcp(host: "127.0.0.1", port: listener.port))
      let client = try gate.connect()
      try client.send(TestGate.upgrade(extra: "Sec-WebSocket-Protocol: chat, binary\r\n"))
      let head = try client.readHead()
      #expect(head.hasPrefix("HTTP/1.1 101 ") && head.contains("Sec-WebSocket-Protocol: binary\r\n"))
      let service = try listener.accept()
      let mask = FrameTrackerTests.mask
      try client.send(
        FrameTrackerTests.frame(1, Array("GET".utf8), final: false, mask: mask)
          + FrameTrackerTests.frame(9, [7], mask: mask)
          + FrameTrackerTests.frame(0, Array(" it".utf8), mask: mask))
      #expect(try service.read(6) == Array("GET it".utf8))
      #expect(try client.read(3) == [0x8A, 1, 7])
      try service.send("done")
      #expect(try client.read(6) == [0x82, 4] + Array("done".utf8))
      service.sendEnd()
      let close = try client.read(4)
      #expect(close[0] == 0x88 && UInt16(close[2]) << 8 | UInt16(close[3]) == 1000)
      _ = try client.read(Int(close[1]) - 2)
      try client.send(FrameTrackerTests.frame(8, [0x03, 0xE8], mask: mask))
      #expect(try client.readToEnd() == [])
      client.sendEnd()
      #expect(await gate.record.next().bytesFromUpstream == 4)
    }

    @Test(
      "The client of a TCP service gets a subprotocol that it offered: the service's, or one that the gate can speak",
      arguments: [
        ("mqtt", nil, "mqtt"), ("mqttv3.1, mqtt", nil, "mqttv3.1"), ("mqttv3.1, mqtt", "mqtt", "mqtt"),
        ("chat", "mqtt", nil), ("base64, binary", nil, "binary"), ("base64", nil, nil), (",", nil, nil),
        (nil, "mqtt", nil), ("MQTT", "mqtt", nil),
      ] as [(String?, String?, String?)])
    func bridgeSubprotocol(offered: String?, wanted: String?, chosen: String?) throws {
      let listener = try RawListener()
      let gate = try TestGate(upstream: .tcp(host: "127.0.0.1", port: listener.port), subprotocol: wanted)
      let client = try gate.connect()
      try client.send(TestGate.upgrade(extra: offered.map { "Sec-WebSocket-Protocol: \($0)\r\n" } ?? ""))
      let head = try #require(ResponseHead.parse(try client.readHead()).head)
      #expect(head.status == 101)
      #expect(head.headers.values(of: "Sec-WebSocket-Protocol") == [chosen].compactMap(\.self))
    }

    @Test("What an upstream's 101 says in other words reaches the client in the usual form")
    func tolerated101() throws {
      let listener = try RawListener()
      let gate = try gate(listener)
      let client = try gate.connect()
      try client.send(
        TestGate.upgrade(
          extra: "Sec-WebSocket-Protocol: a,,b,\r\nSec-WebSocket-Extensions: permessage-deflate,\r\nX: ,\r\n"))
      let backend = try listener.accept()
      let asked = try backend.readHead()
      #expect(asked.contains("\r\nSec-WebSocket-Protocol: a, b\r\n"))
      #expect(asked.contains("\r\nSec-WebSocket-Extensions: permessage-deflate\r\n") && asked.contains("\r\nX: ,\r\n"))
      let frame = FrameTrackerTests.frame(1, [7])
      try backend.send(
        Array(
          ("HTTP/1.1 101\r\nUpgrade : websocket\r\nConnection\t: Upgrade,\r\nTransfer-Encoding: chunked\r\n"
            + "Sec-WebSocket-Protocol: b,\r\nSec-WebSocket-Extensions: ,permessage-deflate\r\nX-Cookie : c\r\n"
            + "Sec-WebSocket-Extensions:\r\nSec-WebSocket-Accept: \(TestGate.accept)\r\n\r\n").utf8) + frame)
      #expect(
        try client.readHead()
          == "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
          + "Sec-WebSocket-Accept: \(TestGate.accept)\r\nSec-WebSocket-Protocol: b\r\n"
          + "Sec-WebSocket-Extensions: permessage-deflate\r\nX-Cookie: c\r\n\r\n")
      #expect(try client.read(frame.count) == frame)
    }

    @Test("A long head of an upstream reaches the client, up to a limit that its 502 names", arguments: [true, false])
    func longHead(isAllowed: Bool) throws {
      let listener = try RawListener()
      let gate = try TestGate(
        upstream: .webSocket(host: "127.0.0.1", port: listener.port), maxResponseHead: isAllowed ? 64 << 10 : 16 << 10)
      let client = try gate.connect()
      try client.send(TestGate.upgrade())
      let backend = try listener.accept()
      _ = try backend.readHead()
      let cookies = (0..<120).map { "Set-Cookie: c\($0)=\(String(repeating: "x", count: 160))\r\n" }.joined()
      // In pieces, of which most have no line end.
      var rest = Array((TestGate.switching.dropLast(1) + cookies + "\r\n").utf8)[...]
      while !rest.isEmpty {
        do { try backend.send(Array(rest.prefix(50))) } catch { break }
        rest = rest.dropFirst(50)
      }
      let head = try client.readHead()
      guard !isAllowed else {
        #expect(head.hasPrefix("HTTP/1.1 101 ") && head.contains(cookies))
        return
      }
      #expect(head.hasPrefix("HTTP/1.1 502 "))
      let body = String(decoding: try client.readToEnd(), as: UTF8.self)
      #expect(body.contains("more than 16384 bytes (routes[].max_response_head)"), "\(body)")
    }

    @Test("A value that is not UTF-8 passes, unless the responder reads the field")
    func opaqueValues() throws {
      let gate = try gate(try RawListener())
      for (name, status) in [("X-Name", "200"), ("X-Own", "400"), ("x-own", "400")] {
        let client = try gate.connect()
        let value: [UInt8] = [0x4A, 0xFC, 0x72]
        try client.send(
          Array("GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\(name): ".utf8) + value + Array("\r\n\r\n".utf8))
        #expect(try client.readHead().hasPrefix("HTTP/1.1 \(status) "), "\(name)")
      }
    }

    @Test("An absolute target reaches the responder in origin form, and another host is refused")
    func absoluteTarget() throws {
      let gate = try gate(try RawListener())
      for (host, status) in [("x", "200"), ("X:443", "200"), ("y", "400")] {
        let client = try gate.connect()
        try client.send("GET https://\(host)/a%2Db?c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        let answer = String(decoding: try client.readToEnd(), as: UTF8.self)
        #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(host)")
        #expect(status == "400" || answer.hasSuffix("GET /a-b 0"))
      }
    }

    @Test("The answers to all messages are sent before the answer to the Close after them", arguments: [true, false])
    func conversation(endsAtOnce: Bool) throws {
      let gate = try gate(try RawListener())
      let client = try gate.connect()
      try client.send(TestGate.upgrade(EchoConversation.path))
      _ = try client.readHead()
      let mask = FrameTrackerTests.mask
      try client.send(
        FrameTrackerTests.frame(1, Array("one".utf8), mask: mask)
          + FrameTrackerTests.frame(2, Array(repeating: 2, count: 300), mask: mask)
          + FrameTrackerTests.frame(8, [0x03, 0xE8], mask: mask))
      if endsAtOnce { client.sendEnd() }
      let expected =
        FrameTrackerTests.frame(1, Array("one".utf8)) + FrameTrackerTests.frame(2, Array(repeating: 2, count: 300))
        + FrameTrackerTests.frame(8, [0x03, 0xE8])
      #expect(try client.readToEnd() == expected)
    }

    @Test("A bridged client that breaks the protocol gets 1002")
    func bridgeFault() throws {
      let listener = try RawListener()
      let gate = try TestGate(upstream: .tcp(host: "127.0.0.1", port: listener.port))
      let client = try gate.connect()
      try client.send(TestGate.upgrade())
      _ = try client.readHead()
      let service = try listener.accept()
      try client.send(FrameTrackerTests.frame(1, [1]))
      let close = try client.read(4)
      #expect(close[0] == 0x88 && UInt16(close[2]) << 8 | UInt16(close[3]) == 1002)
      #expect(try service.readToEnd() == [])
    }
  }
}

extension String {
  fileprivate func replacing(_ part: String, _ other: String) -> String {
    var rest = self[...]
    var result = ""
    while let range = rest.firstRange(of: part) {
      result += rest[..<range.lowerBound] + other
      rest = rest[range.upperBound...]
    }
    return result + rest
  }

  fileprivate func components(of part: String) -> Int { ranges(of: part).count }
}
