import ByteCoding
import Transport

@testable import TransportEngine

extension FuzzTarget {
  static let requestHead = FuzzTarget(
    name: "request-head", longest: 2048, words: HTTPWords.all + HTTPWords.requests,
    seeds: { RequestHeadInvariants.seeds.map { Array($0.utf8) } }, accepts: RequestHeadInvariants.check)
}

/// The meaning of a head does not depend on how its bytes arrive or on the bytes after it.
enum RequestHeadInvariants {
  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    let outcome = parse(input)
    try checkPrefixes(of: input, outcome)
    guard case .head(let head, let length) = outcome else { return false }
    let isHandshake = if case .webSocket = head.upgrade { true } else { false }
    try HeadFrame.check(input, length: length, fields: head.headers, removed: isHandshake ? 100 : 0)
    try require(!isHandshake || !head.headers.hasEmptyHandshakeElement, "a handshake has no empty list element")
    try checkMeaning(head)
    try checkPath(head)
    guard let written = written(head) else { throw InvariantViolation(invariant: "a head can be written", detail: "") }
    try require(parse(written) == .head(head, length: written.count), "a written head is read unchanged")
    return true
  }

  static func parse(_ bytes: [UInt8]) -> HeadParse { bytes.withUnsafeBufferPointer { RequestHead.parse($0) } }

  private static func written(_ head: RequestHead) -> [UInt8]? {
    guard var writer = try? HeadWriter(method: head.method, target: head.target),
      (try? writer.fields(head.headers)) != nil
    else { return nil }
    return writer.ended()
  }

  /// A prefix is incomplete until the outcome is certain, and then the outcome stays.
  private static func checkPrefixes(of input: [UInt8], _ outcome: HeadParse) throws(InvariantViolation) {
    for count in input.prefixLengths {
      let found = parse(Array(input.prefix(count)))
      switch outcome {
      case .incomplete: try require(found == .incomplete, "a prefix of an incomplete head is incomplete", "\(count)")
      case .head(_, let length):
        try require(found == (count < length ? .incomplete : outcome), "a head ends at its length", "\(count)")
      case .fault: try require(found == .incomplete || found == outcome, "a fault stays the same", "\(count)")
      }
    }
    guard outcome != .incomplete else { return }
    for suffix in ["\r\n", "GET / HTTP/1.1\r\n", "\u{0}"] {
      try require(parse(input + suffix.utf8) == outcome, "the bytes after a head change nothing")
    }
  }

  private static func checkMeaning(_ head: RequestHead) throws(InvariantViolation) {
    func count(_ name: String) -> Int { head.headers.fields.count { $0.name.lowercased() == name } }
    try require(count("host") == 1, "a request has one Host")
    try require(count("content-length") + count("transfer-encoding") <= 1, "at most one field frames the body")
    try require((head.contentLength != nil) == (count("content-length") == 1), "the length is the value of the field")
    try require(head.isChunked == (count("transfer-encoding") == 1), "chunked is set by the field")
    guard case .webSocket(let intent) = head.upgrade else { return }
    let hasBody = head.isChunked || head.contentLength ?? 0 > 0
    try require(head.method == "GET" && !hasBody, "an upgrade is a GET without a body")
    try require(Base64.decode(intent.key)?.count == 16, "a key has 16 bytes")
    try require(head.connectionOptions.contains("upgrade"), "Connection names Upgrade")
  }

  private static func checkPath(_ head: RequestHead) throws(InvariantViolation) {
    let path = head.path
    try require(path.utf8.first == UInt8(ascii: "/"), "a path begins with a slash")
    let segments = path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).dropFirst()
    try require(!segments.dropLast().contains { $0.isEmpty }, "no segment except the last is empty")
    try require(!segments.contains { [".", ".."].contains(String(Substring($0))) }, "no segment is a dot or two dots")
    let low = Array(path.lowercased().utf8)
    for hidden in ["\\", "%2f", "%5c", "%2e", "%00", "?", "#", " ", "[", "|"] {
      try require(low.occurrences(of: hidden) == 0, "a path contains no encoded or forbidden character", hidden)
    }
    guard case .head(let again, _) = parse(Array("GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n".utf8)) else {
      throw InvariantViolation(invariant: "a normalized path is a valid path", detail: path)
    }
    try require(again.path == path, "a normalized path is its own normal form")
  }

  static let seeds = [
    "GET / HTTP/1.1\r\nHost: gate.example\r\n\r\n",
    "GET /a/%7Eb/%C3%a9?q=%zz HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /a/%7Eb/%C3%a9;x=1?q={1}|[2] HTTP/1.1\r\nHost: [::1]:6200\r\n\r\nGET",
    "POST /attest/register HTTP/1.1\r\nHost: a:443\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n{}",
    "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close, TE\r\n\r\n0\r\n\r\n",
    "GET /chat HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
      + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
      + "Sec-WebSocket-Protocol: chat, v2.chat\r\nSec-WebSocket-Extensions: permessage-deflate; a=\"b\"\r\n"
      + "X-App-Assert-KeyId: AAAA\r\nCookie: a=b; c=\"d\"\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    "GET /a/../b HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\nHost: a\n\n", "GET  / HTTP/1.1\r\nHost : a\r\n\r\n",
  ]
}

/// The invariants for the bytes of any head.
enum HeadFrame {
  /// - Parameters:
  ///   - most: The maximum number of field lines.
  ///   - removed: How many fields may be missing, because they are lists without elements.
  static func check(
    _ input: [UInt8], length: Int, fields: HeaderFields, most: Int = 100, removed: Int = 0
  ) throws(InvariantViolation) {
    try require((1...input.count).contains(length), "a head is within the input")
    let head = Array(input.prefix(length))
    let hasEnd = head.suffix(4) == Array("\r\n\r\n".utf8)[...]
    try require(hasEnd && head.occurrences(of: "\r\n\r\n") == 1, "a head ends at its first empty line")
    let breaks = head.occurrences(of: "\r\n")
    let (returns, feeds) = (head.count { $0 == 0x0D }, head.count { $0 == 0x0A })
    try require(returns == breaks && feeds == breaks, "a line break is CR LF")
    try require(
      head.allSatisfy { $0 >= 0x20 && $0 != 0x7F || [0x09, 0x0A, 0x0D].contains($0) }, "no control characters")
    // The first line and the empty line are not fields.
    try require(
      fields.fields.count <= breaks - 2 && fields.fields.count >= breaks - 2 - removed && breaks - 2 <= most,
      "each line is a field, except lists of nothing")
    for field in fields.fields {
      try require(!field.name.isEmpty && field.name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "a name is a token")
      let edges = [field.value.utf8.first, field.value.utf8.last].compactMap(\.self)
      try require(!edges.contains { $0 == 0x20 || $0 == 0x09 }, "a value has no white space around it")
    }
  }
}

/// The words that heads consist of.
enum HTTPWords {
  static let all = [
    "\r\n", "\r\n\r\n", ": ", "HTTP/1.1", "Host", "Connection", "close", "Upgrade", "websocket", "Content-Length",
    "Transfer-Encoding", "chunked", "Sec-WebSocket-Protocol", "Sec-WebSocket-Extensions", "permessage-deflate", "\t",
    "chat",
  ]
  static let requests = [
    "GET ", "POST ", "Expect", "100-continue", "Sec-WebSocket-Key", "Sec-WebSocket-Version", "%2F", "%2e", "%00",
    "/../", "dGhlIHNhbXBsZSBub25jZQ==", "13", "?",
  ]
}
