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
      (.statusLine, "HTTP/1.1 200\t\r\n"), (.statusLine, "HTTP/1.1 200\n"), (.lineEnd, "HTTP/1.1 200\rX"),
      (.lineEnd, "HTTP/1.1 200\r\r\n"), (.statusLine, "HTTP/1.1 200HTTP/1.1 200 OK\r\n"),
      (.fieldName, "HTTP/1.1 200 OK\r\nHTTP/1.1 200 OK\r\n"), (.statusLine, "HTTP/1.1 2000 OK\r\n"),
      (.statusLine, "HTTP/1.1\t200 OK\r\n"),
      (.status, "HTTP/1.1 099 OK\r\n"), (.status, "HTTP/1.1 600 OK\r\n"), (.status, "HTTP/1.1 2x0 OK\r\n"),
      (.status, "HTTP/1.1 -20 OK\r\n"), (.status, "HTTP/1.1 20\r\n"),
      (.fieldNUL, "HTTP/1.1 200 O\u{0}K\r\n"), (.fieldValue, "HTTP/1.1 200 O\u{1}K\r\n"),
      (.lineEnd, "HTTP/1.1 200 OK\n"), (.lineEnd, "HTTP/1.1 200 OK\rX"),
      (.foldedLine, "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n"), (.foldedLine, "HTTP/1.1 200 OK\r\nX: a\r\n b : c\r\n"),
      (.fieldName, "HTTP/1.1 200 OK\r\nX Y: a\r\n"), (.fieldName, "HTTP/1.1 200 OK\r\nX \t\u{b}: a\r\n"),
      (.fieldNameMissing, "HTTP/1.1 200 OK\r\n: a\r\n"), (.colonMissing, "HTTP/1.1 200 OK\r\nX \r\n"),
      (.doubleFraming, "HTTP/1.1 200 OK\r\nContent-Length : 1\r\nTransfer-Encoding\t: chunked\r\n\r\n"),
      (.contentLengthRepeated, "HTTP/1.1 200 OK\r\nContent-Length : 1\r\nContent-Length: 1\r\n\r\n"),
      (.colonMissing, "HTTP/1.1 200 OK\r\nX\r\n"),
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

  @Test("A response head has at most 64 KiB and 256 fields, or one for each 256 bytes of another limit")
  func bounds() {
    let long = "HTTP/1.1 200 \(String(repeating: "a", count: 20 << 10))\r\n"
    let cookies = String(repeating: "Set-Cookie: a=b\r\n", count: 120)
    #expect(ResponseHead.parse(long + cookies + "\r\n").head?.headers.values(of: "Set-Cookie").count == 120)
    let endless = Array(("HTTP/1.1 200 " + String(repeating: "a", count: 64 << 10)).utf8)
    #expect(ResponseHead.parse(endless) == .fault(.headLength))
    #expect(ResponseHead.parse(endless, limits: .response(bytes: 128 << 10)) == .incomplete)
    let many = "HTTP/1.1 200 OK\r\n" + String(repeating: "X: y\r\n", count: 257)
    #expect(ResponseHead.parse(many) == .fault(.fieldCount))
    #expect(ResponseHead.parse(Array(many.utf8), limits: .response(bytes: 4096)) == .fault(.fieldCount))
    #expect(ResponseHead.parse(Array(many.utf8), limits: .response(bytes: 128 << 10)) == .incomplete)
  }

  @Test("An exceeded limit is named with its setting")
  func namedBounds() {
    let limits = HeadLimits.response(bytes: 4096)
    for fault in [HeadError.headLength, .fieldCount] {
      let text = fault.text(within: limits)
      #expect(text.contains("routes[].max_response_head") && text.contains(fault == .fieldCount ? "256" : "4096"))
    }
    #expect(HeadError.lineEnd.text(within: limits) == HeadError.lineEnd.rawValue)
  }

  @Test("Only a line feed or the limit can decide about a head, which is not scanned for other bytes")
  func decisions() {
    let limits = HeadLimits(bytes: 10)
    func mayDecide(_ known: String, _ new: String) -> Bool {
      Array(new.utf8).withUnsafeBytes { limits.mayDecide(Array((known + new).utf8), after: $0) }
    }
    #expect(mayDecide("", "a") && mayDecide("a", "b\n") && mayDecide("aaaaaaaa", "bb"))
    #expect(!mayDecide("a", "b") && !mayDecide("\n", "b") && !mayDecide("a", ""))
  }

  @Test(
    "A status line without a reason may lack the second space",
    arguments: ["HTTP/1.1 101", "HTTP/1.1 200", "HTTP/1.0 204"])
  func bareStatusLine(line: String) throws {
    let text = line + "\r\nServer: x\r\nContent-Length: 0\r\n\r\n"
    let head = try #require(ResponseHead.parse(text).head)
    #expect(String(head.status) == line.suffix(3) && head.reason == "" && head.isVersion10 == line.contains("1.0"))
    #expect(head.headers.first("Server") == "x")
    #expect(checkSplits(Array(text.utf8), incomplete: .incomplete) { ResponseHead.parse($0) } == (text.utf8.count, nil))
  }

  @Test(
    "White space before a colon is removed, and the field means what it says",
    arguments: ["Content-Length : 2", "Content-Length\t:2", "Content-Length \t : 2 ", "Transfer-Encoding :  chunked"])
  func spaceBeforeColon(line: String) throws {
    let text = "HTTP/1.1 200 OK\r\nX : a\r\nEmpty \t:\r\n\(line)\r\nY: b\r\n\r\n"
    let head = try #require(ResponseHead.parse(text).head)
    #expect(head.framing == (line.hasPrefix("T") ? .chunked : .length(2)))
    let name = line.prefix { $0 != " " && $0 != "\t" && $0 != ":" }
    #expect(
      head.headers
        == HeaderFields([
          .init(name: "X", value: "a"), .init(name: "Empty", value: ""),
          .init(name: String(name), value: line.hasPrefix("T") ? "chunked" : "2"), .init(name: "Y", value: "b"),
        ]))
    #expect(checkSplits(Array(text.utf8), incomplete: .incomplete) { ResponseHead.parse($0) } == (text.utf8.count, nil))
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

  @Test(
    "Empty list elements, empty lists and a transfer coding of every answer mean nothing in a 101",
    arguments: [
      ([], ["Sec-WebSocket-Protocol:"], nil, []), ([], ["Sec-WebSocket-Protocol: ,\t, "], nil, []),
      ([], ["Sec-WebSocket-Protocol: a,"], "a", []),
      ([], ["Sec-WebSocket-Protocol:", "Sec-WebSocket-Protocol: a"], "a", []),
      ([], ["Sec-WebSocket-Extensions:"], nil, []), ([], ["Sec-WebSocket-Extensions: ,"], nil, []),
      ([], ["Sec-WebSocket-Extensions: permessage-deflate, "], nil, ["permessage-deflate"]),
      ([], ["Transfer-Encoding: chunked"], nil, []),
      ([], ["Transfer-Encoding: Chunked", "Content-Length: 0"], nil, []),
      ([("Upgrade", "websocket,"), ("Connection", ", Upgrade,")], [], nil, []),
      ([], ["Sec-WebSocket-Protocol: " + String(repeating: ",", count: 1000)], nil, []),
    ] as [([(String, String?)], [String], String?, [String])])
  func tolerated(replacing: [(String, String?)], adding: [String], subprotocol: String?, extensions: [String]) throws {
    #expect(
      try answer(try Self.head(replacing: replacing, adding: adding))
        == UpgradeAnswer(accept: Self.accept, subprotocol: subprotocol, extensions: extensions))
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
      (.subprotocol, status, [], ["Sec-WebSocket-Protocol: , c"]),
      (.subprotocol, status, [], ["Sec-WebSocket-Protocol: a b"]),
      (.upgrade, status, [("Upgrade", "websocket, h2c")], []), (.upgrade, status, [("Upgrade", ",")], []),
      (.extensions, status, [], ["Sec-WebSocket-Extensions: x-other"]),
      (.extensions, status, [], ["Sec-WebSocket-Extensions: permessage-deflate,, x-other"]),
      (.extensions, status, [], ["Sec-WebSocket-Extensions: permessage-deflate;, "]),
      (.framing, status, [], ["Transfer-Encoding: gzip, chunked"]),
      (.framing, status, [], ["Transfer-Encoding: chunked,"]),
      (.framing, status, [], ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"]),
      (.framing, status, [], ["Transfer-Encoding: chunked", "Content-Length: 5"]),
      (.framing, status, [], ["Content-Length: 5"]),
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
