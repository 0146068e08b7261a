import Glibc
import TestSupport
import Testing
import Transport

@testable import TransportEngine

extension EngineTests {
  @Suite("Client", .timeLimit(.minutes(10)))
  struct ClientTests {
    @Test("A request that is refused because another one is in progress is not sent")
    func busy() async throws {
      let listener = try RawListener()
      let engine = try ClientEngine()
      let connection = try await engine.connect(host: "127.0.0.1", port: listener.port, tls: nil)
      let server = try listener.accept()
      let first = Task { try await connection.send("GET", "/1", headers: TestGate.host) }
      #expect(try server.readHead().hasPrefix("GET /1 "))
      await #expect(throws: ClientError.self) { try await connection.send("GET", "/2", headers: TestGate.host) }
      try server.send("HTTP/1.1 204 No Content\r\n\r\n")
      #expect(try await first.value.status == 204)
      let third = Task { try await connection.send("GET", "/3", headers: TestGate.host) }
      #expect(try server.readHead().hasPrefix("GET /3 "))
      try server.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
      #expect(try await third.value.status == 200)
    }

    @Test("The gate's own clients accept a status line without the second space, and white space before a colon")
    func toleratedHead() async throws {
      let listener = try RawListener()
      let engine = try ClientEngine()
      let connection = try await engine.connect(host: "127.0.0.1", port: listener.port, tls: nil)
      let server = try listener.accept()
      let answer = Task { try await connection.send("GET", "/", headers: TestGate.host, timeout: .seconds(10)) }
      _ = try server.readHead()
      try server.send("HTTP/1.1 200\r\nContent-Length : 2\r\nReplay-Nonce\t: n\r\n\r\nok")
      let response = try await answer.value
      #expect(response.status == 200 && response.body == Array("ok".utf8))
      #expect(response.headers.fields.map(\.name) == ["Content-Length", "Replay-Nonce"])
    }

    @Test("An answer to HEAD has no body, whatever its Content-Length")
    func head() async throws {
      let listener = try RawListener()
      let engine = try ClientEngine()
      let connection = try await engine.connect(host: "127.0.0.1", port: listener.port, tls: nil)
      let server = try listener.accept()
      let answer = Task {
        try await connection.send("HEAD", "/", headers: TestGate.host, timeout: .seconds(10)).status
      }
      _ = try server.readHead()
      try server.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
      #expect(try await answer.value == 200)
    }

    /// How a server ends the connection after an answer without a length.
    enum AnswerEnd: CaseIterable {
      case end, reset, closeNotify, endWithoutCloseNotify

      var hasTLS: Bool { self == .closeNotify || self == .endWithoutCloseNotify }
      var isInOrder: Bool { self == .end || self == .closeNotify }
    }

    @Test(
      "An answer that ends with the connection is complete only if the server itself ended it",
      arguments: AnswerEnd.allCases)
    func untilClose(end: AnswerEnd) async throws {
      let listener = try RawListener()
      let engine = try ClientEngine()
      let files = try TLSFolder()
      let tls: ClientTLS? = try end.hasTLS ? files.client() : nil
      let opening = Task { try await engine.connect(host: "127.0.0.1", port: listener.port, tls: tls) }
      let socket = try listener.accept()
      let server = try end.hasTLS ? RawTLS(accepted: socket, files.server()) : nil
      try server?.handshake()
      let connection = try await opening.value
      let answer = Task { try await connection.send("GET", "/", headers: TestGate.host, timeout: .seconds(10)) }
      let text = "HTTP/1.1 200 OK\r\n\r\nhalf"
      if let server {
        _ = try server.readHead()
        server.send(Array(text.utf8))
      } else {
        _ = try socket.readHead()
        try socket.send(text)
      }
      switch end {
      case .end, .endWithoutCloseNotify: socket.sendEnd()
      case .closeNotify: server?.sendEnd()
      case .reset:
        usleep(50_000)
        socket.reset()
      }
      if end.isInOrder {
        #expect(try await answer.value.body == Array("half".utf8))
      } else {
        let error = await #expect(throws: ClientError.self) { try await answer.value }
        guard case .lost = error else {
          Issue.record("\(String(describing: error))")
          return
        }
      }
    }

    @Test("A body that arrives in many pieces is collected whole")
    func pieces() async throws {
      let listener = try RawListener()
      let engine = try ClientEngine()
      let connection = try await engine.connect(host: "127.0.0.1", port: listener.port, tls: nil)
      let body = (0..<(2 << 20)).map { UInt8(truncatingIfNeeded: $0 / 251) }
      let server = Aside {
        let socket = try listener.accept()
        _ = try socket.readHead()
        try socket.send("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\n\r\n")
        try socket.send(body)
      }
      let answer = try await connection.send(
        "GET", "/", headers: TestGate.host, longest: body.count, timeout: .seconds(30))
      #expect(answer.body == body)
      try await server.value
    }

    @Test(
      "A health check ends with the status, however long the body is, and also if it never comes",
      arguments: ["Content-Length: 1099511627776", "Transfer-Encoding: chunked", "X-Body: to the end"])
    func headAlone(_ field: String) async throws {
      let listener = try RawListener()
      let engine = try ClientEngine()
      let server = Aside {
        let socket = try listener.accept()
        _ = try socket.readHead()
        try socket.send("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 503 Busy\r\n\(field)\r\n\r\n")
        // The connection is closed although the server goes on.
        _ = try socket.readToEnd()
      }
      let answer = try await engine.ask(
        .webSocket(host: "127.0.0.1", port: listener.port), "GET", "/healthz", fields: TestGate.host, tls: nil,
        within: .seconds(600))
      #expect(answer.status == 503 && answer.body.isEmpty)
      try await server.value
    }

    @Test("An exchange of bytes reports whether the server or the timeout closed it", arguments: [true, false])
    func exchange(closes: Bool) async throws {
      let listener = try RawListener()
      let engine = try ClientEngine()
      let connection = try await engine.connect(host: "127.0.0.1", port: listener.port, tls: nil)
      let server = try listener.accept()
      // If the server does not close, its answer must arrive within the timeout.
      let timeout = closes ? Duration.seconds(30) : .seconds(2)
      let answer = Task { try await connection.exchange(Array("x\r\n\r\n".utf8), timeout: timeout) }
      _ = try server.readHead()
      try server.send("y")
      if closes { server.sendEnd() }
      #expect(try await answer.value == RawAnswer(bytes: Array("y".utf8), isUnfinished: !closes))
    }

    @Test(
      "An exchange ends with a switch of protocols, in either version, with or without a reason",
      arguments: ["HTTP/1.1 101 S", "HTTP/1.0 101 S", "HTTP/1.1 101"])
    func exchangeSwitch(line: String) async throws {
      let listener = try RawListener()
      let engine = try ClientEngine()
      let connection = try await engine.connect(host: "127.0.0.1", port: listener.port, tls: nil)
      let server = try listener.accept()
      let answer = Task { try await connection.exchange(Array("x\r\n\r\n".utf8), timeout: .seconds(10)) }
      _ = try server.readHead()
      try server.send("\(line)\r\n\r\n")
      #expect(try await answer.value.isUnfinished == false)
    }

    @Test("A Close waits while the server still reads data that was sent before it")
    func slowReader() async throws {
      let listener = try RawListener()
      // Keeps the server's receive buffer small, so that it does not hide unread data.
      var room: Int32 = 1 << 15
      setsockopt(listener.fd, SOL_SOCKET, SO_RCVBUF, &room, socklen_t(MemoryLayout<Int32>.size))
      let engine = try ClientEngine()
      let connection = try await engine.connect(host: "127.0.0.1", port: listener.port, tls: nil)
      let size = 4 << 20
      let backend = Aside {
        let server = try listener.accept()
        try server.acceptUpgrade()
        // At least 3.2 seconds. Most of it is left when the client closes, because its queue is bounded.
        let frame = try server.readSlowly(14 + size, 1 << 16, pause: 50_000)
        // The Close of the client: two bytes of header, four of mask, two of code.
        let close = try server.read(8)
        try server.send([0x88, 0x02, 0x03, 0xE8])
        return (frame, close[0])
      }
      let socket = try await connection.upgrade("/", host: "localhost")
      try await socket.send(.binary(Array(repeating: 1, count: size / 2)))
      try await socket.send(.binary(Array(repeating: 1, count: size / 2 - 14)))
      await socket.close(patience: .milliseconds(1500))
      #expect(try await socket.receive() == .ended(.init(code: 1000, reason: "")))
      #expect(try await backend.value == (14 + size, 0x88))
    }

    @Test("A Close waits no longer than its timeout for a server that neither reads nor answers")
    func muteServer() async throws {
      let listener = try RawListener()
      let engine = try ClientEngine()
      let connection = try await engine.connect(host: "127.0.0.1", port: listener.port, tls: nil)
      let server = try listener.accept()
      let upgrade = Task { try await connection.upgrade("/", host: "localhost") }
      try server.acceptUpgrade()
      let socket = try await upgrade.value
      await socket.close(patience: .milliseconds(200))
      #expect(try await socket.receive() == .ended(.init(code: nil, reason: "timed out")))
    }

    @Test("A flush returns when the kernel has all data, and throws after the connection is lost")
    func flush() async throws {
      let listener = try RawListener()
      let engine = try ClientEngine()
      let connection = try await engine.connect(host: "127.0.0.1", port: listener.port, tls: nil)
      let server = try listener.accept()
      let upgrade = Task { try await connection.upgrade("/", host: "localhost") }
      try server.acceptUpgrade()
      let socket = try await upgrade.value
      try await socket.flush()
      try await socket.send(.text("x"))
      try await socket.flush()
      server.reset()
      while case .message = try await socket.receive() {}
      await #expect(throws: ClientError.self) { try await socket.flush() }
    }

    @Test("An unexpected answer closes the connection and is not used for a request")
    func unasked() async throws {
      let listener = try RawListener()
      let engine = try ClientEngine()
      let connection = try await engine.connect(host: "127.0.0.1", port: listener.port, tls: nil)
      let server = try listener.accept()
      try server.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
      #expect(try server.readToEnd() == [])
      await #expect(throws: ClientError.self) { try await connection.send("GET", "/", headers: TestGate.host) }
    }
  }
}

extension ScriptedSocket {
  /// Reads the head of an opening handshake and answers it with 101.
  func acceptUpgrade() throws {
    let head = try readHead()
    let key = head.split(separator: "\r\n").first { $0.hasPrefix("Sec-WebSocket-Key: ") }?.dropFirst(19) ?? ""
    try send(
      "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        + "Sec-WebSocket-Accept: \(HandshakeKey.accept(for: String(key)))\r\n\r\n")
  }

  /// Reads `count` bytes, at most `step` at a time, with a pause of `pause` microseconds between reads. Returns their
  /// number.
  func readSlowly(_ count: Int, _ step: Int, pause: UInt32) throws -> Int {
    var left = count
    while left > 0 {
      let part = try readSome(min(step, left))
      guard !part.isEmpty else { throw Failure(description: "the connection was closed \(left) bytes early") }
      left -= part.count
      usleep(pause)
    }
    return count
  }
}
