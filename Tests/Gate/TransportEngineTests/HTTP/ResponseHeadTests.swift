import Testing
import Transport

@testable import TransportEngine

@Suite struct ResponseHeadTests {
  @Test("A response head is parsed into its parts")
  func parts() throws {
    let text = "HTTP/1.1 403 No, really: h\u{e9}\t!\r\nContent-Length: 3\r\nServer: x\r\n\r\n"
    guard case .head(let head, let length) = ResponseHead.parse(text + "no!") else {
      Issue.record("not a head")
      return
    }
    #expect(length == text.utf8.count)
    #expect(head.status == 403)
    #expect(head.reason == "No, really: h\u{e9}\t!")
    #expect(head.framing == .length(3))
    #expect(head.headers.first("server") == "x")
    #expect(!head.wantsClose && !head.isVersion10)
    #expect(checkSplits(Array(text.utf8), incomplete: .incomplete) { ResponseHead.parse($0) } == (length, nil))
  }

  @Test(
    "The status and the fields decide where the body ends",
    arguments: [
      ("200 OK", "Content-Length: 5", .length(5)), ("200 OK", "Content-Length: 0", .length(0)),
      ("200 OK", "Transfer-Encoding: chunked", .chunked), ("200 ", "X: y", .untilClose),
      ("204 No Content", "Content-Length: 5", .none), ("304 Not Modified", "Content-Length: 5", .none),
      ("100 Continue", "X: y", .none), ("101 Switching Protocols", "Transfer-Encoding: chunked", .none),
      ("599 ", "Content-Length: 1", .length(1)),
    ] as [(String, String, BodyFraming)])
  func framing(status: String, field: String, framing: BodyFraming) throws {
    let head = try #require(ResponseHead.parse("HTTP/1.1 \(status)\r\n\(field)\r\n\r\n").head)
    #expect(head.framing == framing)
    #expect(head.wantsClose == (framing == .untilClose))
  }

  @Test("HTTP/1.0 is supported and closes")
  func version10() throws {
    let head = try #require(ResponseHead.parse("HTTP/1.0 404 Not Found\r\nContent-Length: 2\r\n\r\n").head)
    #expect(head.isVersion10 && head.wantsClose)
    #expect(head.framing == .length(2))
  }

  @Test(
    "Each broken rule is named, however the bytes arrive",
    arguments: [
      (.statusLine, "SSH-2.0-OpenSSH\r\n"), (.statusLine, "\r\nHTTP/1.1 200 OK\r\n"), (.statusLine, "HTTP/2 200\r\n"),
      (.statusLine, "HTTP/1.2 200 OK\r\n"), (.statusLine, "http/1.1 200 OK\r\n"), (.status, "HTTP/1.1  200 OK\r\n"),
      (.statusLine, "HTTP/1.1 200\r\n"), (.statusLine, "HTTP/1.1 2000 OK\r\n"), (.statusLine, "HTTP/1.1\t200 OK\r\n"),
      (.status, "HTTP/1.1 099 OK\r\n"), (.status, "HTTP/1.1 600 OK\r\n"), (.status, "HTTP/1.1 2x0 OK\r\n"),
      (.status, "HTTP/1.1 -20 OK\r\n"), (.status, "HTTP/1.1 20\r\n"),
      (.fieldValue, "HTTP/1.1 200 O\u{0}K\r\n"), (.lineEnd, "HTTP/1.1 200 OK\n"), (.lineEnd, "HTTP/1.1 200 OK\rX"),
      (.foldedLine, "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n"), (.colonMissing, "HTTP/1.1 200 OK\r\nX\r\n"),
      (.doubleFraming, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
      (.contentLengthRepeated, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n"),
      (.contentLengthSyntax, "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n"),
      (.transferEncoding, "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"),
      (.transferEncoding, "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
      (.connectionSyntax, "HTTP/1.1 200 OK\r\nConnection: a b\r\n\r\n"),
    ] as [(HeadError, String)])
  func broken(rule: HeadError, text: String) {
    let bytes = Array(text.utf8)
    #expect(ResponseHead.parse(bytes) == .fault(rule))
    #expect(checkSplits(bytes, incomplete: .incomplete) { ResponseHead.parse($0) }.broken == nil)
  }

  @Test("A response head has the same limits as a request head")
  func bounds() {
    let endless = Array(("HTTP/1.1 200 " + String(repeating: "a", count: 20_000)).utf8)
    #expect(ResponseHead.parse(endless) == .fault(.headLength))
    let many = "HTTP/1.1 200 OK\r\n" + String(repeating: "X: y\r\n", count: 101)
    #expect(ResponseHead.parse(many) == .fault(.fieldCount))
  }
}

@Suite struct UpgradeAnswerTests {
  static let accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

  static func head(
    _ status: String = "HTTP/1.1 101 Switching Protocols", replacing: [(String, String?)] = [], adding: [String] = []
  ) throws -> ResponseHead {
    var fields = [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", accept)]
    for (name, value) in replacing {
      fields.removeAll { $0.0 == name }
      if let value { fields.append((name, value)) }
    }
    let lines = [status] + fields.map { "\($0.0): \($0.1)" } + adding
    return try #require(ResponseHead.parse(lines.map { $0 + "\r\n" }.joined() + "\r\n").head)
  }

  private func answer(_ head: ResponseHead) throws(UpgradeAnswerError) -> UpgradeAnswer {
    try UpgradeAnswer(head, accept: Self.accept, subprotocols: ["b", "a"], extensions: ["permessage-deflate"])
  }

  @Test("A valid answer opens the WebSocket")
  func accepted() throws {
    #expect(try answer(try Self.head()) == UpgradeAnswer(accept: Self.accept, subprotocol: nil, extensions: []))
    let chosen = try Self.head(
      replacing: [("Upgrade", "WebSocket"), ("Connection", "keep-alive, upgrade")],
      adding: ["Sec-WebSocket-Protocol: a", "Sec-WebSocket-Extensions: permessage-deflate; x=1", "Content-Length: 0"])
    #expect(
      try answer(chosen) == UpgradeAnswer(accept: Self.accept, subprotocol: "a", extensions: ["permessage-deflate"]))
  }

  static let broken: [(UpgradeAnswerError, String, [(String, String?)], [String])] = {
    let status = "HTTP/1.1 101 Switching Protocols"
    return [
      (.status, "HTTP/1.1 200 OK", [], []), (.status, "HTTP/1.1 100 Continue", [], []),
      (.version, "HTTP/1.0 101 Switching Protocols", [], []),
      (.upgrade, status, [("Upgrade", nil)], []), (.upgrade, status, [("Upgrade", "h2c")], []),
      (.upgrade, status, [], ["Upgrade: websocket"]),
      (.connection, status, [("Connection", nil)], []), (.connection, status, [("Connection", "close")], []),
      (.accept, status, [("Sec-WebSocket-Accept", nil)], []),
      (.accept, status, [], ["Sec-WebSocket-Accept: \(accept)"]),
      (.accept, status, [("Sec-WebSocket-Accept", "S3pPLMBiTxaQ9kYGzzhZRbK+xOo=")], []),
      (.accept, status, [("Sec-WebSocket-Accept", "")], []),
      (.subprotocol, status, [], ["Sec-WebSocket-Protocol: c"]),
      (.subprotocol, status, [], ["Sec-WebSocket-Protocol: a, b"]),
      (.subprotocol, status, [], ["Sec-WebSocket-Protocol: a", "Sec-WebSocket-Protocol: a"]),
      (.subprotocol, status, [], ["Sec-WebSocket-Protocol:"]),
      (.extensions, status, [], ["Sec-WebSocket-Extensions: x-other"]),
      (.extensions, status, [], ["Sec-WebSocket-Extensions: "]),
      (.framing, status, [], ["Transfer-Encoding: chunked"]), (.framing, status, [], ["Content-Length: 5"]),
      (.framing, status, [], ["Content-Length: 0", "Content-Length: 5"]),
    ]
  }()

  @Test("An answer that breaks one rule is refused with that rule", arguments: UpgradeAnswerTests.broken.indices)
  func refused(index: Int) throws {
    let (rule, status, replacing, adding) = Self.broken[index]
    let head = try Self.head(status, replacing: replacing, adding: adding)
    #expect(throws: rule) { try answer(head) }
  }

  @Test("An empty expected proof is never accepted")
  func emptyProof() throws {
    let head = try Self.head(replacing: [("Sec-WebSocket-Accept", "")])
    #expect(throws: UpgradeAnswerError.accept) {
      try UpgradeAnswer(head, accept: "", subprotocols: [], extensions: [])
    }
  }

  @Test("Each rule is broken by a test")
  func complete() {
    #expect(Set(Self.broken.map(\.0)) == Set(UpgradeAnswerError.allCases))
  }
}
