/// The key that masks a client's payload (RFC 6455 section 5.3).
struct MaskingKey: Sendable, Hashable {
  /// The four bytes of the key in memory order.
  let rawValue: UInt32

  /// - Parameter rawValue: The four bytes of the key, loaded in memory order.
  init(_ rawValue: UInt32) { self.rawValue = rawValue }

  /// Masks or unmasks `bytes` in place; both are the same operation.
  ///
  /// - Parameter offset: The number of bytes of the same payload that came before.
  func apply(to bytes: UnsafeMutableRawBufferPointer, offset: Int = 0) {
    let key = rotated(by: offset)
    let pair = UInt64(key.rawValue) << 32 | UInt64(key.rawValue)
    var position = 0
    while bytes.count - position >= 8 {
      let word = bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self) ^ pair
      bytes.storeBytes(of: word, toByteOffset: position, as: UInt64.self)
      position += 8
    }
    // `position` is a multiple of four, so the rest begins with the first byte of `key`.
    withUnsafeBytes(of: key.rawValue) { keyBytes in
      var index = 0
      while position < bytes.count {
        bytes[position] ^= keyBytes[index & 3]
        position += 1
        index += 1
      }
    }
  }

  /// Returns the key rotated so that its first byte applies to the payload byte at `offset`.
  private func rotated(by offset: Int) -> MaskingKey {
    let bits = UInt32(truncatingIfNeeded: offset & 3) * 8
    let key = UInt32(littleEndian: rawValue)
    return MaskingKey((key >> bits | key << ((32 - bits) & 31)).littleEndian)
  }
}
