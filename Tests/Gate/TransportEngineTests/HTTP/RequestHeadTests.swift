import Testing
import Transport

@testable import TransportEngine

@Suite struct RequestHeadTests {
  @Test("A head is parsed into its parts")
  func parts() throws {
    let text = request(
      "POST /a/b?x=1&y HTTP/1.1", ["Content-Length: 12", "X-Pad:  \tpadded value\t ", "X-Empty:", "X-Tight:v"])
    guard case .head(let head, let length) = RequestHead.parse(text + "behind it") else {
      Issue.record("not a head")
      return
    }
    #expect(length == text.utf8.count)
    #expect(head.method == "POST")
    #expect(head.target == "/a/b?x=1&y")
    #expect(head.path == "/a/b")
    #expect(head.query == "x=1&y")
    #expect(head.contentLength == 12)
    #expect(head.framing == .length(12))
    #expect(!head.isChunked && !head.wantsClose && !head.expectsContinue)
    #expect(head.upgrade == .none)
    #expect(
      head.headers
        == HeaderFields([
          .init(name: "Host", value: "gate.example"), .init(name: "Content-Length", value: "12"),
          .init(name: "X-Pad", value: "padded value"), .init(name: "X-Empty", value: ""),
          .init(name: "X-Tight", value: "v"),
        ]))
  }

  @Test(
    "A head that the grammar allows is accepted",
    arguments: [
      request(),
      request("get / HTTP/1.1"),
      request("!#$%&'*+-.^_`|~aZ09 / HTTP/1.1"),
      request("GET /-._~!$&'()*+,;=:@%41 HTTP/1.1"),
      request("GET /?a[]={1|2}&b=`^`&c=/?:@ HTTP/1.1"),
      request("GET /?x=%00%2f..//../ HTTP/1.1"),
      request("GET /...;a/.b/a.. HTTP/1.1"),
      request("GET / HTTP/1.1", ["X: h\u{e9}llo \u{1F600}"]),
      request("GET / HTTP/1.1", ["!#$%&'*+-.^_`|~aZ09: :,;\"()<>@[]{}\\"]),
      request("GET / HTTP/1.1", ["Connection: , keep-alive ,, te,"]),
      request("GET / HTTP/1.1", ["Connection:"]),
      request("GET / HTTP/1.1", ["X-Twice: 1", "x-twice: 2"]),
      request("POST / HTTP/1.1", ["Content-Length: 0"]),
      request("POST / HTTP/1.1", ["Content-Length: 007"]),
      request("POST / HTTP/1.1", ["Content-Length: 9223372036854775807"]),
      request("POST / HTTP/1.1", ["Transfer-Encoding: Chunked"]),
      request("POST / HTTP/1.1", ["Content-Length: 1", "Expect: 100-Continue"]),
      request(host: "localhost:6200"),
      request(host: "my_service.internal."),
      request(host: "192.0.2.1:0"),
      request(host: "[::1]:65535"),
      request(host: "[2001:db8::ffff:192.0.2.1]"),
    ])
  func accepted(text: String) {
    let bytes = Array(text.utf8)
    guard case .head(_, let length) = RequestHead.parse(bytes) else {
      Issue.record("\(RequestHead.parse(bytes))")
      return
    }
    #expect(length == bytes.count)
    let result = checkSplits(bytes, incomplete: .incomplete) { RequestHead.parse($0) }
    #expect(result.broken == nil)
    #expect(result.settledAt == bytes.count)
    for size in [1, 2, 7, 30] {
      #expect(RequestHead.parse(bytes, inPiecesOf: size).outcome == RequestHead.parse(bytes))
    }
  }

  @Test(
    "An absolute target is read as origin form if it names the same host",
    arguments: [
      ("https://gate.example/a/b?x=1", "gate.example", "/a/b?x=1", "/a/b", "x=1"),
      ("https://gate.example/", "gate.example", "/", "/", nil), ("https://gate.example", "gate.example", "/", "/", nil),
      ("https://gate.example?x|y", "gate.example", "/?x|y", "/", "x|y"),
      ("HTTPS://GATE.example:443/a%41", "gate.EXAMPLE", "/a%41", "/aA", nil),
      ("https://gate.example/a", "gate.example:443", "/a", "/a", nil),
      ("https://gate.example:6200/a", "gate.example:6200", "/a", "/a", nil),
      ("https://[::1]:443/https://x", "[::1]", nil, nil, nil), ("https://[::1]/a", "[::1]:443", "/a", "/a", nil),
    ] as [(String, String, String?, String?, String?)])
  func absoluteTarget(sent: String, host: String, target: String?, path: String?, query: String?) throws {
    let text = request("GET \(sent) HTTP/1.1", host: host)
    let outcome = RequestHead.parse(text)
    #expect(checkSplits(Array(text.utf8), incomplete: .incomplete) { RequestHead.parse($0) }.broken == nil)
    for size in [1, 2, 7, 30] {
      #expect(RequestHead.parse(Array(text.utf8), inPiecesOf: size).outcome == RequestHead.parse(text))
    }
    guard let target else {
      #expect(outcome == .fault(HeadError.emptySegment.requestError))
      return
    }
    let head = try #require(outcome.head)
    #expect(head.target == target && head.path == path && head.query == query)
    #expect(head.headers.values(of: "Host") == [host])
  }

  @Test("A head in many pieces is scanned in proportion to its length, and no complete line is scanned twice")
  func pieces() throws {
    let limits = HeadLimits.request(bytes: 256 << 10)
    let lines = (0..<1000).map { "X-\($0): " + String(repeating: "v", count: 240) }
    let bytes = Array(request("GET / HTTP/1.1", lines).utf8)
    for size in [100, 251, 1400] {
      let result = RequestHead.parse(bytes, inPiecesOf: size, limits: limits)
      #expect(result.outcome == RequestHead.parse(bytes, limits: limits), "\(size)")
      #expect(result.outcome.head?.headers.fields.count == 1001)
      // Once from the start of the last incomplete line for each piece.
      #expect(result.scanned <= bytes.count + (bytes.count / size + 1) * (size + 251), "\(size): \(result.scanned)")
    }
    // What was scanned is not looked at again: a fault that is put there later is not found.
    var fields: ScannedFields?
    let half = bytes.count / 2
    let first = bytes[..<half].withUnsafeBufferPointer {
      RequestHead.parse($0, continuing: &fields, limits: limits, unread: nil)
    }
    let resumed = try #require(fields?.range.upperBound)
    #expect(first == .incomplete && half - resumed < 251)
    var altered = bytes
    altered[resumed - 10] = 0
    let length = try altered.withUnsafeBufferPointer { altered in
      var scanner = HeadScanner(altered, limits: limits)
      return try scanner.request(continuing: &fields)?.length
    }
    #expect(length == bytes.count)
    #expect(fields == nil)
  }

  @Test(
    "A value that is not UTF-8 passes as it is in a field that the engine does not read",
    arguments: [[0x4A, 0xFC, 0x72], [0xE9], [0xFF, 0xFE], [0xC0, 0xAF], [0xED, 0xA0, 0x80]] as [[UInt8]])
  func opaque(value: [UInt8]) throws {
    let bytes = Array("GET / HTTP/1.1\r\nHost: a\r\nX-Name: ".utf8) + value + Array("\r\nCookie: b\r\n\r\n".utf8)
    let head = try #require(RequestHead.parse(bytes).head)
    #expect(head.hasOpaqueValues && head.headers.fields[1].octets == value)
    #expect(head.headers.hasOpaqueValue(in: FieldNameSet(names: ["x-name"])))
    #expect(!head.headers.hasOpaqueValue(in: FieldNameSet(names: ["Cookie", "Host"])))
    #expect(checkSplits(bytes, incomplete: .incomplete) { RequestHead.parse($0) } == (bytes.count, nil))
  }

  @Test("The path has one normal form", arguments: RequestHeadTests.normalForms)
  func normalForm(sent: String, path: String) throws {
    let head = try #require(RequestHead.parse(request("GET \(sent) HTTP/1.1")).head)
    #expect(head.path == path)
    #expect(head.target == sent)
  }

  static let normalForms = [
    ("/a[0]^|", "/a%5B0%5D%5E%7C"), ("/a%5b0]", "/a%5B0%5D"),
    ("/", "/"), ("/a", "/a"), ("/a/", "/a/"), ("/A%41%7a/%7E%2D%5f%30", "/AAz/~-_0"),
    ("/%c3%a9%20%25%3f%23%40", "/%C3%A9%20%25%3F%23%40"), ("/a;p=1/b", "/a;p=1/b"), ("/100%25", "/100%25"),
    ("/%25zz/%25%41", "/%25zz/%25A"), ("/..%25/...%3b", "/..%25/...%3B"),
    ("/x?%41", "/x"), ("/?", "/"), ("/%61ttest/challenge", "/attest/challenge"),
  ]

  @Test(
    "The query is the unchanged text after the first question mark",
    arguments: [("/", nil), ("/?", ""), ("/?a?b", "a?b"), ("/p?%41=%ff", "%41=%ff")])
  func query(target: String, query: String?) throws {
    #expect(try #require(RequestHead.parse(request("GET \(target) HTTP/1.1")).head).query == query)
  }

  @Test("Connection options are combined, case-insensitive, and close has priority")
  func connection() throws {
    let head = try #require(
      RequestHead.parse(request("GET / HTTP/1.1", ["Connection: Keep-Alive", "connection: X-A , CLOSE"])).head)
    #expect(head.connectionOptions == ["keep-alive", "x-a", "close"])
    #expect(head.wantsClose)
  }

  @Test(
    "A client that expects 100-continue waits only if it has a body",
    arguments: [
      (["Expect: 100-continue", "Content-Length: 5"], true),
      (["Expect: 100-continue", "Transfer-Encoding: chunked"], true),
      (["Expect: 100-continue"], false), (["Expect: 100-continue", "Content-Length: 0"], false),
      (["Content-Length: 5"], false),
    ])
  func expectation(fields: [String], expects: Bool) throws {
    #expect(try #require(RequestHead.parse(request("POST / HTTP/1.1", fields)).head).expectsContinue == expects)
  }

  @Test("Bytes after the head are ignored")
  func leftovers() {
    let text = request()
    for suffix in ["\u{0}", "GET", "\r\n", "\u{16}\u{3}"] {
      #expect(RequestHead.parse(text + suffix) == RequestHead.parse(text))
    }
  }

  @Test("Empty input is incomplete")
  func empty() {
    #expect(RequestHead.parse([]) == .incomplete)
    #expect(RequestHead.parse(UnsafeBufferPointer(start: nil, count: 0)) == .incomplete)
  }
}
