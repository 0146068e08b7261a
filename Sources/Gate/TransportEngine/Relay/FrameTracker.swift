/// Follows the frames of one direction of a relayed WebSocket, without unmasking or keeping what is in them.
///
/// It is as liberal as a cable: what only the two ends may judge (reserved bits and opcodes, masking, fragment order)
/// goes through unchanged, so that a backend behind the gate behaves as it would without it. It knows three things:
/// where a frame ends, how long the current message is, and when a control frame that concerns the gate is complete.
struct FrameTracker {
  /// Payload bytes of the current frame that have not come yet.
  private(set) var payloadLeft: UInt64 = 0
  /// Payload bytes of the current message, fragments summed, as announced by the headers so far.
  private(set) var messageLength: UInt64 = 0
  /// A Close frame has gone through: what follows has no meaning, and no further one is told of.
  private(set) var hasClosed = false

  /// Whether the bytes that were let through so far end with a whole frame.
  var isAtBoundary: Bool { payloadLeft == 0 }

  /// Why `advance` stopped.
  enum Stop: Equatable {
    /// The window ends here.
    case windowEnd
    /// A frame ended here, and the caller asked to be told.
    case boundary
    /// What is left is a part of a header, or of a control frame that must be seen whole: keep it for the next time.
    case incomplete
    /// The frame that ends here is a Close; the code that it carries, if any. It counts as let through.
    case close(UInt16?)
    /// The Pong that was waited for begins here, whole, of `length` bytes, and was not let through.
    case pong(length: Int)
    /// The next frame would make its message longer than allowed. Not let through.
    case tooBig
  }

  /// Reads from the front of `window` and says how many bytes may be let through, and what comes behind them.
  ///
  /// - Parameters:
  ///   - token: stop at a Pong with this payload. Others go through with what is around them: a peer that sends many
  ///     has them handed on in one piece.
  ///   - stopsAtBoundary: whether to stop behind the current frame.
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

  /// Counts the frame into its message; `false` if that becomes too long.
  private mutating func count(_ header: FrameOutline, maxMessage: UInt64) -> Bool {
    if header.isControl { return header.payloadLength <= maxMessage }
    let before = header.opcode == FrameOutline.continuation ? messageLength : 0
    let (sum, overflows) = before.addingReportingOverflow(header.payloadLength)
    guard !overflows, sum <= maxMessage else { return false }
    messageLength = header.isFinal ? 0 : sum
    return true
  }
}

/// The header of a frame as it stands (RFC 6455 section 5.2), without validation.
struct FrameOutline {
  static let continuation: UInt8 = 0
  static let close: UInt8 = 8
  static let pong: UInt8 = 10

  let opcode: UInt8
  let isFinal: Bool
  /// Bytes of the header: 2 to 14.
  let length: Int
  let payloadLength: UInt64
  let isMasked: Bool

  /// `nil` while the header is not complete.
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
  /// A control frame of a size that RFC 6455 section 5.5 allows.
  var isShortControl: Bool { isControl && payloadLength <= 125 && length <= 6 }

  /// Whether this is a Pong as long as one with `token`.
  func mayAnswer(_ token: UInt64?) -> Bool { token != nil && opcode == Self.pong && payloadLength == 8 }

  /// The status of a Close frame, if it has one. `frame` is whole.
  func closeCode(in frame: UnsafeRawBufferPointer) -> UInt16? {
    guard payloadLength >= 2 else { return nil }
    return UInt16(unmasked(0, in: frame)) << 8 | UInt16(unmasked(1, in: frame))
  }

  /// The payload as a number, if it has the eight bytes of a Ping of ours. `frame` is whole.
  func token(in frame: UnsafeRawBufferPointer) -> UInt64? {
    guard payloadLength == 8 else { return nil }
    return (0..<8).reduce(0) { $0 << 8 | UInt64(unmasked($1, in: frame)) }
  }

  private func unmasked(_ index: Int, in frame: UnsafeRawBufferPointer) -> UInt8 {
    let byte = frame[length + index]
    return isMasked ? byte ^ frame[length - 4 + index % 4] : byte
  }
}

/// Control frames that the gate itself sends.
enum GateFrame {
  /// A Close frame with a code and as much of the reason as fits 123 bytes, whole characters.
  static func close(_ code: UInt16, reason: String, mask: UInt32?) -> [UInt8] {
    var text: [UInt8] = []
    for character in reason {
      guard text.count + character.utf8.count <= 123 else { break }
      text.append(contentsOf: character.utf8)
    }
    return control(FrameOutline.close, [UInt8(code >> 8), UInt8(code & 0xFF)] + text, mask: mask)
  }

  /// A Ping whose answer can be told from others by its token.
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
