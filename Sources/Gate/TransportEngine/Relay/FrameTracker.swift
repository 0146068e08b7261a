/// Tracks the frames of one direction of a relayed WebSocket without unmasking or storing payloads.
///
/// It passes everything that only the two peers may judge unchanged: reserved bits and opcodes, masking, fragment
/// order. So a backend behaves as it would without the gate. It determines three things: where a frame ends, how long
/// the current message is, and when a control frame that concerns the gate is complete.
struct FrameTracker {
  /// The payload bytes of the current frame that have not arrived yet.
  private(set) var payloadLeft: UInt64 = 0
  /// The payload bytes of the current message, summed over its fragments, as announced by the headers so far.
  private(set) var messageLength: UInt64 = 0
  /// Whether a Close frame has been passed. Later Close frames are not reported.
  private(set) var hasClosed = false

  /// Whether the bytes passed so far end at a frame boundary.
  var isAtBoundary: Bool { payloadLeft == 0 }

  /// Why `advance` stopped.
  enum Stop: Equatable {
    /// The window ends here.
    case windowEnd
    /// A frame ended here, and the caller asked to stop there.
    case boundary
    /// The rest is part of a header, or of a control frame that must be read whole: hold it for the next call.
    case incomplete
    /// A Close frame ends here, with its code if it has one. It counts as passed.
    case close(UInt16?)
    /// The awaited Pong of `length` bytes begins here, whole, and was not passed.
    case pong(length: Int)
    /// The next frame would make its message longer than the limit. It was not passed.
    case tooBig
  }

  /// Reads from the front of `window` and returns how many bytes may be passed on, and why it stopped there.
  ///
  /// - Parameters:
  ///   - token: Stops at a Pong with this payload. Other Pongs are passed with the bytes around them: those of a peer
  ///     that sends many are passed in one piece.
  ///   - stopsAtBoundary: Whether to stop at the end of the current frame.
  mutating func advance(
    over window: UnsafeRawBufferPointer, maxMessage: UInt64, pong token: UInt64? = nil, stopsAtBoundary: Bool = false
  ) -> (count: Int, stop: Stop) {
    var position = 0
    while true {
      if payloadLeft > 0 {
        let step = min(UInt64(window.count - position), payloadLeft)
        position += Int(step)
        payloadLeft -= step
        if payloadLeft > 0 { return (position, .windowEnd) }
      }
      if stopsAtBoundary { return (position, .boundary) }
      if position == window.count { return (position, .windowEnd) }
      guard let header = FrameOutline(UnsafeRawBufferPointer(rebasing: window[position...])) else {
        return (position, .incomplete)
      }
      let isFirstClose = header.opcode == FrameOutline.close && !hasClosed
      if header.isShortControl, isFirstClose || header.mayAnswer(token) {
        let frame = UnsafeRawBufferPointer(rebasing: window[position...])
        let length = header.length + Int(header.payloadLength)
        guard frame.count >= length else { return (position, .incomplete) }
        if isFirstClose {
          hasClosed = true
          return (position + length, .close(header.closeCode(in: frame)))
        }
        if header.token(in: frame) == token { return (position, .pong(length: length)) }
      }
      guard count(header, maxMessage: maxMessage) else { return (position, .tooBig) }
      position += header.length
      payloadLeft = header.payloadLength
    }
  }

  /// Adds the frame to its message. Returns `false` if the message becomes too long.
  private mutating func count(_ header: FrameOutline, maxMessage: UInt64) -> Bool {
    if header.isControl { return header.payloadLength <= maxMessage }
    let before = header.opcode == FrameOutline.continuation ? messageLength : 0
    let (sum, overflows) = before.addingReportingOverflow(header.payloadLength)
    guard !overflows, sum <= maxMessage else { return false }
    messageLength = header.isFinal ? 0 : sum
    return true
  }
}

/// The header of a frame as sent, without validation (RFC 6455 section 5.2).
struct FrameOutline {
  static let continuation: UInt8 = 0
  static let close: UInt8 = 8
  static let pong: UInt8 = 10

  let opcode: UInt8
  let isFinal: Bool
  /// The length of the header in bytes, 2 to 14.
  let length: Int
  let payloadLength: UInt64
  let isMasked: Bool

  /// Reads the header; `nil` while it is incomplete.
  init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count >= 2 else { return nil }
    let first = bytes[0]
    let second = bytes[1]
    opcode = first & 0x0F
    isFinal = first & 0x80 != 0
    isMasked = second & 0x80 != 0
    let short = second & 0x7F
    let extended = short == 126 ? 2 : short == 127 ? 8 : 0
    length = 2 + extended + (isMasked ? 4 : 0)
    guard bytes.count >= length else { return nil }
    if extended == 0 {
      payloadLength = UInt64(short)
    } else {
      var value: UInt64 = 0
      for index in 2..<(2 + extended) { value = value << 8 | UInt64(bytes[index]) }
      payloadLength = value
    }
  }

  var isControl: Bool { opcode & 0x08 != 0 }
  /// Whether this is a control frame of a size that RFC 6455 section 5.5 allows.
  var isShortControl: Bool { isControl && payloadLength <= 125 && length <= 6 }

  /// Whether this is a Pong of the same length as one with `token`.
  func mayAnswer(_ token: UInt64?) -> Bool { token != nil && opcode == Self.pong && payloadLength == 8 }

  /// Returns the code of a Close frame, if it has one. `frame` must be complete.
  func closeCode(in frame: UnsafeRawBufferPointer) -> UInt16? {
    guard payloadLength >= 2 else { return nil }
    return UInt16(unmasked(0, in: frame)) << 8 | UInt16(unmasked(1, in: frame))
  }

  /// Returns the payload as a number if it has the eight bytes of the gate's Pings. `frame` must be complete.
  func token(in frame: UnsafeRawBufferPointer) -> UInt64? {
    guard payloadLength == 8 else { return nil }
    return (0..<8).reduce(0) { $0 << 8 | UInt64(unmasked($1, in: frame)) }
  }

  private func unmasked(_ index: Int, in frame: UnsafeRawBufferPointer) -> UInt8 {
    let byte = frame[length + index]
    return isMasked ? byte ^ frame[length - 4 + index % 4] : byte
  }
}

/// The control frames that the gate itself sends.
enum GateFrame {
  /// Encodes a Close frame with a code and as many whole characters of the reason as fit in 123 bytes.
  static func close(_ code: UInt16, reason: String, mask: UInt32?) -> [UInt8] {
    var text: [UInt8] = []
    for character in reason {
      guard text.count + character.utf8.count <= 123 else { break }
      text.append(contentsOf: character.utf8)
    }
    return control(FrameOutline.close, [UInt8(code >> 8), UInt8(code & 0xFF)] + text, mask: mask)
  }

  /// Encodes a Ping whose Pong is recognized by its token.
  static func ping(token: UInt64, mask: UInt32?) -> [UInt8] {
    control(9, (0..<8).map { UInt8(truncatingIfNeeded: token >> (56 - 8 * $0)) }, mask: mask)
  }

  private static func control(_ opcode: UInt8, _ payload: [UInt8], mask: UInt32?) -> [UInt8] {
    var frame: [UInt8] = [0x80 | opcode, UInt8(payload.count) | (mask == nil ? 0 : 0x80)]
    guard let mask else { return frame + payload }
    let key = (0..<4).map { UInt8(truncatingIfNeeded: mask >> (24 - 8 * $0)) }
    frame += key
    for (index, byte) in payload.enumerated() { frame.append(byte ^ key[index % 4]) }
    return frame
  }
}
