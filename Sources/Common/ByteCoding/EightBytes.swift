/// Eight bytes that are tested at once, as one number.
///
/// The result of a test has the highest bit of each byte for which it holds. Above the first such byte it may also have
/// the highest bits of others. So it shows whether there is one, and which is the first. Results may be combined by `|`
/// alone. Those of `isNotASCII` and `isUnusualInName` are exact in each byte.
public struct EightBytes: Equatable {
  @usableFromInline let word: UInt64

  @inlinable
  init(word: UInt64) { self.word = word }

  /// Loads the eight bytes of `bytes` that begin at `offset`, all of which must exist.
  @inlinable
  @inline(__always)
  public init(_ bytes: UnsafeBufferPointer<UInt8>, at offset: Int) {
    // The first byte becomes the lowest one on every machine.
    word = UInt64(littleEndian: UnsafeRawBufferPointer(bytes).loadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }

  /// Loads the first eight bytes of `bytes`, with zeros after the end of fewer.
  @inlinable
  public init(prefixOf bytes: UnsafeBufferPointer<UInt8>) {
    guard bytes.count < 8 else {
      self.init(bytes, at: 0)
      return
    }
    self.init(word: bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) })
  }

  /// The bytes as a number, the first one lowest, with the letters A to Z in lowercase.
  @inlinable
  @inline(__always)
  public var lowercase: UInt64 {
    let ascii = word & Self.repeating(0x7F)
    let isCapital = Self.isAtLeast(ascii, 0x41) & ~Self.isAtLeast(ascii, 0x5B) & ~word & Self.repeating(0x80)
    return word | isCapital >> 2
  }

  /// Tests for bytes below `limit`, which is 0x80 at most.
  @inlinable
  @inline(__always)
  public func isLess(than limit: UInt8) -> UInt64 { Self.isLess(word, than: limit) }

  /// Tests for bytes equal to `byte`.
  @inlinable
  @inline(__always)
  public func isEqual(to byte: UInt8) -> UInt64 { Self.isLess(word ^ Self.repeating(byte), than: 1) }

  /// Tests for bytes that are not ASCII.
  @inlinable
  @inline(__always)
  public var isNotASCII: UInt64 { word & Self.repeating(0x80) }

  /// The highest bit of each byte that is not a letter, a digit or a hyphen of ASCII, and of no other byte.
  @inlinable
  @inline(__always)
  public var isUnusualInName: UInt64 {
    // Without the highest bits, so that no sum carries into the next byte.
    let ascii = word & Self.repeating(0x7F)
    let lowercase = ascii | Self.repeating(0x20)
    let isLetter = Self.isAtLeast(lowercase, 0x61) & ~Self.isAtLeast(lowercase, 0x7B)
    let isDigit = Self.isAtLeast(ascii, 0x30) & ~Self.isAtLeast(ascii, 0x3A)
    let isHyphen = Self.isAtLeast(ascii, 0x2D) & ~Self.isAtLeast(ascii, 0x2E)
    return (~(isLetter | isDigit | isHyphen) | word) & Self.repeating(0x80)
  }

  /// The index of the first byte for which the test with `result` holds; 8 if there is none.
  @inlinable
  @inline(__always)
  public static func first(in result: UInt64) -> Int { result.trailingZeroBitCount / 8 }

  @inlinable
  @inline(__always)
  static func repeating(_ byte: UInt8) -> UInt64 { 0x0101_0101_0101_0101 &* UInt64(byte) }

  // For bytes below 0x80. Only the highest bit of each byte has a meaning.
  @inlinable
  @inline(__always)
  static func isAtLeast(_ word: UInt64, _ limit: UInt8) -> UInt64 { word &+ repeating(0x80 - limit) }

  // A byte below the limit borrows from the next one, which may then seem to be below it, too.
  @inlinable
  @inline(__always)
  static func isLess(_ word: UInt64, than limit: UInt8) -> UInt64 {
    (word &- repeating(limit)) & ~word & repeating(0x80)
  }
}
