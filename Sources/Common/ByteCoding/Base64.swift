/// Base 64 with the standard alphabet and padding (RFC 4648 section 4).
public enum Base64 {
  /// `bytes` with padding and without line breaks.
  @inlinable
  public static func encode(_ bytes: some Collection<UInt8>) -> String {
    bytes.withBytes { Sextets.standard.encode($0, pads: true) }
  }

  /// The same for an array, whose bytes are in one piece.
  public static func encode(_ bytes: [UInt8]) -> String {
    bytes.withUnsafeBufferPointer { Sextets.standard.encode($0, pads: true) }
  }

  /// Decodes `text`; `nil` if it is not base64.
  ///
  /// Each value has exactly one accepted encoding: padding is required, white space and other alphabets are refused,
  /// and unused bits of the last digit must be zero. So no two texts decode to the same bytes.
  @inlinable
  public static func decode(_ text: some StringProtocol) -> [UInt8]? {
    text.utf8.withBytes { Sextets.standard.decode($0, pads: true) }
  }

  /// The same for a text that is a string.
  public static func decode(_ text: String) -> [UInt8]? {
    var text = text
    return text.withUTF8(decode)
  }

  /// The same for the bytes of a text.
  public static func decode(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
    Sextets.standard.decode(text, pads: true)
  }
}

extension Base64 {
  /// Decodes a text that a peer sent; `nil` if it is not base64.
  ///
  /// Encoders differ where the bytes are the same, so each of these forms is accepted:
  ///
  /// - the standard alphabet or the one for URLs, not both in one text,
  /// - all padding or none,
  /// - line ends, LF or CR LF, in any place, as the default encoder of Android and that of MIME write them.
  ///
  /// Other characters, a part of the padding, digits after padding and unused bits that are set are refused. Several
  /// texts have the same bytes: compare and keep the bytes, never the text.
  @inlinable
  public static func decode(anyForm text: some StringProtocol) -> [UInt8]? {
    decode(text) ?? text.utf8.withBytes(decodeUnusual)
  }

  /// The same for a text that is not in the standard form.
  @usableFromInline
  static func decodeUnusual(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
    var digits: [UInt8] = []
    digits.reserveCapacity(text.count)
    var (padding, isStandard, isURLSafe, endsLine) = (0, false, false, false)
    for character in text {
      // A CR belongs to the LF after it.
      guard !endsLine || character == UInt8(ascii: "\n") else { return nil }
      endsLine = character == UInt8(ascii: "\r")
      switch character {
      case UInt8(ascii: "\r"), UInt8(ascii: "\n"): continue
      case UInt8(ascii: "="):
        padding += 1
        continue
      case UInt8(ascii: "+"), UInt8(ascii: "/"): isStandard = true
      case UInt8(ascii: "-"), UInt8(ascii: "_"): isURLSafe = true
      default: break
      }
      guard padding == 0 else { return nil }
      digits.append(character)
    }
    guard !endsLine, !(isStandard && isURLSafe),
      padding == 0 || padding <= 2 && digits.count % 4 + padding == 4
    else { return nil }
    return digits.withUnsafeBufferPointer { digits in
      (isURLSafe ? Sextets.urlSafe : .standard).decode(digits, pads: false)
    }
  }
}

/// Base 64 with the alphabet that is safe in URLs, without padding (RFC 4648 section 5, as JOSE uses it).
public enum Base64URL {
  /// `bytes` without padding.
  @inlinable
  public static func encode(_ bytes: some Collection<UInt8>) -> String {
    bytes.withBytes { Sextets.urlSafe.encode($0, pads: false) }
  }

  /// The same for an array, whose bytes are in one piece.
  public static func encode(_ bytes: [UInt8]) -> String {
    bytes.withUnsafeBufferPointer { Sextets.urlSafe.encode($0, pads: false) }
  }

  /// Appends the same text to `text`, as ASCII.
  public static func append(_ bytes: [UInt8], to text: inout [UInt8]) {
    text.append(addingCapacity: Sextets.length(for: bytes.count)) { output in
      output.withUnsafeMutableBufferPointer { memory, count in
        let room = UnsafeMutableBufferPointer(rebasing: memory[count...])
        count += bytes.withUnsafeBufferPointer { Sextets.urlSafe.encode($0, pads: false, to: room) }
      }
    }
  }

  /// Decodes `text` as strictly as `Base64.decode`. Padding is refused.
  @inlinable
  public static func decode(_ text: some StringProtocol) -> [UInt8]? {
    text.utf8.withBytes { Sextets.urlSafe.decode($0, pads: false) }
  }

  /// The same for a text that is a string.
  public static func decode(_ text: String) -> [UInt8]? {
    var text = text
    return text.withUTF8(decode)
  }

  /// The same for the bytes of a text.
  public static func decode(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
    Sextets.urlSafe.decode(text, pads: false)
  }
}

/// Digits of six bits, with one of the two alphabets.
@usableFromInline
struct Sextets: Sendable {
  @usableFromInline static let standard = Sextets(last: "+/")
  @usableFromInline static let urlSafe = Sextets(last: "-_")

  private static let padding = UInt8(ascii: "=")
  private static let noDigit: UInt8 = 0xFF

  /// The digit of each of 64 values.
  private let digits: [UInt8]
  /// The value of each of 256 characters; `noDigit` if it is not in the alphabet.
  private let values: [UInt8]

  private init(last: String) {
    digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789\(last)".utf8)
    var values = [UInt8](repeating: Self.noDigit, count: 256)
    for (value, digit) in digits.enumerated() { values[Int(digit)] = UInt8(value) }
    self.values = values
  }

  /// The length of the text for `count` bytes, at most.
  static func length(for count: Int) -> Int { (count + 2) / 3 * 4 }

  @usableFromInline
  func encode(_ bytes: UnsafeBufferPointer<UInt8>, pads: Bool) -> String {
    String(unsafeUninitializedCapacity: Self.length(for: bytes.count)) { encode(bytes, pads: pads, to: $0) }
  }

  /// Writes the text of `bytes` to `output`, which has room for it, and returns its length.
  func encode(_ bytes: UnsafeBufferPointer<UInt8>, pads: Bool, to output: UnsafeMutableBufferPointer<UInt8>) -> Int {
    digits.withUnsafeBufferPointer { digits in
      var start = 0
      var end = 0
      while start + 3 <= bytes.count {
        let bits = UInt32(bytes[start]) << 16 | UInt32(bytes[start + 1]) << 8 | UInt32(bytes[start + 2])
        output[end] = digits[Int(bits >> 18)]
        output[end + 1] = digits[Int(bits >> 12 & 0x3F)]
        output[end + 2] = digits[Int(bits >> 6 & 0x3F)]
        output[end + 3] = digits[Int(bits & 0x3F)]
        start += 3
        end += 4
      }
      // One or two bytes are left, or none.
      if start < bytes.count {
        let isLast = start + 1 == bytes.count
        let bits = UInt32(bytes[start]) << 16 | (isLast ? 0 : UInt32(bytes[start + 1]) << 8)
        for place in 0..<(isLast ? 2 : 3) {
          output[end] = digits[Int(bits >> UInt32(18 - 6 * place) & 0x3F)]
          end += 1
        }
      }
      while pads, end % 4 != 0 {
        output[end] = Self.padding
        end += 1
      }
      return end
    }
  }

  @usableFromInline
  func decode(_ text: UnsafeBufferPointer<UInt8>, pads: Bool) -> [UInt8]? {
    var length = text.count
    if pads {
      guard length % 4 == 0 else { return nil }
      for _ in 0..<2 where length > 0 && text[length - 1] == Self.padding { length -= 1 }
    }
    // A single digit after whole groups has fewer bits than a byte.
    guard length % 4 != 1 else { return nil }
    var isValid = true
    let bytes = [UInt8](upTo: length / 4 * 3 + 2) { output in
      var count = 0
      let digits = UnsafeBufferPointer(rebasing: text[..<length])
      isValid = values.withUnsafeBufferPointer { Self.decode(digits, by: $0, to: output, &count) }
      return count
    }
    return isValid ? bytes : nil
  }

  /// Decodes `digits`, of which one group at most is incomplete. Returns `false` if one of them is not in the alphabet,
  /// or if unused bits are set: otherwise one value would have several encodings.
  private static func decode(
    _ digits: UnsafeBufferPointer<UInt8>, by values: UnsafeBufferPointer<UInt8>,
    to output: UnsafeMutableBufferPointer<UInt8>, _ count: inout Int
  ) -> Bool {
    var start = 0
    while start + 4 <= digits.count {
      let (first, second) = (values[Int(digits[start])], values[Int(digits[start + 1])])
      let (third, fourth) = (values[Int(digits[start + 2])], values[Int(digits[start + 3])])
      guard first | second | third | fourth < 64 else { return false }
      let bits = UInt32(first) << 18 | UInt32(second) << 12 | UInt32(third) << 6 | UInt32(fourth)
      output[count] = UInt8(truncatingIfNeeded: bits >> 16)
      output[count + 1] = UInt8(truncatingIfNeeded: bits >> 8)
      output[count + 2] = UInt8(truncatingIfNeeded: bits)
      count += 3
      start += 4
    }
    var bits: UInt32 = 0
    var pending: UInt32 = 0
    for digit in digits[start...] {
      let value = values[Int(digit)]
      guard value < 64 else { return false }
      bits = bits << 6 | UInt32(value)
      pending += 6
      if pending >= 8 {
        pending -= 8
        output[count] = UInt8(truncatingIfNeeded: bits >> pending)
        count += 1
      }
    }
    return bits & (1 << pending - 1) == 0
  }
}
