import Testing
import Transport

@testable import TransportEngine

/// The result of feeding a body to a reader.
enum BodyOutcome: Equatable {
  case incomplete
  case complete([UInt8], consumed: Int)
  case fault(BodyError)
}

/// Feeds `pieces` one after another.
func read(
  _ pieces: [[UInt8]], _ framing: BodyFraming, limit: Int = 1000, extras: ChunkedBody.Extras = .refused
) -> BodyOutcome {
  do throws(BodyError) {
    var reader = try BodyReader(framing, limit: limit, extras: extras)
    var consumed = 0
    for piece in pieces where !reader.isComplete { consumed += try feed(piece, to: &reader) }
    return reader.isComplete ? .complete(reader.body, consumed: consumed) : .incomplete
  } catch {
    return .fault(error)
  }
}

private func feed(_ piece: [UInt8], to reader: inout BodyReader) throws(BodyError) -> Int {
  try unsafe(piece) { (bytes) throws(BodyError) in try reader.feed(bytes) }
}

private func unsafe<R>(_ bytes: [UInt8], _ body: (UnsafeBufferPointer<UInt8>) throws(BodyError) -> R) throws(BodyError)
  -> R
{
  let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: bytes.count)
  defer { copy.deallocate() }
  _ = copy.initialize(fromContentsOf: bytes)
  return try body(UnsafeBufferPointer(copy))
}

@Suite struct BodyReaderTests {
  @Test("A body with a length is complete with its last byte, and later bytes are left")
  func counted() {
    let bytes = Array("hello".utf8)
    #expect(read([bytes + [1, 2]], .length(5)) == .complete(bytes, consumed: 5))
    #expect(read([Array(bytes[..<2]), Array(bytes[2...]) + [9]], .length(5)) == .complete(bytes, consumed: 5))
    #expect(read([Array(bytes[..<4])], .length(5)) == .incomplete)
  }

  @Test("A request without a body is complete immediately", arguments: [BodyFraming.none, .length(0)])
  func none(framing: BodyFraming) {
    #expect(read([[1, 2, 3]], framing) == .complete([], consumed: 0))
  }

  @Test("A body that announces too many bytes is refused before it is read")
  func tooLong() {
    #expect(read([], .length(1001)) == .fault(.tooLarge(limit: 1000)))
    #expect(read([], .length(1000)) == .incomplete)
    #expect(BodyError.tooLarge(limit: 7).requestError == .bodyTooLarge(limit: 7))
  }

  @Test("A body that ends with the connection is limited too")
  func untilClose() throws {
    var reader = try BodyReader(.untilClose, limit: 4, extras: .refused)
    #expect(try feed([1, 2, 3, 4], to: &reader) == 4)
    #expect(!reader.isComplete)
    #expect(throws: BodyError.tooLarge(limit: 4)) { try feed([5], to: &reader) }
    try reader.connectionEnded()
    #expect(reader.isComplete && reader.body == [1, 2, 3, 4])
  }

  @Test("A connection that is closed inside a body is a fault", arguments: [BodyFraming.length(3), .chunked])
  func endedEarly(framing: BodyFraming) throws {
    var reader = try BodyReader(framing, limit: 10, extras: .refused)
    #expect(throws: BodyError.endedEarly) { try reader.connectionEnded() }
    #expect(BodyError.endedEarly.requestError == .malformedBody(rule: "the connection was closed inside the body"))
  }

  @Test("A connection that is closed after a body is no fault")
  func endedAfter() throws {
    var reader = try BodyReader(.length(1), limit: 10, extras: .refused)
    #expect(try feed([7], to: &reader) == 1)
    try reader.connectionEnded()
    #expect(reader.body == [7])
  }
}

@Suite struct ChunkedBodyTests {
  @Test(
    "Chunks are joined, however they arrive",
    arguments: [
      ("0\r\n\r\n", ""), ("5\r\nhello\r\n0\r\n\r\n", "hello"), ("1\r\nh\r\n4\r\nello\r\n0\r\n\r\n", "hello"),
      ("00000000000000a\r\n0123456789\r\n000\r\n\r\n", "0123456789"),
      ("A\r\n0123\r\n5678\r\n0\r\n\r\n", "0123\r\n5678"),
    ])
  func joined(coded: String, body: String) {
    let bytes = Array(coded.utf8)
    let expected = BodyOutcome.complete(Array(body.utf8), consumed: bytes.count)
    #expect(read([bytes + Array("GET /".utf8)], .chunked) == expected)
    #expect(read(bytes.map { [$0] }, .chunked) == expected)
    for cut in bytes.indices {
      #expect(read([Array(bytes[..<cut]), Array(bytes[cut...])], .chunked) == expected)
      #expect(read([Array(bytes[..<cut])], .chunked) == .incomplete)
    }
  }

  static let broken: [(ChunkError, String)] = [
    (.size, "\r\n"), (.size, "x"), (.size, " 5\r\n"), (.size, "-1\r\n"), (.size, "+1\r\n"), (.size, "\n"),
    (.size, "1\r\na\r\n\r\n"), (.size, ";"), (.size, "1\r\na\r\ng"),
    (.sizeDigits, "00000000000000001\r\n"),
    (.extension, "5;a=b\r\nhello\r\n"), (.extension, "5 \r\nhello"), (.extension, "0;\r\n"), (.extension, "5\t"),
    (.lineEnd, "5\nhello"), (.lineEnd, "5\rhello"), (.lineEnd, "5\r\r"), (.lineEnd, "0x5\r\n"), (.lineEnd, "5,"),
    (.dataEnd, "5\r\nhello!"), (.dataEnd, "5\r\nhello\n"), (.dataEnd, "5\r\nhello\rX"), (.dataEnd, "5\r\nhello0"),
    (.trailer, "0\r\nX: y\r\n\r\n"), (.trailer, "0\r\n\n"), (.trailer, "0\r\n\rX"), (.trailer, "0\r\n0"),
  ]

  @Test("Each broken rule is named, however the bytes arrive", arguments: ChunkedBodyTests.broken)
  func refused(rule: ChunkError, coded: String) {
    let bytes = Array(coded.utf8)
    #expect(read([bytes], .chunked) == .fault(.malformed(rule)))
    #expect(checkSplits(bytes, incomplete: .incomplete) { read($0.map { [$0] }, .chunked) }.broken == nil)
    #expect(BodyError.malformed(rule).requestError == .malformedBody(rule: rule.rawValue))
  }

  static let brokenExtensions: [(ChunkError, String)] = [
    (.lineEnd, "5;a\nhello"), (.lineEnd, "5;a\rhello"), (.lineEnd, "5;a\r\rhello"), (.lineEnd, "5;a=\"\r\"\r\n"),
    (.lineEnd, "5 \nhello"), (.extensionForm, "5 a=b\r\n"), (.extensionForm, "5 x\r\n"),
    (.extensionForm, "5;a\0\r\n"), (.extensionForm, "5;\u{7F}\r\n"),
    (.extensionForm, "5;" + String(repeating: "a", count: 4096)), (.size, ";a\r\n"), (.lineEnd, "5,a\r\n"),
  ]

  @Test(
    "If extensions are dropped, each of their broken rules is named, however the bytes arrive",
    arguments: ChunkedBodyTests.brokenExtensions)
  func refusedExtension(rule: ChunkError, coded: String) {
    let bytes = Array(coded.utf8)
    #expect(read([bytes], .chunked, extras: .dropped) == .fault(.malformed(rule)))
    #expect(
      checkSplits(bytes, incomplete: .incomplete) { read($0.map { [$0] }, .chunked, extras: .dropped) }.broken == nil)
  }

  @Test("Each chunk may have 4 KiB of extensions")
  func boundedExtension() {
    let chunk = Array("1;\(String(repeating: "\u{e9}", count: 2047))\t\r\na\r\n".utf8)
    let coded = Array(repeating: chunk, count: 8).flatMap(\.self) + Array("0\r\n\r\n".utf8)
    let expected = BodyOutcome.complete(Array("aaaaaaaa".utf8), consumed: coded.count)
    #expect(read([coded + [1]], .chunked, extras: .dropped) == expected)
    #expect(read([coded], .chunked) == .fault(.malformed(.extension)))
  }

  @Test("Each rule is broken by a test")
  func complete() {
    #expect(Set((Self.broken + Self.brokenExtensions).map(\.0)) == Set(ChunkError.allCases))
  }

  @Test(
    "The limit applies to all chunks together and is checked with the chunk size",
    arguments: [
      ("8", 7), ("5\r\nhello\r\n3", 7), ("ffffffffffffffff", 7), ("7fffffffffffffff", 7), ("1\r\na\r\n7", 7), ("1", 0),
    ])
  func bounded(coded: String, limit: Int) {
    #expect(read([Array(coded.utf8)], .chunked, limit: limit) == .fault(.tooLarge(limit: limit)))
  }

  @Test("A body of exactly the limit is accepted")
  func atTheBound() {
    let coded = Array("5\r\nhello\r\n2\r\n!!\r\n0\r\n\r\n".utf8)
    #expect(read([coded], .chunked, limit: 7) == .complete(Array("hello!!".utf8), consumed: coded.count))
  }
}
