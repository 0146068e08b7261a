import Testing

@testable import TransportEngine

@Suite struct FrameHeaderTests {
  static let headers: [(FrameHeader, [UInt8])] = [
    (FrameHeader(.text, payloadLength: 5), [0x81, 0x05]),
    (FrameHeader(.text, payloadLength: 3, isFinal: false), [0x01, 0x03]),
    (FrameHeader(.continuation, payloadLength: 2), [0x80, 0x02]),
    (FrameHeader(.ping, payloadLength: 0), [0x89, 0x00]),
    (FrameHeader(.pong, payloadLength: 125), [0x8A, 0x7D]),
    (FrameHeader(.close, payloadLength: 2, mask: exampleKey), [0x88, 0x82, 0x37, 0xFA, 0x21, 0x3D]),
    (FrameHeader(.binary, payloadLength: 125), [0x82, 0x7D]),
    (FrameHeader(.binary, payloadLength: 126), [0x82, 0x7E, 0x00, 0x7E]),
    (FrameHeader(.binary, payloadLength: 256), [0x82, 0x7E, 0x01, 0x00]),
    (FrameHeader(.binary, payloadLength: 0xFFFF), [0x82, 0x7E, 0xFF, 0xFF]),
    (FrameHeader(.binary, payloadLength: 0x1_0000), [0x82, 0x7F, 0, 0, 0, 0, 0, 1, 0, 0]),
    (FrameHeader(.binary, payloadLength: .max), [0x82, 0x7F, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]),
    (
      FrameHeader(.binary, payloadLength: 0x1_0000, isFinal: false, mask: exampleKey),
      [0x02, 0xFF, 0, 0, 0, 0, 0, 1, 0, 0, 0x37, 0xFA, 0x21, 0x3D]
    ),
    (FrameHeader(.binary, payloadLength: 126, mask: exampleKey), [0x82, 0xFE, 0x00, 0x7E, 0x37, 0xFA, 0x21, 0x3D]),
    (FrameHeader(.text, payloadLength: 1, reserved: .rsv1), [0xC1, 0x01]),
    (FrameHeader(.text, payloadLength: 1, reserved: .all), [0xF1, 0x01]),
  ]

  @Test("A header is encoded and decoded as in RFC 6455, and incomplete until its last byte", arguments: headers)
  func coding(header: FrameHeader, bytes: [UInt8]) {
    #expect(header.encoded == bytes)
    #expect(header.length == bytes.count)
    #expect(FrameHeader.decode(bytes + [1, 2, 3], allowing: .all) == .header(header))
    for end in bytes.indices { #expect(FrameHeader.decode(Array(bytes[..<end]), allowing: .all) == .incomplete) }
  }

  @Test("A header that does not fit is not written", arguments: headers)
  func tooShort(header: FrameHeader, bytes: [UInt8]) {
    var buffer = [UInt8](repeating: 0xEE, count: bytes.count - 1)
    #expect(buffer.withUnsafeMutableBytes { header.encode(into: $0) } == 0)
    #expect(buffer.allSatisfy { $0 == 0xEE })
  }

  static let broken: [(FrameError, [UInt8], Int)] =
    [0x3, 0x4, 0x5, 0x6, 0x7, 0xB, 0xC, 0xD, 0xE, 0xF].map { (.reservedOpcode, [0x80 | $0, 0x00], 1) } + [
      (.reservedBits, [0xC1, 0x00], 1), (.reservedBits, [0xA1, 0x00], 1), (.reservedBits, [0x91, 0x00], 1),
      (.fragmentedControl, [0x08, 0x00], 1), (.fragmentedControl, [0x09, 0x00], 1),
      (.fragmentedControl, [0x0A, 0x00], 1),
      (.longControl, [0x88, 0x7E, 0x00, 0x7E], 2), (.longControl, [0x89, 0xFE, 0xFF], 2),
      (.longControl, [0x8A, 0x7F, 0x00], 2),
      (.longLength, [0x82, 0x7E, 0x00, 0x00], 4), (.longLength, [0x82, 0x7E, 0x00, 0x7D], 4),
      (.longLength, [0x82, 0x7F, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF], 10),
      (.longLength, [0x82, 0xFF, 0, 0, 0, 0, 0, 0, 0, 1], 10),
      (.hugeLength, [0x82, 0x7F, 0x80, 0, 0, 0, 0, 0, 0, 0], 3), (.hugeLength, [0x82, 0x7F, 0xFF, 0xFF], 3),
    ]

  @Test(
    "A header that breaks a rule is refused with that rule, as early as possible", arguments: FrameHeaderTests.broken)
  func refused(rule: FrameError, bytes: [UInt8], at length: Int) {
    #expect(checkSplits(bytes, incomplete: .incomplete) { FrameHeader.decode($0) } == (length, nil))
    #expect(FrameHeader.decode(bytes) == .fault(rule))
  }

  @Test("Each rule is broken by a test")
  func complete() {
    #expect(Set(Self.broken.map(\.0)) == Set(FrameError.allCases))
  }

  @Test("A reserved bit of an extension is accepted only on data frames")
  func reservedBits() {
    #expect(FrameHeader.decode([0xC1, 0x00], allowing: .rsv1) != .fault(.reservedBits))
    #expect(FrameHeader.decode([0x40, 0x00], allowing: .rsv1) != .fault(.reservedBits))
    #expect(FrameHeader.decode([0xE1, 0x00], allowing: .rsv1) == .fault(.reservedBits))
    for control in [0xC8, 0xC9, 0xCA] as [UInt8] {
      #expect(FrameHeader.decode([control, 0x00], allowing: .rsv1) == .fault(.reservedBits))
    }
  }
}

@Suite struct MaskingKeyTests {
  @Test("The example of RFC 6455 section 5.7 is masked correctly")
  func example() {
    var bytes = Array("Hello".utf8)
    bytes.withUnsafeMutableBytes { exampleKey.apply(to: $0) }
    #expect(bytes == [0x7F, 0x9F, 0x4D, 0x51, 0x58])
  }

  @Test(
    "Masking in pieces of any size equals masking in one call",
    arguments: [0, 1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 64, 100])
  func pieces(count: Int) {
    let plain = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37) }
    let key = [0x37, 0xFA, 0x21, 0x3D] as [UInt8]
    let expected = plain.enumerated().map { $1 ^ key[$0 % 4] }
    for cut in 0...count {
      var bytes = plain
      bytes.withUnsafeMutableBytes { whole in
        exampleKey.apply(to: UnsafeMutableRawBufferPointer(rebasing: whole[..<cut]))
        exampleKey.apply(to: UnsafeMutableRawBufferPointer(rebasing: whole[cut...]), offset: cut)
      }
      #expect(bytes == expected)
    }
  }

  @Test("The mask is correct after more than four gigabytes of payload")
  func farOffset() {
    var bytes: [UInt8] = [0, 0, 0, 0, 0]
    bytes.withUnsafeMutableBytes { exampleKey.apply(to: $0, offset: (5 << 32) + 3) }
    #expect(bytes == [0x3D, 0x37, 0xFA, 0x21, 0x3D])
  }
}
