internal import Cryptography

/// A P-256 key for ES256 as COSE writes it (RFC 9053 section 7.1): 77 bytes, of which all but x and y are fixed.
enum COSEKey {
  static let size = 77

  // {1: 2 (EC2), 3: -7 (ES256), -1: 1 (P-256), -2: x, -3: y}
  private static let beforeX: [UInt8] = [0xA5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20]
  private static let beforeY: [UInt8] = [0x22, 0x58, 0x20]

  /// The point in X9.62 form; `nil` if `bytes` are anything else.
  static func point(in bytes: [UInt8]) -> [UInt8]? {
    guard bytes.count == size, bytes.starts(with: beforeX), bytes.dropFirst(42).starts(with: beforeY) else {
      return nil
    }
    return [0x04] + bytes[10..<42] + bytes[45..<77]
  }
}
