/// The type of a frame (RFC 6455 section 5.2).
enum Opcode: UInt8, Sendable, Hashable, CaseIterable {
  case continuation = 0x0
  case text = 0x1
  case binary = 0x2
  case close = 0x8
  case ping = 0x9
  case pong = 0xA

  var isControl: Bool { rawValue & 0x8 != 0 }
}

/// The three reserved bits of a frame, which extensions use.
struct ReservedBits: OptionSet, Sendable, Hashable {
  /// The bits at their positions in the first byte of a frame.
  let rawValue: UInt8

  /// `permessage-deflate`: the message is compressed (RFC 7692 section 6).
  static let rsv1 = ReservedBits(rawValue: 0x40)
  static let rsv2 = ReservedBits(rawValue: 0x20)
  static let rsv3 = ReservedBits(rawValue: 0x10)
  static let all: ReservedBits = [.rsv1, .rsv2, .rsv3]
}

/// The header of a frame (RFC 6455 section 5.2).
struct FrameHeader: Sendable, Hashable {
  var isFinal: Bool
  var reserved: ReservedBits
  var opcode: Opcode
  /// `nil` for an unmasked frame.
  var mask: MaskingKey?
  /// The number of payload bytes, at most 2^63 - 1.
  var payloadLength: Int

  init(
    _ opcode: Opcode, payloadLength: Int, isFinal: Bool = true, reserved: ReservedBits = [], mask: MaskingKey? = nil
  ) {
    self.isFinal = isFinal
    self.reserved = reserved
    self.opcode = opcode
    self.mask = mask
    self.payloadLength = payloadLength
  }

  /// The length of the header in bytes, 2 to 14.
  var length: Int {
    let extended = payloadLength > 0xFFFF ? 8 : payloadLength > 125 ? 2 : 0
    return 2 + extended + (mask == nil ? 0 : 4)
  }

  /// The maximum length of a header in bytes.
  static let maxLength = 14

  /// The maximum payload of a control frame in bytes (section 5.5).
  static let maxControlPayload = 125
}

/// The violations of the frame header rules, with their texts. Each means close code 1002.
enum FrameError: String, Error, Sendable, CaseIterable {
  case reservedBits = "a reserved bit is set without an extension that uses it"
  case reservedOpcode = "the opcode is reserved"
  case fragmentedControl = "a control frame is fragmented"
  case longControl = "a control frame has more than 125 bytes of payload"
  case longLength = "the payload length is not in its shortest form"
  case hugeLength = "the payload length has its highest bit set"
}

/// The result of decoding the front of a window.
enum FrameDecode: Sendable, Hashable {
  /// The bytes are the beginning of a header.
  case incomplete
  /// A header of `header.length` bytes.
  case header(FrameHeader)
  /// The bytes are not a valid header, whatever follows.
  case fault(FrameError)
}

// MARK: - Decoding

extension FrameHeader {
  /// Decodes the header at the front of `bytes`.
  ///
  /// - Parameter reserved: The bits that negotiated extensions use. On a control frame no bit is accepted.
  @inline(__always)
  static func decode(_ bytes: UnsafeRawBufferPointer, allowing reserved: ReservedBits = []) -> FrameDecode {
    guard bytes.count >= 1 else { return .incomplete }
    let first = bytes[0]
    guard let opcode = Opcode(rawValue: first & 0x0F) else { return .fault(.reservedOpcode) }
    let isFinal = first & 0x80 != 0
    let bits = ReservedBits(rawValue: first & 0x70)
    if !reserved.isSuperset(of: bits) || opcode.isControl && !bits.isEmpty { return .fault(.reservedBits) }
    if opcode.isControl && !isFinal { return .fault(.fragmentedControl) }

    guard bytes.count >= 2 else { return .incomplete }
    let short = Int(bytes[1] & 0x7F)
    if opcode.isControl && short > maxControlPayload { return .fault(.longControl) }
    let extended = short == 127 ? 8 : short == 126 ? 2 : 0
    var payloadLength = short
    if extended > 0 {
      switch decodeLength(bytes, width: extended) {
      case .success(let length?): payloadLength = length
      case .success(nil): return .incomplete
      case .failure(let fault): return .fault(fault)
      }
    }

    var mask: MaskingKey?
    if bytes[1] & 0x80 != 0 {
      guard bytes.count >= 6 + extended else { return .incomplete }
      mask = MaskingKey(bytes.loadUnaligned(fromByteOffset: 2 + extended, as: UInt32.self))
    }
    return .header(
      FrameHeader(opcode, payloadLength: payloadLength, isFinal: isFinal, reserved: bits, mask: mask))
  }

  /// Decodes the payload length in the `width` (2 or 8) bytes after the first two; `nil` until they have arrived.
  ///
  /// The length must have its shortest form (section 5.2): otherwise one frame would have several encodings.
  private static func decodeLength(_ bytes: UnsafeRawBufferPointer, width: Int) -> Result<Int?, FrameError> {
    guard bytes.count > 2 else { return .success(nil) }
    if width == 8 && bytes[2] & 0x80 != 0 { return .failure(.hugeLength) }
    guard bytes.count >= 2 + width else { return .success(nil) }
    if width == 2 {
      let length = UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt16.self))
      return length > 125 ? .success(Int(length)) : .failure(.longLength)
    }
    let length = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt64.self))
    // The highest bit is clear, so the length fits.
    return length > 0xFFFF ? .success(Int(length)) : .failure(.longLength)
  }
}

// MARK: - Encoding

extension FrameHeader {
  /// Writes the header to the front of `buffer` and returns its length. Writes nothing and returns
  /// 0 if `buffer` is too short.
  func encode(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    let length = length
    guard buffer.count >= length else { return 0 }
    buffer[0] = (isFinal ? 0x80 : 0) | reserved.rawValue | opcode.rawValue
    let maskBit: UInt8 = mask == nil ? 0 : 0x80
    if payloadLength > 0xFFFF {
      buffer[1] = maskBit | 127
      buffer.storeBytes(of: UInt64(payloadLength).bigEndian, toByteOffset: 2, as: UInt64.self)
    } else if payloadLength > 125 {
      buffer[1] = maskBit | 126
      buffer.storeBytes(of: UInt16(payloadLength).bigEndian, toByteOffset: 2, as: UInt16.self)
    } else {
      buffer[1] = maskBit | UInt8(payloadLength)
    }
    if let mask { buffer.storeBytes(of: mask.rawValue, toByteOffset: length - 4, as: UInt32.self) }
    return length
  }

  /// Appends the header to `bytes`.
  func append(to bytes: inout [UInt8]) {
    withUnsafeTemporaryAllocation(byteCount: Self.maxLength, alignment: 1) { buffer in
      let length = encode(into: buffer)
      bytes.append(contentsOf: buffer[..<length])
    }
  }
}
