/// Checks whether bytes that arrive in pieces are UTF-8 (RFC 3629).
///
/// Overlong forms, surrogates and code points above U+10FFFF are rejected at the first byte that cannot be valid.
struct UTF8Validator: Sendable, Hashable {
  /// The number of continuation bytes that the current character lacks, 0 to 3.
  private var missing: UInt8 = 0
  /// The range of the next continuation byte. It is narrower than 0x80...0xBF after some first bytes.
  private var lower: UInt8 = 0x80
  private var upper: UInt8 = 0xBF
  private var hasFailed = false

  /// Whether the bytes so far end with a whole character and are valid.
  var isComplete: Bool { missing == 0 && !hasFailed }

  /// Checks the next bytes. Returns `false`, now and for all later calls, if they cannot be part of UTF-8.
  mutating func consume(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    var position = 0
    while position < bytes.count, !hasFailed {
      if missing == 0 {
        position = Self.endOfASCII(bytes, from: position)
        if position == bytes.count { break }
      }
      advance(over: bytes[position])
      position += 1
    }
    return !hasFailed
  }

  /// Returns the index of the first byte at or after `start` that is not ASCII.
  private static func endOfASCII(_ bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> Int {
    let raw = UnsafeRawBufferPointer(bytes)
    var position = start
    while raw.count - position >= 8,
      raw.loadUnaligned(fromByteOffset: position, as: UInt64.self) & 0x8080_8080_8080_8080 == 0
    {
      position += 8
    }
    while position < raw.count, raw[position] < 0x80 { position += 1 }
    return position
  }

  /// Implements the table of RFC 3629 section 4.
  private mutating func advance(over byte: UInt8) {
    if missing > 0 {
      hasFailed = byte < lower || byte > upper
      missing -= 1
      (lower, upper) = (0x80, 0xBF)
      return
    }
    switch byte {
    case 0x00...0x7F: break
    case 0xC2...0xDF: missing = 1
    case 0xE0: (missing, lower) = (2, 0xA0)
    case 0xE1...0xEC, 0xEE...0xEF: missing = 2
    case 0xED: (missing, upper) = (2, 0x9F)
    case 0xF0: (missing, lower) = (3, 0x90)
    case 0xF1...0xF3: missing = 3
    case 0xF4: (missing, upper) = (3, 0x8F)
    default: hasFailed = true
    }
  }
}
