import TestSupport
import Testing
import Transport

@testable import TransportEngine

/// Breaks each rule of a request head on its own.
@Suite struct RequestErrorTests {
  static let requestLines: [(HeadError, String)] = [
    (.firstByte, "\u{16}\u{3}\u{1}\u{2}\u{0}"), (.firstByte, "\r\n" + request()), (.firstByte, "\n" + request()),
    (.firstByte, " " + request()), (.firstByte, "\u{0}"), (.firstByte, "{\"nonce\":1}"), (.firstByte, "\u{e9}"),
    (.method, "GE(T / HTTP/1.1\r\n"), (.method, "GET\t/ HTTP/1.1\r\n"), (.method, "GET\r\n"), (.method, "G\u{0}T /"),
    (.method, String(repeating: "A", count: 33)), (.method, "G\u{e9}T / HTTP/1.1\r\n"),
    (.targetForm, "GET  / HTTP/1.1\r\n"), (.targetForm, "GET http://gate.example/ HTTP/1.1\r\n"),
    (.targetForm, "CONNECT gate.example:443 HTTP/1.1\r\n"), (.targetForm, "OPTIONS * HTTP/1.1\r\n"),
    (.targetForm, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), (.targetForm, "GET \\ HTTP/1.1\r\n"),
    (.targetForm, "GET HTTP://gate.example/ HTTP/1.1\r\n"), (.targetForm, "GET wss://gate.example/ HTTP/1.1\r\n"),
    (.targetForm, "GET https:/gate.example/ HTTP/1.1\r\n"), (.targetForm, "GET httpss://gate.example/ HTTP/1.1\r\n"),
    (.targetAuthority, "GET https://user@gate.example/ HTTP/1.1\r\n"),
    (.targetAuthority, "GET https://gate.example%2f/ HTTP/1.1\r\n"), (.targetAuthority, "GET https://gate.example#/"),
    (.targetAuthority, "GET https://gate.example\\/"), (.targetAuthority, "GET https://g\u{e4}te.example/"),
    (.targetForm, "GET \r\n"), (.targetForm, "GET %2F HTTP/1.1\r\n"), (.targetForm, "GET ?a HTTP/1.1\r\n"),
    (.version, "GET /  HTTP/1.1\r\n"), (.version, "GET /\r\n"), (.version, "GET /\n"), (.version, "GET / \r\n"),
    (.version, "GET / HTTP/1.0\r\n"), (.version, "GET / HTTP/2.0\r\n"), (.version, "GET / HTTP/9.9\r\n"),
    (.version, "GET / http/1.1\r\n"), (.version, "GET / HTTP/01.1\r\n"), (.version, "GET /a b HTTP/1.1\r\n"),
    (.version, "GET / HTTPS/1.1\r\n"), (.version, "GET /?q\r\n"),
    (.lineEnd, "GET / HTTP/1.1\n"), (.lineEnd, "GET / HTTP/1.1 \r\n"), (.lineEnd, "GET / HTTP/1.11\r\n"),
    (.lineEnd, "GET / HTTP/1.1\r\r\n"),
    (.targetEscape, "GET /% HTTP/1.1"), (.targetEscape, "GET /%4 HTTP/1.1"), (.targetEscape, "GET /%4g HTTP/1.1"),
    (.targetEscape, "GET /%%41 HTTP/1.1"), (.targetEscape, "GET /?100% HTTP/1.1"), (.targetEscape, "GET /%u0041"),
  ]

  static let targetCharacters: [(HeadError, String)] =
    ["#", "\\", "\"", "<", ">", "\u{0}", "\t", "\u{7f}", "\u{e9}", "\u{b}"].flatMap {
      [(.targetCharacter, "GET /a\($0)b HTTP/1.1\r\n"), (.targetCharacter, "GET /?a\($0)b HTTP/1.1\r\n")]
    } + ["`", "{", "}"].map { (.targetCharacter, "GET /a\($0)b HTTP/1.1\r\n") }

  static let paths: [(HeadError, String)] =
    ["//", "//a", "/a//b", "/a//", "//gate.example/", "/%41//"].map { (.emptySegment, $0) }
    + [
      "/.", "/..", "/./", "/../", "/a/./b", "/a/../b", "/a/..", "/%2e", "/%2E%2e/", "/.%2e", "/a/..;x=1/b", "/.;/a",
      "/%2e%2E;x", "/..%3b/", "/a/..%3bx/b", "/.%3B", "/%2e.%3b/a", "/a/..%3fx", "/a/..%23/b",
    ].map { (.dotSegment, $0) }
    + ["/%2f", "/a%2Fb", "/a%5cb", "/a%5C", "/..%2f", "/%2F%2F"].map { (.escapedSeparator, $0) }
    + ["/%00", "/a%0Ab", "/%0d%0a", "/%1f", "/%7F", "/a%c2%85b", "/%C2%9b"].map { (.escapedControl, $0) }
    + [
      "/%c0%ae%c0%ae/", "/%c0%af", "/%e0%80%af", "/%ff", "/%C3", "/a%80b", "/%ed%a0%80", "/%f4%90%80%80",
      "/%c3%25a9",
    ].map { (.escapedEncoding, $0) }
    + [
      "/%252e%252e", "/%25%32%65", "/a%252fb", "/%255c", "/..%253b/", "/%2561dmin", "/%2525", "/%25252e", "/%25c0%25ae",
    ].map { (.doubleEscape, $0) }

  /// Absolute targets of a request whose `Host` is `gate.example`.
  static let absoluteTargets: [(HeadError, String)] = [
    (.targetAuthority, "https:///"), (.targetAuthority, "https://"), (.targetAuthority, "https://:443/"),
    (.targetAuthority, "https://gate.example:/"), (.targetAuthority, "https://gate.example:65536/"),
    (.targetAuthority, "https://[::1/"), (.hostDiffers, "https://elsewhere.example/"),
    (.hostDiffers, "https://gate.example.elsewhere.example/"), (.hostDiffers, "https://gate.example./"),
    (.hostDiffers, "https://gate.example:8443/"), (.hostDiffers, "https://gate.example:80/"),
    (.hostDiffers, "https://elsewhere.example:443/"), (.emptySegment, "https://gate.example//a"),
    (.dotSegment, "https://gate.example/a/../b"), (.escapedSeparator, "https://gate.example/%2fa"),
    (.targetCharacter, "https://gate.example/a#b"), (.targetCharacter, "https://gate.example?a#b"),
    (.targetEscape, "https://gate.example/%4g"), (.version, "https://gate.example/a b"),
  ]

  static let fieldLines: [(HeadError, String)] = [
    (.lineEnd, "X: a\n"), (.lineEnd, "X: a\rb\r\n"), (.lineEnd, "X: a\r\r\n"), (.lineEnd, "\r\r\n"), (.lineEnd, "\n"),
    (.foldedLine, " folded\r\n"), (.foldedLine, "\tfolded\r\n"), (.foldedLine, " \r\n"),
    (.foldedLine, "X: a\r\n b\r\n"),
    (.fieldNameMissing, ": a\r\n"), (.fieldNameMissing, ":\r\n"),
    (.spaceBeforeColon, "X : a\r\n"), (.spaceBeforeColon, "X\t: a\r\n"), (.spaceBeforeColon, "X Y: a\r\n"),
    (.spaceBeforeColon, "Transfer-Encoding : chunked\r\n"),
    (.colonMissing, "X\r\n"), (.colonMissing, "GET\n"), (.colonMissing, "Xa\r\n\r\n"),
    (.fieldName, "X(: a\r\n"), (.fieldName, "X\u{0}: a\r\n"), (.fieldName, "\u{e9}: a\r\n"),
    (.fieldName, "\"X\": a\r\n"),
    (.fieldName, "GET/ HTTP/1.1\r\n"), (.fieldName, "{a}: a\r\n"), (.fieldName, "X\u{7f}: a\r\n"),
    (.fieldNUL, "X: a\u{0}b\r\n"), (.fieldValue, "X: \u{7f}\r\n"), (.fieldValue, "X: \u{1}\r\n"),
    (.fieldValue, "X: \u{1b}[0m\r\n"), (.fieldValue, "X: \u{b}\r\n"),
  ]

  static let fields: [(HeadError, [String])] = [
    (.hostRepeated, ["Host: a", "Host: a"]), (.hostRepeated, ["Host: a", "hOST: b"]),
    (.hostMissing, []), (.hostMissing, ["X-Host: a"]),
    (.contentLengthRepeated, ["Host: a", "Content-Length: 1", "content-length: 1"]),
    (.doubleFraming, ["Host: a", "Content-Length: 1", "Transfer-Encoding: chunked"]),
    (.doubleFraming, ["Host: a", "Transfer-Encoding: chunked", "Content-Length: 0"]),
    (.transferEncoding, ["Host: a", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"]),
    (.transferEncoding, ["Host: a", "Transfer-Encoding: identity", "Content-Length: 3"]),
    (.expectation, ["Host: a", "Expect: 200-ok"]), (.expectation, ["Host: a", "Expect: 100-continue,"]),
    (.expectation, ["Host: a", "Expect:"]),
    (.expectation, ["Host: a", "Expect: 100-continue", "Expect: 100-continue"]),
    (.connectionSyntax, ["Host: a", "Connection: keep alive"]),
    (.connectionSyntax, ["Host: a", "Connection: \"close\""]),
    (.connectionSyntax, ["Host: a", "Connection: close", "Connection: a;b"]),
    (.connectionSyntax, ["Host: a", "Connection: close", "Connection: " + String(repeating: "a,", count: 64)]),
  ]

  static let hosts: [(HeadError, [String])] = [
    "", ":80", "a:", "a:65536", "a:+80", "a:8o", "a:80:80", "a b", "a,b", "a/", "user@a", "a%2e", "a#", "a?b", "\u{e9}",
    "[", "]", "[]", "[::1", "::1", "[::1]80", "[::1]:", "[:::1]", "[1.2.3.4]", "[fe80::1%25eth0]", "[v1.a]",
    String(repeating: "a", count: 254),
  ].map { (.hostSyntax, ["Host: \($0)"]) }

  static let contentLengths: [(HeadError, [String])] = [
    "", "+1", "-1", "1,1", "1 1", "0x1", "1.0", "one", "9223372036854775808", "99999999999999999999999", "\u{661}",
  ].map { (.contentLengthSyntax, ["Host: a", "Content-Length: \($0)"]) }

  static let transferEncodings: [(HeadError, [String])] = [
    "", "gzip", "gzip, chunked", "chunked, chunked", "chunked,", "chunked;q=1", "identity", "xchunked", "\"chunked\"",
    "chunked gzip",
  ].map { (.transferEncoding, ["Host: a", "Transfer-Encoding: \($0)"]) }

  static var all: [(HeadError, String)] {
    requestLines + targetCharacters
      + (paths + absoluteTargets).map { ($0.0, request("GET \($0.1) HTTP/1.1")) }
      + fieldLines.map { ($0.0, "GET / HTTP/1.1\r\nHost: a\r\n" + $0.1) }
      + (fields + hosts + contentLengths + transferEncodings).map {
        ($0.0, request("POST / HTTP/1.1", $0.1, host: nil))
      }
  }

  @Test("Each broken rule is named, however the bytes arrive", arguments: RequestErrorTests.all)
  func broken(rule: HeadError, text: String) {
    let bytes = Array(text.utf8)
    #expect(RequestHead.parse(bytes) == .fault(rule.requestError))
    #expect(checkSplits(bytes, incomplete: .incomplete) { RequestHead.parse($0) }.broken == nil)
    #expect(RequestHead.parse(bytes + Array("\r\nX: y\r\n\r\n".utf8)) == .fault(rule.requestError))
  }

  @Test(
    "Values that are not UTF-8 are refused in the fields that the engine reads",
    arguments: [[0xE9], [0xFF], [0xC3], [0xC0, 0xAF], [0xED, 0xA0, 0x80]] as [[UInt8]],
    [
      "Host", "Connection", "Upgrade", "Content-Length", "Transfer-Encoding", "Expect", "Origin", "Sec-WebSocket-Key",
      "sec-websocket-protocol", "SEC-WEBSOCKET-EXTENSIONS", "Sec-WebSocket-Anything",
    ])
  func encoding(value: [UInt8], name: String) {
    let bytes = Array("GET / HTTP/1.1\r\nHost: a\r\n\(name): b".utf8) + value + Array("\r\n\r\n".utf8)
    #expect(RequestHead.parse(bytes) == .fault(HeadError.fieldEncoding.requestError))
    #expect(checkSplits(bytes, incomplete: .incomplete) { RequestHead.parse($0) }.broken == nil)
  }

  @Test("Each rule is broken by a test and has its own description")
  func complete() {
    let elsewhere: Set<HeadError> = [.headLength, .fieldCount, .fieldEncoding, .statusLine, .status]
    #expect(Set(Self.all.map(\.0)).union(elsewhere) == Set(HeadError.allCases))
  }

  @Test("Size and framing are separate kinds of faults")
  func kinds() {
    #expect(HeadError.fieldCount.requestError == .headTooLarge(rule: "the head has too many fields"))
    #expect(HeadError.lineEnd.requestError == .malformedHead(rule: "a line does not end in CRLF"))
    // The lines around it are as they should be, unless a reader stops at it.
    #expect(HeadError.fieldValue.requestError == .unacceptableField(rule: HeadError.fieldValue.rawValue))
    #expect(HeadError.fieldNUL.requestError == .malformedHead(rule: HeadError.fieldNUL.rawValue))
    #expect(
      HeadError.doubleFraming.requestError
        == .malformedBody(rule: "both Content-Length and Transfer-Encoding frame the body"))
  }

  @Test(
    "Garbage is refused at the first invalid byte",
    arguments: [
      ("\u{16}\u{3}\u{1}", 1), ("SSH-2.0-x\r\n", 10), ("GET http://a/", 9), ("GET / HTTP/2", 12),
      ("GET / HTTP/1.1\n", 15),
      ("GET /\u{0}", 6), ("PRI * HTTP/2.0\r\n", 5), ("\r\n", 1), ("GET / HTTP/1.1\r\nX : y", 18),
    ])
  func early(text: String, length: Int) {
    #expect(checkSplits(Array(text.utf8), incomplete: .incomplete) { RequestHead.parse($0) } == (length, nil))
  }
}

/// The limits of a head.
@Suite struct HeadLimitTests {
  @Test("A head of the maximum length is accepted; one byte more is too large")
  func length() {
    for size in [16 << 10, (16 << 10) + 1] {
      let fixed = request("GET / HTTP/1.1", ["X: "]).utf8.count
      let bytes = Array(request("GET / HTTP/1.1", ["X: " + String(repeating: "a", count: size - fixed)]).utf8)
      #expect(bytes.count == size)
      if size == 16 << 10 {
        #expect(RequestHead.parse(bytes).head != nil)
      } else {
        #expect(RequestHead.parse(bytes) == .fault(HeadError.headLength.requestError))
      }
    }
  }

  @Test("An endless head is too large when the limit is reached, in any part")
  func endless() {
    let beginnings = ["GET /", "GET /?", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nX: "]
    for beginning in beginnings {
      let bytes = Array((beginning + String(repeating: "a", count: 100)).utf8)
      let limits = HeadLimits(bytes: 64)
      #expect(RequestHead.parse(bytes, limits: limits) == .fault(HeadError.headLength.requestError))
      let result = checkSplits(bytes, incomplete: .incomplete) { RequestHead.parse($0, limits: limits) }
      #expect(result == (64, nil))
    }
  }

  @Test("A fault within the limit is reported instead of the length")
  func faultFirst() {
    let bytes = Array(("GET / HTTP/1.0" + String(repeating: "a", count: 100)).utf8)
    #expect(RequestHead.parse(bytes, limits: HeadLimits(bytes: 64)) == .fault(HeadError.version.requestError))
  }

  @Test("The hundredth field is accepted; the next one is refused at its first byte")
  func fieldCount() {
    let lines = (1...99).map { "X-\($0): y" }
    #expect(RequestHead.parse(request("GET / HTTP/1.1", lines)).head?.headers.fields.count == 100)
    let tooMany = request("GET / HTTP/1.1", lines).dropLast(1) + "Z"
    #expect(RequestHead.parse(String(tooMany)) == .fault(HeadError.fieldCount.requestError))
  }

  @Test("An empty line that crosses the limit is too large")
  func straddling() {
    let bytes = Array(request().utf8)
    for limit in 1..<bytes.count {
      #expect(
        RequestHead.parse(bytes, limits: HeadLimits(bytes: limit)) == .fault(HeadError.headLength.requestError))
    }
    #expect(RequestHead.parse(bytes, limits: HeadLimits(bytes: bytes.count)).head != nil)
  }
}

/// Randomly damaged heads.
@Suite struct DamagedHeadTests {
  @Test("The outcome for a damaged head does not depend on how the bytes arrive", arguments: 0..<40 as Range<UInt64>)
  func damaged(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let whole = Array(handshake("GET /a%41/b?q HTTP/1.1", adding: ["Content-Length: 0", "X: y"]).utf8)
    let likely = Array("\r\n\t :;,%/.\\#?\u{0}\u{7f}".utf8) + [0x80, 0xFF]
    for _ in 0..<25 {
      var bytes = whole
      for _ in 0..<Int.random(in: 1...3, using: &generator) {
        let index = Int.random(in: 0..<bytes.count, using: &generator)
        let byte = likely[Int.random(in: 0..<likely.count, using: &generator)]
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: bytes[index] = byte
        case 1: bytes.insert(byte, at: index)
        case 2: bytes.remove(at: index)
        default: bytes[index] = UInt8.random(in: 0...255, using: &generator)
        }
      }
      let result = checkSplits(bytes, incomplete: .incomplete) { RequestHead.parse($0) }
      #expect(result.broken == nil, "\(String(decoding: bytes, as: UTF8.self))")
    }
  }
}
