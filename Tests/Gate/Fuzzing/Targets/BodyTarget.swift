import Transport

@testable import TransportEngine

extension FuzzTarget {
  /// The first byte selects the framing of the body, the second one where the bytes are cut.
  static let body = FuzzTarget(
    name: "body", words: ["\r\n", "0\r\n\r\n", "10\r\n", ";a=b\r\n", "ffffffffffffffff"],
    seeds: { BodyInvariants.seeds },
    accepts: BodyInvariants.check)
}

/// A body does not depend on how the bytes arrive or on how the body is framed again.
enum BodyInvariants {
  private static let limit = 1000

  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    guard input.count >= 2 else { return false }
    let (framing, stream) = (framing(input[0]), Array(input.dropFirst(2)))
    let extras: ChunkedBody.Extras = input[0] & 3 == 2 ? .dropped : .refused
    let whole = read([stream], framing, extras)
    try require(read(Array(Pieces(of: stream, pattern: input[1])), framing, extras) == whole, "pieces equal the whole")
    guard case .success(let reading) = whole else { return false }
    try require(reading.body.count <= limit && reading.taken <= stream.count, "a body stays within its limits")
    if framing == .chunked { try checkExtras(stream, extras, against: reading) }
    try checkPipe(stream, framing, extras, pattern: input[1], against: reading)
    return reading.isComplete
  }

  private static func framing(_ byte: UInt8) -> BodyFraming {
    switch byte & 3 {
    case 0: .length(Int(byte >> 2) * 20)
    case 1, 2: .chunked
    default: .untilClose
    }
  }

  private struct Reading: Equatable {
    var body: [UInt8] = []
    var taken = 0
    var isComplete = false
  }

  private static func read(
    _ pieces: [[UInt8]], _ framing: BodyFraming, _ extras: ChunkedBody.Extras
  ) -> Result<Reading, BodyError> {
    do throws(BodyError) {
      var reader = try BodyReader(framing, limit: limit, extras: extras)
      var taken = 0
      for piece in pieces where !reader.isComplete {
        taken += try feed(piece) { bytes throws(BodyError) in try reader.feed(bytes) }
      }
      return .success(Reading(body: reader.body, taken: taken, isComplete: reader.isComplete))
    } catch {
      return .failure(error)
    }
  }

  /// A body that is accepted while chunk extensions and trailers are refused is also accepted while they are dropped.
  private static func checkExtras(
    _ stream: [UInt8], _ extras: ChunkedBody.Extras, against reading: Reading
  ) throws(InvariantViolation) {
    guard extras == .refused else { return }
    try require(
      read([stream], .chunked, .dropped) == .success(reading), "strict and lenient reading give the same body")
  }

  /// The piped output, read again, is the same body without extensions and trailers.
  private static func checkPipe(
    _ stream: [UInt8], _ framing: BodyFraming, _ extras: ChunkedBody.Extras, pattern: UInt8, against reading: Reading
  ) throws(InvariantViolation) {
    guard let output = try? piped(stream, framing, extras, pattern: pattern) else {
      throw InvariantViolation(invariant: "a readable body can be piped", detail: "")
    }
    guard framing == .chunked || framing == .untilClose else {
      return try require(output == reading.body, "a body with a length is piped unchanged")
    }
    guard case .success(let again) = read([output], .chunked, .refused) else {
      throw InvariantViolation(invariant: "the piped body is readable", detail: "")
    }
    try require(again.body == reading.body, "the piped body is the same body")
    try require(
      again.isComplete == (reading.isComplete || framing == .untilClose), "the piped body ends where the body ends")
  }

  private static func piped(
    _ stream: [UInt8], _ framing: BodyFraming, _ extras: ChunkedBody.Extras, pattern: UInt8
  ) throws(BodyError) -> [UInt8] {
    var pipe = try BodyPipe(framing, limit: limit, extras: extras)
    var output: [UInt8] = []
    for piece in Pieces(of: stream, pattern: pattern) where !pipe.isComplete {
      _ = try feed(piece) { bytes throws(BodyError) in try pipe.feed(bytes, into: &output) }
    }
    if framing == .untilClose { try pipe.connectionEnded(into: &output) }
    return output
  }

  private static func feed(
    _ bytes: [UInt8], _ take: (UnsafeBufferPointer<UInt8>) throws(BodyError) -> Int
  ) throws(BodyError) -> Int {
    let result = bytes.withUnsafeBufferPointer { bytes in
      Result { () throws(BodyError) in try take(bytes) }
    }
    return try result.get()
  }

  static let seeds: [[UInt8]] = [
    [0x14, 0] + [UInt8](repeating: 7, count: 120), [0x00, 1], [0x03, 9] + Array("until the end".utf8),
    [0x01, 0] + Array("5\r\nhello\r\n0\r\n\r\n".utf8),
    [0x01, 3] + Array("000A\r\n0123456789\r\n1\r\nx\r\n0\r\n\r\nGET /".utf8),
    [0x01, 5] + Array("5;a=b\r\nhello\r\n0\r\n\r\n".utf8), [0x01, 5] + Array("1\r\nx\r\n0\r\nX: y\r\n\r\n".utf8),
    [0x01, 5] + Array("ffffffffffffffff\r\n".utf8),
    [0x02, 3] + Array("1 ; a=\"b;c\"\r\nx\r\n0;d\r\nX: y\r\n\r\n".utf8),
    [0x02, 1] + Array("1;\rx\r\nx\r\n0\r\n\r\n".utf8),
  ]
}
