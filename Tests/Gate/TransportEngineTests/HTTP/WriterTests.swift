import ByteCoding
import Testing
import Transport

@testable import TransportEngine

private let time = Timestamp(seconds: 784_111_777)

private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

private func fields(_ pairs: [(String, String)]) -> HeaderFields {
  HeaderFields(pairs.map { .init(name: $0.0, value: $0.1) })
}

@Suite struct ResponseWriterTests {
  @Test("An answer has a date, its fields, its length and its body")
  func whole() throws {
    let response = Response(status: 403, headers: fields([("X-Attest-Error", "key_revoked")]), body: Array("no".utf8))
    let expected = """
      HTTP/1.1 403 Forbidden\r
      Date: Sun, 06 Nov 1994 08:49:37 GMT\r
      X-Attest-Error: key_revoked\r
      Content-Length: 2\r
      \r
      no
      """
    #expect(text(try ResponseWriter.bytes(of: response, closes: false, at: time)) == expected)
  }

  @Test(
    "Connection announces a close, and names Upgrade if there is such a field",
    arguments: [(false, false, nil), (false, true, "close"), (true, true, "upgrade, close"), (true, false, "upgrade")])
  func connection(hasUpgrade: Bool, closes: Bool, options: String?) throws {
    let response = Response(status: 426, headers: fields(hasUpgrade ? [("Upgrade", "websocket")] : []))
    let bytes = try ResponseWriter.bytes(of: response, closes: closes, at: time)
    let head = try #require(ResponseHead.parse(bytes).head)
    #expect(head.headers.first("Connection") == options)
    #expect(head.framing == .length(0))
  }

  @Test("The writer sets the fields that frame the message, and an existing date stays")
  func own() throws {
    let sent = fields([
      ("content-length", "99"), ("Transfer-Encoding", "chunked"), ("CONNECTION", "keep-alive"), ("Date", "then"),
      ("X", "y"),
    ])
    let bytes = try ResponseWriter.bytes(of: Response(status: 200, headers: sent, body: [1]), closes: false, at: time)
    let head = try #require(ResponseHead.parse(bytes).head)
    #expect(head.headers == fields([("Date", "then"), ("X", "y"), ("Content-Length", "1")]))
  }

  @Test("An answer to HEAD has the length without the body")
  func head() throws {
    let response = Response(status: 200, body: Array("hello".utf8))
    let bytes = try ResponseWriter.bytes(of: response, closes: false, isForHEAD: true, at: time)
    guard case .head(let head, let length) = ResponseHead.parse(bytes) else {
      Issue.record("not a head")
      return
    }
    #expect(head.framing == .length(5))
    #expect(length == bytes.count)
  }

  @Test("An answer that cannot have a body has neither body nor length", arguments: [204, 304])
  func withoutBody(status: Int) throws {
    let bytes = try ResponseWriter.bytes(of: Response(status: status, body: [1, 2]), closes: false, at: time)
    guard case .head(let head, let length) = ResponseHead.parse(bytes) else {
      Issue.record("not a head")
      return
    }
    #expect(head.headers.first("Content-Length") == nil)
    #expect(length == bytes.count)
  }

  @Test(
    "No value can leave its field",
    arguments: [
      ("X", "a\r\nY: b", .fieldValue), ("X", "a\nb", .fieldValue), ("X", "a\rb", .fieldValue),
      ("X", "\u{0}", .fieldValue),
      ("X", "\u{7f}", .fieldValue), ("X\r\nY", "a", .fieldName), ("X: a", "b", .fieldName), ("", "a", .fieldName),
      ("X Y", "a", .fieldName), ("\u{e9}", "a", .fieldName),
    ] as [(String, String, HeadWriteError)])
  func injection(name: String, value: String, fault: HeadWriteError) {
    let response = Response(status: 200, headers: fields([(name, value)]))
    #expect(throws: fault) { try ResponseWriter.bytes(of: response, closes: true, at: time) }
    #expect(throws: fault) { try ResponseWriter.switchingProtocols(accept: "", fields: fields([(name, value)])) }
    #expect(throws: fault) { try RequestWriter.bytes(method: "GET", target: "/", fields: fields([(name, value)])) }
  }

  @Test("Only a final status can be written", arguments: [0, 100, 101, 199, 600, -1])
  func status(status: Int) {
    #expect(throws: HeadWriteError.status) {
      try ResponseWriter.bytes(of: Response(status: status), closes: true, at: time)
    }
  }

  @Test("The head of every status can be read back", arguments: 200...599)
  func everyStatus(status: Int) throws {
    let bytes = try ResponseWriter.bytes(of: Response(status: status), closes: true, at: time)
    #expect(try #require(ResponseHead.parse(bytes).head).status == status)
  }

  @Test("The 101 has the accept proof and the agreed options")
  func switchingProtocols() throws {
    let bytes = try ResponseWriter.switchingProtocols(
      accept: HandshakeKey.accept(for: "dGhlIHNhbXBsZSBub25jZQ=="), subprotocol: "chat",
      extensions: ["permessage-deflate; x"],
      fields: fields([("X-Request-Id", "1"), ("Sec-WebSocket-Accept", "forged"), ("Content-Length", "3")]))
    let head = try #require(ResponseHead.parse(bytes).head)
    let answer = try UpgradeAnswer(
      head, accept: "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", subprotocols: ["chat"], extensions: ["permessage-deflate"])
    #expect(answer.subprotocol == "chat" && answer.extensions == ["permessage-deflate"])
    #expect(head.headers.first("X-Request-Id") == "1")
  }

  @Test("The interim answer is a complete head")
  func goOn() throws {
    #expect(ResponseHead.parse(ResponseWriter.goOn).head?.status == 100)
  }
}

@Suite struct RequestWriterTests {
  @Test("A written request is read back unchanged")
  func request() throws {
    let bytes = try RequestWriter.bytes(
      method: "POST", target: "/attest/register?x", fields: fields([("Host", "gate.example:6200")]), body: [1, 2, 3])
    guard case .head(let head, let length) = RequestHead.parse(bytes) else {
      Issue.record("not a head")
      return
    }
    #expect(head.method == "POST" && head.target == "/attest/register?x" && head.contentLength == 3)
    #expect(bytes[length...] == [1, 2, 3])
    let get = try RequestWriter.bytes(method: "GET", target: "/", fields: fields([("Host", "a")]))
    #expect(text(get) == "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
  }

  @Test("A written opening handshake is accepted by this server")
  func upgrade() throws {
    let key = HandshakeKey.key(of: [UInt8](repeating: 7, count: 16))
    let bytes = try RequestWriter.upgrade(
      target: "/", host: "[::1]:6200", key: key, subprotocols: ["a", "b"], fields: fields([("X-App-Assert-KeyId", "k")])
    )
    let head = try #require(RequestHead.parse(bytes).head)
    #expect(head.upgrade == .webSocket(UpgradeIntent(key: key, subprotocols: ["a", "b"])))
    #expect(head.headers.first("X-App-Assert-KeyId") == "k")
  }

  @Test(
    "No value can leave the request line",
    arguments: [
      ("GET X", "/", .method), ("", "/", .method), ("GET", "", .target), ("GET", "a", .target),
      ("GET", "/ HTTP/1.1\r\n", .target),
      ("GET", "/\u{e9}", .target), ("GET", "http://a/", .target),
    ] as [(String, String, HeadWriteError)])
  func injection(method: String, target: String, fault: HeadWriteError) {
    #expect(throws: fault) { try RequestWriter.bytes(method: method, target: target, fields: HeaderFields()) }
  }
}

@Suite struct HandshakeKeyTests {
  @Test("The result equals the example of RFC 6455 section 1.3")
  func example() {
    #expect(HandshakeKey.accept(for: "dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    #expect(HandshakeKey.key(of: Array("the sample nonce".utf8)) == "dGhlIHNhbXBsZSBub25jZQ==")
  }
}

@Suite struct HTTPDateTests {
  @Test(
    "Dates follow the calendar",
    arguments: [
      (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
      (951_782_399, "Mon, 28 Feb 2000 23:59:59 GMT"), (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
      (1_767_225_599, "Wed, 31 Dec 2025 23:59:59 GMT"), (-1, "Thu, 01 Jan 1970 00:00:00 GMT"),
    ] as [(Int64, String)])
  func dates(seconds: Int64, text: String) {
    #expect(HTTPDate.text(for: Timestamp(seconds: seconds, nanoseconds: 999_999_999)) == text)
  }
}
