@testable import TransportEngine

extension FuzzTarget {
  /// The first byte selects the reserved bits that extensions have claimed.
  static let frameHeader = FuzzTarget(
    name: "frame-header", longest: 64, seeds: { FrameHeaderInvariants.seeds }, accepts: FrameHeaderInvariants.check)
}

/// A frame header has one encoding, and the two readers of headers agree.
enum FrameHeaderInvariants {
  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    guard let first = input.first else { return false }
    let allowed = ReservedBits(rawValue: first & ReservedBits.all.rawValue)
    let bytes = Array(input.dropFirst())
    let outcome = decode(bytes, allowed)
    for count in bytes.prefixLengths {
      let found = decode(Array(bytes.prefix(count)), allowed)
      try require(
        found == .incomplete || found == outcome, "a prefix is incomplete or gives the same result", "\(count)")
    }
    try checkReader(bytes, allowed, against: outcome)
    switch outcome {
    case .incomplete: try require(bytes.count < FrameHeader.maxLength, "14 bytes are enough for a header")
    case .fault: break
    case .header(let header):
      try checkEncoding(of: header, in: bytes)
      try checkOutline(of: header, in: bytes)
      return true
    }
    return false
  }

  private static func decode(_ bytes: [UInt8], _ allowed: ReservedBits) -> FrameDecode {
    bytes.withUnsafeBytes { FrameHeader.decode($0, allowing: allowed) }
  }

  private static func checkEncoding(of header: FrameHeader, in bytes: [UInt8]) throws(InvariantViolation) {
    var encoded: [UInt8] = []
    header.append(to: &encoded)
    try require(encoded[...] == bytes.prefix(header.length), "a header has one encoding")
    try require(header.payloadLength >= 0, "a payload length is not negative")
    if header.opcode.isControl {
      try require(header.isFinal && header.payloadLength <= 125 && header.reserved.isEmpty, "control frames are short")
    }
  }

  private static func checkOutline(of header: FrameHeader, in bytes: [UInt8]) throws(InvariantViolation) {
    guard let outline = bytes.withUnsafeBytes({ FrameOutline($0) }) else {
      throw InvariantViolation(invariant: "a header has an outline", detail: "")
    }
    let isSame =
      outline.length == header.length && outline.payloadLength == UInt64(header.payloadLength)
      && outline.opcode == header.opcode.rawValue && outline.isFinal == header.isFinal
      && outline.isMasked == (header.mask != nil)
    try require(isSame, "the outline agrees with the header")
  }

  /// Checks that the reader of frames finds the same header or fault byte by byte.
  private static func checkReader(
    _ bytes: [UInt8], _ allowed: ReservedBits, against outcome: FrameDecode
  ) throws(InvariantViolation) {
    var reader = FrameReader(allowing: allowed)
    for (index, byte) in bytes.enumerated() {
      switch next(&reader, [byte]) {
      case .success(nil): continue
      case .success(let header?):
        return try require(outcome == .header(header) && index + 1 == header.length, "both readers find the same end")
      case .failure(let fault): return try require(outcome == .fault(fault), "both readers report the same fault")
      }
    }
    try require(outcome == .incomplete, "both readers report an incomplete header")
  }

  private static func next(_ reader: inout FrameReader, _ bytes: [UInt8]) -> Result<FrameHeader?, FrameError> {
    bytes.withUnsafeBytes { bytes in
      Result { () throws(FrameError) -> FrameHeader? in
        var window = bytes
        guard case .begin(let header) = try reader.next(&window) else { return nil }
        return header
      }
    }
  }

  static let seeds: [[UInt8]] = [
    [0, 0x81, 0x05], [0, 0x82, 0x7E, 0x01, 0x00], [0, 0x82, 0x7F, 0, 0, 0, 0, 0, 1, 0, 0],
    [0x40, 0xC1, 0x85, 1, 2, 3, 4], [0, 0x88, 0x02, 0x03, 0xE8], [0, 0x89, 0x80, 1, 2, 3, 4], [0, 0x00, 0x00],
    [0, 0x83, 0x00], [0, 0x09, 0x00], [0, 0x89, 0x7E, 0, 0], [0, 0x82, 0x7E, 0, 5],
    [0, 0x82, 0x7F, 0xFF, 0, 0, 0, 0, 0, 0, 0],
  ]
}
