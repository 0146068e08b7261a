import Testing

@testable import TransportEngine

@Suite("Forwarded bodies")
struct BodyPipeTests {
  /// Returns the output for `bytes`, fed in pieces of `size`; `nil` after a fault.
  private func pass(
    _ bytes: [UInt8], _ framing: BodyFraming, pieces size: Int, limit: Int = .max,
    extras: ChunkedBody.Extras = .refused, ends: Bool = false
  ) -> (output: [UInt8], taken: Int, isComplete: Bool)? {
    do throws(BodyError) {
      var pipe = try BodyPipe(framing, limit: limit, extras: extras)
      var (output, taken): ([UInt8], Int) = ([], 0)
      for start in stride(from: 0, to: bytes.count, by: size) where !pipe.isComplete {
        let piece = Array(bytes[start..<min(start + size, bytes.count)])
        taken += try piece.withUnsafeBufferPointer { buffer throws(BodyError) in try pipe.feed(buffer, into: &output) }
      }
      if ends { try pipe.connectionEnded(into: &output) }
      return (output, taken, pipe.isComplete)
    } catch {
      return nil
    }
  }

  /// Returns the body in the chunks of `bytes`.
  private func decoded(_ bytes: [UInt8]) -> [UInt8]? {
    var decoder = ChunkedBody(limit: .max, extras: .refused)
    var body: [UInt8] = []
    let taken = try? bytes.withUnsafeBufferPointer { try decoder.feed($0, into: &body) }
    return taken == bytes.count && decoder.isComplete ? body : nil
  }

  @Test("A body with a length is forwarded unchanged, and later bytes are left", arguments: 1...9)
  func counted(size: Int) throws {
    let result = try #require(pass(Array("hello, next".utf8), .length(5), pieces: size))
    #expect(result.output == Array("hello".utf8) && result.taken == 5 && result.isComplete)
    #expect(pass(Array("hell".utf8), .length(5), pieces: size)?.isComplete == false)
  }

  @Test("Chunks are forwarded as chunks of the same body, however they were cut", arguments: 1...30)
  func chunked(size: Int) throws {
    let text = "3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n"
    let result = try #require(pass(Array((text + "GET").utf8), .chunked, pieces: size))
    #expect(decoded(result.output) == Array("abc0123456789".utf8))
    #expect(result.taken == text.utf8.count && result.isComplete)
  }

  @Test("A body without a length becomes chunks, and its last chunk is written when the connection closes")
  func untilClose() throws {
    let result = try #require(pass(Array("all of it".utf8), .untilClose, pieces: 4, ends: true))
    #expect(decoded(result.output) == Array("all of it".utf8) && result.isComplete)
    let open = try #require(pass(Array("all of it".utf8), .untilClose, pieces: 4))
    #expect(decoded(open.output) == nil && !open.isComplete)
    #expect(pass(Array("hell".utf8), .length(5), pieces: 4, ends: true) == nil)
    #expect(pass(Array("1\r\na\r\n".utf8), .chunked, pieces: 4, ends: true) == nil)
  }

  @Test("Trailers are dropped or refused, as selected", arguments: 1...20)
  func trailers(size: Int) throws {
    let bytes = Array("1\r\na\r\n0\r\nX-One: 1\r\nX-Two: 2\r\n\r\n".utf8)
    let result = try #require(pass(bytes, .chunked, pieces: size, extras: .dropped))
    #expect(decoded(result.output) == [UInt8(ascii: "a")] && result.taken == bytes.count && result.isComplete)
    #expect(pass(bytes, .chunked, pieces: size) == nil)
    let endless = Array("0\r\nX: ".utf8) + [UInt8](repeating: 0x61, count: 20_000)
    #expect(pass(endless, .chunked, pieces: 1000, extras: .dropped) == nil)
  }

  @Test("Chunk extensions are dropped or refused, as selected", arguments: 1...20)
  func extensions(size: Int) throws {
    let bytes = Array("1;a=b\r\na\r\n2 ; c=\"x;y\" \t;d\r\nbc\r\n0;e\r\n\r\n".utf8)
    let result = try #require(pass(bytes, .chunked, pieces: size, extras: .dropped))
    #expect(decoded(result.output) == Array("abc".utf8) && result.taken == bytes.count && result.isComplete)
    #expect(pass(bytes, .chunked, pieces: size) == nil)
  }

  @Test("A body over the limit is refused with any framing")
  func limit() {
    #expect(pass([], .length(6), pieces: 1, limit: 5) == nil)
    #expect(pass(Array("6\r\n".utf8), .chunked, pieces: 1, limit: 5) == nil)
    #expect(pass(Array("sixsix".utf8), .untilClose, pieces: 1, limit: 5) == nil)
    #expect(pass(Array("five5".utf8), .untilClose, pieces: 1, limit: 5) != nil)
  }
}
