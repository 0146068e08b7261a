import Transport

@testable import TransportEngine

extension FuzzTarget {
  static let responseHead = FuzzTarget(
    name: "response-head", longest: 2048, words: HTTPWords.all + ["HTTP/1.0", " 200 ", " 101 ", " 304 "],
    seeds: { ResponseHeadInvariants.seeds.map { Array($0.utf8) } }, accepts: ResponseHeadInvariants.check)
}

/// The outcome for the head of an upstream's answer depends only on its own bytes, like that of a request.
enum ResponseHeadInvariants {
  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    let outcome = parse(input)
    try checkPrefixes(of: input, outcome)
    guard case .head(let head, let length) = outcome else { return false }
    try HeadFrame.check(input, length: length, fields: head.headers, most: 256)
    try require((100...599).contains(head.status), "a status is between 100 and 599")
    if head.status < 200 || [204, 304].contains(head.status) {
      try require(head.framing == .none, "a status without a body has no framing")
    }
    if head.framing == .chunked { try require(!head.isVersion10, "HTTP/1.0 has no chunked bodies") }
    let written = written(head)
    try require(parse(written) == .head(head, length: written.count), "a written head is read unchanged")
    return true
  }

  static func parse(_ bytes: [UInt8]) -> ResponseParse { bytes.withUnsafeBufferPointer { ResponseHead.parse($0) } }

  private static func checkPrefixes(of input: [UInt8], _ outcome: ResponseParse) throws(InvariantViolation) {
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
    try require(parse(input + "HTTP/1.1 200 OK\r\n".utf8) == outcome, "the bytes after a head change nothing")
  }

  private static func written(_ head: ResponseHead) -> [UInt8] {
    let line = "HTTP/1.\(head.isVersion10 ? 0 : 1) \(head.status) \(head.reason)\r\n"
    let fields = head.headers.fields.flatMap { field in
      "\(field.name): ".utf8 + (field.octets ?? Array(field.value.utf8)) + "\r\n".utf8
    }
    return line.utf8 + fields + "\r\n".utf8
  }

  static let seeds = [
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 204 \r\n\r\n", "HTTP/1.0 200 OK\r\n\r\nbody",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n",
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    "HTTP/1.1 200\r\nContent-Length : 2\r\nX\t : y\r\n\r\nok",
    "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 600 No\r\n\r\n", "HTTP/2 200\r\n\r\n",
  ]
}
