import Testing

@testable import TransportEngine

@Suite("Frame tracker")
struct FrameTrackerTests {
  /// Returns a frame as a client (masked) or a server sends it.
  static func frame(_ opcode: UInt8, _ payload: [UInt8], final: Bool = true, mask: [UInt8]? = nil) -> [UInt8] {
    var bytes: [UInt8] = [(final ? 0x80 : 0) | opcode]
    let maskBit: UInt8 = mask == nil ? 0 : 0x80
    switch payload.count {
    case ..<126: bytes.append(maskBit | UInt8(payload.count))
    case ..<65536: bytes += [maskBit | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
    default: bytes += [maskBit | 127] + (0..<8).map { UInt8(truncatingIfNeeded: payload.count >> (56 - 8 * $0)) }
    }
    guard let mask else { return bytes + payload }
    return bytes + mask + payload.enumerated().map { $1 ^ mask[$0 % 4] }
  }

  static let mask: [UInt8] = [0x12, 0x34, 0x56, 0x78]

  /// A conversation with every length form, fragments, a Ping between them, and a Close with a code at the end.
  static func conversation(mask: [UInt8]?) -> [UInt8] {
    let payload = { (count: Int) in (0..<count).map { UInt8(truncatingIfNeeded: $0) } }
    return frame(1, payload(5), mask: mask) + frame(2, payload(126), mask: mask) + frame(2, payload(70_000), mask: mask)
      + frame(1, payload(3), final: false, mask: mask) + frame(9, payload(8), mask: mask)
      + frame(0, payload(4), mask: mask) + frame(2, [], mask: mask) + frame(8, [0x0F, 0xA1] + payload(3), mask: mask)
  }

  /// Returns the bytes that `tracker` passes of `bytes`, fed in pieces. Bytes that are held back come again with the
  /// next piece.
  static func run(
    _ bytes: [UInt8], pieces: Int, maxMessage: UInt64 = .max, pong token: UInt64? = nil
  ) -> (passed: [UInt8], stops: [FrameTracker.Stop], tracker: FrameTracker) {
    var tracker = FrameTracker()
    var passed: [UInt8] = []
    var stops: [FrameTracker.Stop] = []
    var held: [UInt8] = []
    for start in stride(from: 0, to: bytes.count, by: pieces) {
      var window = held + bytes[start..<min(start + pieces, bytes.count)]
      held = []
      while !window.isEmpty {
        let (count, stop) = window.withUnsafeBytes {
          tracker.advance(over: $0, maxMessage: maxMessage, pong: token)
        }
        passed += window[..<count]
        window.removeFirst(count)
        switch stop {
        case .windowEnd: break
        case .incomplete:
          held = window
          window = []
        case .pong(let length):
          window.removeFirst(length)
          stops.append(stop)
        case .close, .boundary: stops.append(stop)
        case .tooBig: return (passed, stops + [stop], tracker)
        }
      }
    }
    return (passed, stops, tracker)
  }

  @Test(
    "All frames pass unchanged, however the bytes are cut", arguments: [1, 2, 3, 7, 13, 14, 15, 125, 4096, 1 << 20])
  func transparent(pieces: Int) {
    for mask in [nil, Self.mask] {
      let bytes = Self.conversation(mask: mask)
      let (passed, stops, tracker) = Self.run(bytes, pieces: pieces)
      #expect(passed == bytes)
      #expect(stops == [.close(4001)])
      #expect(tracker.hasClosed && tracker.isAtBoundary)
    }
  }

  @Test(
    "The gate's own Pong is recognized, masked or not, however the bytes are cut; other Pongs pass",
    arguments: [1, 2, 5, 9, 64])
  func pong(pieces: Int) {
    for mask in [nil, Self.mask] {
      let own = Self.frame(10, [1, 2, 3, 4, 5, 6, 7, 8], mask: mask)
      let before = Self.frame(2, [9, 9], mask: mask) + Self.frame(10, [8, 7, 6, 5, 4, 3, 2, 1], mask: mask)
      let after = Self.frame(10, [1], mask: mask) + Self.frame(10, [], mask: mask) + Self.frame(2, [9], mask: mask)
      let (passed, stops, _) = Self.run(before + own + after, pieces: pieces, pong: 0x0102_0304_0506_0708)
      #expect(passed == before + after)
      #expect(stops == [.pong(length: own.count)])
    }
  }

  @Test("Many other Pongs pass as one piece", arguments: [0, 8, 125])
  func foreignPongs(length: Int) {
    let frame = Self.frame(10, Array(repeating: 3, count: length), mask: Self.mask)
    let pongs = Array(repeatElement(frame, count: 500).joined())
    var tracker = FrameTracker()
    let outcome = pongs.withUnsafeBytes { tracker.advance(over: $0, maxMessage: .max, pong: 42) }
    #expect(outcome == (pongs.count, .windowEnd))
  }

  @Test("All Pongs pass while the gate expects none")
  func pongsUnwatched() {
    let bytes = Self.frame(10, [1, 2, 3, 4, 5, 6, 7, 8])
    #expect(Self.run(bytes, pieces: 3).passed == bytes)
  }

  @Test("A message may have the limit's length, summed over its fragments, and not a byte more")
  func limit() {
    let fragments = { (last: Int) in
      Self.frame(2, Array(repeating: 0, count: 60), final: false) + Self.frame(9, Array(repeating: 1, count: 50))
        + Self.frame(0, Array(repeating: 0, count: last))
    }
    #expect(Self.run(fragments(40), pieces: 1000, maxMessage: 100).stops == [])
    #expect(Self.run(fragments(40) + fragments(40), pieces: 9, maxMessage: 100).stops == [])
    let (passed, stops, tracker) = Self.run(fragments(41), pieces: 9, maxMessage: 100)
    #expect(stops == [.tooBig])
    #expect(passed.count == 62 + 52 && tracker.isAtBoundary)
  }

  @Test("A length of 2^64 - 1 is too big and does not overflow")
  func hugeLength() {
    let header: [UInt8] = [0x82, 127] + Array(repeating: 0xFF, count: 8)
    #expect(Self.run(header, pieces: 1, maxMessage: 32 << 20).stops == [.tooBig])
    let fragment = Self.frame(2, [1, 2, 3], final: false) + [0x80, 127] + Array(repeating: 0xFF, count: 8)
    #expect(Self.run(fragment, pieces: 100, maxMessage: .max - 1).stops == [.tooBig])
  }

  @Test("Frames that only the endpoints check pass: reserved bits and opcodes, long control frames")
  func liberal() {
    let odd =
      Self.frame(0x73, [1]) + Self.frame(0x0B, [2]) + Self.frame(9, Array(repeating: 0, count: 200))
      + Self.frame(8, Array(repeating: 0, count: 126)) + Self.frame(0, [1])
    let (passed, stops, _) = Self.run(odd, pieces: 11)
    #expect(passed == odd && stops == [])
  }

  @Test("A Close with no code or half a code is reported without a code")
  func closeWithoutCode() {
    #expect(Self.run(Self.frame(8, []), pieces: 9).stops == [.close(nil)])
    #expect(Self.run(Self.frame(8, [3]), pieces: 9).stops == [.close(nil)])
  }

  @Test("A second Close passes and is not reported")
  func closeAgain() {
    let bytes = Self.frame(8, []) + Array((0..<100).map { _ in Self.frame(8, [3, 0xE8]) }.joined())
    let (passed, stops, tracker) = Self.run(bytes, pieces: bytes.count)
    #expect(passed == bytes && stops == [.close(nil)] && tracker.hasClosed && tracker.isAtBoundary)
  }

  @Test("The tracker stops at the end of the current frame if requested")
  func boundary() {
    var tracker = FrameTracker()
    let bytes = Self.frame(2, [1, 2, 3]) + Self.frame(2, [4])
    let first = bytes[..<3].withUnsafeBytes { tracker.advance(over: $0, maxMessage: .max) }
    #expect(first == (3, .windowEnd) && !tracker.isAtBoundary)
    let second = bytes[3...].withUnsafeBytes { tracker.advance(over: $0, maxMessage: .max, stopsAtBoundary: true) }
    #expect(second == (2, .boundary) && tracker.isAtBoundary)
  }

  @Test("The tracker parses the gate's own frames")
  func ownFrames() {
    for mask in [nil, UInt32(0xDEAD_BEEF)] {
      #expect(Self.run(GateFrame.close(3003, reason: "revoked", mask: mask), pieces: 2).stops == [.close(3003)])
      let pong = GateFrame.ping(token: 42, mask: mask).enumerated().map { $0 == 0 ? 0x8A : $1 }
      #expect(Self.run(pong, pieces: 3, pong: 42).stops == [.pong(length: pong.count)])
      #expect(Self.run(pong, pieces: 3, pong: 43).stops == [])
    }
    let long = GateFrame.close(1001, reason: String(repeating: "é", count: 100), mask: nil)
    #expect(long.count == 2 + 2 + 122)
  }
}
